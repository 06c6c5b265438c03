"""Who gives way to whom, and that threads stay bounded."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.web.limits import Event, Limits
from exporter.web.slots import Slots


@dataclass(eq=False)
class Occupant:
    """A connection as the slots see it."""

    client: str = "a"
    waits_since: float | None = 0.0
    idle: bool = False
    answering: bool = False
    interrupted: bool = False

    def interrupt(self) -> None:
        self.interrupted = True


def test_the_client_that_has_kept_us_waiting_longest_gives_way() -> None:
    slots = Slots(Limits(connections=3, connections_per_client=3))
    slow, idle, working = Occupant(waits_since=1.0), Occupant(waits_since=2.0, idle=True), Occupant(waits_since=None)
    assert [slots.admit(each) for each in (idle, slow, working)] == [Event.ACCEPTED] * 3
    assert slots.admit(Occupant(waits_since=9.0)) is Event.EVICTED_SLOW
    assert slots.admit(Occupant(waits_since=9.0)) is Event.EVICTED_IDLE
    assert (slow.interrupted, idle.interrupted, working.interrupted) == (True, True, False)


def test_a_client_at_its_own_bound_ends_its_own() -> None:
    slots = Slots(Limits(connections=3, connections_per_client=1))
    other, own = Occupant("b", waits_since=0.0), Occupant("a", waits_since=5.0)
    for each in (other, own):
        slots.admit(each)
    assert slots.admit(Occupant("a")) is Event.EVICTED_SLOW
    assert (other.interrupted, own.interrupted) == (False, True)


def test_whoever_is_worked_for_is_not_ended() -> None:
    slots = Slots(Limits(connections=2, connections_per_client=2))
    for _ in range(2):
        slots.admit(Occupant(waits_since=None))
    assert slots.admit(Occupant("a")) is Event.REFUSED_CLIENT
    assert slots.admit(Occupant("b")) is Event.REFUSED_TOTAL


def test_those_that_leave_count_until_their_threads_have_ended() -> None:
    slots = Slots(Limits(connections=2, connections_per_client=2))
    first = [Occupant() for _ in range(2)]
    for each in (*first, Occupant(waits_since=1.0), Occupant(waits_since=1.0)):
        slots.admit(each)
    assert all(each.interrupted for each in first)
    assert slots.admit(Occupant()) is Event.REFUSED_CLIENT, "two that serve and two that leave: threads are bounded"
    slots.release(first[0])
    assert slots.admit(Occupant()) is Event.EVICTED_SLOW
