"""Whether the time of a refusal tells that a user exists: by ranks of many refusals in random order, no absolute times.

The measure is how often one kind of guess takes longer than the other: 0.5 tells nothing, 1 tells everything. Its
standard deviation is 0.024 for as many guesses of a kind as here, so that 0.15 from the middle is six of them.
"""

from __future__ import annotations

import base64
import random
import time

import bcrypt
import pytest

from exporter.web.auth import Authenticator, LoginResult

pytestmark = pytest.mark.alone

COST, GUESSES, TELLING = 5, 300, 0.15
USERS = {f"user{number}": bcrypt.hashpw(b"s3cret", bcrypt.gensalt(COST)).decode() for number in range(20)}


def header(user: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{random.getrandbits(64):x}".encode()).decode()


def how_often_longer(authenticator: Authenticator, first: str, second: str) -> float:
    """Share of pairs of a guess for each user in which the first's takes longer, by the processor's time."""
    guesses = [first, second] * GUESSES
    random.shuffle(guesses)  # so that neither has the quieter half of the test
    times: dict[str, list[float]] = {first: [], second: []}
    for user in guesses:
        guess = header(user)
        started = time.thread_time()
        assert authenticator.check(guess) is LoginResult.DENIED
        times[user].append(time.thread_time() - started)
    return sum((a > b) + (a == b) / 2 for a in times[first] for b in times[second]) / GUESSES**2


@pytest.mark.parametrize(
    ("first", "second"),
    [("user0", "nobody"), ("user19", "nobody"), ("user0", "user19"), ("nobody", "x" * 200)],
    ids=["first user", "last user", "two users", "long name"],
)
def test_the_time_of_a_refusal_does_not_tell_who_exists(first: str, second: str) -> None:
    assert how_often_longer(Authenticator(USERS), first, second) == pytest.approx(0.5, abs=TELLING)


def test_a_difference_of_one_step_of_cost_would_be_seen() -> None:
    """The measure can fail: a stranger whose guess is checked for half as long."""
    authenticator = Authenticator(USERS)
    authenticator._hash_of_nobody = b"$2b$%02d$" % (COST - 1) + b"." * 53
    assert how_often_longer(authenticator, "user0", "nobody") > 0.5 + 2 * TELLING
