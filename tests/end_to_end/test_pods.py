"""Pods that hold simulated GPUs, from a kubelet's socket to the metrics."""

from __future__ import annotations

from pathlib import Path

from tests.attribution.kubernetes.kubelet import Kubelet, pod
from tests.end_to_end.processes import daemon, wait_for

GPU = "GPU-51313131-0000-0000-0000-{:012d}"


def test_pods_hold_gpus_and_the_kubelet_restarts(tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path / "kubelet.sock")
    kubelet.pods([pod("train", GPU.format(0)), pod("a", f"{GPU.format(1)}::0"), pod("b", f"{GPU.format(1)}::1")])
    kubelet.start()
    arguments = (
        "--source=simulated",
        "--source.gpus=3",
        "--collector.kubernetes",
        f"--kubernetes.pod-resources-socket={tmp_path / 'kubelet.sock'}",
    )
    with daemon(tmp_path, *arguments) as running:
        running.ready()
        held = "honest_gpu_allocation_info"
        wait_for(lambda: running.value(held, gpu="0", namespace="ml", pod="train", container="main"), "the holder")
        assert running.value(held, gpu="0", pod="train", sharing="exclusive") == 1
        assert running.value(held, gpu="1", pod="a", sharing="time_sliced") == 1
        assert running.value(held, gpu="1", pod="b", sharing="time_sliced") == 1
        assert running.value("honest_gpu_allocated", gpu="2") == 0
        wait_for(
            lambda: running.value("honest_gpu_workload_time_seconds_total", pod="train", part="working"), "its time"
        )
        # shared without samples of its processes: not split, and not lost
        assert running.value("honest_gpu_workload_time_seconds_total", pod="a", part="working") is None
        assert running.value("honest_gpu_unattributed_time_seconds_total", gpu="1", part="idle")
        kubelet.stop()
        wait_for(lambda: running.value("honest_gpu_attribution_up", source="kubernetes") == 0, "the loss", 30)
        kubelet.start()
        wait_for(lambda: running.value("honest_gpu_attribution_up", source="kubernetes") == 1, "the return", 30)
    kubelet.stop()
