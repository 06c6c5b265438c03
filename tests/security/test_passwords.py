"""Basic authentication: what guessing costs, and that it tells nothing and disturbs nobody."""

from __future__ import annotations

import base64
import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest

from exporter.web.auth import Authenticator, LoginResult, hash_cost
from tests.attacks.clients import connect, received
from tests.end_to_end.processes import Daemon, fetch, prometheus, wait_for
from tests.security.conftest import Serve

pytestmark = pytest.mark.system

COST = 10
HASHES = {user: bcrypt.hashpw(b"s3cret", bcrypt.gensalt(COST)).decode() for user in ("scrape", "other")}


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    "guess", [("nobody", "x"), ("nobody", "s3cret"), ("scrape", "x"), ("", ""), ("scrape", ""), ("scrape", "x" * 1000)]
)
def test_every_wrong_guess_costs_one_bcrypt_of_the_same_cost(guess: tuple[str, str]) -> None:
    """That is all that takes time, so that the time of an answer does not tell whether the user exists."""
    costs: list[int] = []

    def counting(password: bytes, hashed: bytes) -> bool:
        costs.append(hash_cost(hashed.decode()))
        return bcrypt.checkpw(password, hashed)

    authenticator = Authenticator(HASHES, check_password=counting)
    assert authenticator.check(basic("scrape", "s3cret")) is LoginResult.GRANTED
    costs.clear()
    assert authenticator.check(basic(*guess)) is LoginResult.DENIED
    assert costs == [COST]


@pytest.fixture
def guarded(serve: Serve) -> Iterator[Daemon]:
    users = "".join(f"  {user}: {hashed}\n" for user, hashed in HASHES.items())

    def ready(running: Daemon) -> bool:
        return fetch(f"{running.url}/-/ready", {"Authorization": basic("scrape", "s3cret")}) == "Ready.\n"

    with serve(f"basic_auth_users:\n{users}", ready) as running:
        yield running


def test_answers_do_not_tell_users_apart(guarded: Daemon) -> None:
    answers = set()
    for user in ("scrape", "nobody"):
        with connect(guarded.port) as sock:
            header = f"Authorization: {basic(user, 'wrong')}"
            sock.sendall(f"GET /metrics HTTP/1.1\r\nHost: node\r\n{header}\r\nConnection: close\r\n\r\n".encode())
            lines = received(sock).split(b"\r\n")
        answers.add(tuple(line for line in lines if not line.startswith(b"Date:")))
    (answer,) = answers
    assert answer[0] == b"HTTP/1.1 401 Unauthorized"


def test_guessing_does_not_keep_prometheus_out(guarded: Daemon, tmp_path: Path) -> None:
    """One password is checked at a time, the others wait; a login that is known does not queue behind them."""
    stop = threading.Event()

    def guess(number: int) -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError), connect(guarded.port) as sock:
                header = f"Authorization: {basic('scrape', str(number))}"
                sock.sendall(f"GET / HTTP/1.1\r\nHost: node\r\n{header}\r\nConnection: close\r\n\r\n".encode())
                received(sock)
                number += 100

    login = {"basic_auth": {"username": "scrape", "password": "s3cret"}}
    with prometheus(tmp_path, guarded.url, scrape=login) as watching:
        wait_for(lambda: watching.query("up == 1"), "the first scrape")
        guessers = [threading.Thread(target=guess, args=(number,)) for number in range(8)]
        for guesser in guessers:
            guesser.start()
        time.sleep(3)
        stop.set()
        for guesser in guessers:
            guesser.join(20)
        time.sleep(1.1)
        assert watching.one("min_over_time(up[5m])") == 1
        assert watching.one('honest_gpu_web_connections_total{event="unauthorized"}') >= 8
