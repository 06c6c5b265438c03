"""Small inputs with the figures of real captures. README.md here says where each is from."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent
WHOLE = "HONEST_TEST_CAPTURES"  # environment: a folder with the whole captures, to run the same tests on them


def capture(name: str) -> Path:
    """The file of that name, the whole one where there is one."""
    whole = Path(os.environ[WHOLE]) / name if WHOLE in os.environ else None
    return whole if whole is not None and whole.exists() else HERE / name
