"""Texts of options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.config import parsers


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("100ms", 0.1), ("10m", 600.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("2", 2.0), ("1m500ms", 60.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parsers.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0s", "0", "fast", "1 s", "-1s", "1s1m", "1e3s", "nan", "infs", "s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        parsers.duration(text)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_units_of_a_duration_add_up(hours: int, minutes: int, seconds: int, milli: int) -> None:
    total = hours * 3600 + minutes * 60 + seconds + milli / 1000
    if total > 0:
        assert parsers.duration(f"{hours}h{minutes}m{seconds}s{milli}ms") == pytest.approx(total)


def test_speed() -> None:
    assert parsers.speed("max") is None
    assert parsers.speed("2.5") == 2.5
    for text in ("0", "-1", "nan", "inf", "fast", "1e9"):
        with pytest.raises(ValueError, match="expected max or a number"):
            parsers.speed(text)


def test_url_path() -> None:
    assert parsers.url_path("/gpu/metrics") == "/gpu/metrics"
    for text in ("metrics", "/-/ready", "/a?b", "/a b", ""):
        with pytest.raises(ValueError, match="expected a path"):
            parsers.url_path(text)


def test_numbers_and_words() -> None:
    assert parsers.whole_number(1, 8)("8") == 8
    for text in ("0", "9", "1.0", "", "eight"):
        with pytest.raises(ValueError, match="from 1 to 8"):
            parsers.whole_number(1, 8)(text)
    with pytest.raises(ValueError, match="expected a, b or c"):
        parsers.one_of("a", "b", "c")("d")
    assert [parsers.boolean(text) for text in ("true", "Yes", "1", "off", "False")] == [True, True, True, False, False]
