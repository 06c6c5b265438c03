"""The other outcome that a parser may have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def may_refuse(*documented: type[Exception]) -> Iterator[list[str]]:
    """Runs what gives a value or raises one of these; the list then has the text of the error. Others go through."""
    told: list[str] = []
    try:
        yield told
    except documented as error:
        told.append(str(error))
