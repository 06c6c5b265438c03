"""Fixtures of the chart's tests."""

from __future__ import annotations

import pytest

from tests.packaging.helm import Helm, NoHelm, find_helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    """Helm; skips with the reason where it cannot be had."""
    try:
        return Helm(find_helm())
    except NoHelm as error:
        pytest.skip(str(error))
