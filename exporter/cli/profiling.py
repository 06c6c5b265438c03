"""Pause and resume DCGM's profiling, for those who need the hardware's counters themselves."""

from __future__ import annotations

import signal

from exporter.config.of_commands import PROFILING_FOR
from exporter.config.options import DCGM_ADDRESS, DCGM_BINDINGS
from exporter.config.settings import ConfigError, Settings
from exporter.daemon import wait_for_signal

TIMEOUT = 5.0  # seconds for a connection
DEFAULT_ADDRESS = "localhost:5555"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def profiling(settings: Settings, action: str) -> int:
    """``pause`` (with --for: waits, and resumes by itself, also when interrupted) or ``resume``; the exit status.

    Raises SourceError when the hostengine refuses, ConfigError for an address that is none.
    """
    from exporter.sources.dcgm import profiling as dcgm
    from exporter.sources.dcgm.bindings import find_bindings

    address = settings[DCGM_ADDRESS] or DEFAULT_ADDRESS
    bindings = find_bindings(settings[DCGM_BINDINGS])
    seconds = settings[PROFILING_FOR]
    try:
        if action == "resume":
            dcgm.resume(address, bindings, TIMEOUT)
            print(f"profiling at {address} is resumed")
        elif seconds is None:
            dcgm.pause(address, bindings, TIMEOUT)
            print(f"profiling at {address} is paused until `honest-gpu-exporter profiling resume`")
        else:
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            print(f"profiling at {address} is paused for {seconds:g} s; Ctrl-C resumes it sooner", flush=True)
            dcgm.pause_while(address, bindings, TIMEOUT, lambda: wait_for_signal(_SIGNALS, seconds))
            print("resumed")
    except ValueError as error:
        raise ConfigError(f"{settings.where(DCGM_ADDRESS)}: {error}") from error
    return 0
