"""Jobs that hold GPUs, by what prologs wrote into folders."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exporter.attribution.holdings import Allocations, AttributionError, Claim, Workload, holdings
from exporter.attribution.job_mapping import MappingReader, Oddity
from exporter.background.once import Reported
from exporter.model import Device, Entity

log = logging.getLogger(__name__)
MOST_SAID = 20  # oddities written to the log after one read; all are counted


@dataclass(frozen=True, slots=True)
class MappingFolder:
    """One folder and how it is read."""

    path: Path
    read: MappingReader


class SlurmAttributor:
    """Reads the folders anew each time; the first that names a device decides about it."""

    def __init__(self, folders: Sequence[MappingFolder]) -> None:
        self._folders = folders
        self._reported: Reported[str] = Reported()
        self._jobs: dict[str, Workload] = {}

    @property
    def name(self) -> str:
        return "slurm"

    def read(self, devices: Sequence[Device]) -> Allocations:
        """Raises AttributionError when none of the folders can be read; one that cannot is counted."""
        decided: dict[Entity, list[Claim]] = {}
        oddities: list[Oddity] = []
        failures: list[AttributionError] = []
        jobs: dict[str, Workload] = {}
        for folder in self._folders:
            try:
                found = folder.read(folder.path, devices)
            except AttributionError as error:
                failures.append(error)
                continue
            claims: dict[Entity, list[Claim]] = {}
            for claim in found.claims:
                claims.setdefault(claim.entity, []).append(claim)
            decided = claims | decided
            oddities += found.oddities
            jobs = dict(found.jobs) | jobs
        if failures and len(failures) == len(self._folders):
            raise failures[0]
        oddities += [Oddity("folder_unreadable", f"{error} ({error.remedy})") for error in failures]
        self._say(oddities)
        self._jobs = jobs
        return Allocations(
            self.name,
            holdings(claim for claims in decided.values() for claim in claims),
            Counter(oddity.kind for oddity in oddities),
        )

    def job(self, name: str) -> Workload | None:
        """All that the last read told of a job, by Slurm's number or SLUID. May be asked from any thread."""
        return self._jobs.get(name)

    def close(self) -> None:
        """Holds nothing open."""

    def _say(self, oddities: Sequence[Oddity]) -> None:
        """Each once, as long as it lasts."""
        new = sorted(self._reported.new(oddity.text for oddity in oddities))
        for text in new[:MOST_SAID]:
            log.warning("attribution %s: %s", self.name, text)
        if len(new) > MOST_SAID:
            log.warning("attribution %s: %d more like these", self.name, len(new) - MOST_SAID)
