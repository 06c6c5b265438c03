"""From checked TLS settings to an `ssl.SSLContext` that honours every one of them, or an error that names the key.

Names of suites and curves are Go's (crypto/tls), as the configuration format has them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NoReturn

from exporter.web.config_format import TlsSettings, WebConfigError

_AT = "tls_server_config"
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY_MODES = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

# As in Go, the suites of TLS 1.3 may be listed and are always on: neither Go nor Python's ssl lets one choose them.
_TLS13_SUITES = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
_TLS12_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
_CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}


def server_context(settings: TlsSettings, config: Path) -> ssl.SSLContext:
    """The context of a server. config: the file the settings are from, for messages. Raises WebConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[settings.min_version]
    context.maximum_version = _VERSIONS[settings.max_version]
    context.options |= ssl.OP_NO_RENEGOTIATION  # work that a client could ask for without end
    # No resumption: scrapers keep their connection, and every new one proves its certificate again.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    if not settings.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    _set_suites(context, settings, config)
    _set_curve(context, settings, config)
    _load_certificate(context, settings, config)
    _load_authorities(context, settings, config)
    context.verify_mode = _VERIFY_MODES[settings.client_auth_type]
    return context


def names_of(certificate: Mapping[str, object]) -> frozenset[str]:
    """The DNS, e-mail, URI and IP names (IP in short form) in `subjectAltName` of a `getpeercert()` dictionary."""
    entries = certificate.get("subjectAltName", ())
    names = set()
    for kind, value in entries if isinstance(entries, tuple) else ():
        if kind in ("DNS", "email", "URI"):
            names.add(value)
        elif kind == "IP Address":
            names.add(short_address(value.strip()))
    return frozenset(names)


def short_address(text: str) -> str:
    """An IP address in its shortest form (OpenSSL writes IPv6 in full); any other text as it is."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(text))
    return text


def _set_suites(context: ssl.SSLContext, settings: TlsSettings, config: Path) -> None:
    if not settings.cipher_suites:
        return
    known = [*_TLS13_SUITES, *_TLS12_SUITES]
    for index, name in enumerate(settings.cipher_suites):
        if name not in known:
            _fail(config, f"cipher_suites[{index}]", f"{name!r} is not supported; expected one of {_list(known)}")
    chosen = [_TLS12_SUITES[name] for name in settings.cipher_suites if name in _TLS12_SUITES]
    if not chosen:
        if settings.min_version != "TLS13":
            _fail(config, "cipher_suites", "contains no TLS 1.2 cipher suite: add one, or set min_version: TLS13")
        return
    with contextlib.suppress(ssl.SSLError):  # raised when none is left; the comparison below says which are not
        context.set_ciphers(":".join(chosen))
    usable = {str(cipher["name"]) for cipher in context.get_ciphers()}
    for index, name in enumerate(settings.cipher_suites):
        if name in _TLS12_SUITES and _TLS12_SUITES[name] not in usable:
            _fail(config, f"cipher_suites[{index}]", f"OpenSSL on this machine does not support {name}: remove it")


def _set_curve(context: ssl.SSLContext, settings: TlsSettings, config: Path) -> None:
    for index, name in enumerate(settings.curve_preferences):
        if name not in _CURVES:
            _fail(config, f"curve_preferences[{index}]", f"{name!r} is not supported; expected one of {_list(_CURVES)}")
    if not settings.curve_preferences:
        return
    if len(settings.curve_preferences) > 1:
        _fail(
            config, "curve_preferences", "Python's ssl accepts only one curve: keep the one to use, or remove the key"
        )
    try:
        context.set_ecdh_curve(_CURVES[settings.curve_preferences[0]])
    except (ValueError, ssl.SSLError) as error:
        _fail(config, "curve_preferences[0]", "OpenSSL on this machine does not support this curve", error)


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings, config: Path) -> None:
    _require_readable(config, "cert_file", settings.cert_file)
    _require_readable(config, "key_file", settings.key_file)

    def no_password() -> NoReturn:  # without it OpenSSL asks on the terminal, and the daemon hangs
        _fail(config, "key_file", f"{settings.key_file} is encrypted: expected a PEM key without a passphrase")

    try:
        context.load_cert_chain(settings.cert_file, settings.key_file, password=no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            _fail(config, "key_file", f"{settings.key_file} does not match {settings.cert_file}", error)
        _fail(
            config,
            "cert_file",
            f"{settings.cert_file} and {settings.key_file} are not a PEM certificate chain and its PEM key ({error}); "
            f"`openssl x509 -noout -in {settings.cert_file}` checks the first, `openssl pkey -noout -in` the second",
            error,
        )


def _load_authorities(context: ssl.SSLContext, settings: TlsSettings, config: Path) -> None:
    if settings.client_ca_file is None:
        return
    _require_readable(config, "client_ca_file", settings.client_ca_file)
    try:
        context.load_verify_locations(cafile=settings.client_ca_file)
    except ssl.SSLError as error:
        _fail(config, "client_ca_file", f"{settings.client_ca_file} contains no PEM certificate ({error})", error)
    # As in Go, every certificate of the file is trusted as it stands, an intermediate one too.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _require_readable(config: Path, key: str, path: Path) -> None:
    """OpenSSL's own errors do not say which file it could not read."""
    try:
        path.open("rb").close()
    except OSError as error:
        _fail(config, key, f"{path} cannot be read: {error.strerror}", error)


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


def _fail(config: Path, key: str, problem: str, cause: Exception | None = None) -> NoReturn:
    raise WebConfigError(config, f"{_AT}.{key}", problem) from cause
