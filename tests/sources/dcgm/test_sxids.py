"""Which SXid errors are news, look by look."""

from __future__ import annotations

from exporter.sources.dcgm.parts import FATAL, NON_FATAL, Sxids


def test_an_old_error_that_was_not_fatal_is_not_news() -> None:
    """DCGM keeps the last one for ever, also from before anybody looked."""
    sxids = Sxids()
    assert not sxids.new(2, NON_FATAL, 12028, time=100)
    assert not sxids.new(2, NON_FATAL, 12028, time=100)
    assert sxids.new(2, NON_FATAL, 12028, time=200)


def test_the_first_error_after_a_look_without_one_is_news() -> None:
    for known in (False, True):
        sxids = Sxids()
        sxids.nothing(2, NON_FATAL, known=known)
        assert sxids.new(2, NON_FATAL, 12028, time=100)


def test_a_hostengine_that_has_not_looked_yet_takes_nothing_back() -> None:
    sxids = Sxids()
    assert sxids.new(2, FATAL, 20034, time=100)
    sxids.nothing(2, FATAL, known=False)
    assert not sxids.new(2, FATAL, 20034, time=200)
    sxids.nothing(2, FATAL, known=True)
    assert sxids.new(2, FATAL, 20034, time=300)


def test_an_error_that_was_not_fatal_is_not_taken_back() -> None:
    sxids = Sxids()
    sxids.nothing(2, NON_FATAL, known=True)
    assert sxids.new(2, NON_FATAL, 12028, time=100)
    sxids.nothing(2, NON_FATAL, known=True)
    assert not sxids.new(2, NON_FATAL, 12028, time=100)


def test_switches_are_apart() -> None:
    sxids = Sxids()
    assert sxids.new(1, FATAL, 20034, time=100)
    assert sxids.new(2, FATAL, 20034, time=100)
