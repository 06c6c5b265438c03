"""Pages to read, and what came of them."""

from __future__ import annotations

from exporter.model import Absence, Batch, Device, Entity
from exporter.sources.scrape.client import Page
from exporter.sources.scrape.source import ExporterSource
from tests import data

UUID = "GPU-00000000-0000-0000-0000-000000000001"
OTHER = "GPU-00000000-0000-0000-0000-000000000002"
GPU = Entity(UUID)
URL = "http://localhost:9400/metrics"


def capture(name: str) -> str:
    """A page of a real exporter."""
    return data.capture(f"dcgm_exporter/{name}").read_text()


def line(name: str, value: object, uuid: str = UUID, gi: int | None = None, **labels: str) -> str:
    """One sample as dcgm-exporter prints it; ``name`` without DCGM_FI_."""
    mig = {} if gi is None else {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": str(gi)}
    pairs = {"gpu": "0", "UUID": uuid, "modelName": "NVIDIA H100 80GB HBM3", **mig, **labels}
    body = ",".join(f'{key}="{each}"' for key, each in pairs.items())
    return f"DCGM_FI_{name}{{{body}}} {value}"


class Exporter:
    """A source on pages that the test hands out."""

    def __init__(self, *lines: str) -> None:
        self.text = "\n".join(lines)
        self.failure: Exception | None = None
        self.source = ExporterSource(URL, fetch=self._fetch)

    def read(self, now: float, *lines: str) -> Batch:
        """The page at that time; the one before when no lines are given."""
        if lines:
            self.text = "\n".join(lines)
        return self.source.read(now)

    def _fetch(self) -> Page:
        if self.failure is not None:
            raise self.failure
        return Page(self.text)


def second(*lines: str) -> Batch:
    """The second read of an unchanging page, over the second from 100 to 101."""
    exporter = Exporter(*lines)
    exporter.read(100.0)
    return exporter.read(101.0)


def values(batch: Batch, entity: Entity = GPU) -> dict[str, float | Absence]:
    """By field, with the label where there is one. Each at most once."""
    own = [r for r in batch.readings if r.entity == entity]
    made: dict[str, float | Absence] = {}
    for r in own:
        assert (r.value is None) == (r.absence is not None)
        made[f"{r.field}:{r.label}" if r.label else r.field] = r.absence if r.value is None else r.value  # type: ignore[assignment]
    assert len(made) == len(own)
    return made


def devices(batch: Batch) -> dict[Entity, Device]:
    made = {device.entity: device for device in batch.devices}
    assert len(made) == len(batch.devices)
    return made
