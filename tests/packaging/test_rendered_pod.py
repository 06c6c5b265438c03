"""The rendered DaemonSet's container really runs: arguments, variables, user, volumes, walls; on simulated GPUs."""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from tests.attribution.kubernetes.kubelet import Kubelet, pod
from tests.end_to_end.processes import free_port, parse, pick
from tests.packaging.helm import REPOSITORY, Helm, Manifest, container_of, only
from tests.packaging.node import Node, Order, project
from tests.packaging.runtimes import Bubblewrap, Podman, Running, Runtime
from tests.web.clients import get
from tests.web.conftest import Authority

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("image")]

SIMULATED: dict[str, Any] = {"type": "simulated", "gpus": 2}
PATIENCE = 30.0  # seconds until a test gives up
POD_RESOURCES = "/var/lib/kubelet/pod-resources"


@pytest.fixture(params=["podman", "bubblewrap"])
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return Bubblewrap() if request.param == "bubblewrap" else Podman(request.getfixturevalue("image"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


def wait(running: Running, what: str, condition: Callable[[], bool]) -> None:
    """Until it is so; fails with the log of the container."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if condition():
                return
        if running.gone():
            break
        time.sleep(0.05)
    pytest.fail(f"not so: {what}\n{running.log}")


def series(order: Order) -> Mapping[str, float]:
    """A scrape in clear text."""
    return parse(get(("127.0.0.1", order.port), "/metrics").body.decode())


def kubelet_probes(probe: Manifest, port: int) -> bool:
    """What a kubelet does: a certificate is not verified, any status from 200 to 399 is well, or the port is open."""
    address = ("127.0.0.1", port)
    if "tcpSocket" in probe:
        with socket.create_connection(address, 5):
            return True
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    asked = probe["httpGet"]
    context = unverified if asked["scheme"] == "HTTPS" else None
    return 200 <= get(address, asked["path"], context=context).status < 400


def becomes_ready(running: Running, objects: list[Manifest], order: Order) -> None:
    """Both probes of the manifest are content, and the first window is closed."""
    for name in ("livenessProbe", "readinessProbe"):
        probe = container_of(objects)[name]
        wait(running, name, functools.partial(kubelet_probes, probe, order.port))


def test_it_is_scraped_behind_its_walls(helm: Helm, runtime: Runtime, tmp_path: Path) -> None:
    objects = helm.render({"source": SIMULATED, "web": {"port": free_port()}})
    order = Node(tmp_path / "volumes").order(objects)
    with runtime.run(order) as running:
        becomes_ready(running, objects, order)
        wait(running, "a measurement", lambda: pick(series(order), "honest_gpu_sm_active_ratio", gpu="1") is not None)
        assert pick(series(order), "honest_gpu_present_gpus") == 2
        assert {running.status(key) for key in ("CapEff", "CapPrm", "CapBnd")} == {f"{0:016x}"}
        assert running.status("NoNewPrivs") == "1"
        assert running.root_is_read_only()
        assert '"level"' in running.log  # logs are JSON by default
        running.terminate()
        wait(running, "it ends when it is told to", running.gone)


def test_the_kubelet_is_asked_as_root_without_capabilities(helm: Helm, runtime: Runtime, tmp_path: Path) -> None:
    folder = tmp_path / "pod-resources"
    folder.mkdir(mode=0o750)
    kubelet = Kubelet(folder / "kubelet.sock")
    kubelet.pods([pod("train", "GPU-51313131-0000-0000-0000-000000000000")])
    kubelet.start()
    (folder / "kubelet.sock").chmod(0o755)  # as a kubelet leaves it: only its owner may connect
    values = {"source": SIMULATED, "web": {"port": free_port()}, "collectors": {"kubernetes": {"enabled": True}}}
    objects = helm.render(values)
    order = Node(tmp_path / "volumes", host={POD_RESOURCES: folder}).order(objects)
    assert (order.user, order.added) == (0, ())
    with runtime.run(order) as running:
        becomes_ready(running, objects, order)

        held = "honest_gpu_allocation_info"
        wait(running, "the holder", lambda: pick(series(order), held, gpu="0", pod="train") == 1)
        assert running.status("CapEff") == f"{0:016x}"
    kubelet.stop()


def certificate(authority: Authority, stem: str) -> dict[str, bytes]:
    """A Secret of type kubernetes.io/tls, with its authority."""
    identity = authority.issue(stem)
    ca = authority.cert.read_bytes()
    return {"tls.crt": identity.cert.read_bytes(), "tls.key": identity.key.read_bytes(), "ca.crt": ca}


def test_tls_of_the_chart_and_a_certificate_that_is_renewed(
    helm: Helm, runtime: Runtime, tmp_path: Path, authority: Authority
) -> None:
    values = {"source": SIMULATED, "web": {"port": free_port(), "tls": {"enabled": True, "existingSecret": "cert"}}}
    objects = helm.render(values)
    folder = tmp_path / "volumes"
    order = Node(folder, {"cert": certificate(authority, "first")}).order(objects)
    address = ("127.0.0.1", order.port)
    with runtime.run(order) as running:
        becomes_ready(running, objects, order)
        assert get(address, "/metrics", context=authority.client_context()).status == 200
        assert helm_test(objects, order).returncode == 0
        before = served_certificate(order.port)
        project(folder / "tls", certificate(authority, "second"), 0o440, 65534)
        wait(running, "the renewed certificate", lambda: served_certificate(order.port) != before)
        assert get(address, "/metrics", context=authority.client_context()).status == 200


def test_a_password_keeps_scrapes_out_and_probes_content(
    helm: Helm, runtime: Runtime, tmp_path: Path, authority: Authority
) -> None:
    tls = "tls_server_config: {cert_file: ../tls/tls.crt, key_file: ../tls/tls.key}\n"
    users = f"basic_auth_users: {{scrape: '{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}'}}\n"
    web = {"tls": {"enabled": True, "existingSecret": "cert"}, "existingConfigSecret": "web", "basicAuth": True}
    objects = helm.render({"source": SIMULATED, "web": {**web, "port": free_port()}})
    secrets = {"cert": certificate(authority, "server"), "web": {"web.yaml": f"{tls}{users}".encode()}}
    folder = tmp_path / "volumes"
    order = Node(folder, secrets).order(objects)
    address, trusting = ("127.0.0.1", order.port), authority.client_context()
    login = {"Authorization": "Basic c2NyYXBlOnMzY3JldA=="}
    with runtime.run(order) as running:
        becomes_ready(running, objects, order)
        wait(running, "a scrape", lambda: get(address, "/metrics", context=trusting, headers=login).status == 200)
        assert get(address, "/metrics", context=trusting).status == 401
        assert helm_test(objects, order).returncode == 0


def served_certificate(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port))


def helm_test(objects: list[Manifest], order: Order) -> subprocess.CompletedProcess[str]:
    """What `helm test` runs, asking this machine in place of the Service."""
    (container,) = only(objects, "Pod", "-test")["spec"]["containers"]
    script = REPOSITORY / "packaging" / "image" / "healthcheck.py"
    (url,) = container["args"]
    scheme, _, path = url.replace("://", "/").split("/", 2)
    asked = f"{scheme}://127.0.0.1:{order.port}/{path}"
    return subprocess.run([sys.executable, str(script), asked], capture_output=True, text=True, check=False)
