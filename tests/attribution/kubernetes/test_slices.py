"""Which device of a claim is which GPU, by ResourceSlices of every version."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.kubernetes.slices import PATHS, Slice, resource_slice, selector, uuid_of
from tests.attribution.kubernetes.api_objects import api_slice
from tests.attribution.kubernetes.test_device_ids import MIG, A, B


def read(*documents: dict[str, Any]) -> list[Slice]:
    return [found for each in documents if (found := resource_slice(each, "node-1")) is not None]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_devices_of_a_pool(version: str) -> None:
    found = read(api_slice("s", {"gpu-0": A, "gpu-0-mig-9-7-1": MIG}, version=version))
    assert uuid_of(found, "node-1/gpu-0") == A
    assert uuid_of(found, "node-1/gpu-0-mig-9-7-1") == MIG
    assert uuid_of(found, "node-1/gpu-1") is None
    assert uuid_of(found, "other/gpu-0") is None


def test_only_the_highest_generation_counts() -> None:
    old = api_slice("old", {"gpu-0": A, "gpu-1": B}, version="v1", generation=1)
    new = api_slice("new", {"gpu-0": B}, version="v1", generation=2)
    assert uuid_of(read(old, new), "node-1/gpu-0") == B
    assert uuid_of(read(old, new), "node-1/gpu-1") is None


def test_a_pool_may_be_several_slices() -> None:
    found = read(*(api_slice(f"s{n}", {f"gpu-{n}": u}, version="v1", pool="a/b") for n, u in enumerate((A, B))))
    assert [uuid_of(found, f"a/b/gpu-{n}") for n in range(2)] == [A, B]


def test_a_device_that_two_slices_name_differently_is_not_known() -> None:
    found = read(*(api_slice(f"s{n}", {"gpu-0": u}, version="v1") for n, u in enumerate((A, B))))
    assert uuid_of(found, "node-1/gpu-0") is None


def test_what_is_made_on_demand_is_not_guessed() -> None:
    assert (
        uuid_of(read(api_slice("s", {"gpu-0-mig-1g10gb-0": None}, version="v1")), "node-1/gpu-0-mig-1g10gb-0") is None
    )


def test_others_are_left_out() -> None:
    assert not read(api_slice("s", {"nic": A}, version="v1", driver="dra.net"))
    assert not read(api_slice("s", {"gpu-0": A}, version="v1", node="node-2"))


def test_only_this_nodes_are_asked_for() -> None:
    assert selector("node-1") == "spec.nodeName=node-1,spec.driver=gpu.nvidia.com"
    assert [path.split("/")[3] for path in PATHS] == ["v1", "v1beta2", "v1beta1"]


odd = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "attributes", "basic", "uuid", "string", "generation"]), inner)
    ),
    max_leaves=10,
)


@given(odd, odd)
def test_any_document_is_a_slice_or_none(pool: Any, devices: Any) -> None:
    spec = {"driver": "gpu.nvidia.com", "nodeName": "node-1", "pool": pool, "devices": devices}
    found = resource_slice({"spec": spec}, "node-1")
    assert found is None or uuid_of([found], "x/y") is None or isinstance(found, Slice)
