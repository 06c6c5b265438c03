"""What the hostengine lists: GPUs and their MIG GPU instances."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from exporter.model import Device, Entity, Problem
from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.session import GPU, GPU_INSTANCE, LIVE_DATA, Session

_NAME, _NVML_INDEX, _UUID, _MINOR = 50, 52, 54, 55
_PROFILE = re.compile(r"\d+[gc]\.\S+")
_LOST_REMEDY = "look for Xid 79 in dmesg; reset the GPU or reboot the node"


@dataclass(frozen=True, slots=True)
class InstanceEntity:
    """A GPU instance. ``number`` is DCGM's entity id, ``id`` that of NVML, which the rest of the program uses."""

    number: int
    id: int
    profile: str = ""
    mig_uuid: str = ""


@dataclass(frozen=True, slots=True)
class GpuEntity:
    """A GPU. ``number`` is DCGM's id of it, ``index`` that of NVML where the hostengine knows it."""

    number: int
    uuid: str
    index: str
    model: str = ""
    pci_bus_id: str = ""
    driver_version: str = ""
    minor: str = ""
    mig_enabled: bool = False
    instances: tuple[InstanceEntity, ...] = ()

    @property
    def entity(self) -> Entity:
        return Entity(self.uuid)

    @property
    def cut(self) -> bool:
        """Whether MIG is on: the instances are measured, and the board has no claim."""
        return self.mig_enabled or bool(self.instances)

    def devices(self, fields: Callable[[Entity], frozenset[str]]) -> list[Device]:
        """The board and its instances; ``fields``: what each should deliver."""
        board = Device(
            self.entity,
            self.index,
            fields(self.entity),
            model=self.model,
            pci_bus_id=self.pci_bus_id,
            driver_version=self.driver_version,
            minor=self.minor,
            mig_enabled=self.cut,
        )
        parts = ((each, Entity(self.uuid, each.id)) for each in self.instances)
        return [
            board,
            *(
                replace(
                    board,
                    entity=entity,
                    fields=fields(entity),
                    mig_profile=each.profile,
                    mig_uuid=each.mig_uuid,
                    mig_enabled=False,
                )
                for each, entity in parts
            ),
        ]

    def __str__(self) -> str:
        return f"GPU {self.index} ({self.uuid})"


@dataclass(frozen=True, slots=True)
class Layout:
    """All GPUs that answer, in DCGM's order, and what is wrong with the others."""

    boards: tuple[GpuEntity, ...]
    problems: tuple[Problem, ...] = ()
    listed: int = 0
    """How many GPUs the hostengine lists, those that fail included."""


class EntityList(NamedTuple):
    """What the hostengine lists, by its numbers."""

    gpus: tuple[int, ...]
    instances: tuple[tuple[int, int, int], ...]
    """GPU, entity id, NVML's id."""


def listing(session: Session) -> EntityList:
    """Two requests, however many GPUs there are. Raises CallFailed when the hostengine itself fails."""
    gpus = tuple(int(number) for number in session.call("dcgmGetAllDevices"))
    try:
        entries = _entries(session)
    except CallFailed as failure:
        if failure.connection_lost:
            raise
        entries = []
    found = ((e.parent.entityId, e.entity.entityId, e.info.nvmlInstanceId) for e in entries)
    return EntityList(gpus, tuple((int(gpu), int(number), int(id_)) for gpu, number, id_ in found))


def discover(session: Session, known: Mapping[int, str]) -> Layout:
    """All GPUs and instances that exist now. ``known``: UUIDs by DCGM's id, so that a GPU that is lost can be named.

    Raises CallFailed when the hostengine itself fails; a GPU that fails is left out and becomes a problem.
    """
    boards: list[GpuEntity] = []
    problems: list[Problem] = []
    cut = _instances(session, problems)
    listed = session.call("dcgmGetAllDevices")
    for number in listed:
        try:
            board = _board(session, int(number), cut.get(int(number), ()))
        except CallFailed as failure:
            if failure.connection_lost:
                raise
            problems.append(_missing(int(number), known, failure.reason, failure.remedy))
            continue
        if board is None:
            problems.append(_missing(int(number), known, "DCGM no longer knows its UUID: it is lost", _LOST_REMEDY))
        else:
            boards.append(board)
    return Layout(tuple(boards), tuple(problems), len(listed))


def _missing(number: int, known: Mapping[int, str], why: str, remedy: str) -> Problem:
    uuid = known.get(number)
    name = f"DCGM's GPU {number}" + (f" ({uuid})" if uuid else "")
    return Problem(f"{name} cannot be read", why, remedy, Entity(uuid) if uuid else None)


def _board(session: Session, number: int, instances: tuple[InstanceEntity, ...]) -> GpuEntity | None:
    """None for a GPU that is lost: it is still listed, and all its texts are blank."""
    attributes = session.call("dcgmGetDeviceAttributes", number)
    identifiers = attributes.identifiers
    uuid = _text(identifiers.uuid)
    if not uuid:
        return None
    live = _live(session, GPU, [number], (_NVML_INDEX, _MINOR))
    return GpuEntity(
        number,
        uuid,
        index=live.get((number, _NVML_INDEX)) or str(number),
        model=_text(identifiers.deviceName),
        pci_bus_id=_text(identifiers.pciBusId),
        driver_version=_text(identifiers.driverVersion),
        minor=live.get((number, _MINOR), ""),
        mig_enabled=attributes.settings.migModeEnabled == 1,
        instances=instances,
    )


def _instances(session: Session, problems: list[Problem]) -> dict[int, tuple[InstanceEntity, ...]]:
    """By DCGM's id of the GPU. A hostengine without MIG support has none."""
    try:
        entries = _entries(session)
    except CallFailed as failure:
        if failure.connection_lost:
            raise
        if failure.remedy:
            problems.append(Problem("MIG instances cannot be listed", failure.reason, failure.remedy))
        return {}
    numbers = [int(item.entity.entityId) for item in entries]
    names = _live(session, GPU_INSTANCE, numbers, (_NAME, _UUID)) if numbers else {}
    found: dict[int, list[InstanceEntity]] = {}
    for number, item in zip(numbers, entries, strict=True):
        profile, uuid = names.get((number, _NAME), ""), names.get((number, _UUID), "")
        instance = InstanceEntity(
            number,
            int(item.info.nvmlInstanceId),
            profile if _PROFILE.fullmatch(profile) else "",
            uuid if uuid.startswith("MIG-") else "",
        )
        found.setdefault(int(item.parent.entityId), []).append(instance)
    return {gpu: tuple(instances) for gpu, instances in found.items()}


def _entries(session: Session) -> list[Any]:
    """The GPU instances in the hierarchy. Raises CallFailed."""
    hierarchy = session.call("dcgmGetGpuInstanceHierarchy")
    return [item for item in hierarchy.entityList[: hierarchy.count] if item.entity.entityGroupId == GPU_INSTANCE]


def _live(session: Session, kind: int, numbers: list[int], fields: tuple[int, ...]) -> dict[tuple[int, int], str]:
    """Names and numbers that do not change, as text, by (entity id, field id); what is blank is left out."""
    pairs = []
    for number in numbers:
        pair = session.bindings.structs.c_dcgmGroupEntityPair_t()
        pair.entityGroupId, pair.entityId = kind, number
        pairs.append(pair)
    try:
        rows = session.call("dcgmEntitiesGetLatestValues", pairs, list(fields), LIVE_DATA)
    except CallFailed as failure:
        if failure.connection_lost:
            raise
        return {}
    texts = {(int(row.entityId), int(row.fieldId)): _value(row) for row in rows if row.status == 0}
    return {key: text for key, text in texts.items() if text}


def _value(row: Any) -> str:
    if row.fieldType == ord("s"):
        return _text(row.value.str)
    return str(row.value.i64) if 0 <= row.value.i64 < 1 << 16 else ""


def _text(raw: bytes | str) -> str:
    """Empty for DCGM's blanks, ``<<<NULL>>>`` and the like."""
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    return "" if text.startswith("<<<") else text
