"""Basic authentication against bcrypt hashes (RFC 7617), without a bcrypt computation at every scrape."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum

_BCRYPT = re.compile(r"\$2[aby]\$(?P<cost>[0-9]{2})\$[./A-Za-z0-9]{53}\Z")
_COSTS = range(4, 17)  # 16 takes seconds on a fast core; above it one request could hold a core for minutes
_BCRYPT_BYTES = 72  # what bcrypt reads; `htpasswd` and Go cut there too
_REMEMBERED = 64  # logins: more than there are scrapers, few enough to forget about
_PARALLEL_CHECKS = 1  # bcrypt is pure CPU: whoever tries passwords gets one core, not the node
_WAIT_SECONDS = 2.0


class HashError(ValueError):
    """A value that is not a bcrypt hash that we check; the text says what was expected."""


class LoginResult(Enum):
    """The result of checking a request's credentials."""

    GRANTED = "granted"
    DENIED = "denied"
    BUSY = "busy"  # not checked: other passwords are being checked, and this one waited long enough

    @property
    def granted(self) -> bool:
        return self is LoginResult.GRANTED

    @property
    def busy(self) -> bool:
        return self is LoginResult.BUSY


def hash_cost(text: str) -> int:
    """The cost (log2 of rounds) of a bcrypt hash. Raises HashError, never quoting the value: it may be a secret."""
    match = _BCRYPT.match(text)
    if match is None:
        raise HashError('not a bcrypt hash ($2a$, $2b$ or $2y$, 60 characters); `htpasswd -nBC 10 ""` creates one')
    cost = int(match["cost"])
    if cost not in _COSTS:
        raise HashError(
            f"bcrypt cost {cost} is outside {_COSTS.start}..{_COSTS.stop - 1}: each step doubles the time of a login; "
            '`htpasswd -nBC 10 ""` creates a hash of cost 10'
        )
    return cost


class Authenticator:
    """Checks `Authorization: Basic` headers. Safe to use from any thread.

    An unknown user costs the same bcrypt as a known one, so that the time of an answer does not reveal who exists.
    Only successful logins are remembered, as a digest under a key that lives in this object: neither a memory dump
    nor a timing gives a password, and a new hash in the file is a new object with nothing remembered.
    """

    def __init__(
        self,
        users: Mapping[str, str],
        *,
        check_password: Callable[[bytes, bytes], bool] | None = None,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        """users: name to bcrypt hash. check_password(password, hash): bcrypt's. Raises HashError."""
        cost = max((hash_cost(hashed) for hashed in users.values()), default=_COSTS.start)
        self._hashes = {name.encode(): hashed.encode("ascii") for name, hashed in users.items()}
        self._hash_of_nobody = f"$2b${cost:02}${'.' * 53}".encode("ascii")
        self._check_password = check_password or _bcrypt_check()
        self._wait_seconds = wait_seconds
        self._turn = threading.BoundedSemaphore(_PARALLEL_CHECKS)
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._remembered: OrderedDict[bytes, None] = OrderedDict()

    def check(self, authorization: str | None) -> LoginResult:
        """The result for an Authorization header; anything that is not well-formed basic credentials is DENIED."""
        credentials = _decode(authorization or "")
        if credentials is None:
            return LoginResult.DENIED
        user, password = credentials
        digest = self._digest(user, password)
        if self._recall(digest):
            return LoginResult.GRANTED
        if not self._turn.acquire(timeout=self._wait_seconds):
            return LoginResult.BUSY
        try:
            # Another thread may have checked the same login while this one waited for its turn.
            if self._recall(digest):
                return LoginResult.GRANTED
            matches = self._matches(password, self._hashes.get(user, self._hash_of_nobody))
        finally:
            self._turn.release()
        if not matches or user not in self._hashes:
            return LoginResult.DENIED
        self._remember(digest)
        return LoginResult.GRANTED

    def _matches(self, password: bytes, hashed: bytes) -> bool:
        try:
            return self._check_password(password[:_BCRYPT_BYTES], hashed)
        except ValueError:  # some versions of bcrypt refuse a NUL byte
            return False

    def _digest(self, user: bytes, password: bytes) -> bytes:
        # The length keeps ("ab", "c") and ("a", "bc") apart.
        return hmac.digest(self._key, len(user).to_bytes(4, "big") + user + password, "sha256")

    def _recall(self, digest: bytes) -> bool:
        with self._lock:
            known = digest in self._remembered
            if known:
                self._remembered.move_to_end(digest)
            return known

    def _remember(self, digest: bytes) -> None:
        with self._lock:
            self._remembered[digest] = None
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)


def _decode(authorization: str) -> tuple[bytes, bytes] | None:
    """(user, password) of a Basic header; None for anything else."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return (user, password) if colon else None


def _bcrypt_check() -> Callable[[bytes, bytes], bool]:
    import bcrypt  # here, so that a daemon without basic auth does not load it

    return bcrypt.checkpw
