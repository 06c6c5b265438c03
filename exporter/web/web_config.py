"""The live view of `--web.config.file`: what is in force now, re-read when a file of it changes."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from exporter.web.auth import Authenticator
from exporter.web.config_format import WebConfigError, WebSettings, read_settings
from exporter.web.tls import names_of, server_context, short_address

__all__ = ["Security", "SecurityState", "WebConfigError"]

_log = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0
_CLIENT_AUTH_STRENGTH = {"NoClientCert": 0, "VerifyClientCertIfGiven": 1, "RequireAndVerifyClientCert": 2}
_Stamp: TypeAlias = "tuple[int, int, int] | None"


@dataclass(frozen=True, eq=False)
class SecurityState:
    """One version of the configuration, ready for use. Compared by identity: another version is another object.

    tls: None for clear text. authenticator: None without users. headers: for every response.
    """

    settings: WebSettings
    tls: ssl.SSLContext | None
    authenticator: Authenticator | None
    headers: Mapping[str, str]

    def permits(self, certificate: Mapping[str, object]) -> bool:
        """Whether a verified client certificate passes `client_allowed_sans`."""
        if self.settings.tls is None or not self.settings.tls.client_allowed_sans:
            return True
        allowed = {short_address(name) for name in self.settings.tls.client_allowed_sans}
        return not allowed.isdisjoint(names_of(certificate))


class Security:
    """The current web configuration. Safe to use from any thread.

    When the file, the certificate, the key or the client authorities change (time, size or inode), everything is read
    again. A version that cannot be put in force leaves the old one in force, and is tried again at each check until
    it can: a certificate and its key are often two writes. So does a version that takes TLS, basic auth or the
    verification of clients away: a half-written file looks like that. Only a restart takes those away.
    """

    def __init__(
        self,
        path: Path,
        on_reload: Callable[[Exception | None], None],
        check_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._path = path
        self._on_reload = on_reload
        self._check_seconds = check_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._state, self._stamps = self._read()
        self._next_check = clock() + check_seconds

    @classmethod
    def load(
        cls,
        path: str | Path,
        on_reload: Callable[[Exception | None], None],
        *,
        check_seconds: float = _CHECK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> Security:
        """Read a file and all that it names. Raises WebConfigError.

        on_reload: called after each later attempt to put a change in force, from the thread that noticed: with None
        when it is in force, with the error when the old version stays; once for each error, not at each retry.
        """
        return cls(Path(path), on_reload, check_seconds, clock)

    @property
    def state(self) -> SecurityState:
        """The version in force, without checking the files."""
        return self._state

    def current(self) -> SecurityState:
        """The version in force, after checking the files if the last check is a second old. Never raises."""
        # One thread checks, the others go on with the version in force: a slow file system holds up one connection.
        if self._clock() >= self._next_check and self._lock.acquire(blocking=False):
            try:
                self._next_check = self._clock() + self._check_seconds
                self._refresh()
            finally:
                self._lock.release()
        return self._state

    def reload(self) -> None:
        """Read everything now, changed or not (SIGHUP). Raises WebConfigError; the old version stays in force then."""
        with self._lock:
            error = self._replace()
        if error is not None:
            raise error

    def _refresh(self) -> None:
        if self._problem is not None or [_stamp(path) for path in self._stamps] != list(self._stamps.values()):
            self._replace()

    def _replace(self) -> WebConfigError | None:
        """Put what the files say now in force; the error when that cannot be."""
        try:
            state, stamps = self._read()
            self._refuse_weaker(state.settings)
        except WebConfigError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                _log.error("%s; keeping the previous version", error)
                self._on_reload(error)
            return error
        self._state, self._stamps, self._problem = state, stamps, None
        _log.info("web configuration file %s reloaded", self._path)
        self._on_reload(None)
        return None

    def _read(self) -> tuple[SecurityState, dict[Path, _Stamp]]:
        # Stamps are taken before reading: what changes while we read is seen at the next check.
        stamps = {self._path: _stamp(self._path)}
        settings = read_settings(self._path)
        if settings.tls is not None:
            files = (settings.tls.cert_file, settings.tls.key_file, settings.tls.client_ca_file)
            stamps |= {path: _stamp(path) for path in files if path is not None}
        for warning in settings.warnings:
            _log.warning("web configuration file %s: %s", self._path, warning)
        tls = server_context(settings.tls, self._path) if settings.tls is not None else None
        authenticator = Authenticator(settings.users) if settings.users else None
        return SecurityState(settings, tls, authenticator, settings.headers), stamps

    def _refuse_weaker(self, new: WebSettings) -> None:
        """Raises WebConfigError when the version takes away a protection that the one in force has."""
        old = self._state.settings
        if old.users and not new.users:
            raise self._weaker("basic_auth_users", "removes all passwords")
        if old.tls is None:
            return
        if new.tls is None:
            raise self._weaker("tls_server_config", "turns TLS off")
        if _CLIENT_AUTH_STRENGTH[new.tls.client_auth_type] < _CLIENT_AUTH_STRENGTH[old.tls.client_auth_type]:
            raise self._weaker(
                "tls_server_config.client_auth_type",
                f"weakens {old.tls.client_auth_type} to {new.tls.client_auth_type}",
            )
        if old.tls.client_allowed_sans and not new.tls.client_allowed_sans:
            raise self._weaker("tls_server_config.client_allowed_sans", "accepts any client certificate")

    def _weaker(self, key: str, what: str) -> WebConfigError:
        return WebConfigError(
            self._path, key, f"the new version {what}; a half-written file would look the same, so restart to apply it"
        )


def _stamp(path: Path) -> _Stamp:
    """What changes when a file is written or replaced, symbolic links followed; None while it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
