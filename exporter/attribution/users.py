"""User names by number, remembered."""

from __future__ import annotations

import pwd
from collections.abc import Callable

MOST_USERS = 1000


def _account(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name


class UserNames:
    """Names of users by the system's own account database; where it has none, the number stands for the name.

    In a container that is the image's database, not the host's: numbers, unless the host's is mounted. A name once
    seen is kept, so that a directory service that is away for a while does not change labels.
    """

    def __init__(self, lookup: Callable[[int], str] = _account, most: int = MOST_USERS) -> None:
        """``lookup`` raises KeyError for a user that there is not; may block, so ask in the background."""
        self._lookup = lookup
        self._most = most
        self._known: dict[int, str] = {}

    def __call__(self, uid: int) -> str:
        name = self._known.get(uid)
        if name is not None:
            return name
        try:
            name = self._lookup(uid)
        except (KeyError, OSError, OverflowError, ValueError):
            return str(uid)
        if len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[uid] = name
        return name
