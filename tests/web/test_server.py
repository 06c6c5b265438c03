"""The web server against good and bad clients. Deadlines are short here; nothing asserts that anything is fast."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable

import pytest

from exporter.web.limits import Event, Limits
from exporter.web.routes import Request, Response, Routes, text_response
from exporter.web.server import WebServer
from exporter.web.transport import Transport

from .busy import Busy
from .clients import PATIENCE, Reply, ask, connect, get, is_closed, read_reply, request_bytes, until
from .conftest import Serve

FAST = Limits(handshake_seconds=0.4, request_seconds=0.4, idle_seconds=5.0, write_seconds=0.4, linger_seconds=0.2)


@pytest.fixture
def server(serve: Serve) -> WebServer:
    return serve(limits=FAST)


def raw(server: WebServer, data: bytes) -> Reply:
    with connect(server.addresses[0]) as sock:
        sock.sendall(data)
        return read_reply(sock)


class TestRequests:
    def test_get(self, server: WebServer) -> None:
        reply = get(server.addresses[0])
        assert (reply.status, reply.body) == (200, b"hello 127.0.0.1")
        assert reply.headers["content-length"] == "15"
        assert reply.headers["server"] == "honest-gpu-exporter"
        assert reply.headers["date"].endswith(" GMT")
        assert reply.headers["connection"] == "close"

    def test_head_has_the_length_and_no_body(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as sock:
            reply = ask(sock, method="HEAD")
            assert (reply.status, reply.headers["content-length"], reply.body) == (200, "15", b"")
            assert ask(sock).body == b"hello 127.0.0.1"  # nothing of a body is in the way

    def test_unknown_path(self, server: WebServer) -> None:
        reply = get(server.addresses[0], "/metrix")
        assert reply.status == 404
        assert b"/fail" in reply.body

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"])
    def test_other_methods(self, server: WebServer, method: str) -> None:
        reply = raw(server, f"{method} / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc".encode())
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")

    def test_a_handler_that_raises(self, server: WebServer, caplog: pytest.LogCaptureFixture) -> None:
        with connect(server.addresses[0]) as sock:
            reply = ask(sock, "/fail")
            assert reply.status == 500
            assert b"broken on purpose" not in reply.body
            assert ask(sock).status == 200
        assert "broken on purpose" in caplog.text
        assert server.stats[Event.HANDLER_ERROR] == 1

    def test_a_handler_cannot_split_a_response(self, serve: Serve) -> None:
        server = serve(lambda request: text_response(200, "ok", {"X-Echo": "a\r\nSet-Cookie: b"}))
        reply = get(server.addresses[0])
        assert reply.status == 500
        assert "set-cookie" not in reply.headers

    def test_what_a_handler_sees(self, serve: Serve) -> None:
        seen: list[Request] = []

        def look(request: Request) -> Response:
            seen.append(request)
            return Response(200, "application/octet-stream", gzip.compress(b"hi"), {"Content-Encoding": "gzip"})

        server = serve(look)
        reply = get(server.addresses[0], "/a%20b?x=1&x=2&y=", headers={"Accept": "a", "ACCEPT": "b"})
        assert gzip.decompress(reply.body) == b"hi"
        assert seen[0].path == "/a b"
        assert seen[0].query == {"x": ["1", "2"], "y": [""]}
        assert seen[0].headers["accept"] == "a, b"
        assert (seen[0].method, seen[0].client) == ("GET", "127.0.0.1")

    def test_the_absolute_form_that_proxies_send(self, server: WebServer) -> None:
        assert raw(server, b"GET http://node:9836/ HTTP/1.1\r\nHost: node\r\n\r\n").status == 200

    def test_http_1_0_closes_unless_asked_to_keep(self, server: WebServer) -> None:
        assert raw(server, b"GET / HTTP/1.0\r\n\r\n").headers["connection"] == "close"
        assert raw(server, b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").headers["connection"] == "keep-alive"

    @pytest.mark.parametrize(
        ("data", "status"),
        [
            (b"GET / HTTP/1.1\r\n\r\n", 400),
            (b"GET /\r\n\r\n", 400),
            (b"hello\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
            (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            (b"GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: x\r\nnocolon\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\nc\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
            (b"GET /?" + b"a=1&" * 100 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000, 413),
            (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
            (b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
            (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", 431),
            (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 100 + b"\r\n", 431),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ],
    )
    def test_bad_requests(self, server: WebServer, data: bytes, status: int) -> None:
        reply = raw(server, data)
        assert (reply.status, reply.headers["connection"]) == (status, "close")
        assert server.stats[Event.BAD_REQUEST] == 1
        assert get(server.addresses[0]).status == 200

    def test_an_endless_header_is_cut_while_it_is_sent(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as sock, contextlib.suppress(OSError):
            sock.sendall(b"GET / HTTP/1.1\r\n")
            for _ in range(10_000):  # ends by the server's reset
                sock.sendall(b"A: " + b"a" * 1000 + b"\r\n")
        assert until(lambda: server.stats[Event.BAD_REQUEST] == 1)

    def test_a_small_body_is_read_and_ignored(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as sock:
            sock.sendall(request_bytes(headers={"Content-Length": "5"}) + b"hello")
            assert read_reply(sock).status == 200
            assert ask(sock).status == 200


class TestKeepAlive:
    def test_many_requests_on_one_connection(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as sock:
            assert [ask(sock).status for _ in range(20)] == [200] * 20
        assert server.stats[Event.ACCEPTED] == 1
        assert server.stats[Event.REQUEST] == 20

    def test_pipelined_requests(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as sock:
            sock.sendall(request_bytes() + request_bytes("/nothing", headers={"Connection": "close"}))
            received = b"".join(iter(lambda: sock.recv(65536), b""))
        assert received.count(b"HTTP/1.1 200 OK\r\n") == 1
        assert received.count(b"HTTP/1.1 404 Not Found\r\n") == 1

    def test_requests_on_a_connection_are_bounded(self, serve: Serve) -> None:
        server = serve(limits=dataclasses.replace(FAST, requests_per_connection=2))
        with connect(server.addresses[0]) as sock:
            assert [ask(sock).headers["connection"] for _ in range(2)] == ["keep-alive", "close"]
            assert is_closed(sock)

    def test_an_idle_connection_is_closed(self, serve: Serve) -> None:
        server = serve(limits=dataclasses.replace(FAST, idle_seconds=0.2))
        with connect(server.addresses[0]) as sock:
            assert ask(sock).status == 200
            assert is_closed(sock)
        assert server.stats[Event.REQUEST_TIMEOUT] == 0


class TestSlowClients:
    def test_a_silent_client_is_cut_and_blocks_nobody(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as silent:
            assert [get(server.addresses[0]).status for _ in range(5)] == [200] * 5
            assert is_closed(silent)
        assert server.stats[Event.REQUEST_TIMEOUT] == 1

    def test_a_byte_at_a_time_is_cut_by_the_total_deadline(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as slow:
            sent = 0
            with contextlib.suppress(OSError):
                for byte in request_bytes(headers={"X": "y" * 5000}):  # 4 minutes, each wait far below the deadline
                    slow.sendall(bytes([byte]))
                    sent += 1
                    if server.stats[Event.REQUEST_TIMEOUT]:
                        break
                    time.sleep(0.05)
            assert sent < 1000
            assert read_reply(slow).status == 408
        assert server.stats[Event.REQUEST] == 0

    def test_a_body_that_does_not_come_is_cut(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as slow:
            slow.sendall(request_bytes(headers={"Content-Length": "10"}) + b"12345")
            assert read_reply(slow).status == 408
        assert until(lambda: server.stats[Event.REQUEST_TIMEOUT] == 1)

    def test_a_client_that_never_reads_is_cut_and_blocks_nobody(self, server: WebServer) -> None:
        with connect(server.addresses[0]) as deaf:
            deaf.sendall(request_bytes("/big"))
            assert get(server.addresses[0]).status == 200
            assert until(lambda: server.stats[Event.WRITE_TIMEOUT] == 1)

    def test_a_client_that_leaves_early(self, server: WebServer) -> None:
        for _ in range(5):
            with connect(server.addresses[0]) as sock:
                sock.sendall(request_bytes("/big"))
        assert get(server.addresses[0]).status == 200


class TestBounds:
    @pytest.fixture
    def patient(self) -> Limits:
        return dataclasses.replace(FAST, request_seconds=PATIENCE, connections=4, connections_per_client=3)

    def test_one_client_cannot_take_every_slot(self, serve: Serve, patient: Limits) -> None:
        server = serve(listen=["0.0.0.0:0"], limits=patient)
        port = server.addresses[0][1]
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(connect(("127.0.0.1", port))) for _ in range(4)]
            assert is_closed(silent[0])  # the oldest of the same client gives way, though a slot is free
            assert until(lambda: server.stats[Event.EVICTED_SLOW] == 1)  # counted when the other has been told
            # Another address of the loopback network is another client.
            other = stack.enter_context(socket.socket())
            other.settimeout(PATIENCE)
            other.bind(("127.0.0.2", 0))
            other.connect(("127.0.0.1", port))
            assert ask(other).status == 200
            assert [ask(sock).status for sock in silent[1:]] == [200] * 3

    @pytest.mark.parametrize(
        ("bound", "event"),
        [({"connections": 2}, Event.REFUSED_TOTAL), ({"connections_per_client": 2}, Event.REFUSED_CLIENT)],
        ids=["in all", "of one client"],
    )
    def test_when_all_are_being_worked_for_the_newcomer_is_refused_at_once(
        self, serve: Serve, patient: Limits, bound: dict[str, int], event: Event
    ) -> None:
        busy = Busy()
        server = serve(busy, limits=dataclasses.replace(patient, **bound))
        with busy.held(server.addresses[0], 2):
            with connect(server.addresses[0]) as refused:
                reply = read_reply(refused)
            assert (reply.status, reply.headers["retry-after"]) == (503, "1")
            assert server.stats[event] == 1
            assert server.stats[Event.ACCEPTED] == 2
        assert until(lambda: get(server.addresses[0]).status == 200)

    @pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nX: "], ids=["silent", "half a request"])
    def test_the_one_that_waits_longest_gives_way(self, serve: Serve, patient: Limits, begun: bytes) -> None:
        server = serve(limits=dataclasses.replace(patient, connections=2))
        with connect(server.addresses[0]) as oldest, connect(server.addresses[0]) as younger:
            oldest.sendall(begun)
            assert get(server.addresses[0]).status == 200
            assert is_closed(oldest)
            assert ask(younger).status == 200
        assert server.stats[Event.EVICTED_SLOW] == 1
        assert server.stats[Event.ACCEPTED] == 3

    def test_one_that_takes_nothing_gives_way(self, serve: Serve, patient: Limits) -> None:
        server = serve(limits=dataclasses.replace(patient, connections=1, write_seconds=PATIENCE))
        with connect(server.addresses[0]) as deaf:
            deaf.sendall(request_bytes("/big"))
            assert until(lambda: server.stats[Event.REQUEST] == 1)
            assert until(lambda: get(server.addresses[0]).status == 200)
        assert server.stats[Event.EVICTED_SLOW] >= 1

    def test_an_idle_connection_gives_way(self, serve: Serve, patient: Limits) -> None:
        server = serve(limits=dataclasses.replace(patient, connections=2))
        with connect(server.addresses[0]) as oldest, connect(server.addresses[0]) as younger:
            assert ask(oldest).status == 200
            assert ask(younger).status == 200
            # the client has its response before the server's thread knows that it was sent
            assert until(lambda: all(occupant.idle for occupant in server._slots.occupants()))
            assert get(server.addresses[0]).status == 200
            assert is_closed(oldest)
            assert ask(younger).status == 200
        assert server.stats[Event.EVICTED_IDLE] == 1

    def test_who_waits_longest_does_not_depend_on_which_thread_ran_first(
        self, serve: Serve, patient: Limits, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_again, send = threading.Event(), Transport.send
        late: list[Transport] = []

        def send_and_sleep(self: Transport, data: bytes, deadline: float, waits: Callable[[], None]) -> None:
            send(self, data, deadline, waits)
            late.append(self)
            if late == [self]:  # the first thread to send, as on a loaded machine
                assert run_again.wait(PATIENCE)

        monkeypatch.setattr(Transport, "send", send_and_sleep)
        server = serve(limits=dataclasses.replace(patient, connections=2))
        with connect(server.addresses[0]) as oldest, connect(server.addresses[0]) as younger:
            assert ask(oldest).status == 200
            assert ask(younger).status == 200
            assert until(lambda: any(occupant.idle for occupant in server._slots.occupants()))
            run_again.set()
            assert until(lambda: all(occupant.idle for occupant in server._slots.occupants()))
            assert get(server.addresses[0]).status == 200
            assert is_closed(oldest)
            assert ask(younger).status == 200

    def test_a_burst_leaves_the_server_well(self, serve: Serve) -> None:
        server = serve(limits=dataclasses.replace(FAST, connections_per_client=32))
        statuses: list[int] = []

        def scrape() -> None:
            for _ in range(10):
                with contextlib.suppress(OSError):
                    statuses.append(get(server.addresses[0]).status)

        clients = [threading.Thread(target=scrape) for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert statuses.count(200) >= 70
        assert until(lambda: not server._slots.occupants())


class TestStopping:
    def stop(self, server: WebServer) -> float:
        start = time.monotonic()
        server.stop()
        return time.monotonic() - start

    def test_with_open_connections(self, serve: Serve) -> None:
        server = serve(limits=Limits(connections_per_client=32))
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(connect(server.addresses[0])) for _ in range(5)]
            idle = stack.enter_context(connect(server.addresses[0]))
            assert ask(idle).status == 200
            deaf = stack.enter_context(connect(server.addresses[0]))
            deaf.sendall(request_bytes("/big"))
            assert until(lambda: server.stats[Event.REQUEST] == 2)
            assert self.stop(server) < 2
            assert all(is_closed(sock) for sock in [*silent, idle])
        assert not [thread for thread in server._workers if thread.is_alive()]
        with pytest.raises(OSError, match="refused"):
            connect(server.addresses[0])

    def test_a_request_that_is_being_answered_is_finished(self, serve: Serve) -> None:
        entered = threading.Event()

        def slow(request: Request) -> Response:
            entered.set()
            time.sleep(0.2)
            return text_response(200, "late")

        server = serve(Routes({"/": slow}))
        with connect(server.addresses[0]) as sock:
            sock.sendall(request_bytes())
            assert entered.wait(PATIENCE)
            server.stop()
            reply = read_reply(sock)
        assert (reply.body, reply.headers["connection"]) == (b"late\n", "close")

    def test_twice_and_unstarted(self, server: WebServer) -> None:
        server.stop()
        server.stop()
        WebServer(["127.0.0.1:0"], lambda request: text_response(200, "")).stop()


@pytest.fixture
def curl() -> str:
    path = shutil.which("curl")
    if path is None:
        pytest.skip("curl is not installed")
    return path


def test_curl(server: WebServer, curl: str) -> None:
    host, port = server.addresses[0]
    url = f"http://{host}:{port}/"
    command = [curl, "-sS", "--noproxy", "*", "-w", "%{http_code} %{num_connects}\n", url, url]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert run.stdout == "hello 127.0.0.1200 1\nhello 127.0.0.1200 0\n"
