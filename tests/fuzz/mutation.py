"""Strategies: a valid example with something wrong in it, at one place or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

Json = Any

# What parsers stumble over: ends of ranges, numbers that are none, texts that are numbers elsewhere, lone surrogates.
NUMBERS: Sequence[Json] = (
    *(0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324, 1e-320),
    *(float("nan"), float("inf"), float("-inf"), True, False),
)
TEXTS = (
    "",
    " ",
    "\0",
    "\n",
    '"',
    "\\",
    "\\n",
    "\r",
    "\x1b[31m",
    "\ud800",
    "²",
    "٣",
    "1_0",
    "0x1",
    "nan",
    "1e999",
    "{",
    "}",
)
odd_numbers = st.sampled_from(NUMBERS)
odd_texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=12))
odd_values = st.one_of(odd_numbers, odd_texts, st.none(), st.sampled_from([[], {}, [[]], [{}], {"": None}]))


Path = tuple[Any, ...]  # keys and positions from the root


@st.composite
def mutated_json(draw: st.DrawFn, example: Json, most: int = 4) -> Json:
    """The document with up to ``most`` values replaced, removed, repeated or renamed, at any depth."""
    document = example
    for _ in range(draw(st.integers(0, most))):
        paths = list(_paths(document))
        path = paths[draw(st.integers(0, len(paths) - 1))]
        document = _changed(document, path, draw(st.integers(0, 9)), draw(odd_values), draw(odd_texts))
    return document


def _paths(node: Json, at: Path = ()) -> Iterator[Path]:
    yield at
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inside:
        yield from _paths(value, (*at, key))


def _changed(node: Json, path: Path, how: int, value: Json, name: str) -> Json:
    if not path:
        return value
    key, *rest = path
    if rest:
        return _with(node, key, _changed(node[key], tuple(rest), how, value, name))
    if isinstance(node, list):
        return [*node[:key], *{0: [], 1: [node[key]] * 2}.get(how, [value]), *node[key + 1 :]]
    if how == 0:
        return {each: item for each, item in node.items() if each != key}
    if how == 1:
        return {(name if each == key else each): item for each, item in node.items()}
    return _with(node, key, value)


def _with(node: Json, key: Any, value: Json) -> Json:
    if isinstance(node, list):
        return [*node[:key], value, *node[key + 1 :]]
    return {**node, key: value}


@st.composite
def mutated_text(draw: st.DrawFn, example: str, tokens: Sequence[str] = TEXTS, most: int = 6) -> str:
    """The text with up to ``most`` pieces cut out, doubled, replaced or put in; ``tokens``: words of the format."""
    text = example
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 20)))
        piece = draw(st.one_of(st.sampled_from(list(tokens)), st.text(max_size=5), st.just(text[start:end] * 2)))
        text = text[:start] + piece + text[draw(st.sampled_from([start, end])) :]
    return text


@st.composite
def mutated_bytes(draw: st.DrawFn, example: bytes, most: int = 6) -> bytes:
    """The bytes with up to ``most`` places changed, cut out or grown."""
    data = example
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 8)))
        data = data[:start] + draw(st.binary(max_size=8)) + data[draw(st.sampled_from([start, end])) :]
    return data
