"""Series of made-up nodes for rule tests: what each is while all is well, and what it is while something is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

JOB = "honest-gpu-exporter"
WELL, WRONG, GONE = "g", "b", "."
"""The letters of a plan, one a minute: GONE, when nothing can be scraped."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """A value while all is well and while something is wrong; None: no sample."""

    well: float | None
    wrong: float | None

    def over(self, plan: str) -> list[float | None]:
        """Its samples, one a minute."""
        return [None if letter == GONE else self.wrong if letter == WRONG else self.well for letter in plan]


@dataclass(frozen=True, slots=True)
class Counter:
    """Growth a second; it stands still while nothing can be scraped. None: no sample."""

    well: float | None
    wrong: float | None

    def over(self, plan: str) -> list[float | None]:
        """Its samples, one a minute."""
        total, samples = 0.0, list[float | None]()
        for letter in plan:
            rate = self.wrong if letter == WRONG else self.well
            total += 60 * (rate or 0.0) if letter != GONE else 60.0 * (self.well or 0.0)
            samples.append(None if letter == GONE or rate is None else total)
        return samples


@dataclass(frozen=True, slots=True)
class Stamp:
    """A moment in Unix seconds, a plan begins at 0: now, or the last good minute if it is ``frozen`` when wrong."""

    frozen: bool = False

    def over(self, plan: str) -> list[float | None]:
        """Its samples, one a minute."""
        last, samples = 0.0, list[float | None]()
        for minute, letter in enumerate(plan):
            last = last if self.frozen and letter == WRONG else 60.0 * minute
            samples.append(None if letter == GONE else last)
        return samples


Spec = Gauge | Counter | Stamp
PARTS = ("working", "stalled", "hollow", "idle")


@dataclass(frozen=True, slots=True)
class Gpu:
    """Activity (well, wrong) as shares; ``state`` while something is wrong."""

    busy: tuple[float, float] = (0.97, 0.97)
    sm: tuple[float, float] = (0.9, 0.9)
    tensor: tuple[float, float] = (0.5, 0.5)
    dram: tuple[float, float] = (0.4, 0.4)
    state: str = "mixed"
    more: Mapping[str, Spec] = field(default_factory=dict)  # name{labels} without those of the device; replaces

    def series(self, device: str, who: str) -> dict[str, Spec]:
        """By full name; ``device`` and ``who`` are labels."""
        well, wrong = self._parts(0), self._parts(1)
        named: dict[str, Spec] = {
            "honest_gpu_info{model=@}": Gauge(1, 1),
            f'honest_gpu_allocation_info{{{who},sharing="exclusive"}}': Gauge(1, 1),
            "honest_gpu_allocated": Gauge(1, 1),
            "honest_gpu_processes": Gauge(1, 1),
            "honest_gpu_busy_seconds_total": Counter(*self.busy),
            "honest_gpu_sm_active_seconds_total": Counter(*self.sm),
            "honest_gpu_tensor_active_seconds_total": Counter(*self.tensor),
            "honest_gpu_dram_active_seconds_total": Counter(*self.dram),
            'honest_gpu_profiling_state{state="ok"}': Gauge(1, 1),
            "honest_gpu_last_sample_timestamp_seconds": Stamp(),
            'honest_gpu_source_info{source="nvml"}': Gauge(1, 1),
            'honest_gpu_state_seconds_total{state="mixed"}': Counter(1, 1 if self.state == "mixed" else 0),
        }
        if self.state != "mixed":
            named[f'honest_gpu_state_seconds_total{{state="{self.state}"}}'] = Counter(0, 1)
        for of in ("claim", "sm", "tensor", "dram", "parts"):
            named[f'honest_gpu_observed_seconds_total{{of="{of}"}}'] = Counter(1, 1)
        for part in PARTS:
            named[f'honest_gpu_time_seconds_total{{part="{part}"}}'] = Counter(well[part], wrong[part])
        return {_labelled(name, device): spec for name, spec in (named | dict(self.more)).items()}

    def _parts(self, when: int) -> dict[str, float]:
        busy, sm = self.busy[when], self.sm[when]
        working = min(sm, max(self.tensor[when], self.dram[when]))
        return {"working": working, "stalled": sm - working, "hollow": max(busy, sm) - sm, "idle": 1 - max(busy, sm)}


@dataclass(frozen=True, slots=True)
class Node:
    """GPUs of one node, its holder, and what the node itself says."""

    gpus: tuple[Gpu, ...] = (Gpu(),)
    more: Mapping[str, Spec] = field(default_factory=dict)
    who: str = 'namespace="ml",pod="train-0",container="main"'

    def series(self, name: str) -> dict[str, Spec]:
        """All of it; ``name`` becomes its cluster, instance and model, so that nodes do not touch each other."""
        node = f'cluster="{name}",job="{JOB}",instance="{name}:9836"'
        boards = float(len(self.gpus))
        named: dict[str, Spec] = {
            "up": Gauge(1, 1),
            'honest_gpu_up{source="nvml"}': Gauge(1, 1),
            "honest_gpu_expected_gpus": Gauge(boards, boards),
            "honest_gpu_present_gpus": Gauge(boards, boards),
            "honest_gpu_snapshot_timestamp_seconds": Stamp(),
            'honest_gpu_attribution_up{source="kubernetes"}': Gauge(1, 1),
            'honest_gpu_source_read_seconds{source="nvml"}': Gauge(0.01, 0.01),
            "scrape_duration_seconds": Gauge(0.005, 0.005),
        }
        for part, seconds in (("working", 0.5), ("hollow", 0.3), ("idle", 0.2)):
            named[f'honest_gpu_workload_time_seconds_total{{{self.who},part="{part}"}}'] = Counter(seconds, seconds)
        found = {_labelled(key, node): spec for key, spec in (named | dict(self.more)).items()}
        for number, gpu in enumerate(self.gpus):
            device = f'{node},gpu="{number}",uuid="GPU-{name}-{number}"'
            found |= {key.replace("@", f'"{name}"'): spec for key, spec in gpu.series(device, self.who).items()}
        return found

    def suspect(self, more: Mapping[str, Spec]) -> Node:
        """The same, its GPUs with series that make their numbers doubtful."""
        return replace(self, gpus=tuple(replace(gpu, more={**gpu.more, **more}) for gpu in self.gpus))


def played(nodes: Mapping[str, Node], plan: str) -> dict[str, str]:
    """promtool's input series: every node by this plan. ``up`` is 0, and all else absent, while a node is gone."""
    text: dict[str, str] = {}
    for name, node in nodes.items():
        for series, spec in node.series(name).items():
            samples = spec.over(plan)
            if series.startswith("up{"):
                samples = [0.0 if letter == GONE else sample for letter, sample in zip(plan, samples, strict=True)]
            text[series] = " ".join(_sample(samples))
    return text


def _sample(samples: Iterable[float | None]) -> Iterable[str]:
    """A series that ends is stale at once, as it is when a scrape misses it."""
    before: float | None = None
    for sample in samples:
        yield f"{sample:.10g}" if sample is not None else "stale" if before is not None else "_"
        before = sample


def _labelled(name: str, labels: str) -> str:
    bare, brace, own = name.partition("{")
    return f"{bare}{{{labels},{own}" if brace else f"{bare}{{{labels}}}"
