"""Options of the whole test run."""

from __future__ import annotations

import pytest
from hypothesis import settings

# machines differ and are busy: no test fails for being slow
settings.register_profile("project", deadline=None)
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files anew; review the difference line by line before it is committed",
    )
