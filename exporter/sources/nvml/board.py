"""Reads one board and its MIG instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from exporter.fields import CLAIM, LINKS, PROFILING, TENSOR_PIPES
from exporter.model import Absence, Device, Entity, LinkState, Problem, ProcessUse, Reading
from exporter.sources.nvml import context, problems, support
from exporter.sources.nvml.claim import ClaimReader
from exporter.sources.nvml.context import Context, memory
from exporter.sources.nvml.gpm import METRICS, WITHOUT_LINKS, Gpm
from exporter.sources.nvml.library import text
from exporter.sources.nvml.mig import MigInstance, MigInstances
from exporter.sources.nvml.processes import Processes

POLL_SECONDS = 0.85  # at faster sampling, instances are listed and the context is read no more often than this
_MEASURED = frozenset({*PROFILING, *TENSOR_PIPES})


@dataclass(slots=True)
class BoardReading:
    """The result of one read of one board."""

    devices: list[Device] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    processes: list[ProcessUse] | None = None
    links: Mapping[int, LinkState] = field(default_factory=dict)  # of NVLink, by number


class GpuReader:
    """Reads one board. Used only by the thread of its lane. NVMLError: the board as a whole cannot be read.

    Handles belong to the caller: none is kept that a reset or a new list would make stale.
    """

    def __init__(
        self, nvml: Any, handle: Any, uuid: str, index: int, *, gpm: bool, processes_only: bool = False
    ) -> None:
        self._nvml, self._index = nvml, index
        self.entity = Entity(uuid)
        self.model = text(nvml.nvmlDeviceGetName(handle))
        self._wanted, self._processes_only = gpm, processes_only
        self._support = support.ask(nvml, handle) if gpm else support.Support(Absence.NOT_CONFIGURED)
        self._facts = self._static(handle)
        self._claim = ClaimReader(nvml, self.entity)
        self._context = Context(nvml, self.entity)
        self._processes = Processes(nvml, uuid)
        self._instances = MigInstances(nvml)
        self._polled = float("-inf")
        self._cut = False
        self._listed: list[MigInstance] = []
        self._samples: dict[Entity, Gpm] = {}
        self._devices: list[Device] = []  # the board and its instances, as of the last poll

    @property
    def gpm(self) -> bool:
        """Whether it is measured."""
        return self._support.absence is None

    def read(self, handle: Any, now: float, wall: float) -> BoardReading:
        """All readings since the last call."""
        made = BoardReading()
        poll = now - self._polled >= POLL_SECONDS
        if poll:
            self._poll_instances(handle, now)
        made.devices += self._devices
        if not self._processes_only:
            self._values(handle, made, now, wall, poll)
        made.processes = self._processes.read(handle, now)
        self._count(made, now)
        if not self._processes_only:
            made.problems += self._missing(made.readings)
        return made

    def close(self) -> None:
        """Free what is held."""
        self._drop(set())

    def _poll_instances(self, handle: Any, now: float) -> None:
        """Whether MIG is on, and which instances there are."""
        cut = self._instances.enabled(handle)
        self._listed = list(self._instances.list(handle)) if cut else []
        if cut != self._cut:  # MIG mode changes what is supported
            self._cut, self._context = cut, Context(self._nvml, self.entity)
            self._processes = Processes(self._nvml, self.entity.uuid)
        if self._support.absence is Absence.ERROR:
            self._support = support.ask(self._nvml, handle)
        self._devices = [self._device(cut), *(self._instance_device(instance) for instance in self._listed)]
        self._drop({device.entity for device in self._devices})
        self._polled = now

    def _values(self, handle: Any, made: BoardReading, now: float, wall: float, poll: bool) -> None:
        """Everything but the processes. Between polls only the measurement and the claim."""
        made.readings += self._measure(handle, self.entity, LINKS if self._cut else METRICS, now)  # first: near ``now``
        for instance in self._listed:
            entity = Entity(self.entity.uuid, instance.number)
            made.readings += self._measure(handle, entity, WITHOUT_LINKS, now, instance.uuid)
        if poll:
            for instance in self._listed:
                made.readings += memory(self._nvml, instance.handle, Entity(self.entity.uuid, instance.number), now)
        if self._cut:
            made.readings += (Reading(self.entity, f, now, None, None, Absence.NOT_SUPPORTED) for f in CLAIM)
        else:
            made.readings += self._claim.read(handle, now, wall)
        if poll:
            made.readings += self._context.read(handle, now)
        made.links = self._context.links

    def _measure(
        self, handle: Any, entity: Entity, fields: tuple[str, ...], now: float, mig_uuid: str = ""
    ) -> Iterator[Reading]:
        if self._support.absence is not None:
            for name in fields:
                yield Reading(entity, name, now, None, None, self._support.absence)
            return
        samples = self._samples.get(entity)
        if samples is None or samples.of != (fields, mig_uuid):  # new, or MIG was switched on, off or reconfigured
            if samples is not None:
                samples.close()
            samples = self._samples[entity] = Gpm(self._nvml, entity, fields, mig_uuid)
        yield from samples.read(handle, now)
        if samples.broke and entity.gpu_instance is not None:
            self._polled = float("-inf")  # it may have been destroyed

    def _count(self, made: BoardReading, now: float) -> None:
        if made.processes is None:
            return
        for device in made.devices:
            if device.entity.gpu_instance is None and self._cut:
                continue
            held = {process.pid for process in made.processes if process.entity == device.entity}
            made.readings.append(Reading(device.entity, "processes", now, float(len(held))))

    def _missing(self, readings: list[Reading]) -> Iterator[Problem]:
        if not self._wanted:
            return
        if not self.gpm:
            yield problems.unmeasured(self.entity, self._support)
        elif any(r.absence is Absence.NOT_PERMITTED and r.field in _MEASURED for r in readings):
            yield problems.not_permitted(self.entity)

    def _device(self, cut: bool) -> Device:
        fields: frozenset[str] = frozenset() if cut else frozenset({"processes"})
        if not self._processes_only:
            fields |= context.FIELDS | {*(LINKS if cut else (*METRICS, *CLAIM)), "xid"}
        return replace(self._facts, fields=fields, mig_enabled=cut)

    def _instance_device(self, instance: MigInstance) -> Device:
        return replace(
            self._facts,
            entity=Entity(self.entity.uuid, instance.number),
            fields=frozenset({"processes"} if self._processes_only else {*WITHOUT_LINKS, *context.MEMORY, "processes"}),
            mig_profile=instance.profile,
            mig_uuid=instance.uuid,
        )

    def _static(self, handle: Any) -> Device:
        nvml = self._nvml
        pci = self._text(lambda: nvml.nvmlDeviceGetPciInfo(handle).busId)
        minor = self._text(lambda: nvml.nvmlDeviceGetMinorNumber(handle))
        driver = self._text(nvml.nvmlSystemGetDriverVersion)
        return Device(self.entity, str(self._index), frozenset(), self.model, pci, driver, minor)

    def _text(self, ask: Callable[[], object]) -> str:
        try:
            return text(ask())
        except self._nvml.NVMLError:
            return ""

    def _drop(self, keep: set[Entity]) -> None:
        for entity in [entity for entity in self._samples if entity not in keep]:
            self._samples.pop(entity).close()
