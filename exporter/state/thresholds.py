"""All thresholds of the state rules (docs/states.md), each with its reason. Configurable: ``--state.threshold``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from dataclasses import field as _field


def _limit(value: float, why: str) -> float:
    made: float = _field(default=value, metadata={"why": why})
    return made


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Ratios 0..1 of means over the evidence window, unless said otherwise."""

    nothing_runs: float = _limit(0.02, "heuristic: below this share of busy time a process counts as idle")
    pcie_high: float = _limit(0.5, "heuristic: half of the link's raw rate; the protocol takes 15-20 % of it")
    pcie_idle: float = _limit(0.05, "heuristic: control traffic of a running job stays well below")
    nvlink_high: float = _limit(0.3, "heuristic: NVLink's practical full is about 0.85 of nominal (docs/inputs.md)")
    nvlink_idle: float = _limit(0.02, "heuristic: as pcie_idle; polling over NVLink moves few bytes")
    collective_high: float = _limit(
        0.5, "heuristic: more than half of the busy time is spent in collectives (traces only)"
    )
    sm_starved: float = _limit(0.3, "heuristic: SM active below this is not compute")
    sm_launch: float = _limit(0.25, "heuristic: engine busy, SMs at a quarter: launches, not kernels, fill the time")
    sm_resident: float = _limit(0.8, "heuristic: warps nearly always resident")
    busy_full: float = _limit(0.95, "a spinning kernel reads 100 (field cases 31, 32); 5 points for rounding")
    engine_high: float = _limit(0.85, "not 0.9: a kernel that runs for 900 ms of each second would be borderline")
    busy_gaps: float = _limit(0.9, "heuristic: below this the GPU visibly waits between kernels")
    tensor_none: float = _limit(0.01, "field case 31: a spinning collective issues no tensor instruction")
    dram_none: float = _limit(0.02, "field case 31: a spinning collective hardly touches memory")
    power_low: float = _limit(0.4, "field case 31: util 100 % at 70 W; (P - idle) / (limit - idle)")
    tensor_low: float = _limit(0.15, "heuristic: communication leaves the tensor pipe idle")
    dram_low: float = _limit(0.3, "heuristic: collectives reduce in memory, at a fraction of its rate")
    rest_low: float = _limit(0.2, "heuristic: no unit explains the busy time")
    dram_ceiling: float = _limit(0.9, "attainable share where none is published: 0.8-0.9 (docs/inputs.md)")
    dram_bound: float = _limit(0.7, "heuristic: share of the ceiling")
    tensor_ceiling: float = _limit(0.85, "attainable share where none is published: 0.78-0.87 (docs/inputs.md)")
    tensor_bound: float = _limit(0.6, "heuristic: share of the ceiling")
    pipe_bound: float = _limit(0.5, "heuristic: half of the time")
    limiter_low: float = _limit(0.4, "heuristic: warps resident, no unit above this: latency")
    host_pressure: float = _limit(0.1, "heuristic: PSI some; a tenth of the time something waited")
    input_wait: float = _limit(0.3, "heuristic: nearly a third of the time the program waits for its loader")
    main_thread: float = _limit(0.95, "heuristic: share of a core used by the interpreter's main thread")

    slack: float = 0.0  # share by which limits are eased for a state that is already held: enter and leave differ

    def replaced(self, values: Mapping[str, float]) -> Thresholds:
        """With some other values. KeyError names one that does not exist, ValueError one outside 0..1."""
        known = {each.name: float(getattr(self, each.name)) for each in fields(self) if each.metadata}
        for name, value in values.items():
            if name not in known:
                raise KeyError(name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name}: expected a ratio from 0 to 1, got {value}")
        return replace(self, **values)


def reasons() -> dict[str, tuple[float, str]]:
    """Name -> (default, why), for the documentation."""
    return {each.name: (float(each.default), str(each.metadata["why"])) for each in fields(Thresholds) if each.metadata}  # type: ignore[arg-type]
