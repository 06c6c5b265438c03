"""Basic authentication."""

from __future__ import annotations

import base64
import threading
import time

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.web.auth import Authenticator, HashError, LoginResult, hash_cost


def hashed(password: str, prefix: bytes = b"2b") -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).replace(b"$2b$", b"$" + prefix + b"$").decode()


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class CountingCheck:
    """bcrypt's check, with a record of the hashes that it was asked about."""

    def __init__(self, delay: float = 0.0) -> None:
        self.hashes: list[bytes] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._delay = delay

    def __call__(self, password: bytes, against: bytes) -> bool:
        with self._lock:
            self.hashes.append(against)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        time.sleep(self._delay)
        with self._lock:
            self._at_once -= 1
        return bcrypt.checkpw(password, against)


@pytest.mark.parametrize("prefix", [b"2a", b"2b", b"2y"])
def test_the_right_password_is_granted(prefix: bytes) -> None:
    authenticator = Authenticator({"alice": hashed("s3cret", prefix)})
    assert authenticator.check(basic("alice", "s3cret")) is LoginResult.GRANTED
    assert authenticator.check(basic("alice", "wrong")) is LoginResult.DENIED
    assert authenticator.check(basic("bob", "s3cret")) is LoginResult.DENIED


def test_colons_and_other_scripts_in_a_password() -> None:
    authenticator = Authenticator({"zoë": hashed("a:b:пароль")})
    assert authenticator.check(basic("zoë", "a:b:пароль")) is LoginResult.GRANTED


def test_a_long_password_is_cut_where_bcrypt_cuts_it() -> None:
    authenticator = Authenticator({"alice": hashed("x" * 72)})
    assert authenticator.check(basic("alice", "x" * 100)) is LoginResult.GRANTED


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic !!!",
        "Bearer abc",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Basic " + base64.b64encode(b"alice:\0").decode(),
        "Basic " + base64.b64encode(b"\xff\xfe:\xff").decode(),
    ],
)
def test_anything_else_is_denied(header: str | None) -> None:
    assert Authenticator({"alice": hashed("s3cret")}).check(header) is LoginResult.DENIED


def test_the_scheme_is_case_insensitive() -> None:
    header = basic("alice", "s3cret").replace("Basic", "bAsIc")
    assert Authenticator({"alice": hashed("s3cret")}).check(header) is LoginResult.GRANTED


@given(st.text())
def test_no_header_raises(header: str) -> None:
    authenticator = Authenticator({"alice": "$2b$04$" + "." * 53}, check_password=lambda *_: False)
    assert authenticator.check(header) is LoginResult.DENIED
    assert authenticator.check("Basic " + header) is LoginResult.DENIED


def test_an_unknown_user_costs_a_bcrypt_of_the_same_cost() -> None:
    check = CountingCheck()
    Authenticator({"alice": hashed("s3cret")}, check_password=check).check(basic("nobody", "guess"))
    assert [hash_cost(value.decode()) for value in check.hashes] == [4]


def test_the_hash_of_nobody_lets_nobody_in() -> None:
    authenticator = Authenticator({}, check_password=lambda *_: True)
    assert authenticator.check(basic("nobody", "anything")) is LoginResult.DENIED


def test_a_granted_login_is_remembered_and_a_denied_one_is_not() -> None:
    check = CountingCheck()
    authenticator = Authenticator({"alice": hashed("s3cret")}, check_password=check)
    assert [authenticator.check(basic("alice", "s3cret")) for _ in range(5)] == [LoginResult.GRANTED] * 5
    assert len(check.hashes) == 1
    assert [authenticator.check(basic("alice", "wrong")) for _ in range(2)] == [LoginResult.DENIED] * 2
    assert len(check.hashes) == 3


def test_what_is_remembered_is_bounded_and_holds_no_password() -> None:
    users = {f"user{number}": "$2b$04$" + "." * 53 for number in range(200)}
    authenticator = Authenticator(users, check_password=lambda *_: True)
    for user in users:
        assert authenticator.check(basic(user, "s3cret")) is LoginResult.GRANTED
    remembered = list(authenticator._remembered)
    assert len(remembered) <= 64
    assert all(len(digest) == 32 and b"s3cret" not in digest for digest in remembered)


def test_user_and_password_do_not_run_together_in_the_memory() -> None:
    users = {"ab": "$2b$04$" + "." * 53, "a": "$2b$04$" + "." * 53}
    authenticator = Authenticator(users, check_password=lambda password, _: password == b"c")
    assert authenticator.check(basic("ab", "c")) is LoginResult.GRANTED
    assert authenticator.check(basic("a", "bc")) is LoginResult.DENIED


def test_passwords_are_checked_one_at_a_time_and_the_wait_is_bounded() -> None:
    check = CountingCheck(delay=0.2)
    authenticator = Authenticator({"alice": hashed("s3cret")}, check_password=check, wait_seconds=0.02)
    verdicts: list[LoginResult] = []
    guesses = [
        threading.Thread(target=lambda guess=guess: verdicts.append(authenticator.check(basic("alice", guess))))
        for guess in ("a", "b", "c", "d")
    ]
    for guess in guesses:
        guess.start()
    for guess in guesses:
        guess.join()
    assert check.most_at_once == 1
    assert LoginResult.BUSY in verdicts
    assert LoginResult.GRANTED not in verdicts


def test_a_remembered_login_does_not_queue_behind_guesses() -> None:
    check = CountingCheck()
    authenticator = Authenticator({"alice": hashed("s3cret")}, check_password=check, wait_seconds=0.0)
    assert authenticator.check(basic("alice", "s3cret")) is LoginResult.GRANTED
    with authenticator._turn:
        assert authenticator.check(basic("alice", "s3cret")) is LoginResult.GRANTED
        assert authenticator.check(basic("alice", "guess")) is LoginResult.BUSY


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("s3cret", "not a bcrypt hash"),
        ("", "not a bcrypt hash"),
        ("$1$abc$def", "not a bcrypt hash"),
        ("$2x$10$" + "." * 53, "not a bcrypt hash"),
        ("$2b$10$" + "." * 52, "not a bcrypt hash"),
        ("$2b$10$" + "." * 53 + "\n", "not a bcrypt hash"),
        ("$2b$03$" + "." * 53, "cost 3"),
        ("$2b$31$" + "." * 53, "cost 31"),
    ],
)
def test_what_is_not_a_usable_hash_is_refused_without_being_quoted(value: str, problem: str) -> None:
    with pytest.raises(HashError, match=problem) as caught:
        Authenticator({"alice": value})
    assert not value or value not in str(caught.value)
