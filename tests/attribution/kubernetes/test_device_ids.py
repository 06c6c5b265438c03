"""Every form of device id, and which device it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.kubernetes.device_ids import DeviceId, Resolver, parse
from exporter.model import Device, Entity

A, B = "GPU-0aaaaaaa-1111-2222-3333-444444444444", "GPU-0bbbbbbb-1111-2222-3333-444444444444"
MIG = "MIG-0ccccccc-1111-2222-3333-444444444444"
# the driver's index, the minor number and the order of this list all differ (field case 54)
DEVICES = (
    Device(Entity(B), "0", minor="6"),
    Device(Entity(A), "1", minor="0", mig_enabled=True),
    Device(Entity(A, 7), "1", minor="0", mig_uuid=MIG, mig_profile="1g.10gb"),
)
FORMS = {
    B: (Entity(B), False),
    f"{B}::0": (Entity(B), True),
    f"{B}::": (Entity(B), False),
    B.lower().replace("gpu", "GPU"): (Entity(B), False),
    MIG: (Entity(A, 7), False),
    f"{MIG}::3": (Entity(A, 7), True),
    f"{MIG}::": (Entity(A, 7), False),
    f"MIG-{A}/7/0": (Entity(A, 7), False),
    "nvidia6": (Entity(B), False),
    "nvidia0/gi7": (Entity(A, 7), False),
    "nvidia6/vgpu2": (Entity(B), True),
    "nvidia0/gi7/vgpu1": (Entity(A, 7), True),
}


@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str) -> None:
    wanted = parse(text)
    assert wanted is not None
    assert (Resolver(DEVICES).find(wanted), wanted.replica) == FORMS[text]


@pytest.mark.parametrize("text", [f"MIG-{A}/8/0", "nvidia1", "nvidia0/gi8", "GPU-0bbbbbbb-1111-2222-3333-444444444445"])
def test_devices_that_are_not_here(text: str) -> None:
    wanted = parse(text)
    assert wanted is not None
    assert Resolver(DEVICES).find(wanted) is None


@pytest.mark.parametrize(
    "text", ["", "ABCD-0", B[:-1], f"{B}0", f"{B}-3", f"{B}::x", "nvidia", "nvidia0/", "0", f" {B}", f"{B}\n"]
)
def test_nothing_is_matched_by_prefix(text: str) -> None:
    assert parse(text) is None


@given(st.text() | st.from_regex(r"(GPU|MIG|nvidia)[-0-9a-f:/giv]{0,50}"))
def test_any_text_is_an_id_or_none(text: str) -> None:
    found = parse(text)
    assert found is None or isinstance(found, DeviceId)
    Resolver(DEVICES).find(found or DeviceId())
