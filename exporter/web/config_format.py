"""The web configuration file: from YAML text to checked settings. No certificate is read here.

The format is Prometheus exporter-toolkit's (docs/web-configuration.md there). What this exporter cannot honour is
refused by name, never dropped: a file that is accepted is in force to the letter.

- `http_server_config.http2: true` is accepted, with a warning: it is the format's default written out, it allows
  HTTP/2 without asking clients for it, and every client then settles for HTTP/1.1 in the handshake.
- `client_auth_type` RequestClientCert and RequireAnyClientCert ask for a certificate without verifying it. Python's
  ssl has no such mode, and neither the weaker nor the stricter one is put in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from exporter import strict_yaml
from exporter.web.auth import HashError, hash_cost

_MOST_BYTES = 1024 * 1024
_T = TypeVar("_T")


class WebConfigError(Exception):
    """A web configuration that cannot be put in force. The text names file, key, what is wrong and what was expected.

    path: the file. key: dotted path of the key; empty when the file as a whole is meant.
    """

    def __init__(self, path: Path, key: str, problem: str) -> None:
        super().__init__(f"web configuration file {path}: {key + ': ' if key else ''}{problem}")
        self.path = path
        self.key = key


@dataclass(frozen=True)
class TlsSettings:
    """`tls_server_config`: absolute paths, and values that are known to be of the format."""

    cert_file: Path
    key_file: Path
    client_auth_type: str
    client_ca_file: Path | None
    client_allowed_sans: tuple[str, ...]
    min_version: str
    max_version: str
    cipher_suites: tuple[str, ...]
    prefer_server_cipher_suites: bool
    curve_preferences: tuple[str, ...]


@dataclass(frozen=True)
class WebSettings:
    """A whole file. tls is None where the file asks for clear text. warnings: to be logged."""

    tls: TlsSettings | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


CLIENT_AUTH_TYPES = ("NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
TLS_VERSIONS = ("TLS12", "TLS13")

_UNVERIFIED = (
    "{value} accepts a client certificate without verifying it, which Python's ssl cannot do; "
    "use {alternative} (with client_ca_file){otherwise}"
)
_REFUSED_CLIENT_AUTH = {
    "RequestClientCert": ("VerifyClientCertIfGiven", ", or NoClientCert"),
    "RequireAnyClientCert": ("RequireAndVerifyClientCert", ""),
    "RequireClientCert": ("RequireAndVerifyClientCert", ""),
}
_INLINE = "inline PEM is not supported: put it in a file and set {key}_file"
_REFUSED_KEYS = {
    "rate_limit": "not supported: connections are already limited, in total and per client; remove it",
    "tls_server_config.cert": _INLINE.format(key="cert"),
    "tls_server_config.key": _INLINE.format(key="key"),
    "tls_server_config.client_ca": _INLINE.format(key="client_ca"),
}
_HEADERS: Mapping[str, tuple[str, ...]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
_HTTP2_WARNING = "http_server_config.http2: true: this exporter only speaks HTTP/1.1; clients fall back to it"


def read_settings(path: Path) -> WebSettings:
    """The settings of a file; its relative paths are relative to its folder. Raises WebConfigError."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise WebConfigError(path, "", f"cannot be read: {error.strerror}; check --web.config.file") from error
    if len(text) > _MOST_BYTES:
        raise WebConfigError(path, "", f"larger than {_MOST_BYTES} bytes, so not a web configuration file")
    try:
        document = strict_yaml.load(text)
    except ValueError as error:
        raise WebConfigError(path, "", str(error)) from error
    return _Reader(path).settings(document)


class _Reader:
    """Walks the document; knows the file for its messages."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def settings(self, document: object) -> WebSettings:
        root = self._section("", document, ("tls_server_config", "http_server_config", "basic_auth_users"))
        headers, warnings = self._http(root.get("http_server_config"))
        return WebSettings(
            tls=self._tls(root.get("tls_server_config")),
            headers=headers,
            users=self._users(root.get("basic_auth_users")),
            warnings=warnings,
        )

    def _tls(self, section: object) -> TlsSettings | None:
        at = "tls_server_config"
        keys = tuple(TlsSettings.__dataclass_fields__)
        values = self._section(at, section, keys)
        if not values:  # empty is the same as absent in the format, and charts write it so
            return None
        for key in ("cert_file", "key_file"):
            if not values.get(key):
                raise self._error(f"{at}.{key}", "missing: TLS needs cert_file and key_file, both PEM")
        settings = TlsSettings(
            cert_file=self._file(f"{at}.cert_file", values["cert_file"]),
            key_file=self._file(f"{at}.key_file", values["key_file"]),
            client_auth_type=self._client_auth_type(f"{at}.client_auth_type", values.get("client_auth_type")),
            client_ca_file=self._file(f"{at}.client_ca_file", values["client_ca_file"])
            if values.get("client_ca_file")
            else None,
            client_allowed_sans=self._strings(f"{at}.client_allowed_sans", values.get("client_allowed_sans")),
            min_version=self._one_of(f"{at}.min_version", values.get("min_version"), TLS_VERSIONS, "TLS12"),
            max_version=self._one_of(f"{at}.max_version", values.get("max_version"), TLS_VERSIONS, "TLS13"),
            cipher_suites=self._strings(f"{at}.cipher_suites", values.get("cipher_suites")),
            prefer_server_cipher_suites=self._flag(
                f"{at}.prefer_server_cipher_suites", values.get("prefer_server_cipher_suites"), True
            ),
            curve_preferences=self._strings(f"{at}.curve_preferences", values.get("curve_preferences")),
        )
        self._check_together(settings)
        return settings

    def _check_together(self, tls: TlsSettings) -> None:
        at = "tls_server_config"
        if tls.min_version > tls.max_version:
            raise self._error(f"{at}.min_version", f"{tls.min_version} is above max_version {tls.max_version}")
        if tls.client_auth_type == "NoClientCert":
            if tls.client_ca_file is not None:
                raise self._error(
                    f"{at}.client_ca_file",
                    "has no effect without client_auth_type: RequireAndVerifyClientCert",
                )
        elif tls.client_ca_file is None:
            raise self._error(
                f"{at}.client_ca_file",
                f"missing: {tls.client_auth_type} needs the PEM file of the CAs that sign client certificates",
            )
        if tls.client_allowed_sans and tls.client_auth_type != "RequireAndVerifyClientCert":
            raise self._error(
                f"{at}.client_allowed_sans",
                "needs client_auth_type: RequireAndVerifyClientCert, otherwise clients can bypass it",
            )

    def _http(self, section: object) -> tuple[Mapping[str, str], tuple[str, ...]]:
        at = "http_server_config"
        values = self._section(at, section, ("http2", "headers"))
        warnings = (_HTTP2_WARNING,) if self._flag(f"{at}.http2", values.get("http2"), False) else ()
        headers: dict[str, str] = {}
        for name, value in self._section(f"{at}.headers", values.get("headers"), tuple(_HEADERS)).items():
            text = self._text(f"{at}.headers.{name}", value or "")
            if text and _HEADERS[name]:
                text = self._one_of(f"{at}.headers.{name}", text, _HEADERS[name], "")
            if not (text.isascii() and text.isprintable()):
                raise self._error(f"{at}.headers.{name}", "expected printable ASCII on one line")
            if text:  # blank is unset in the format
                headers[name] = text
        return headers, warnings

    def _users(self, section: object) -> Mapping[str, str]:
        at = "basic_auth_users"
        users: dict[str, str] = {}
        for name, value in self._mapping(at, section).items():
            key = f"{at}.{name}"
            if not name or ":" in name:
                raise self._error(key, "a user name must not be empty or contain a colon (HTTP cannot send it)")
            try:
                hash_cost(self._text(key, value))
            except HashError as error:
                raise self._error(key, str(error)) from error
            users[name] = str(value)
        return users

    def _section(self, at: str, value: object, known: tuple[str, ...]) -> Mapping[str, Any]:
        mapping = self._mapping(at, value)
        for key in mapping:
            full = f"{at}.{key}" if at else key
            if full in _REFUSED_KEYS:
                raise self._error(full, _REFUSED_KEYS[full])
            if key not in known:
                raise self._error(full, f"unknown key; expected one of {', '.join(known)}")
        return mapping

    def _mapping(self, at: str, value: object) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._error(at, f"expected a mapping of keys to values, got {_kind(value)}")
        for key in value:
            if not isinstance(key, str):
                full = f"{at}.{key}" if at else str(key)
                raise self._error(full, f'YAML reads this key as {_kind(key)}: quote it ("{key}")')
        return value

    def _client_auth_type(self, at: str, value: object) -> str:
        if isinstance(value, str) and value in _REFUSED_CLIENT_AUTH:
            alternative, otherwise = _REFUSED_CLIENT_AUTH[value]
            raise self._error(at, _UNVERIFIED.format(value=value, alternative=alternative, otherwise=otherwise))
        return self._one_of(at, value, CLIENT_AUTH_TYPES, "NoClientCert")

    def _file(self, at: str, value: object) -> Path:
        text = self._text(at, value)
        if "\0" in text:
            raise self._error(at, "a file name must not contain a NUL character")
        return self._path.parent / text

    def _text(self, at: str, value: object) -> str:
        return self._typed(at, value, str, "a string")

    def _flag(self, at: str, value: object, default: bool) -> bool:
        return self._typed(at, default if value is None else value, bool, "true or false")

    def _strings(self, at: str, value: object) -> tuple[str, ...]:
        items = self._typed(at, [] if value is None else value, list, "a list of strings")
        return tuple(self._text(f"{at}[{index}]", item) for index, item in enumerate(items))

    def _one_of(self, at: str, value: object, choices: tuple[str, ...], default: str) -> str:
        if value is None or value == "":
            return default
        if value not in choices:
            raise self._error(at, f"{value!r} is not supported; expected {' or '.join(choices)}")
        return str(value)

    def _typed(self, at: str, value: object, kind: type[_T], expected: str) -> _T:
        if not isinstance(value, kind):
            raise self._error(at, f"expected {expected}, got {_kind(value)}")
        return value

    def _error(self, key: str, problem: str) -> WebConfigError:
        return WebConfigError(self._path, key, problem)


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", bool: "true/false", int: "a number", float: "a number", str: "a string"}
    return "nothing" if value is None else names.get(type(value), type(value).__name__)
