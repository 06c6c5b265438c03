"""The web configuration file: what is refused by name, and what is put in force."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from exporter.web.limits import Event
from exporter.web.web_config import WebConfigError

from .clients import PATIENCE, ask, connect, get
from .conftest import Authority, Serve
from .samples import HASH, LOGIN, TLS, USERS, Write, load


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "key", "expected"),
        [
            ("tls: {}", "tls", "unknown key; expected one of tls_server_config"),
            ("rate_limit: {burst: 1}", "rate_limit", "not supported"),
            ("- a", "", "expected a mapping"),
            ("tls_server_config: yes", "tls_server_config", "expected a mapping"),
            (TLS + "  cert: pem", "tls_server_config.cert", "cert_file"),
            (TLS + "  key: pem", "tls_server_config.key", "key_file"),
            (TLS + "  client_ca: pem", "tls_server_config.client_ca", "client_ca_file"),
            (TLS + "  ca_file: x", "tls_server_config.ca_file", "unknown key; expected one of cert_file"),
            ("tls_server_config: {key_file: x}", "tls_server_config.cert_file", "missing"),
            ("tls_server_config: {cert_file: x}", "tls_server_config.key_file", "missing"),
            ("tls_server_config: {min_version: TLS13}", "tls_server_config.cert_file", "missing"),
            ("tls_server_config: {cert_file: 5, key_file: x}", "tls_server_config.cert_file", "expected a string"),
            ('tls_server_config: {cert_file: "a\\0b", key_file: x}', "tls_server_config.cert_file", "NUL"),
            (TLS + "  min_version: TLS11", "tls_server_config.min_version", "TLS12 or TLS13"),
            (TLS + "  max_version: TLS10", "tls_server_config.max_version", "TLS12 or TLS13"),
            (TLS + "  min_version: TLS13\n  max_version: TLS12", "tls_server_config.min_version", "above max_version"),
            (TLS + "  client_auth_type: RequestClientCert", "tls_server_config.client_auth_type", "VerifyClientCertIf"),
            (
                TLS + "  client_auth_type: RequireAnyClientCert",
                "tls_server_config.client_auth_type",
                "RequireAndVerify",
            ),
            (TLS + "  client_auth_type: RequireClientCert", "tls_server_config.client_auth_type", "RequireAndVerify"),
            (TLS + "  client_auth_type: Maybe", "tls_server_config.client_auth_type", "expected NoClientCert or"),
            (TLS + "  client_ca_file: ca.crt", "tls_server_config.client_ca_file", "RequireAndVerifyClientCert"),
            (TLS + "  client_auth_type: RequireAndVerifyClientCert", "tls_server_config.client_ca_file", "missing"),
            (TLS + "  client_auth_type: VerifyClientCertIfGiven", "tls_server_config.client_ca_file", "missing"),
            (TLS + "  client_allowed_sans: [a]", "tls_server_config.client_allowed_sans", "RequireAndVerifyClientCert"),
            (TLS + "  client_allowed_sans: a", "tls_server_config.client_allowed_sans", "expected a list"),
            (TLS + "  client_allowed_sans: [1]", "tls_server_config.client_allowed_sans[0]", "expected a string"),
            (TLS + "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]", "tls_server_config.cipher_suites[0]", "TLS_AES_128"),
            (
                TLS + "  cipher_suites: [TLS_AES_128_GCM_SHA256]",
                "tls_server_config.cipher_suites",
                "min_version: TLS13",
            ),
            (TLS + "  curve_preferences: [P256]", "tls_server_config.curve_preferences[0]", "CurveP256"),
            (TLS + "  curve_preferences: [CurveP256, X25519]", "tls_server_config.curve_preferences", "one curve"),
            (
                TLS + "  prefer_server_cipher_suites: 1",
                "tls_server_config.prefer_server_cipher_suites",
                "true or false",
            ),
            ("http_server_config: {http3: true}", "http_server_config.http3", "unknown key; expected one of http2"),
            ("http_server_config: {http2: 'no'}", "http_server_config.http2", "true or false"),
            ("http_server_config: {headers: {Server: x}}", "http_server_config.headers.Server", "unknown key"),
            (
                "http_server_config: {headers: {X-Frame-Options: allow}}",
                "http_server_config.headers.X-Frame-Options",
                "deny or sameorigin",
            ),
            (
                "http_server_config: {headers: {X-Content-Type-Options: sniff}}",
                "http_server_config.headers.X-Content-Type-Options",
                "nosniff",
            ),
            (
                'http_server_config: {headers: {Content-Security-Policy: "a\\r\\nb"}}',
                "http_server_config.headers.Content-Security-Policy",
                "one line",
            ),
            ("basic_auth_users: [alice]", "basic_auth_users", "expected a mapping"),
            ("basic_auth_users: {alice: s3cret}", "basic_auth_users.alice", "not a bcrypt hash"),
            ("basic_auth_users: {alice: 5}", "basic_auth_users.alice", "expected a string"),
            ("basic_auth_users: {alice: }", "basic_auth_users.alice", "expected a string, got nothing"),
            (f"basic_auth_users: {{7: {HASH}}}", "basic_auth_users.7", "quote it"),
            (f"basic_auth_users: {{yes: {HASH}}}", "basic_auth_users.True", "quote it"),
            (f"basic_auth_users: {{'a:b': {HASH}}}", "basic_auth_users.a:b", "or contain a colon"),
            (USERS + f"  alice: {HASH}", "", "the key 'alice' is given twice"),
            ("basic_auth_users: {", "", "is not YAML"),
            ("when: 2020-99-99", "", "is not YAML"),
            ("a: &a [*a, !!python/object:os.system x]", "", "is not YAML"),
        ],
    )
    def test_each_is_named(self, web_config: Write, text: str, key: str, expected: str) -> None:
        path = web_config(text)
        with pytest.raises(WebConfigError) as caught:
            load(path)
        message = str(caught.value)
        assert caught.value.key == key
        assert f"{path}: {key}" in message
        assert expected in message
        assert "s3cret" not in message

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(WebConfigError, match=r"none\.yml: cannot be read: No such file.*--web\.config\.file"):
            load(tmp_path / "none.yml")

    def test_a_missing_certificate(self, web_config: Write, tmp_path: Path) -> None:
        (tmp_path / "server.crt").unlink()
        with pytest.raises(WebConfigError, match=r"cert_file: .*server\.crt cannot be read: No such file"):
            load(web_config(TLS))

    def test_a_certificate_that_is_none(self, web_config: Write, tmp_path: Path) -> None:
        (tmp_path / "server.crt").write_text("hello")
        with pytest.raises(WebConfigError, match=r"cert_file: .*server\.crt.*not a PEM certificate.*openssl"):
            load(web_config(TLS))

    def test_a_key_of_another_certificate(self, web_config: Write, authority: Authority, tmp_path: Path) -> None:
        (tmp_path / "server.key").write_bytes(authority.issue("other").key.read_bytes())
        with pytest.raises(WebConfigError, match=r"key_file: .*server\.key does not match .*server\.crt"):
            load(web_config(TLS))

    def test_an_encrypted_key_does_not_ask_on_the_terminal(
        self, web_config: Write, authority: Authority, tmp_path: Path
    ) -> None:
        authority.issue("locked", password=b"x").copy_to(tmp_path, "server")
        with pytest.raises(WebConfigError, match=r"key_file: .*server\.key is encrypted"):
            load(web_config(TLS))

    def test_authorities_that_are_none(self, web_config: Write, tmp_path: Path) -> None:
        (tmp_path / "ca.crt").write_text("hello")
        text = TLS + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
        with pytest.raises(WebConfigError, match=r"client_ca_file: .*ca\.crt contains no PEM certificate"):
            load(web_config(text))


class TestAccepted:
    @pytest.mark.parametrize(
        "text",
        ["", "# nothing\n", "tls_server_config:\nbasic_auth_users:\nhttp_server_config:\n", "tls_server_config: {}"],
    )
    def test_empty_is_clear_text_without_users(self, web_config: Write, text: str) -> None:
        state = load(web_config(text)).current()
        assert (state.tls, state.authenticator, dict(state.headers)) == (None, None, {})

    def test_http2_true_is_taken_with_a_warning(self, web_config: Write, caplog: pytest.LogCaptureFixture) -> None:
        load(web_config("http_server_config: {http2: true}"))
        assert "http2: true: this exporter only speaks HTTP/1.1" in caplog.text
        caplog.clear()
        load(web_config("http_server_config: {http2: false}"))
        assert not caplog.text

    def test_headers(self, web_config: Write, serve: Serve) -> None:
        text = """\
            http_server_config:
              headers:
                Strict-Transport-Security: max-age=63072000
                X-Frame-Options: deny
                X-Content-Type-Options: nosniff
                X-XSS-Protection: "0"
                Content-Security-Policy: ""
            """
        server = serve(security=load(web_config(textwrap.dedent(text))))
        for path in ("/", "/nothing", "/fail"):
            headers = get(server.addresses[0], path).headers
            assert headers["strict-transport-security"] == "max-age=63072000"
            assert headers["x-frame-options"] == "deny"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-xss-protection"] == "0"
            assert "content-security-policy" not in headers


class TestBasicAuth:
    def test_every_path_asks(self, web_config: Write, serve: Serve) -> None:
        server = serve(security=load(web_config(USERS)))
        for path in ("/", "/-/healthy", "/nothing"):
            reply = get(server.addresses[0], path)
            assert reply.status == 401
            assert reply.headers["www-authenticate"].startswith("Basic ")
        assert get(server.addresses[0], headers=LOGIN).status == 200
        assert get(server.addresses[0], "/nothing", headers=LOGIN).status == 404
        assert server.stats[Event.UNAUTHORIZED] == 3

    def test_a_connection_may_log_in_after_a_refusal(self, web_config: Write, serve: Serve) -> None:
        server = serve(security=load(web_config(USERS)))
        with connect(server.addresses[0]) as sock:
            assert [ask(sock).status, ask(sock, headers=LOGIN).status, ask(sock).status] == [401, 200, 401]


def test_a_daemon_without_web_config_loads_no_openssl() -> None:
    code = (
        "import sys, exporter.web.server, exporter.web.negotiation; print('ssl' in sys.modules, 'yaml' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert run.stdout.split() == ["False", "False"]
