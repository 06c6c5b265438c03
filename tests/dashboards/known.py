"""Which series exist, and with which labels: from the catalogue and from the recording rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from exporter.metrics.catalogue import groups
from exporter.metrics.family import Type
from exporter.metrics.own import OwnState
from tests.dashboards.reading import REPOSITORY

TARGET = frozenset({"job", "instance", "cluster", "node"})
"""Labels that scraping adds; cluster and node only where somebody configured them."""

PROMETHEUS = ("up", "scrape_duration_seconds", "scrape_samples_scraped")
"""What Prometheus itself says of a scrape."""

Labels = Mapping[str, frozenset[str]]

ASKED_FOR: Labels = {"honest_gpu_allocation_info": frozenset({"owner_kind", "owner_name", "queue"})}
"""Labels that only options add (--kubernetes.pod-owner): the catalogue has them in the text of help."""


def exported() -> dict[str, frozenset[str]]:
    """Series of the exporter, and of Prometheus, with their labels."""
    found = dict.fromkeys(PROMETHEUS, TARGET)
    for group in groups(OwnState()):
        for family in group.families:
            labels = TARGET | set(family.labels)
            if family.type is Type.HISTOGRAM:
                found[f"{family.full_name}_bucket"] = labels | {"le"}
                found[f"{family.full_name}_sum"] = found[f"{family.full_name}_count"] = labels
            else:
                found[family.series_name] = labels | ASKED_FOR.get(family.series_name, frozenset())
    return found


def rules() -> list[dict[str, Any]]:
    """All recording rules."""
    files = sorted((REPOSITORY / "rules").glob("*.yml"))
    parsed = [yaml.safe_load(file.read_text()) for file in files]
    return [rule for file in parsed for group in file["groups"] for rule in group["rules"] if "record" in rule]
