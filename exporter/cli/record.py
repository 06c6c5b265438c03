"""Writes what a source delivers to a file."""

from __future__ import annotations

import logging
import signal
import threading

from exporter.cli.building import build_sources
from exporter.config.of_commands import RECORD_DURATION, RECORD_OUT
from exporter.config.options import SAMPLING_INTERVAL, SOURCE_SPEED
from exporter.config.settings import ConfigError, Settings
from exporter.daemon import Sampling, wait_for_signal
from exporter.model import Batch, SourceError
from exporter.sources.replay.recording import Recorder

log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def record(settings: Settings) -> int:
    """Until the duration is over, the input ends, or a signal; the exit status. Raises ConfigError or SourceError."""
    path, duration = settings[RECORD_OUT], settings[RECORD_DURATION]
    assert path is not None  # checked with the settings
    sources = build_sources(settings)
    try:
        recorder = Recorder(path)
    except OSError as error:
        raise ConfigError(f"{settings.where(RECORD_OUT)}: {path} cannot be written: {error.strerror}") from error
    stop = threading.Event()
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # before any thread is started: they inherit it
    first: float | None = None

    def keep(batch: Batch) -> None:
        nonlocal first
        first = batch.end if first is None else first
        recorder(batch)
        if duration is not None and batch.end - first >= duration:
            stop.set()

    sampling = Sampling(
        sources,
        lambda _: None,
        interval=settings[SAMPLING_INTERVAL],
        speed=settings[SOURCE_SPEED],
        record=keep,
    )
    runner = threading.Thread(target=sampling.run, args=(stop,), name="sampler", daemon=True)
    runner.start()
    try:
        while runner.is_alive():
            if wait_for_signal(_SIGNALS, 0.1) is not None:
                stop.set()
    finally:
        sampling.close()
        recorder.close()
    if not recorder.batches:
        raise SourceError(f"nothing was read: {path} contains no samples", "see the log")
    log.info("%s: %d batches written; replay it with --source replay --source.path %s", path, recorder.batches, path)
    return 0
