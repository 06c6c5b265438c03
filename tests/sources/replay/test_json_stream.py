"""Large JSON in pieces gives what json.loads gives of the whole."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.replay import json_stream
from exporter.sources.replay.json_stream import JsonStream, JsonStreamError

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


class Slow(io.StringIO):
    """Gives a few characters at a time, whatever is asked for."""

    def read(self, size: int | None = -1) -> str:
        return super().read(3)


def members(text: str, slow: bool = True) -> list[tuple[str, Any]]:
    return list(JsonStream(Slow(text) if slow else io.StringIO(text)).members("events"))


@given(st.lists(values, max_size=6), values, st.sampled_from([None, 1]))
def test_as_json_loads_it(events: list[Any], other: Any, indent: int | None) -> None:
    text = json.dumps({"before": other, "events": events, "after": other}, indent=indent)
    around = other if isinstance(other, list) else [other]  # elements of an array come one by one
    assert members(text) == [
        (k, v) for k, vs in (("before", around), ("events", events), ("after", around)) for v in vs
    ]
    assert members(json.dumps(events)) == [("events", e) for e in events]


class Counting(io.StringIO):
    """Knows how much was read of it."""

    taken = 0

    def read(self, size: int | None = -1) -> str:
        text = super().read(size)
        self.taken += len(text)
        return text


def test_an_error_in_the_beginning_does_not_read_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", 64)
    file = Counting('{"events": [{"a": nope}, ' + '{"b": 1},' * 10_000 + "{}]}")
    with pytest.raises(JsonStreamError, match="not JSON near"):
        list(JsonStream(file).members("events"))
    assert file.taken < 1000


def test_a_long_array_comes_one_by_one_whatever_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", 64)
    monkeypatch.setattr(json_stream, "LONGEST", 100)
    stream = JsonStream(io.StringIO(json.dumps({"other": [[1, 2]] * 1000})))
    assert sum(value == [1, 2] for _, value in stream.members("events")) == 1000
    assert stream.keys == {"other"}


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text.lstrip("\ufeff")), dict | list)
    except ValueError:
        return False


@given(st.text(max_size=40))
def test_any_text_is_json_or_an_error(text: str) -> None:
    try:
        members(text)
    except JsonStreamError:
        assert not _is_json(text)


def test_a_cut_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JsonStreamError, match="is cut off"):
        members('{"events": [{"a": 1}, {"b"')
    with pytest.raises(JsonStreamError, match="is cut off"):
        members("")
    with pytest.raises(JsonStreamError, match="not JSON near"):
        members('{"events": [nope]}', slow=False)
    with pytest.raises(JsonStreamError):
        members('{"events": ' + "[" * 100_000, slow=False)
    monkeypatch.setattr(json_stream, "LONGEST", 100)
    with pytest.raises(JsonStreamError, match="longer than"):
        members(json.dumps({"x": "y" * 1000}))
