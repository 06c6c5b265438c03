"""TLS and client certificates, over real handshakes."""

from __future__ import annotations

import ipaddress
import ssl
import time

import pytest
from cryptography import x509

from exporter.web.limits import Event, Limits
from exporter.web.server import WebServer

from .busy import Busy
from .clients import ask, connect, get, is_closed, request_bytes, until
from .conftest import Authority, Identity, Serve
from .samples import FAST, TLS, Write, load, mutual


class TestTls:
    @pytest.fixture
    def server(self, web_config: Write, serve: Serve) -> WebServer:
        return serve(security=load(web_config(TLS)), limits=FAST)

    def test_get_and_keep_alive(self, server: WebServer, authority: Authority) -> None:
        with connect(server.addresses[0], authority.client_context()) as sock:
            assert [ask(sock).status for _ in range(3)] == [200] * 3

    def test_a_big_response(self, server: WebServer, authority: Authority) -> None:
        assert len(get(server.addresses[0], "/big", context=authority.client_context()).body) == 32 * 1024 * 1024

    def test_http_1_1_is_negotiated(self, server: WebServer, authority: Authority) -> None:
        context = authority.client_context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        with connect(server.addresses[0], context) as sock:
            assert isinstance(sock, ssl.SSLSocket)
            assert sock.selected_alpn_protocol() == "http/1.1"

    def test_a_silent_client_in_the_handshake_blocks_nobody(self, server: WebServer, authority: Authority) -> None:
        with connect(server.addresses[0]) as silent:
            assert [get(server.addresses[0], context=authority.client_context()).status for _ in range(3)] == [200] * 3
            assert is_closed(silent)
        assert server.stats[Event.HANDSHAKE_TIMEOUT] == 1

    def test_a_handshake_byte_by_byte_is_cut(self, server: WebServer) -> None:
        hello = client_hello()
        with connect(server.addresses[0]) as slow:
            for byte in hello:
                if server.stats[Event.HANDSHAKE_TIMEOUT]:
                    break
                slow.sendall(bytes([byte]))
                time.sleep(0.05)
            assert is_closed(slow)
        assert server.stats[Event.HANDSHAKE_TIMEOUT] == 1

    def test_a_client_that_never_reads_is_cut(self, serve: Serve, web_config: Write, authority: Authority) -> None:
        server = serve(security=load(web_config(TLS)), limits=Limits(write_seconds=0.3))
        with connect(server.addresses[0], authority.client_context()) as deaf:
            deaf.sendall(request_bytes("/big"))
            assert until(lambda: server.stats[Event.WRITE_TIMEOUT] == 1)

    def test_clear_text_on_the_tls_port_is_told(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as sock:
            reply = ask(sock)
        assert reply.status == 400
        assert b"HTTPS" in reply.body
        assert server.stats[Event.HANDSHAKE_FAILED] == 1

    def test_stop_with_clients_in_the_handshake(self, serve: Serve, web_config: Write, authority: Authority) -> None:
        server = serve(security=load(web_config(TLS)))
        with connect(server.addresses[0]) as silent, connect(server.addresses[0], authority.client_context()) as idle:
            assert ask(idle).status == 200
            start = time.monotonic()
            server.stop()
            assert time.monotonic() - start < 2
            assert is_closed(silent)
            assert is_closed(idle)

    def test_versions(self, web_config: Write, serve: Serve, authority: Authority) -> None:
        server = serve(security=load(web_config(TLS + "  min_version: TLS13\n")), limits=FAST)
        old = authority.client_context()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            get(server.addresses[0], context=old)
        assert get(server.addresses[0], context=authority.client_context()).status == 200

    def test_suites_and_curve(self, web_config: Write, serve: Serve, authority: Authority) -> None:
        suites = "[TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256]"
        text = f"{TLS}  max_version: TLS12\n  cipher_suites: {suites}\n  curve_preferences: [CurveP384]\n"
        server = serve(security=load(web_config(text)), limits=FAST)
        context = authority.client_context()
        with connect(server.addresses[0], context) as sock:
            assert isinstance(sock, ssl.SSLSocket)
            assert (sock.cipher() or ("",))[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
        other_curve = authority.client_context()
        other_curve.set_ecdh_curve("prime256v1")
        with pytest.raises(ssl.SSLError):
            connect(server.addresses[0], other_curve)
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        with pytest.raises(ssl.SSLError):
            connect(server.addresses[0], context)

    @pytest.mark.parametrize("server_prefers", ["true", "false"])
    def test_whose_preference_counts(
        self, web_config: Write, serve: Serve, authority: Authority, server_prefers: str
    ) -> None:
        suites = "[TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]"
        text = (
            f"{TLS}  max_version: TLS12\n  cipher_suites: {suites}\n  prefer_server_cipher_suites: {server_prefers}\n"
        )
        server = serve(security=load(web_config(text)))
        context = authority.client_context()
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384")
        with connect(server.addresses[0], context) as sock:
            assert isinstance(sock, ssl.SSLSocket)
            bits = "256" if server_prefers == "true" else "128"
            assert (sock.cipher() or ("",))[0] == f"ECDHE-ECDSA-AES{bits}-GCM-SHA{'384' if bits == '256' else '256'}"


class TestClientCertificates:
    def admitted(self, server: WebServer, context: ssl.SSLContext) -> bool:
        try:
            return get(server.addresses[0], context=context).status == 200
        except (OSError, ConnectionError):
            return False

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_required(
        self,
        web_config: Write,
        serve: Serve,
        authority: Authority,
        stranger: Authority,
        client_identity: Identity,
        version: ssl.TLSVersion,
    ) -> None:
        server = serve(security=load(web_config(mutual("RequireAndVerifyClientCert", authority))), limits=FAST)
        for identity, expected in ((client_identity, True), (None, False), (stranger.issue("client"), False)):
            context = authority.client_context(identity)
            context.minimum_version = context.maximum_version = version
            assert self.admitted(server, context) is expected
        assert until(lambda: server.stats[Event.HANDSHAKE_FAILED] == 2)

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    @pytest.mark.parametrize("tickets", [True, False])
    def test_no_session_outlives_its_connection(
        self,
        web_config: Write,
        serve: Serve,
        authority: Authority,
        client_identity: Identity,
        version: ssl.TLSVersion,
        tickets: bool,
    ) -> None:
        security = load(web_config(mutual("RequireAndVerifyClientCert", authority)))
        server = serve(security=security)
        context = authority.client_context(client_identity)
        context.minimum_version = context.maximum_version = version
        if not tickets:
            context.options |= ssl.OP_NO_TICKET
        for _ in range(3):
            with connect(server.addresses[0], context) as sock:
                assert isinstance(sock, ssl.SSLSocket)
                assert ask(sock).status == 200
                assert sock.session is None or not sock.session.has_ticket
        server.stop()
        assert security.state.tls is not None
        assert security.state.tls.session_stats()["number"] == 0

    def test_optional(
        self,
        web_config: Write,
        serve: Serve,
        authority: Authority,
        stranger: Authority,
        client_identity: Identity,
    ) -> None:
        server = serve(security=load(web_config(mutual("VerifyClientCertIfGiven", authority))), limits=FAST)
        assert self.admitted(server, authority.client_context(client_identity))
        assert self.admitted(server, authority.client_context())
        assert not self.admitted(server, authority.client_context(stranger.issue("other")))

    @pytest.mark.parametrize(
        ("sans", "allowed", "expected"),
        [
            ([x509.DNSName("prometheus.example")], "prometheus.example", True),
            ([x509.DNSName("prometheus.example")], "example", False),
            ([x509.DNSName("a.example"), x509.DNSName("b.example")], "b.example", True),
            ([x509.RFC822Name("ops@example.com")], "ops@example.com", True),
            ([x509.UniformResourceIdentifier("spiffe://example/prometheus")], "spiffe://example/prometheus", True),
            ([x509.IPAddress(ipaddress.ip_address("10.0.0.1"))], "10.0.0.1", True),
            ([x509.IPAddress(ipaddress.ip_address("fd00::1"))], "fd00::1", True),
            ([x509.IPAddress(ipaddress.ip_address("fd00::1"))], "fd00::2", False),
        ],
    )
    def test_allowed_names(
        self,
        web_config: Write,
        serve: Serve,
        authority: Authority,
        sans: list[x509.GeneralName],
        allowed: str,
        expected: bool,
    ) -> None:
        text = mutual("RequireAndVerifyClientCert", authority, f"  client_allowed_sans: ['other', '{allowed}']\n")
        server = serve(security=load(web_config(text)), limits=FAST)
        assert self.admitted(server, authority.client_context(authority.issue("named", sans))) is expected
        assert server.stats[Event.CLIENT_NOT_ALLOWED] == (0 if expected else 1)


def client_hello() -> bytes:
    """The first flight of a TLS client."""
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    connection = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def test_clear_text_refusal_is_not_sent_on_a_tls_port(web_config: Write, serve: Serve, authority: Authority) -> None:
    limits, busy = Limits(connections=1, connections_per_client=1), Busy()
    server = serve(busy, security=load(web_config(TLS)), limits=limits)
    with busy.held(server.addresses[0], 1, authority.client_context()), connect(server.addresses[0]) as refused:
        assert is_closed(refused)
    assert server.stats[Event.REFUSED_CLIENT] == 1
