"""Pausing DCGM's profiling for those who need the hardware themselves: Nsight, ncu, CUPTI.

A pause is the hostengine's: it holds for all its clients and outlives the connection that asked for it.
"""

from __future__ import annotations

from collections.abc import Callable

from exporter.model import SourceError
from exporter.sources.dcgm.address import Address, parse_address
from exporter.sources.dcgm.bindings import Bindings
from exporter.sources.dcgm.errors import CallFailed, Code
from exporter.sources.dcgm.session import open_session

_NOTHING_TO_PAUSE = (
    "this hostengine has no profiling module in use: GPUs from Hopper on are measured by the driver, "
    "which takes the hardware from nobody"
)


def pause(address: str, bindings: Bindings, timeout: float) -> None:
    """Pause until ``resume``. Raises SourceError, ValueError for an address that is none."""
    _ask(parse_address(address), bindings, timeout, "dcgmProfPause")


def resume(address: str, bindings: Bindings, timeout: float) -> None:
    """Resume profiling; no error if it is not paused. Raises as ``pause``."""
    _ask(parse_address(address), bindings, timeout, "dcgmProfResume")


def pause_while(address: str, bindings: Bindings, timeout: float, wait: Callable[[], object]) -> None:
    """Pause while ``wait`` runs; resume also if it raises. Raises as ``pause``."""
    pause(address, bindings, timeout)
    try:
        wait()
    finally:
        resume(address, bindings, timeout)


def _ask(address: Address, bindings: Bindings, timeout: float, function: str) -> None:
    """Call on a new connection, so that it also works after the hostengine was away."""
    if address.embedded:
        raise SourceError(
            "profiling of an embedded DCGM ends with its process: there is nothing to pause from outside",
            "stop the exporter, or give --dcgm.address of a hostengine",
        )
    session = open_session(bindings, address, timeout)
    try:
        session.call(function)
    except CallFailed as failure:
        if failure.code in (Code.NOT_SUPPORTED, Code.MODULE_NOT_LOADED):
            raise SourceError(f"profiling cannot be paused at {address}: {_NOTHING_TO_PAUSE}") from failure
        raise SourceError(f"profiling at {address}: {failure}", failure.remedy) from failure
    finally:
        session.close()
