"""Keeps a small copy of one collection of the API server up to date, in a thread of its own: list, then watch."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from exporter.attribution.background import SourceHealth
from exporter.attribution.holdings import AttributionError
from exporter.attribution.kubernetes.api_server import Absent, Gone, Json
from exporter.background.backoff import Backoff
from exporter.background.freshness import LastKnown
from exporter.background.once import Condition
from exporter.background.repeating import RepeatingTask

log = logging.getLogger(__name__)
T = TypeVar("T")
Key = tuple[str, str]  # namespace and name, which name one object at a time

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds after a failure; doubled each time
STALE_AFTER = 300.0  # seconds without a sign of life after which nothing of it is believed any more
MOST_OBJECTS = 5000  # kept at once: a node has 110 pods by default, and 500 are many


class Server(Protocol):
    """What is asked; ``ApiServer`` is one."""

    def list(self, path: str, selector: str) -> Json:
        """A whole collection. Raises AttributionError, Absent."""

    def watch(self, path: str, selector: str, version: str) -> Iterator[Json]:
        """Events after a version. Raises AttributionError, Absent, Gone."""

    def interrupt(self) -> None:
        """End what is under way."""


class Following(Generic[T]):
    """``objects`` is the copy; ``health`` says whether it is one."""

    def __init__(
        self,
        name: str,
        server: Server,
        paths: Sequence[str],
        selector: str,
        keep: Callable[[Json], T | None],
        monotonic: Callable[[], float],
        timestamp: Callable[[], float],
        wait: tuple[float, float] = (FIRST_WAIT, LONGEST_WAIT),
    ) -> None:
        """``paths``: of versions of the same API, the first that there is counts. ``keep``: what is kept of an object;
        None: nothing. ``wait``: seconds after a first failure, and at most."""
        self.name = name
        self._server, self._paths, self._selector, self._keep = server, paths, selector, keep
        self._monotonic, self._timestamp = monotonic, timestamp
        self._first_wait, longest = wait
        self._backoff = Backoff(self._first_wait, longest, calm=2 * longest)
        self._path = ""  # the version that there is
        self._objects: dict[Key, T] = {}
        self._version = ""  # of the copy; empty: list first
        self._alive: LastKnown[float] = LastKnown(STALE_AFTER)  # the last sign of life, in Unix seconds
        self._condition = Condition()
        self._left_out = 0
        self._task = RepeatingTask(name, self._step)

    def start(self) -> None:
        self._task.start()

    def stop(self, timeout: float) -> None:
        """End the thread; one that hangs is left behind."""
        self._task.stop()
        self._server.interrupt()
        self._task.join(timeout)

    @property
    def objects(self) -> Mapping[Key, T]:
        """The copy; empty when it is too old to be believed. A Mapping that does not change: safe from any thread."""
        return {} if self._alive.fresh(self._monotonic()) is None else self._objects

    @property
    def health(self) -> SourceHealth:
        return SourceHealth(
            self.name,
            up=self._condition.up and self._alive.fresh(self._monotonic()) is not None,
            last_success=self._alive.value,
            unresolved={"left_out": self._left_out} if self._left_out else {},
            reason=self._condition.reason,
        )

    def _step(self) -> float:
        try:
            self._follow()
        except AttributionError as error:
            self._failed(f"{error}{f' ({error.remedy})' if error.remedy else ''}")
        except Exception as error:
            if not self._task.stopping:  # interrupted, a library may raise whatever it likes
                log.exception("attribution %s failed in a way it did not foresee", self.name)
                self._failed(f"{type(error).__name__}: {error}")
        else:
            return self._first_wait * random.uniform(0.1, 0.3)  # a server that ends each watch at once is spared
        wait = self._backoff.failed(self._monotonic())
        return wait * random.uniform(0.5, 1.5)  # so that the nodes do not come back all at once

    def _follow(self) -> None:
        """A list if there is none yet, and one watch."""
        if not self._version:
            self._list()
        try:
            for event in self._server.watch(self._path, self._selector, self._version):
                self._take(event)
                self._sign_of_life()
        except Gone:
            self._version = ""
            log.debug("attribution %s: the API server has forgotten our version, listing anew", self.name)
        except Absent as absent:
            raise AttributionError(f"{absent} any more") from absent

    def _list(self) -> None:
        path, listed = self._first_there_is()
        objects: dict[Key, T] = {}
        left_out = 0
        items = listed.get("items")
        for item in items if isinstance(items, list) else ():
            key, kept = _key(item), self._kept(item)
            if key is None or kept is None:
                continue
            if len(objects) >= MOST_OBJECTS:
                left_out += 1
            else:
                objects[key] = kept
        version = _version(listed)
        if not version:
            raise AttributionError(f"the API server's list of {path} has no resourceVersion")
        self._path, self._version, self._objects, self._left_out = path, version, objects, left_out
        self._sign_of_life()

    def _first_there_is(self) -> tuple[str, Json]:
        for path in self._paths:
            with suppress(Absent):
                return path, self._server.list(path, self._selector)
        tried = ", ".join(self._paths)
        raise AttributionError(f"the API server has none of {tried}", "switch the feature off, or update the cluster")

    def _take(self, event: Json) -> None:
        item = event.get("object")
        if not isinstance(item, dict):
            return
        self._version = _version(item) or self._version
        key, kind = _key(item), event.get("type")
        if key is None or kind == "BOOKMARK":
            return
        kept = None if kind == "DELETED" else self._kept(item)
        changed = dict(self._objects)  # whoever reads has the one before, whole
        changed.pop(key, None)
        if kept is not None:
            if len(changed) < MOST_OBJECTS:
                changed[key] = kept
            else:
                self._left_out += 1
        self._objects = changed

    def _kept(self, item: object) -> T | None:
        return self._keep(item) if isinstance(item, dict) else None

    def _sign_of_life(self) -> None:
        self._alive.update(self._timestamp(), self._monotonic())
        if self._condition.worked():
            log.info("attribution %s is read", self.name)

    def _failed(self, reason: str) -> None:
        if self._condition.failed(reason) and not self._task.stopping:
            log.warning("attribution %s cannot be read, the kubelet's list is used alone: %s", self.name, reason)
        self._version = ""  # whatever it was, a new list mends it


def _key(item: object) -> Key | None:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return None
    return str(metadata.get("namespace") or ""), metadata["name"]


def _version(item: Json) -> str:
    metadata = item.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""
