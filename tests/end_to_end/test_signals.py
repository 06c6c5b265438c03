"""Start, reload and end of the real process."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.processes import daemon, fetch, free_port, wait_for

pytestmark = pytest.mark.system

SIMULATED = ("--source=simulated", "--source.gpus=1")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One command that ends by itself."""
    command = [sys.executable, "-m", "exporter", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


def test_sigterm_ends_cleanly_although_clients_are_silent(tmp_path: Path) -> None:
    with daemon(tmp_path, *SIMULATED) as running:
        running.ready()
        silent = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(4)]
        assert running.stop() < 2.0
        assert running.process.returncode == 0
        for sock in silent:
            sock.close()


def test_sighup_takes_a_good_configuration_and_keeps_the_old_one_otherwise(tmp_path: Path) -> None:
    config = tmp_path / "exporter.yaml"
    config.write_text("source: {type: simulated, gpus: 1}\nmetrics: {exclude: honest_gpu_power_*}\n")
    with daemon(tmp_path, "--config", str(config)) as running:
        running.ready()
        assert not any("_power_" in series for series in running.metrics())
        config.write_text("source: {type: simulated, gpus: 1}\n")
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any("_power_" in series for series in running.metrics()), "the new selection")
        ok = "honest_gpu_config_last_reload_successful"
        assert running.value(ok) == 1
        for bad in ("source: {type: simulated, gpu: 1}\n", "source: {type: simulated, gpus: 2}\n"):
            config.write_text(bad)
            running.process.send_signal(signal.SIGHUP)
            wait_for(lambda: running.value(ok) == 0, "the refusal in the metric")
            assert any("_power_" in series for series in running.metrics())
            config.write_text("source: {type: simulated, gpus: 1}\n")
            running.process.send_signal(signal.SIGHUP)
            wait_for(lambda: running.value(ok) == 1, "the recovery")
        assert "source.gpu: no such option; did you mean source.gpus?" in running.log
        assert "a change of source.gpus needs a restart" in running.log


def test_logs_can_be_json_and_simulation_is_said_loudly(tmp_path: Path) -> None:
    with daemon(tmp_path, *SIMULATED, "--log.format=json") as running:
        running.ready()
        events = [json.loads(line) for line in running.log.splitlines()]
        assert any(event["level"] == "warning" and "SIMULATED" in event["message"] for event in events)


def test_a_taken_port_is_said_with_its_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(*SIMULATED, f"--web.listen-address=127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_gpu_auto_says_what_it_looked_for() -> None:
    done = run(f"--web.listen-address=127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert "libnvidia-ml.so.1" in done.stderr
    assert "--source=simulated" in done.stderr


def test_waiting_for_gpus_serves_zero_present(tmp_path: Path) -> None:
    with daemon(tmp_path, "--wait-for-gpus") as running:
        running.ready()
        assert running.value("honest_gpu_present_gpus") == 0
        assert running.value("honest_gpu_up", source="nvml") == 0
        assert fetch(f"{running.url}/-/healthy").startswith("Healthy")


def test_wrong_use_and_wrong_configuration_end_with_2(tmp_path: Path) -> None:
    config = tmp_path / "bad.yaml"
    config.write_text("sampling: {interval: soon}\n")
    done = run("--config", str(config), "--check-config")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{config}: sampling.interval: 'soon': expected a duration" in done.stderr
    assert run("--source=simulated", "--source.workload=trainig-healthy", "--check-config").returncode == 2
    assert run("--web.listen-address=nowhere", "--check-config").returncode == 2
    assert run("--source=simulated", "--check-config").returncode == 0


def test_two_addresses_and_ipv6(tmp_path: Path) -> None:
    port = free_port()
    with daemon(tmp_path, *SIMULATED, f"--web.listen-address=[::1]:{port}") as running:
        running.ready()
        assert fetch(f"http://[::1]:{port}/-/healthy").startswith("Healthy")
