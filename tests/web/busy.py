"""Requests that are being answered for as long as a test wants."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Iterator

from exporter.web.routes import Request, Response, text_response

from .clients import PATIENCE, connect, request_bytes


class Busy:
    """An application whose answers wait."""

    def __init__(self) -> None:
        self._go_on = threading.Event()
        self._entered = threading.Semaphore(0)

    def __call__(self, request: Request) -> Response:
        self._entered.release()
        assert self._go_on.wait(PATIENCE)
        return text_response(200, "done")

    @contextlib.contextmanager
    def held(self, address: tuple[str, int], count: int, context: ssl.SSLContext | None = None) -> Iterator[None]:
        """While this many requests are being answered."""
        self._go_on.clear()
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(connect(address, context)).sendall(request_bytes())
                assert self._entered.acquire(timeout=PATIENCE)
            yield
            self._go_on.set()
