"""Parts that the tests of this folder share; each skips with the reason where it cannot be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.packaging import debs, images
from tests.packaging.debs import Built
from tests.packaging.helm import Helm, NoHelm, find_helm
from tests.packaging.machine import NoMachine, debian_root, own_release
from tests.packaging.runtimes import IMAGE_VARIABLE


@pytest.fixture(scope="session")
def helm() -> Helm:
    """Helm."""
    try:
        return Helm(find_helm())
    except NoHelm as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def own_root() -> Path:
    """The tar of a minimal Debian of the release that runs here, which a .deb that is built here is for."""
    try:
        return debian_root(own_release())
    except NoMachine as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The .deb."""
    reason = debs.missing()
    if reason:
        pytest.skip(reason)
    return debs.build_twice(tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second"))


@pytest.fixture(scope="session")
def builds_images() -> None:
    """Skips where no image can be built."""
    reason = images.missing()
    if reason:
        pytest.skip(reason)
    try:
        debian_root()
    except NoMachine as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def image(request: pytest.FixtureRequest) -> str:
    """The name of the image: the one that the environment names, else it is built here."""
    named = os.environ.get(IMAGE_VARIABLE)
    if named:
        return named
    request.getfixturevalue("builds_images")
    return images.build("slim", "test-slim")
