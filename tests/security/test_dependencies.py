"""The lock files: exact, complete, of permissive licences, and free of the advisories that are listed here.

Nobody is asked, so that an advisory of tomorrow is not found: docs/security.md has the command for a place where the
advisory database can be reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-test.lock", "packaging/build.lock")
WANTED = [Requirement(text) for text in metadata.requires("honest-gpu-exporter") or ()]
RUN_TIME = [each for each in WANTED if each.marker is None]
SHIPPED = [*RUN_TIME, *(each for each in WANTED if each.marker and each.marker.evaluate({"extra": "kubernetes"}))]

# Of what is shipped or built with, known in 2026-12: advisory, package, versions that have the fault.
ADVISORIES = [
    ("CVE-2019-18874", "psutil", "<5.6.6"),
    ("CVE-2020-1747", "pyyaml", "<5.3.1"),
    ("CVE-2020-14343", "pyyaml", "<5.4"),
    ("CVE-2023-33953", "grpcio", "<1.56.2"),
    ("CVE-2024-7246", "grpcio", "<1.65.4"),
    ("CVE-2025-4565", "protobuf", "<4.25.8"),
    ("CVE-2025-4565", "protobuf", ">=5,<5.29.5"),
    ("CVE-2025-4565", "protobuf", ">=6,<6.31.1"),
    ("CVE-2024-6345", "setuptools", "<70"),
    ("CVE-2025-47273", "setuptools", "<78.1.1"),
]
PERMISSIVE = re.compile(r"\b(apache|bsd|mit|psf|python software foundation)\b", re.IGNORECASE)
COPYLEFT = re.compile(r"\b(a|l)?gpl|affero|sspl|general public", re.IGNORECASE)


def pins(name: str) -> Iterator[Requirement]:
    for line in (ROOT / name).read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text:
            yield Requirement(text)


EVERY = [(lock, pin) for lock in LOCKS for pin in pins(lock)]
LOCKED = {canonicalize_name(pin.name): pin for _, pin in EVERY if pin.marker is None or pin.marker.evaluate()}


def version(pin: Requirement) -> Version:
    (specifier,) = pin.specifier
    return Version(specifier.version)


@pytest.mark.parametrize(("lock", "pin"), EVERY, ids=str)
def test_a_pin_is_one_version_of_a_registry(lock: str, pin: Requirement) -> None:
    assert [specifier.operator for specifier in pin.specifier] == ["=="], lock
    assert "*" not in str(pin.specifier)
    assert pin.url is None
    assert not pin.extras


def test_what_is_shipped_is_known() -> None:
    assert {each.name for each in RUN_TIME} == {"bcrypt", "nvidia-ml-py", "prometheus-client", "psutil", "pyyaml"}
    assert {each.name for each in SHIPPED} == {each.name for each in RUN_TIME} | {"grpcio", "protobuf"}


@pytest.mark.parametrize("wanted", SHIPPED, ids=str)
def test_what_is_shipped_is_pinned_within_its_range(wanted: Requirement) -> None:
    assert wanted.specifier.contains(version(LOCKED[canonicalize_name(wanted.name)]))
    assert any(specifier.operator == "<" for specifier in wanted.specifier)  # no major version unseen


def needed(name: str, seen: set[str]) -> set[str]:
    """With all that it needs, by what the installed packages say of themselves."""
    if name not in seen:
        seen.add(name)
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed(canonicalize_name(requirement.name), seen)
    return seen


def test_nothing_that_is_needed_at_run_time_is_unpinned() -> None:
    """They are installed with --no-deps, so that nothing else can come in."""
    run_time = {canonicalize_name(pin.name) for pin in pins("requirements.lock")}
    found: set[str] = set()
    for each in RUN_TIME:
        needed(canonicalize_name(each.name), found)
    assert found == run_time
    for each in SHIPPED:
        assert needed(canonicalize_name(each.name), set()) <= LOCKED.keys()


@pytest.mark.parametrize("wanted", SHIPPED, ids=str)
def test_licences_are_permissive(wanted: Requirement) -> None:
    told = metadata.metadata(wanted.name)
    fields = [text for name in ("Classifier", "License-Expression", "License") for text in told.get_all(name) or ()]
    said = " ".join(text[:100] for text in fields if "::" not in text or text.startswith("License ::"))
    assert PERMISSIVE.search(said), said
    assert not COPYLEFT.search(said), said


@pytest.mark.parametrize(("advisory", "package", "faulty"), ADVISORIES, ids=str)
def test_no_pin_has_a_known_fault(advisory: str, package: str, faulty: str) -> None:
    of_it = [(lock, pin) for lock, pin in EVERY if canonicalize_name(pin.name) == package]
    assert of_it
    for lock, pin in of_it:
        assert not SpecifierSet(faulty).contains(version(pin)), f"{lock}: {pin} has {advisory}"
