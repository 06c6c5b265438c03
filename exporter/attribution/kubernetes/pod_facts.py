"""What is kept of a pod that the API server describes: who it is, whether it has ended, what it is called. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from exporter.attribution.kubernetes.owners import owner, queue, references

_ENDED = frozenset({"Succeeded", "Failed"})
_STATIC_UID = "kubernetes.io/config.hash"  # of a static pod: the UID that its control group is named by
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_SPECS = ("initContainers", "containers", "ephemeralContainers")
LONGEST_VALUE = 128  # characters of a label's value: Kubernetes allows 63, names of objects 253

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to tell of pods beyond their names; nothing by default."""

    labels: Mapping[str, str] = field(default_factory=dict)  # name on the pod -> name of ours
    uid: bool = False
    owner: bool = False


@dataclass(frozen=True, slots=True)
class PodFacts:
    """One pod, small."""

    namespace: str
    name: str
    uids: tuple[str, ...]  # by which control groups may know it
    ended: bool  # the pod as a whole; nothing of it runs again
    gone: frozenset[str] = frozenset()  # containers that have ended and are not started again
    containers: Mapping[str, str] = field(default_factory=dict)  # container id -> name
    only: str = ""  # the only container, where there is one
    labels: Mapping[str, str] = field(default_factory=dict)  # ours: what is wanted of it

    def holds(self, container: str) -> bool:
        """Whether this container can still hold what it was given."""
        return not self.ended and container not in self.gone


def label_names(allowed: Iterable[str]) -> dict[str, str]:
    """Name on the pod -> name of ours: ``app.kubernetes.io/name`` becomes ``label_app_kubernetes_io_name``.

    Raises ValueError when two become one.
    """
    made: dict[str, str] = {}
    for name in allowed:
        ours = "label_" + re.sub(r"[^a-zA-Z0-9_]", "_", name)
        other = next((each for each, taken in made.items() if taken == ours), name)
        if other != name:
            raise ValueError(f"{other} and {name} would both become {ours}: remove one of them")
        made[name] = ours
    return made


def pod_facts(pod: Json, wanted: Wanted) -> PodFacts | None:
    """None for what is no pod."""
    metadata, spec, status = (_mapping(pod.get(key)) for key in ("metadata", "spec", "status"))
    name = metadata.get("name")
    if not isinstance(name, str):
        return None
    annotations = _texts(metadata.get("annotations"))
    uids = tuple(uid for uid in (str(metadata.get("uid") or ""), annotations.get(_STATIC_UID, "")) if uid)
    apps = [each.get("name") for each in _items(spec.get("containers"))]
    others = [each for key in ("initContainers", "ephemeralContainers") for each in _items(spec.get(key))]
    statuses = [each for key in _STATUSES for each in _items(status.get(key))]
    return PodFacts(
        namespace=str(metadata.get("namespace") or ""),
        name=name,
        uids=uids,
        ended=str(status.get("phase")) in _ENDED,
        gone=frozenset(_gone(spec, statuses)),
        containers=dict(_ids(statuses)),
        only=str(apps[0]) if len(apps) == 1 and not others else "",
        labels=_labels(metadata, annotations, uids, wanted),
    )


def _labels(metadata: Json, annotations: Mapping[str, str], uids: Sequence[str], wanted: Wanted) -> dict[str, str]:
    labels = _texts(metadata.get("labels"))
    made = {ours: labels[name] for name, ours in wanted.labels.items() if labels.get(name)}
    if wanted.uid and uids:
        made["pod_uid"] = uids[0]
    if wanted.owner:
        found = owner(references(metadata), labels, annotations, _minute(metadata.get("creationTimestamp")))
        made |= {"owner_kind": found.kind, "owner_name": found.name, "queue": queue(labels, annotations)}
    return {name: value for name, value in made.items() if value and len(value) <= _longest(name)}


def _longest(name: str) -> int:
    return LONGEST_VALUE if name.startswith("label_") else 253


def _gone(spec: Json, statuses: Iterable[Json]) -> Iterator[str]:
    """Containers whose last run is over. One that is started again, or may be by rules of its own, is not."""
    declared = {str(each.get("name")): each for key in _SPECS for each in _items(spec.get(key))}
    of_init = {str(each.get("name")) for each in _items(spec.get("initContainers"))}
    for status in statuses:
        name = status.get("name")
        ended = _mapping(status.get("state")).get("terminated")
        if not isinstance(name, str) or not isinstance(ended, dict):
            continue
        own = declared.get(name, {})
        policy = own.get("restartPolicy") or spec.get("restartPolicy") or "Always"
        succeeded = ended.get("exitCode") == 0
        if name in of_init and not own.get("restartPolicy"):
            policy = "Never" if succeeded else "Always"  # runs to its success, once
        if own.get("restartPolicyRules"):
            continue
        if policy == "Never" or (policy == "OnFailure" and succeeded):
            yield name


def _ids(statuses: Iterable[Json]) -> Iterator[tuple[str, str]]:
    """``containerd://ID`` of the run now and of the one before."""
    for status in statuses:
        name = status.get("name")
        before = _mapping(_mapping(status.get("lastState")).get("terminated"))
        for text in (before.get("containerID"), status.get("containerID")):
            if isinstance(name, str) and isinstance(text, str) and "://" in text:
                yield text.split("://", 1)[1], name


def _minute(timestamp: object) -> int | None:
    try:
        return int(datetime.fromisoformat(str(timestamp).replace("Z", "+00:00")).timestamp() // 60)
    except ValueError:
        return None


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: object) -> dict[str, str]:
    return {k: v for k, v in _mapping(value).items() if isinstance(v, str)}
