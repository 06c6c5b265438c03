"""From the core's Snapshot to the complete one: hardware, holders, host and state are attached, in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from exporter.attribution.stage import AttributionStage
from exporter.attribution.view import AttributionView
from exporter.core.snapshot import EntityView, Snapshot
from exporter.hardware.stage import HardwareStage, HardwareView
from exporter.host.account import DeviceUse, HostAccount
from exporter.host.background import HostBackground
from exporter.host.view import HostView
from exporter.model import Entity
from exporter.state.rules import Evidence
from exporter.state.stage import StateStage

_PIPES = ("fp64", "fp32", "fp16", "integer")


@dataclass(slots=True)
class _Passes:
    """What has been booked of the host's passes."""

    account: HostAccount = field(default_factory=HostAccount)
    last: HostView | None = None


@dataclass(frozen=True)
class Assembly:
    """Called with each Snapshot of the core, in the sampler's thread. A stage that is None is switched off."""

    publish: Callable[[Snapshot], None]
    hardware: HardwareStage
    states: StateStage
    attribution: AttributionStage | None = None
    host: HostBackground | None = None
    _passes: _Passes = field(default_factory=_Passes)

    def start(self) -> None:
        """Start what runs in the background."""
        for stage in (self.attribution, self.host):
            if stage is not None:
                stage.start()

    def stop(self, timeout: float) -> None:
        """End it; what hangs is left behind."""
        for stage in (self.attribution, self.host):
            if stage is not None:
                stage.stop(timeout / 2)

    def __call__(self, snapshot: Snapshot) -> None:
        """Attach, and hand on."""
        now = snapshot.time
        attribution = self._attribution(now, snapshot) if self.attribution is not None else None
        host = self._host(snapshot) if self.host is not None else None
        views = [self._with_hardware(view) for view in snapshot.entities]
        pcie = _pcie_of_boards(views)
        entities = tuple(self._with_state(now, view, snapshot, attribution, host, pcie) for view in views)
        self.states.keep(frozenset(view.device.entity for view in snapshot.entities))
        use = self._use(snapshot, host) if host is not None else {}
        self.publish(replace(snapshot, entities=entities, attribution=attribution, host=host, host_use=use))

    def _attribution(self, now: float, snapshot: Snapshot) -> AttributionView:
        assert self.attribution is not None
        # a board that is cut into instances is held through them
        devices = {
            view.device.entity: (view.device, view.totals.parts)
            for view in snapshot.entities
            if view.present and not view.device.mig_enabled
        }
        return self.attribution.update(now, devices, snapshot.processes)

    def _host(self, snapshot: Snapshot) -> HostView | None:
        assert self.host is not None
        self.host.holders(process.pid for process in snapshot.processes or ())
        return self.host.view

    def _use(self, snapshot: Snapshot, host: HostView) -> Mapping[Entity, DeviceUse]:
        if host is not self._passes.last:  # a new pass
            self._passes.last = host
            held = [(process.entity, process.pid) for process in snapshot.processes or ()]
            self._passes.account.feed(host.reading.processes.holders, held)
            self._passes.account.keep(frozenset(view.device.entity for view in snapshot.entities))
        return {entity: replace(use) for entity, use in self._passes.account.devices.items()}

    def _with_hardware(self, view: EntityView) -> EntityView:
        if not view.present:
            return view
        return replace(view, hardware=self.hardware.update(view.device, {**view.instants, **view.means}))

    def _with_state(
        self,
        now: float,
        view: EntityView,
        snapshot: Snapshot,
        attribution: AttributionView | None,
        host: HostView | None,
        pcie: Mapping[str, float],
    ) -> EntityView:
        """``pcie``: of every board, so that the order of boards and instances does not matter."""
        if view.hardware is None or view.device.mig_enabled:  # it is gone, or its instances have states
            return view
        entity = view.device.entity
        allocated = None if attribution is None else attribution.allocated(entity)
        pids = [process.pid for process in snapshot.processes or () if process.entity == entity]
        of_host = None if host is None else host_evidence(host, pids)
        gathered = evidence(view, view.hardware, allocated, of_host, pcie_at_most=pcie.get(entity.uuid))
        events = {label: seconds for (field, label), seconds in view.totals.active.items() if field == "clock_event"}
        return replace(view, state=self.states.update(now, entity, gathered, events))


def _pcie_of_boards(views: Iterable[EntityView]) -> Mapping[str, float]:
    """By uuid: share of the link, the busier direction. An instance's traffic is at most its board's."""
    return {
        view.device.entity.uuid: max(view.hardware.saturation.pcie.values())
        for view in views
        if view.device.entity.gpu_instance is None and view.hardware is not None and view.hardware.saturation.pcie
    }


def host_evidence(host: HostView, pids: list[int]) -> Mapping[str, float]:
    """What the host says of the processes of one device: pressure, main_thread, rdma, as far as known."""
    found = {}
    pressures = [host.pressure[resource] for resource in ("cpu", "io") if resource in host.pressure]
    if pressures:
        found["host_pressure"] = max(pressures)
    threads = [host.main_thread[pid] for pid in pids if pid in host.main_thread]
    if threads:
        found["host_main_thread"] = max(threads)
    if host.rdma is not None:
        found["rdma"] = host.rdma
    return found


def evidence(
    view: EntityView,
    hardware: HardwareView,
    allocated: bool | None,
    host: Mapping[str, float] | None,
    pcie_at_most: float | None = None,
) -> Evidence:
    """Everything the rules may ask, over the last window."""
    means, instants, found = view.means, view.instants, hardware.saturation
    processes = instants.get("processes")
    told = {**instants, **(host or {})}
    tensor = found.tensor_peak if found.tensor_peak is not None else means.get("tensor")
    return Evidence(
        allocated=allocated,
        processes=None if processes is None else int(processes),
        busy=means.get(view.claim) if view.claim else None,
        engine=means.get("graphics_engine"),
        sm=means.get("sm"),
        tensor=tensor,
        dram=means.get("dram"),
        pipes={pipe: means[pipe] for pipe in _PIPES if pipe in means},
        pcie=max(found.pcie.values(), default=None),
        pcie_at_most=pcie_at_most,
        nvlink=_nvlink(view, hardware),
        rdma=told.get("rdma"),
        collective=_share(means.get("collective"), means.get("busy")),
        input_wait=means.get("input_wait"),
        power=found.power,
        power_at_most=_share(instants.get("power"), instants.get("power_limit")),
        host_pressure=told.get("host_pressure"),
        main_thread=told.get("host_main_thread"),
        tensor_ceiling=found.attainable.get("tensor"),
        dram_ceiling=found.attainable.get("dram"),
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _nvlink(view: EntityView, hardware: HardwareView) -> float | None:
    """A GPU that has no NVLink moves nothing over it: 0. One whose rate is not known: None."""
    if hardware.saturation.nvlink:
        return max(hardware.saturation.nvlink.values())
    absences = {field: view.absences.get(field) for field in ("nvlink_transmit", "nvlink_receive")}
    lacking = all(absence is not None and absence.value == "not_supported" for absence in absences.values())
    return 0.0 if lacking or view.device.entity.gpu_instance is not None else None
