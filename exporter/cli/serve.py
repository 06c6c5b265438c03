"""The main job: read, derive, serve."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from exporter import logs
from exporter.cli.arguments import Asked
from exporter.cli.building import build_sources
from exporter.cli.exported import compatibility, prices, selection
from exporter.cli.stages import build_assembly
from exporter.config.loading import Loaded, load
from exporter.config.options import (
    COMPAT_JOBSTATS,
    CURRENCY,
    LISTEN_ADDRESS,
    LOG_FORMAT,
    LOG_LEVEL,
    METRICS_EXCLUDE,
    METRICS_INCLUDE,
    METRICS_PROFILE,
    SAMPLING_INTERVAL,
    SOURCE,
    SOURCE_SPEED,
    TELEMETRY_PATH,
    WEB_CONFIG,
)
from exporter.config.settings import ConfigError, Settings
from exporter.core.snapshot import Snapshot
from exporter.daemon import STOP_SECONDS, Daemon, Sampling
from exporter.endpoints import Published, endpoints
from exporter.metrics.catalogue import groups, samples
from exporter.metrics.family import Family, Sample
from exporter.metrics.own import OwnState
from exporter.version import VERSION
from exporter.web.routes import Routes
from exporter.web.server import ListenError, WebServer, parse_address

if TYPE_CHECKING:
    from exporter.web.web_config import Security

log = logging.getLogger(__name__)
RELOADABLE = frozenset(
    option.name for option in (METRICS_PROFILE, METRICS_INCLUDE, METRICS_EXCLUDE, LOG_LEVEL, LOG_FORMAT)
)


def check_serving(settings: Settings) -> None:
    """What only the rooms themselves can tell about the settings. Raises ConfigError."""
    for address in settings[LISTEN_ADDRESS]:
        try:
            parse_address(address)
        except ListenError as error:
            raise ConfigError(f"{settings.where(LISTEN_ADDRESS)}: {error}") from error
    _security(settings, lambda _: None)


def serve(asked: Asked, loaded: Loaded) -> int:
    """Run until stopped; the exit status. Raises ConfigError, SourceError or ListenError at start."""
    return _Serving(asked, loaded).run()


class _Serving:
    """The settings in force and what a reload changes of them."""

    def __init__(self, asked: Asked, loaded: Loaded) -> None:
        self._asked = asked
        self._settings = settings = loaded.settings
        self._own = OwnState(reload_timestamp=time.time())
        self._groups = groups(self._own, prices(settings), settings[CURRENCY], compatibility(settings))
        self._selection = selection(settings)
        self._config_problem = False
        self._web_problem = False
        self._security = _security(settings, self._web_reloaded)
        self._published = Published(self._collect)
        sources = build_sources(settings)
        self._assembly = build_assembly(settings, self._published.publish)
        self._sampling = Sampling(
            sources, self._assembly, interval=settings[SAMPLING_INTERVAL], speed=settings[SOURCE_SPEED]
        )
        application = Routes(endpoints(self._published, settings[TELEMETRY_PATH]))
        self._web = WebServer(settings[LISTEN_ADDRESS], application, security=self._security)
        self._own.connections = lambda: {event.value: n for event, n in self._web.stats.snapshot().items()}

    def run(self) -> int:
        log.info("honest-gpu-exporter %s, source %s", VERSION, self._settings[SOURCE])
        if self._settings[SOURCE] == "simulated":
            log.warning("SIMULATED: every value served here is made up (--source simulated)")
        if self._settings[COMPAT_JOBSTATS] and self._assembly.attribution is None:
            log.warning("no series for jobstats will have a jobid: --compat.jobstats needs --collector.slurm")
        self._assembly.start()
        try:
            return Daemon(self._sampling, self._published, self._web, self._reload).run()
        finally:
            self._assembly.stop(STOP_SECONDS / 4)

    def _collect(self, snapshot: Snapshot) -> dict[Family, list[Sample]]:
        return samples(snapshot, self._groups, self._selection)

    def _reload(self) -> None:
        """SIGHUP: all of the new configuration or nothing of it."""
        try:
            new = load(self._asked.command, self._asked.flags, os.environ).settings
            fixed = [name for name in self._settings.changed(new) if name not in RELOADABLE]
            if fixed:
                raise ConfigError(f"a change of {', '.join(fixed)} needs a restart")
            if self._security is not None:
                self._reload_security()
        except ConfigError as error:
            log.error("reload failed, keeping the previous configuration: %s", error)
            self._config_problem = True
        else:
            logs.set_up(new[LOG_LEVEL], new[LOG_FORMAT])
            self._settings, self._selection = new, selection(new)
            self._config_problem = False
            self._own.reload_timestamp = time.time()
            log.info("configuration reloaded")
        self._own.reload_successful = not (self._config_problem or self._web_problem)

    def _reload_security(self) -> None:
        from exporter.web.web_config import WebConfigError

        assert self._security is not None
        try:
            self._security.reload()
        except WebConfigError as error:
            raise ConfigError(str(error)) from error

    def _web_reloaded(self, error: Exception | None) -> None:
        self._web_problem = error is not None
        if error is None:
            self._own.reload_timestamp = time.time()
        self._own.reload_successful = not (self._config_problem or self._web_problem)


def _security(settings: Settings, on_reload: Callable[[Exception | None], None]) -> Security | None:
    """TLS and passwords; their libraries are loaded only where they are asked for."""
    path = settings[WEB_CONFIG]
    if path is None:
        return None
    from exporter.web.web_config import Security, WebConfigError

    try:
        return Security.load(path, on_reload)
    except WebConfigError as error:
        raise ConfigError(f"{settings.where(WEB_CONFIG)}: {error}") from error
