"""Who holds what, as series: identity on the join series, and on nothing else."""

from __future__ import annotations

import re

import pytest

from exporter.attribution.holdings import Holding, Sharing, Workload
from exporter.metrics import attribution
from exporter.metrics.catalogue import GROUPS
from exporter.model import Device, Entity, ProcessUse
from tests.core.building import FULL
from tests.metrics.whose import BOARD, DEVICES, H100, SLICE, WHOLE, Told, Whose, series

OF = 'gpu="0",uuid="GPU-1"'
BOARDS = 'gpu="1",uuid="GPU-2"'
ON = 'gpu="1",uuid="GPU-2",gpu_instance="7"'
A, B = Workload("ml", "a", "main"), Workload("ml", "b", "main")
LABELS = {"label_team": "vision", "pod_uid": "u-1", "owner_kind": "Job", "owner_name": "train", "queue": "research"}
SHARED = [Holding(WHOLE, A, Sharing.TIME_SLICED), Holding(WHOLE, B, Sharing.TIME_SLICED)]


def shown(node: Whose, windows: int = 2, processes: tuple[ProcessUse, ...] = ()) -> dict[str, float]:
    """Series of the last of some windows; holders are known from the second on."""
    for _ in range(windows - 1):
        node.window(processes)
    return series(node.window(processes), attribution.GROUP)


def named(found: dict[str, float], name: str) -> dict[str, float]:
    return {each.partition("{")[2][:-1]: value for each, value in found.items() if each.startswith(f"{name}{{")}


def test_all_holders_of_a_shared_device_are_there_at_once_and_stay() -> None:
    """Field case 44: nothing flips from scrape to scrape."""
    node = Whose(Told(SHARED))
    first = named(shown(node), "honest_gpu_allocation_info")
    who = [f'{OF},namespace="ml",pod="{name}",container="main",sharing="time_sliced"' for name in "ab"]
    assert first == dict.fromkeys(who, 1)
    for _ in range(5):
        assert named(series(node.window(), attribution.GROUP), "honest_gpu_allocation_info") == first


def test_labels_of_pods_are_on_the_join_series_alone() -> None:
    """A label that somebody changes, or a pod's UID, must not begin new series of all that is measured."""
    node = Whose(Told([Holding(WHOLE, A, Sharing.EXCLUSIVE, LABELS), Holding(SLICE, B, Sharing.MIG, LABELS)]))
    node.window()
    snapshot = node.window((ProcessUse(WHOLE, 10, 1.0, 0.5),))
    found = series(snapshot, attribution.GROUP)
    info = named(found, "honest_gpu_allocation_info")
    extra = ",".join(f'{name}="{value}"' for name, value in LABELS.items())
    assert list(info) == [
        f'{OF},namespace="ml",pod="a",container="main",sharing="exclusive",{extra}',
        f'{ON},namespace="ml",pod="b",container="main",sharing="mig",{extra}',
    ]
    others = [line for group in GROUPS for line in series(snapshot, group) if "allocation_info" not in line]
    assert others
    assert not [line for line in others if re.search("|".join(LABELS), line)]


def test_no_label_is_empty() -> None:
    """Field case 57: pod="" on everything is how a missing kubelet once looked."""
    node = Whose(Told([Holding(WHOLE, Workload(job_id="7"), Sharing.EXCLUSIVE)]))
    found = shown(node)
    assert not [line for line in found if '=""' in line]
    assert f'{OF},job_id="7",sharing="exclusive"' in named(found, "honest_gpu_allocation_info")


def test_allocated_is_of_what_can_be_handed_out() -> None:
    found = shown(Whose(Told([Holding(SLICE, B, Sharing.MIG)])))
    assert named(found, "honest_gpu_allocated") == {OF: 0, ON: 1}  # the board is cut: it is held by its instances
    assert named(found, "honest_gpu_allocatable") == {}  # nothing tells


def test_allocatable_is_not_allocated() -> None:
    """A sick GPU that is still held; a healthy one that nobody holds."""
    found = shown(Whose(Told([Holding(WHOLE, A, Sharing.EXCLUSIVE)], frozenset({SLICE}))))
    assert named(found, "honest_gpu_allocated") == {OF: 1, ON: 0}
    assert named(found, "honest_gpu_allocatable") == {OF: 0, ON: 1}


def test_holders_and_what_is_nobodys_are_the_device() -> None:
    """Field case 43: the sum over pods is never more than the board."""
    uses = (ProcessUse(WHOLE, 10, 4e9, 0.4), ProcessUse(WHOLE, 20, 2e9, 0.1), ProcessUse(SLICE, 10, 1e9))
    node = Whose(Told([*SHARED, Holding(SLICE, A, Sharing.MIG)]))
    snapshot = [node.window(uses) for _ in range(20)][-1]
    found = series(snapshot, attribution.GROUP)
    whole = sum(sum(view.totals.parts.values()) for view in snapshot.entities if not view.device.mig_enabled)
    held, rest = (
        sum(named(found, f"honest_gpu_{name}_time_seconds_total").values()) for name in ("workload", "unattributed")
    )
    assert held > 0 < rest
    assert held + rest == pytest.approx(whole)
    who = 'namespace="ml",pod="a",container="main"'
    assert named(found, "honest_gpu_workload_memory_bytes")[who] == 5e9  # over both of its devices
    assert named(found, "honest_gpu_workload_processes")[who] == 2


class TestMigShare:
    """What one second of an instance is in GPU-seconds."""

    @staticmethod
    def share(*profiles: str, model: str = H100) -> dict[str, float]:
        slices = [
            Device(Entity("GPU-2", number), "1", FULL, model=model, mig_profile=profile)
            for number, profile in enumerate(profiles)
        ]
        board = Device(BOARD, "1", FULL, model=model, mig_enabled=True)
        return named(shown(Whose(Told(()), devices=[DEVICES[0], board, *slices])), "honest_gpu_mig_share_ratio")

    def test_slices_over_those_of_the_board(self) -> None:
        found = self.share("3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb+me")
        assert found == {
            f'{BOARDS},gpu_instance="{number}"': pytest.approx(slices / 7) for number, slices in enumerate((3, 2, 1, 1))
        }
        assert sum(found.values()) == pytest.approx(1.0)  # a board that is cut up wholly is one GPU

    def test_a_compute_instance_takes_its_gpu_instance_from_others(self) -> None:
        assert list(self.share("1c.3g.40gb").values()) == [pytest.approx(3 / 7)]

    @pytest.mark.parametrize(
        ("profile", "model"),
        [("", H100), ("who knows", H100), ("1g.10gb", "NVIDIA Unheard-of X1"), ("1g.5gb", "Tesla T4")],
    )
    def test_it_is_absent_where_it_is_not_known(self, profile: str, model: str) -> None:
        assert self.share(profile, model=model) == {}

    def test_whole_gpus_have_none(self) -> None:
        assert self.share() == {}
