"""What to say about a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

# Name of an option or of a threshold that was renamed -> its name now.
RENAMED: dict[str, str] = {}


def hint(name: str, known: Iterable[str], renamed: Mapping[str, str], otherwise: str = "--help lists them all") -> str:
    """What the user may have meant. ``renamed``: RENAMED, spelled as ``name`` is; ``otherwise``: if none is close."""
    if name in renamed:
        return f"it was renamed to {renamed[name]}"
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else otherwise
