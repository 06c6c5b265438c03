"""From a gauge that holds the last Xid code to events.

dcgm-exporter prints the code of the last Xid until it restarts (field case 40), and prints nothing before the first.
So an event is seen when the code changes to another one than 0. A second Xid of the same code changes nothing: it
cannot be seen here. What was there at the first look is of unknown age, and is no event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exporter.fields import FIELDS
from exporter.model import Absence, Entity, Reading
from exporter.trust import range_fault


class LastXids:
    """Remembers the last code of each board and instance."""

    def __init__(self) -> None:
        self._last: dict[Entity, float] = {}

    def readings(
        self, found: Mapping[Entity, float | Absence], known: frozenset[Entity], now: float
    ) -> Iterator[Reading]:
        """Events since the last read, one for each new code of a board, on the board; else why there is no code.

        ``found``: what was printed, by the entity of the row. ``known``: entities of which there was an earlier read.
        """
        events: dict[tuple[str, str], Reading] = {}
        for entity, code in found.items():
            board = Entity(entity.uuid)
            if isinstance(code, Absence):
                yield Reading(board, "xid", now, None, absence=code)
            elif not code.is_integer():
                yield Reading(board, "xid", now, None, absence=Absence.NOT_A_NUMBER)
            elif (fault := range_fault(FIELDS["xid"], code)) is not None:
                yield Reading(board, "xid", now, None, absence=fault)
            else:
                changed = code != self._last.get(entity, 0.0)
                self._last[entity] = code
                if changed and code and entity in known:
                    label = str(int(code))
                    events[(entity.uuid, label)] = Reading(board, "xid", now, 1.0, label=label)
        yield from events.values()
