"""Everything of one board and its instances in one read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from exporter.fields import CLAIM, LINKS, PROFILING, TENSOR_PIPES
from exporter.model import Absence, Device, Entity, LinkState, Problem, ProcessUse, Reading
from exporter.sources.nvml import complaints, context, support
from exporter.sources.nvml.claim import Claim
from exporter.sources.nvml.context import Context, memory
from exporter.sources.nvml.gpm import METRICS, WITHOUT_LINKS, Gpm
from exporter.sources.nvml.library import text
from exporter.sources.nvml.mig import Instance, Instances
from exporter.sources.nvml.processes import Processes

_MEASURED = frozenset({*PROFILING, *TENSOR_PIPES})


@dataclass(slots=True)
class BoardReading:
    """What one read of one board brought."""

    devices: list[Device] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    processes: list[ProcessUse] | None = None
    links: Mapping[int, LinkState] = field(default_factory=dict)  # of NVLink, by number


class Board:
    """One board; used by its lane's thread only. NVMLError: the board as a whole cannot be read.

    Handles are the caller's, new at each read: none is kept that a reset or a new list would make stale.
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
        self._claim = Claim(nvml, self.entity)
        self._context = Context(nvml, self.entity)
        self._processes = Processes(nvml, uuid)
        self._instances = Instances(nvml)
        self._cut = False
        self._samples: dict[Entity, Gpm] = {}
        self._devices: dict[bool, Device] = {}  # by whether the board is cut

    @property
    def gpm(self) -> bool:
        """Whether it is measured."""
        return self._support.absence is None

    def read(self, handle: Any, now: float, wall: float) -> BoardReading:
        """All readings since the last call."""
        made = BoardReading()
        cut = self._instances.enabled(handle)
        instances = list(self._instances.list(handle)) if cut else []
        if self._processes_only:
            return self._holders(handle, made, now, cut, instances)
        if cut != self._cut:  # another mode supports other things
            self._cut, self._context = cut, Context(self._nvml, self.entity)
        if self._support.absence is Absence.ERROR:
            self._support = support.ask(self._nvml, handle)
        self._drop({Entity(self.entity.uuid, instance.number) for instance in instances} | {self.entity})
        made.devices.append(self._device(cut))
        made.readings += self._measure(handle, self.entity, LINKS if cut else METRICS, now)  # first: near ``now``
        for instance in instances:
            made.devices.append(self._instance_device(instance))
            entity = Entity(self.entity.uuid, instance.number)
            made.readings += self._measure(handle, entity, WITHOUT_LINKS, now, instance.uuid)
        for instance in instances:
            made.readings += memory(self._nvml, instance.handle, Entity(self.entity.uuid, instance.number), now)
        if cut:
            made.readings += (Reading(self.entity, f, now, None, None, Absence.NOT_SUPPORTED) for f in CLAIM)
        else:
            made.readings += self._claim.read(handle, now, wall)
        made.readings += self._context.read(handle, now)
        made.links = self._context.links
        made.processes = self._processes.read(handle, now)
        self._count(made, now, cut)
        made.problems += self._missing(made.readings)
        return made

    def close(self) -> None:
        """Free what is held."""
        self._drop(set())

    def _holders(
        self, handle: Any, made: BoardReading, now: float, cut: bool, instances: list[Instance]
    ) -> BoardReading:
        """Who holds the board and its instances, and nothing else: another source reads the rest."""
        fields = frozenset({"processes"})
        made.devices.append(replace(self._device(cut), fields=frozenset() if cut else fields))
        made.devices += (replace(self._instance_device(instance), fields=fields) for instance in instances)
        made.processes = self._processes.read(handle, now)
        self._count(made, now, cut)
        return made

    def _measure(
        self, handle: Any, entity: Entity, fields: tuple[str, ...], now: float, mig_uuid: str = ""
    ) -> Iterator[Reading]:
        if self._support.absence is not None:
            for name in fields:
                yield Reading(entity, name, now, None, None, self._support.absence)
            return
        samples = self._samples.get(entity)
        if samples is None or samples.of != (fields, mig_uuid):  # new, or MIG was switched or cut anew
            if samples is not None:
                samples.close()
            samples = self._samples[entity] = Gpm(self._nvml, entity, fields, mig_uuid)
        yield from samples.read(handle, now)

    def _count(self, made: BoardReading, now: float, cut: bool) -> None:
        if made.processes is None:
            return
        for device in made.devices:
            if device.entity.gpu_instance is None and cut:
                continue
            held = {process.pid for process in made.processes if process.entity == device.entity}
            made.readings.append(Reading(device.entity, "processes", now, float(len(held))))

    def _missing(self, readings: list[Reading]) -> Iterator[Problem]:
        if not self._wanted:
            return
        if not self.gpm:
            yield complaints.unmeasured(self.entity, self._support)
        elif any(r.absence is Absence.NOT_PERMITTED and r.field in _MEASURED for r in readings):
            yield complaints.not_permitted(self.entity)

    def _device(self, cut: bool) -> Device:
        device = self._devices.get(cut)
        if device is None:
            measured = LINKS if cut else (*METRICS, *CLAIM, "processes")
            fields = context.FIELDS | {*measured, "xid"}
            device = self._devices[cut] = replace(self._facts, fields=fields, mig_enabled=cut)
        return device

    def _instance_device(self, instance: Instance) -> Device:
        return replace(
            self._facts,
            entity=Entity(self.entity.uuid, instance.number),
            fields=frozenset({*WITHOUT_LINKS, *context.MEMORY, "processes"}),
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
