"""Which SXid errors of NVSwitches are new (DCGM_FI_DEV_SXID_FATAL_ERROR 856, _NON_FATAL_ERROR 857).

DCGM samples a fatal one again and again while it stands, with the time of the sample; the last one that was not fatal
comes with the time of the error, in NSCQ's unit. So a code counts when it was not there before, a non-fatal one also
when its time is another. Two of the same code between two looks are one.
"""

from __future__ import annotations

FATAL, NON_FATAL = 856, 857
_NONE = (0, 0)


class Sxids:
    """Lives as long as the source: a hostengine that comes back tells old errors again."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], tuple[int, int]] = {}

    def nothing(self, switch: int, field: int, *, known: bool) -> None:
        """One look that found no error. ``known``: the hostengine has looked, too; else it may not have done so yet."""
        key = (switch, field)
        if known and field == FATAL:
            self._last[key] = _NONE
        else:
            self._last.setdefault(key, _NONE)

    def new(self, switch: int, field: int, code: int, time: int) -> bool:
        """One look that found an error. A fatal one that stands at the first look is news, an old one that was not
        fatal is not."""
        key, told = (switch, field), (code, time if field == NON_FATAL else 0)
        before = self._last.get(key)
        self._last[key] = told
        return told != before and (field == FATAL or before is not None)
