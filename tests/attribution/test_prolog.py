"""Our Slurm prolog and epilog, run by the shell over a made-up driver; what they write is read by our reader."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from exporter.attribution.holdings import Claim, Workload
from exporter.attribution.job_mapping import read_job_files
from exporter.model import Device, Entity
from tests.attribution.fake_driver import add_gpu, add_instance

SCRIPTS = Path(__file__).parents[2] / "packaging" / "slurm"
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
A, B, C = "GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222", "GPU-cccccccc-3333"
MIG = "MIG-dddddddd-4444"
DEVICES = (Device(Entity(A), "0"), Device(Entity(B), "1"), Device(Entity(C), "2"), Device(Entity(C, 7), "2"))
JOB = {"SLURM_JOB_ID": "12", "SLURM_JOB_UID": "1001", "SLURM_JOB_USER": "ada", "SLURM_JOB_ACCOUNT": "physics"}


class Node:
    def __init__(self, root: Path, shell: str) -> None:
        self.root, self.jobs, self.settings = root, root / "run/jobs", root / "slurm.conf"
        self._shell = [shutil.which(shell) or shell, *(["sh"] if shell == "busybox" else [])]

    def run(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        """As Slurm does: without a PATH and with no more environment than this."""
        told = {
            "HONEST_GPU_SLURM_ROOT": str(self.root),
            "HONEST_GPU_SLURM_JOBS": str(self.jobs),
            "HONEST_GPU_SLURM_SETTINGS": str(self.settings),
            "HONEST_GPU_SLURM_NVIDIA_SMI": str(self.root / "nvidia-smi"),
        }
        command = [*self._shell, str(SCRIPTS / script)]
        done = subprocess.run(command, env=told | env, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0  # anything else drains the node
        return done

    def gpus(self, **env: str) -> list[str]:
        """What the prolog writes of a job's GPUs."""
        self.run("prolog", **(JOB | env))
        lines = (self.jobs / "12").read_text().splitlines()
        return [line.removeprefix("gpu=") for line in lines if line.startswith("gpu=")]


@pytest.fixture(params=SHELLS)
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Node:
    return Node(tmp_path, request.param)


@pytest.fixture
def straight(node: Node) -> Node:
    """/dev/nvidiaN in the order of PCI addresses."""
    for minor, (address, uuid) in enumerate((("0000:17:00.0", A), ("0000:65:00.0", B), ("0000:ca:00.0", C))):
        add_gpu(node.root, address, uuid, minor)
    return node


@pytest.fixture
def crossed(node: Node) -> Node:
    """Field case 54: /dev/nvidia0 is the last by PCI address."""
    add_gpu(node.root, "0000:17:00.0", A, 1)
    add_gpu(node.root, "0000:65:00.0", B, 2)
    add_gpu(node.root, "0000:ca:00.0", C, 0)
    return node


def test_from_prolog_to_epilog(straight: Node) -> None:
    done = straight.run("prolog", **JOB, SLURM_JOB_GPUS="0,2", SLURM_JOB_SLUID="s5K1KKYAYG5D00")
    assert (done.stdout, done.stderr) == ("", "")
    who = Workload(job_id="12", user="ada", account="physics")
    found = read_job_files(straight.jobs, DEVICES)
    assert found.claims == [Claim(Entity(A), who, uid=1001), Claim(Entity(C), who, uid=1001)]
    assert dict(found.jobs) == {"12": who, "s5K1KKYAYG5D00": who}
    assert os.listdir(straight.jobs) == ["12"]  # nothing half-written is left

    straight.run("epilog", SLURM_JOB_ID="1")
    assert os.listdir(straight.jobs) == ["12"]
    (straight.jobs / ".12.345").touch()  # of a prolog that was killed
    straight.run("epilog", **JOB)
    assert os.listdir(straight.jobs) == []
    assert straight.run("epilog", **JOB).stderr == ""


def test_two_jobs_on_one_gpu(straight: Node) -> None:
    straight.run("prolog", **JOB, SLURM_JOB_GPUS="1")
    straight.run("prolog", **(JOB | {"SLURM_JOB_ID": "13"}), SLURM_JOB_GPUS="1")
    straight.run("epilog", **JOB)
    assert [claim.workload.job_id for claim in read_job_files(straight.jobs, DEVICES).claims] == ["13"]


def test_the_file_may_be_read_by_all(straight: Node) -> None:
    straight.run("prolog", **JOB, SLURM_JOB_GPUS="1")
    assert oct((straight.jobs / "12").stat().st_mode)[-3:] == "644"
    assert oct(straight.jobs.stat().st_mode)[-3:] == "755"


def test_uuids_that_slurm_knows_go_first(crossed: Node) -> None:
    """AutoDetect=nvml: newer releases give the UUIDs; for MIG devices all do."""
    assert crossed.gpus(CUDA_VISIBLE_DEVICES=f"{B},{MIG}", SLURM_JOB_GPUS="0,1") == [B, MIG]
    assert crossed.gpus(CUDA_VISIBLE_DEVICES=f"MIG-{C}/7/0", SLURM_JOB_GPUS="3") == [f"MIG-{C}/7/0"]
    assert [claim.entity for claim in read_job_files(crossed.jobs, DEVICES).claims] == [Entity(C, 7)]


def test_where_the_orders_differ_nothing_is_guessed(crossed: Node) -> None:
    assert crossed.gpus(SLURM_JOB_GPUS="0,1") == ["index:0", "index:1"]
    said = crossed.run("prolog", **JOB, SLURM_JOB_GPUS="0").stderr
    assert "job 12: which GPU is Slurm's number 0? Set HONEST_GPU_SLURM_ORDER in" in said
    found = read_job_files(crossed.jobs, DEVICES)
    assert (list(found.claims), [oddity.kind for oddity in found.oddities]) == ([], ["unknown_device"])
    assert dict(found.jobs)["12"].user == "ada"  # still of use where the processes tell the job


def test_the_order_by_the_settings(crossed: Node) -> None:
    crossed.settings.write_text("HONEST_GPU_SLURM_ORDER=minor\n")
    assert crossed.gpus(SLURM_JOB_GPUS="0,1") == [C, A]
    crossed.settings.write_text("HONEST_GPU_SLURM_ORDER=pci\n")
    assert crossed.gpus(SLURM_JOB_GPUS="0,1") == [A, B]


def test_the_order_by_a_map(crossed: Node) -> None:
    """gres.conf without the second device: Slurm's number 1 is /dev/nvidia2."""
    chart = crossed.root / "gpus"
    chart.write_text(f"0 /dev/nvidia0\n1 /dev/nvidia2\n2 {MIG}\n")
    crossed.settings.write_text(f"HONEST_GPU_SLURM_ORDER={chart}\n")
    assert crossed.gpus(SLURM_JOB_GPUS="0,1,2,3") == [C, B, MIG, "index:3"]
    chart.unlink()
    assert crossed.gpus(SLURM_JOB_GPUS="0") == ["index:0"]


def test_numbers_among_instances_mean_nothing_without_a_map(straight: Node) -> None:
    add_instance(straight.root, 0, 7)
    assert straight.gpus(SLURM_JOB_GPUS="1") == ["index:1"]


def test_an_excluded_gpu_is_not_counted_by_nvml(straight: Node) -> None:
    add_gpu(straight.root, "0000:01:00.0", "GPU-broken", 3, excluded="Yes")
    assert straight.gpus(SLURM_JOB_GPUS="0") == [A]


def test_more_than_nine_gpus(node: Node) -> None:
    for minor in range(12):
        add_gpu(node.root, f"0000:{minor + 16:02x}:00.0", f"GPU-{minor}", minor)
    assert node.gpus(SLURM_JOB_GPUS="1,10,11") == ["GPU-1", "GPU-10", "GPU-11"]


def test_a_uuid_that_the_driver_does_not_tell_yet(node: Node) -> None:
    add_gpu(node.root, "0000:17:00.0", "GPU-????????-????-????-????-????????????", 0)
    assert node.gpus(SLURM_JOB_GPUS="0") == ["index:0"]
    smi = node.root / "nvidia-smi"
    smi.write_text(f'#!/bin/sh\n[ "$*" = "--query-gpu=uuid --format=csv,noheader -i 0000:17:00.0" ] && echo {A}\n')
    smi.chmod(0o755)
    assert node.gpus(SLURM_JOB_GPUS="0") == [A]


def test_mps(straight: Node) -> None:
    straight.run("prolog", **JOB, SLURM_JOB_GPUS="1", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50")
    assert [claim.mps for claim in read_job_files(straight.jobs, DEVICES).claims] == [True]


def test_devices_only_in_cudas_variable(straight: Node) -> None:
    assert straight.gpus(CUDA_VISIBLE_DEVICES="2") == [C]


@pytest.mark.parametrize("gpus", ["x", "0-2", "*", "../../etc", "$(touch oops)", "`id`", "N/A"])
def test_words_that_are_no_device(straight: Node, gpus: str) -> None:
    done = straight.run("prolog", **JOB, SLURM_JOB_GPUS=gpus)
    assert "passes over the device" in done.stderr
    assert not read_job_files(straight.jobs, DEVICES).claims


def test_a_job_without_gpus_leaves_nothing(straight: Node) -> None:
    straight.run("prolog", **JOB)
    assert not straight.jobs.exists()


@pytest.mark.parametrize("job", ["", "../12", "1 2"])
def test_no_job_no_file(straight: Node, job: str) -> None:
    for script in ("prolog", "epilog"):
        straight.run(script, SLURM_JOB_ID=job, SLURM_JOB_GPUS="0")
    assert not straight.jobs.exists()


def test_without_a_driver(node: Node) -> None:
    assert node.gpus(SLURM_JOB_GPUS="0") == ["index:0"]


def test_a_folder_that_cannot_be_written_is_said_and_the_job_runs(straight: Node) -> None:
    straight.jobs.parent.mkdir()
    straight.jobs.write_text("a file is in the way")
    assert "cannot be written" in straight.run("prolog", **JOB, SLURM_JOB_GPUS="0").stderr
    straight.run("epilog", **JOB)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not on the PATH")
@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_shellcheck(script: str) -> None:
    done = subprocess.run(["shellcheck", str(SCRIPTS / script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
