"""Three-valued logic: True, False, or None for "the inputs cannot tell" (Kleene)."""

from __future__ import annotations


def above(value: float | None, limit: float, slack: float) -> bool | None:
    """value >= limit, which is lowered by the share ``slack``."""
    return None if value is None else value >= limit * (1 - slack)


def below(value: float | None, limit: float, slack: float) -> bool | None:
    """value < limit, which is raised by the share ``slack``."""
    return None if value is None else value < limit * (1 + slack)


def every(*conditions: bool | None) -> bool | None:
    """False as soon as one is; else None as soon as one is."""
    if any(condition is False for condition in conditions):
        return False
    return None if any(condition is None for condition in conditions) else True


def some(*conditions: bool | None) -> bool | None:
    """True as soon as one is; else None as soon as one is."""
    if any(condition is True for condition in conditions):
        return True
    return None if any(condition is None for condition in conditions) else False
