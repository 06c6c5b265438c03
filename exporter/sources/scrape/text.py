"""Parses the Prometheus text format, tolerantly: real exporters do not always follow the format.

Seen in captures: title lines between samples, label values that are not escaped (quotes, backslashes, braces), a
family's HELP and TYPE repeated, ``N/A`` for a value. A line that cannot be read costs that line, and is counted.
Format: Prometheus documentation, *Exposition formats*, text 0.0.4; OpenMetrics' exemplars are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class PageSample(NamedTuple):
    """One line. ``value`` is kept as it was printed: blanks of DCGM are exact integers beyond a float's precision."""

    name: str
    labels: Mapping[str, str]
    value: str


@dataclass(frozen=True, slots=True)
class Exposition:
    """The content of a page. Timestamps are not kept: they are from another clock."""

    samples: tuple[PageSample, ...]
    helps: Mapping[str, str]  # by family; the first one counts
    unparseable: int  # lines


# No two quantifiers side by side can take the same characters: the time to match is linear, whatever the page.
_NUMBER = r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[iI]nf|[nN]a[nN])"
_LINE = re.compile(
    r"([a-zA-Z_:][\w:]*)"  # name
    r"(?:[ \t]*\{(.*)\}[ \t]*|[ \t]+)"  # labels up to the last brace: values may hold braces
    rf"({_NUMBER}|<<<\w+>>>)"  # <<<NOT_SUPPORTED>>> and the like: DCGM's blank strings
    r"(?:[ \t]+[+-]?[\d.]+)?[ \t]*",  # timestamp
    re.ASCII,
)
_LABEL_NAME = r"[ \t]*([a-zA-Z_][\w.]*)[ \t]*=[ \t]*"
_LABEL = re.compile(  # a value ends at a quote that the next label follows, or nothing
    rf'{_LABEL_NAME}"(.*?)"[ \t]*(?:,(?={_LABEL_NAME}")|(?:,[ \t]*)?\Z)',
    re.ASCII | re.DOTALL,
)
_HELP = re.compile(r"#[ \t]*HELP[ \t]+([a-zA-Z_:][\w:]*)[ \t]?(.*)", re.ASCII)
_ESCAPE = re.compile(r'\\([\\"n])')
_EXEMPLAR = " # {"


def parse(text: str) -> Exposition:
    """Read a page. Never raises; what cannot be read is counted."""
    samples: list[PageSample] = []
    helps: dict[str, str] = {}
    labels: dict[str, Mapping[str, str] | None] = {"": {}}  # a page repeats the same labels once a family
    unparseable = 0
    for raw in text.removeprefix("\ufeff").split("\n"):
        line = raw.strip()
        if not line:
            continue
        if line[0] == "#":
            if match := _HELP.fullmatch(line):
                helps.setdefault(match[1], match[2].strip())
            continue
        before, exemplar, _ = line.partition(_EXEMPLAR)
        match = (_LINE.fullmatch(before) if exemplar else None) or _LINE.fullmatch(line)
        if match is None:
            unparseable += 1
            continue
        body = match[2] or ""
        if body not in labels:
            labels[body] = _labels(body)
        found = labels[body]
        if found is None:
            unparseable += 1
        else:
            samples.append(PageSample(match[1], found, match[3]))
    return Exposition(tuple(samples), helps, unparseable)


def _labels(body: str) -> Mapping[str, str] | None:
    """The pairs between the braces; None if they are malformed. If a label is given twice, the first one counts."""
    found: dict[str, str] = {}
    position = 0 if body.strip() else len(body)
    while position < len(body):
        match = _LABEL.match(body, position)
        if match is None:
            return None
        value = match[2]
        found.setdefault(match[1], _ESCAPE.sub(_unescape, value) if "\\" in value else value)
        position = match.end()
    return found


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
