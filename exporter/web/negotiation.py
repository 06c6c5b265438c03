"""Which exposition format and which compression a client gets, from its Accept and Accept-Encoding headers.

Pure functions. A header that makes no sense never raises: what cannot be read is skipped, and what is left decides.
Source: RFC 9110 section 12.5, and the headers that Prometheus 2.x and 3.x send.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class Format(Enum):
    """An exposition format; the value is the Content-Type to answer with."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Encoding(Enum):
    """A content coding; the value is the Content-Encoding to answer with."""

    IDENTITY = "identity"
    GZIP = "gzip"


@dataclass(frozen=True)
class _Offer:
    """What we can send: a media type and the `version` parameters under which clients ask for it."""

    format: Format
    kind: str
    subtype: str
    versions: frozenset[str]


# OpenMetrics 0.0.1 was the draft: what we send is valid under both, and Prometheus lists both.
# The order breaks ties: a client without a preference gets the text that a person can read.
_OFFERS = (
    _Offer(Format.TEXT, "text", "plain", frozenset({"0.0.4"})),
    _Offer(Format.OPENMETRICS, "application", "openmetrics-text", frozenset({"1.0.0", "0.0.1"})),
)

_MOST_ELEMENTS = 64  # Prometheus sends 5, browsers about 8: the rest of a longer list is not worth reading.
_QUALITY = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\Z")


@dataclass(frozen=True)
class _Element:
    """One element of a header's list: its lower-case value, its parameters, its weight 0..1, its place in the list."""

    value: str
    parameters: Mapping[str, str]
    quality: float
    position: int


def negotiate_format(accept: str | None) -> Format:
    """The format for an Accept header; without a header, or with none that we can send, the text format.

    The higher q wins, then the more specific range, then the one named first, then the text format.
    """
    elements = list(_elements(accept or ""))
    best, best_rank = Format.TEXT, (0.0, 0, 0)
    for offer in _OFFERS:
        rank = _rank(offer, elements)
        if rank[0] > 0 and rank > best_rank:
            best, best_rank = offer.format, rank
    return best


def negotiate_encoding(accept_encoding: str | None) -> Encoding:
    """The coding for an Accept-Encoding header: gzip when the client takes it at least as gladly as no coding."""
    weights: dict[str, float] = {}
    for element in _elements(accept_encoding or ""):
        weights.setdefault(element.value.removeprefix("x-"), element.quality)
    gzip = weights.get("gzip", weights.get("*", 0.0))
    identity = weights.get("identity", 0.0)  # not named: still acceptable, but last
    return Encoding.GZIP if gzip > 0 and gzip >= identity else Encoding.IDENTITY


def _rank(offer: _Offer, elements: list[_Element]) -> tuple[float, int, int]:
    """(q, specificity, minus position) of the most specific range that matches; all zero where none does."""
    matches = [(_specificity(offer, element), -element.position, element.quality) for element in elements]
    specificity, position, quality = max(matches, default=(0, 0, 0.0))
    return (quality, specificity, position) if specificity else (0.0, 0, 0)


def _specificity(offer: _Offer, element: _Element) -> int:
    """How exactly a media range names the offer: 0 not at all, 1 `*/*`, 2 `type/*`, 3 the type, 4 with its version."""
    kind, _, subtype = element.value.partition("/")
    if (kind, subtype) == ("*", "*"):
        return 1
    if kind != offer.kind:
        return 0
    if subtype == "*":
        return 2
    if subtype != offer.subtype:
        return 0
    version = element.parameters.get("version")
    if version is None:
        return 3
    return 4 if version in offer.versions else 0


def _elements(header: str) -> Iterator[_Element]:
    for position, text in enumerate(header.split(",", _MOST_ELEMENTS)[:_MOST_ELEMENTS]):
        value, *rest = (part.strip() for part in text.split(";"))
        parameters = {
            name.strip().lower(): content.strip().strip('"')
            for name, _, content in (parameter.partition("=") for parameter in rest)
        }
        quality = parameters.get("q", "1")
        if value and _QUALITY.match(quality):
            yield _Element(value.lower(), parameters, float(quality), position)
