"""How many examples a fuzz test tries: a few in each run, as many as asked for in a search by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings


def fuzzed(quick: int = 100) -> Callable[[Any], Any]:
    """Settings of a fuzz test: ``quick`` examples, or HONEST_GPU_FUZZ_EXAMPLES of them."""
    return settings(
        max_examples=int(os.environ.get("HONEST_GPU_FUZZ_EXAMPLES", quick)),
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
            HealthCheck.function_scoped_fixture,
        ],
    )
