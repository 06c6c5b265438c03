"""What a change on disk does to a server that runs."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from exporter.web.server import WebServer
from exporter.web.web_config import Security, WebConfigError

from .clients import ask, connect, get, is_closed, request_bytes
from .conftest import Authority, Identity, Serve
from .samples import FAST, LOGIN, TLS, USERS, Reloads, Write, load, mutual


class TestReload:
    def serial(self, server: WebServer, context: ssl.SSLContext) -> object:
        with connect(server.addresses[0], context) as sock:
            assert isinstance(sock, ssl.SSLSocket)
            return (sock.getpeercert() or {})["serialNumber"]

    def test_a_rotated_certificate_is_served(
        self, web_config: Write, serve: Serve, authority: Authority, tmp_path: Path
    ) -> None:
        reloads = Reloads()
        server = serve(security=load(web_config(TLS), reloads))
        before = self.serial(server, authority.client_context())
        assert self.serial(server, authority.client_context()) == before
        assert reloads.outcomes == []
        authority.issue("rotated").copy_to(tmp_path, "server")
        assert self.serial(server, authority.client_context()) != before
        assert reloads.outcomes == [None]

    def test_half_a_rotation_keeps_the_old_pair_until_the_rest_comes(
        self, web_config: Write, serve: Serve, authority: Authority, tmp_path: Path
    ) -> None:
        reloads = Reloads()
        server = serve(security=load(web_config(TLS), reloads))
        before = self.serial(server, authority.client_context())
        fresh = authority.issue("fresh")
        (tmp_path / "server.crt").write_bytes(fresh.cert.read_bytes())
        assert [self.serial(server, authority.client_context()) for _ in range(3)] == [before] * 3
        assert [type(outcome) for outcome in reloads.outcomes] == [WebConfigError]  # told once, not at each retry
        (tmp_path / "server.key").write_bytes(fresh.key.read_bytes())
        assert self.serial(server, authority.client_context()) != before
        assert reloads.outcomes[-1] is None

    def test_a_bad_file_keeps_the_old_version(
        self, web_config: Write, serve: Serve, caplog: pytest.LogCaptureFixture
    ) -> None:
        reloads = Reloads()
        path = web_config(USERS)
        server = serve(security=load(path, reloads))
        web_config(USERS + "nonsense: 1\n")
        assert get(server.addresses[0]).status == 401
        assert get(server.addresses[0], headers=LOGIN).status == 200
        assert [str(outcome) for outcome in reloads.outcomes] == [
            f"web configuration file {path}: nonsense: unknown key; expected one of "
            "tls_server_config, http_server_config, basic_auth_users"
        ]
        assert "keeping the previous version" in caplog.text
        path.unlink()
        assert get(server.addresses[0]).status == 401
        assert "cannot be read" in str(reloads.outcomes[-1])
        web_config(USERS)
        assert get(server.addresses[0]).status == 401
        assert reloads.outcomes[-1] is None

    def test_a_user_who_is_removed_is_out_on_an_open_connection(self, web_config: Write, serve: Serve) -> None:
        server = serve(security=load(web_config(USERS)))
        with connect(server.addresses[0]) as sock:
            assert ask(sock, headers=LOGIN).status == 200
            web_config(USERS.replace("alice", "bob"))
            sock.sendall(request_bytes(headers=LOGIN))
            assert is_closed(sock)
        assert get(server.addresses[0], headers=LOGIN).status == 401

    def test_client_authorities_that_change_take_effect(
        self,
        web_config: Write,
        serve: Serve,
        authority: Authority,
        stranger: Authority,
        client_identity: Identity,
        tmp_path: Path,
    ) -> None:
        authorities = tmp_path / "ca.crt"
        authorities.write_bytes(authority.cert.read_bytes())
        text = TLS + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
        server = serve(security=load(web_config(text)), limits=FAST)
        context = authority.client_context(client_identity)
        assert get(server.addresses[0], context=context).status == 200
        authorities.write_bytes(stranger.cert.read_bytes())
        with pytest.raises(OSError):  # noqa: PT011 - an alert or a reset, by the version of TLS
            get(server.addresses[0], context=context)

    @pytest.mark.parametrize(
        ("new", "key"),
        [
            ("", "basic_auth_users"),
            (USERS, "tls_server_config"),
            (USERS + TLS, "tls_server_config.client_auth_type"),
        ],
    )
    def test_a_reload_takes_no_protection_away(
        self, web_config: Write, authority: Authority, new: str, key: str
    ) -> None:
        reloads = Reloads()
        security = load(web_config(USERS + mutual("RequireAndVerifyClientCert", authority)), reloads)
        before = security.current()
        web_config(new)
        assert security.current() is before
        error = reloads.outcomes[0]
        assert isinstance(error, WebConfigError)
        assert error.key == key
        assert "restart" in str(error)

    def test_allowed_names_are_not_taken_away_either(self, web_config: Write, authority: Authority) -> None:
        text = mutual("RequireAndVerifyClientCert", authority)
        security = load(web_config(text + "  client_allowed_sans: [a]\n"))
        before = security.current()
        web_config(text)
        assert security.current() is before

    def test_protection_may_be_added(self, web_config: Write, serve: Serve, authority: Authority) -> None:
        server = serve(security=load(web_config("")))
        assert get(server.addresses[0]).status == 200
        web_config(TLS + USERS)
        assert get(server.addresses[0], context=authority.client_context()).status == 401

    def test_files_are_looked_at_once_in_a_while(self, web_config: Write) -> None:
        now = [0.0]
        security = Security.load(web_config(""), Reloads(), check_seconds=1.0, clock=lambda: now[0])
        before = security.current()
        web_config(USERS)
        now[0] = 0.9
        assert security.current() is before
        now[0] = 1.1
        assert security.current() is not before

    def test_reload_on_demand(self, web_config: Write) -> None:
        security = Security.load(web_config(USERS), Reloads(), check_seconds=1e9)
        before = security.state
        security.reload()
        assert security.state is not before
        web_config("nonsense: 1")
        with pytest.raises(WebConfigError, match="nonsense"):
            security.reload()
        assert security.state.authenticator is not None
