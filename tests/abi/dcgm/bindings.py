"""NVIDIA's Python bindings, as tests get them.

They are those of the wheel triton-model-analyzer, or those in the folder that HONEST_TEST_DCGM_BINDINGS names (the
layout of DCGM's own packages: plain modules).
"""

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import NamedTuple

import pytest

WHEEL = "model_analyzer.monitor.dcgm"


class Bindings(NamedTuple):
    agent: ModuleType
    structs: ModuleType
    fields: ModuleType


def bindings_folder() -> str | None:
    return os.environ.get("HONEST_TEST_DCGM_BINDINGS") or None


def load_bindings() -> Bindings:
    """In the process that will use them: they keep the library in a global."""
    folder = bindings_folder()
    prefix = "" if folder is not None else f"{WHEEL}."
    if folder is not None and folder not in sys.path:
        sys.path.append(folder)
    names = ("dcgm_agent", "dcgm_structs", "dcgm_fields")
    return Bindings(*(importlib.import_module(prefix + name) for name in names))


def need_bindings() -> None:
    """Skips the test where there are none."""
    if bindings_folder() is None and importlib.util.find_spec("model_analyzer") is None:
        pytest.skip("no NVIDIA bindings: pip install --no-deps triton-model-analyzer, or HONEST_TEST_DCGM_BINDINGS=DIR")
