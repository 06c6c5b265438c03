"""Many nodes in one process: what one real daemon says of 8 simulated GPUs in pods, under other names on every path."""

from __future__ import annotations

import contextlib
import gzip
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.attribution.kubernetes.kubelet import Kubelet, pod
from tests.end_to_end.processes import daemon

GPUS = 8
WORKLOADS = (
    "training-healthy,input-starved,tiny-kernels,communication-bound,memory-bound,launch-bound,hang,idle-allocated"
)
NAMESPACES = 20
_UUID = "GPU-51313131-0000-0000-0000-{:012d}"
_FRESH = 0.9  # seconds for which one answer of the daemon serves all nodes


class Nodes:
    """``addresses``: one path a node. ``sizes``: (bytes of text, bytes sent) of the latest answers."""

    def __init__(self, daemon_url: str, count: int) -> None:
        self.sizes: tuple[int, int] = (0, 0)
        self._url = daemon_url
        self._lock = threading.Lock()
        self._taken: dict[str, tuple[float, bytes, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.count = count

    @property
    def address(self) -> str:
        """host:port of all of them."""
        return f"127.0.0.1:{self._server.server_port}"

    def targets(self) -> list[dict[str, object]]:
        """For static_configs: the same address, another path and another name a node."""
        return [
            {
                "targets": [self.address],
                "labels": {
                    "__metrics_path__": f"/{node}",
                    "instance": f"gpu-{node:03d}:9836",
                    "node": f"gpu-{node:03d}",
                    "cluster": "east",
                },
            }
            for node in range(self.count)
        ]

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, node: int, accept: str) -> tuple[bytes, str]:
        """(compressed body, content type) of this node."""
        body, content_type = self._current(accept)
        body = body.replace(b"GPU-51313131-0000-0000-0000", b"GPU-51313131-0000-0000-%04d" % node)
        body = re.sub(
            rb'namespace="ml",pod="([a-z]+)"', rb'namespace="team-%d",pod="\1-%d"' % (node % NAMESPACES, node), body
        )
        sent = gzip.compress(body, 1)
        self.sizes = (len(body), len(sent))
        return sent, content_type

    def _current(self, accept: str) -> tuple[bytes, str]:
        with self._lock:
            at, body, content_type = self._taken.get(accept, (0.0, b"", ""))
            if time.monotonic() - at > _FRESH:
                request = urllib.request.Request(f"{self._url}/metrics", headers={"Accept": accept})
                with urllib.request.urlopen(request, timeout=5) as found:
                    body, content_type = found.read(), found.headers["Content-Type"]
                self._taken[accept] = (time.monotonic(), body, content_type)
            return body, content_type

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        nodes = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body, content_type = nodes.answer(int(self.path.strip("/")), self.headers.get("Accept", "*/*"))
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:  # Prometheus is stopped before the nodes are
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Quiet."""

        return Handler


@contextlib.contextmanager
def nodes(folder: Path, count: int) -> Iterator[Nodes]:
    """That many nodes of 8 GPUs, each node with two pods of four, until the end of the block."""
    socket = folder / "kubelet.sock"
    kubelet = Kubelet(socket)
    uuids = [_UUID.format(gpu) for gpu in range(GPUS)]
    kubelet.pods([pod("train", *uuids[:4]), pod("serve", *uuids[4:])])
    kubelet.start()
    options = (
        "--source=simulated",
        f"--source.gpus={GPUS}",
        f"--source.workload={WORKLOADS}",
        "--collector.kubernetes",
        f"--kubernetes.pod-resources-socket={socket}",
        "--cost.price-per-hour=2.5",
    )
    try:
        with daemon(folder, *options) as running:
            made = Nodes(running.ready().url, count)
            made.start()
            try:
                yield made
            finally:
                made.stop()
    finally:
        kubelet.stop()
