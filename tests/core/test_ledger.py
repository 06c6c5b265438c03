"""What is booked, and what is handed on of it."""

from __future__ import annotations

from exporter.core.ledger import Account
from exporter.model import Reading

from .building import GPU


def test_what_is_booked_is_handed_on_each_stretch_of_time_once() -> None:
    account = Account()
    first = Reading(GPU, "sm", 2.0, 0.4, 0.0)
    assert account.book("a", 2.0, [first, Reading(GPU, "power", 2.0, 300.0)]) == [first]
    within, across = Reading(GPU, "sm", 2.0, 0.9, 1.0), Reading(GPU, "sm", 3.0, 0.8, 1.0)
    assert account.book("b", 3.0, [within, across, across]) == [across._replace(start=2.0)]
    assert account.rejected[("sm", "overlap")] == 2
    assert account.totals.observed["sm"] == 3.0
    assert account.totals.seconds["sm"] == 0.4 * 2.0 + 0.8 * 1.0


def test_a_mean_without_its_interval_is_not_booked() -> None:
    account = Account()
    assert account.book("a", 1.0, [Reading(GPU, "sm", 1.0, 0.4)]) == []
    assert "sm" not in account.totals.observed
