"""Names as Prometheus users expect them; profiles within their budgets."""

from __future__ import annotations

import re

import pytest

from exporter.metrics.catalogue import COMPATIBILITY, GROUPS, Selection, groups
from exporter.metrics.family import Family, Profile, Type
from exporter.metrics.own import OwnState

FAMILIES = [family for group in groups(OwnState()) for family in group.families]
BASE_UNITS = {"", "seconds", "bytes", "joules", "watts", "celsius", "hertz", "ratio"}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.series_name)
def test_names(family: Family) -> None:
    name = family.full_name
    assert re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", name)
    assert family.unit in BASE_UNITS
    assert not family.unit or name.endswith(f"_{family.unit}")
    assert not re.search(r"percent|mhz|mib|_mb|millis|micros|kelvin", name)
    assert not name.endswith(("_total", "_info", "_bucket", "_count", "_sum"))
    assert (family.unit == "ratio") == name.endswith("_ratio")
    if name.endswith("_seconds") and not name.endswith("_timestamp_seconds") and not name.startswith("process"):
        assert family.type is Type.COUNTER or family.name == "source_read_seconds"
    assert family.help.endswith(".")
    assert "hostname" not in family.labels


def test_names_are_unique_and_do_not_collide_with_suffixes() -> None:
    names = [family.full_name for family in FAMILIES]
    assert len(set(names)) == len(names)
    series = {family.series_name for family in FAMILIES}
    assert len(series) == len(FAMILIES)


def test_only_the_daemons_own_families_are_outside_the_namespace() -> None:
    for group in GROUPS:
        assert all(family.series_name.startswith("honest_gpu_") for family in group.families)


def test_series_under_other_programs_names_are_apart_and_only_there_when_asked_for() -> None:
    """Their names are facts, and break our rules; they must never be ours, nor be served by default."""
    theirs = [family for group in COMPATIBILITY for family in group.families]
    ours = {family.series_name for family in FAMILIES}
    assert theirs
    assert not any(family.series_name.startswith("honest_gpu_") for family in theirs)
    assert ours.isdisjoint(family.series_name for family in theirs)
    assert len({family.series_name for family in theirs}) == len(theirs)
    assert all(family.help.endswith(".") for family in theirs)


def test_profiles_and_globs() -> None:
    by_name = {family.series_name: family for family in FAMILIES}
    busy, limiter = by_name["honest_gpu_busy_ratio"], by_name["honest_gpu_limiter"]
    assert busy in Selection(Profile.MINIMAL)
    assert limiter not in Selection(Profile.DEFAULT)
    assert limiter in Selection(Profile.DEFAULT, include=("honest_gpu_limiter",))
    assert busy not in Selection(Profile.FULL, exclude=("honest_gpu_busy_*",))
