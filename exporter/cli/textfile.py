"""The daemon's pipeline without a web server: the metrics in a file for node_exporter's textfile collector."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from pathlib import Path

from prometheus_client import write_to_textfile

from exporter.cli.building import build_sources
from exporter.cli.exported import compatibility, prices, selection
from exporter.cli.stages import build_assembly
from exporter.collector import SnapshotCollector
from exporter.config.of_commands import ONCE, TEXTFILE_INTERVAL, TEXTFILE_OUTPUT
from exporter.config.options import CURRENCY, SAMPLING_INTERVAL, SOURCE, SOURCE_SPEED
from exporter.config.settings import ConfigError, Settings
from exporter.core.snapshot import Snapshot
from exporter.daemon import STOP_SECONDS, Sampling, wait_for_signal
from exporter.metrics.catalogue import GROUPS
from exporter.metrics.cost import cost_group
from exporter.metrics.family import Group, Type
from exporter.metrics.own import BUILD_GROUP
from exporter.model import SourceError
from exporter.version import VERSION

log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WINDOWS = 3  # before the first write: a mean needs two readings, and some sources give nothing in the first window
_PATIENCE = 10.0  # seconds for those windows; at least five sampling intervals
_POLL = 0.1  # seconds
_STANDING = frozenset({Type.GAUGE, Type.INFO})


def check_textfile(settings: Settings) -> None:
    """What can be told of the file and the interval without writing. Raises ConfigError."""
    path, where = settings[TEXTFILE_OUTPUT], settings.where(TEXTFILE_OUTPUT)
    example = "such as /var/lib/prometheus/node-exporter/honest_gpu.prom"
    if path is None:
        raise ConfigError(f"{where}: required: the file to write, {example}")
    if not path.name.endswith(".prom"):
        raise ConfigError(f"{where}: {path}: expected a name that ends in .prom, the only ones node_exporter reads")
    if path.is_dir():
        raise ConfigError(f"{where}: {path}: is a folder; expected a file, {example}")
    if not path.parent.is_dir():
        raise ConfigError(f"{where}: {path}: no such folder: {path.parent}; expected an existing one, {example}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{where}: {path}: the folder {path.parent} is not writable for uid {os.geteuid()}; expected one in which "
            "files can be created and replaced"
        )
    interval, shortest = settings[TEXTFILE_INTERVAL], settings[SAMPLING_INTERVAL]
    if interval < shortest:
        raise ConfigError(
            f"{settings.where(TEXTFILE_INTERVAL)}: {interval:g}s: expected at least {SAMPLING_INTERVAL.flag}, "
            f"{shortest:g}s"
        )


def textfile(settings: Settings) -> int:
    """Write until stopped, or once; the exit status. Raises ConfigError or SourceError.

    The file exists only while its numbers are current: what a killed writer left is removed at the start, and the own
    file at the end. With --once it stays, unless the run fails.
    """
    path, once = settings[TEXTFILE_OUTPUT], settings[ONCE]
    assert path is not None  # checked with the settings
    if not once:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            where = settings.where(TEXTFILE_OUTPUT)
            raise ConfigError(f"{where}: {path} cannot be replaced: {error.strerror}") from error
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # before any thread is started: they inherit it
    kept = False
    try:
        status = _Writing(settings, path).run()
        kept = once and status == 0
        return status
    finally:
        if not kept:
            _remove(path)


class _Writing:
    """Samples in a thread, writes in the one that waits for signals."""

    def __init__(self, settings: Settings, path: Path) -> None:
        self._settings = settings
        self._path = path
        self._latest: Snapshot | None = None
        self._written: Snapshot | None = None
        self._works = True
        self._failed = False
        self._stop = threading.Event()
        # without the families of the own process: node_exporter has its own under the same names, and refuses others
        cost = cost_group(prices(settings), settings[CURRENCY])
        self._groups: tuple[Group, ...] = (*GROUPS, cost, BUILD_GROUP, *compatibility(settings))
        if settings[ONCE]:
            self._groups = tuple(_standing(group) for group in self._groups)
        self._selection = selection(settings)
        sources = build_sources(settings)
        self._assembly = build_assembly(settings, self._publish)
        self._sampling = Sampling(
            sources, self._assembly, interval=settings[SAMPLING_INTERVAL], speed=settings[SOURCE_SPEED]
        )
        self._runner = threading.Thread(target=self._sample, name="sampler", daemon=True)

    def run(self) -> int:
        """The exit status. Raises SourceError with --once, when nothing could be read."""
        source = self._settings[SOURCE]
        log.info("honest-gpu-exporter %s, source %s, writing %s", VERSION, source, self._path)
        if source == "simulated":
            log.warning("SIMULATED: every value written is made up (--source simulated)")
        self._assembly.start()
        self._runner.start()
        try:
            stopped = self._wait_for_windows()
            if self._settings[ONCE]:
                return 1 if stopped else self._once()
            if not stopped:
                self._repeat()
        finally:
            self._stop.set()
            self._runner.join(STOP_SECONDS)
            self._sampling.close()
            self._assembly.stop(STOP_SECONDS / 4)
        log.info("stopped")
        return 1 if self._failed else 0

    def _publish(self, snapshot: Snapshot) -> None:
        self._latest = snapshot

    def _sample(self) -> None:
        try:
            self._sampling.run(self._stop)
        except Exception:
            log.exception("the sampler failed; stopping. This is a bug: please report it with this traceback.")
            self._failed = True
            os.kill(os.getpid(), signal.SIGTERM)
            return
        if self._sampling.ended:
            log.info("the source has ended")

    def _wait_for_windows(self) -> bool:
        """Until every source has delivered a few, has ended, or takes too long. True when told to stop."""
        deadline = time.monotonic() + max(_PATIENCE, 5 * self._settings[SAMPLING_INTERVAL])
        while self._runner.is_alive() and not self._measured() and time.monotonic() < deadline:
            if wait_for_signal(_SIGNALS, _POLL) is not None:
                return True
        return self._failed

    def _measured(self) -> bool:
        snapshot = self._latest
        return snapshot is not None and all(each.reads - each.failures >= _WINDOWS for each in snapshot.sources)

    def _once(self) -> int:
        snapshot = self._latest
        sources = () if snapshot is None else snapshot.sources
        if snapshot is None or all(each.reads == each.failures for each in sources):
            reasons = [f"source {each.name}: {each.reason or 'no answer'}" for each in sources]
            raise SourceError(f"nothing could be read: {'; '.join(reasons) or 'no answer'}", "see the log")
        return 0 if self._write(snapshot) else 1

    def _repeat(self) -> None:
        """A write every interval until told to stop. Numbers that are not new are not written again, so that the time
        of the file is that of its numbers."""
        interval = self._settings[TEXTFILE_INTERVAL]
        pause = 0.0
        while wait_for_signal(_SIGNALS, pause) is None:
            snapshot = self._latest
            if snapshot is None or snapshot is self._written:
                pause = _POLL if self._runner.is_alive() else interval
                continue
            started = time.monotonic()
            self._write(snapshot)
            pause = max(0.0, interval - (time.monotonic() - started))

    def _write(self, snapshot: Snapshot) -> bool:
        """False when it cannot be written; both changes are logged."""
        collector = SnapshotCollector(lambda: snapshot, self._groups, self._selection)
        try:
            write_to_textfile(str(self._path), collector)
        except OSError as error:
            if self._works:
                log.error("%s cannot be written: %s", self._path, error.strerror)
            self._works = False
            _remove(self._path)  # rather no numbers than old ones
            return False
        if not self._works:
            log.info("%s is written again", self._path)
        self._works = True
        self._written = snapshot
        return True


def _standing(group: Group) -> Group:
    """Without counters and histograms: those of a run of seconds start from zero in each, and two runs that ended at
    different totals look like one counter whose rate means nothing."""
    return group._replace(families=tuple(family for family in group.families if family.type in _STANDING))


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.error("%s cannot be removed: %s; its numbers are old", path, error.strerror)
