"""Which format and coding a client gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.web.negotiation import Encoding, Format, negotiate_encoding, negotiate_format

PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_PROTOBUF_FIRST = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, Format.TEXT),
        ("", Format.TEXT),
        (PROMETHEUS_2_42, Format.OPENMETRICS),
        (PROMETHEUS_3, Format.OPENMETRICS),
        (PROMETHEUS_PROTOBUF_FIRST, Format.OPENMETRICS),
        (BROWSER, Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/plain", Format.TEXT),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Format.TEXT),
        ("application/openmetrics-text", Format.OPENMETRICS),
        ("application/openmetrics-text; version=0.0.1", Format.OPENMETRICS),
        ('Application/OpenMetrics-Text ; Version="1.0.0"', Format.OPENMETRICS),
        ("application/openmetrics-text; version=2.0.0", Format.TEXT),
        ("application/openmetrics-text;q=0.4, text/plain;q=0.5", Format.TEXT),
        ("application/openmetrics-text;q=0.5, text/plain;q=0.4", Format.OPENMETRICS),
        ("application/openmetrics-text, text/plain", Format.OPENMETRICS),
        ("text/plain, application/openmetrics-text", Format.TEXT),
        ("application/*, text/*;q=0.5", Format.OPENMETRICS),
        ("application/openmetrics-text;q=0", Format.TEXT),
        # The more specific range decides for its type, however glad the wide one is.
        ("application/openmetrics-text;q=0, */*", Format.TEXT),
        ("text/plain;q=0, */*;q=0.5", Format.OPENMETRICS),
        ("text/plain;version=0.0.4;q=0.2, text/plain;q=0.9, application/openmetrics-text;q=0.5", Format.OPENMETRICS),
        # A weight that is not one makes its element unreadable.
        ("application/openmetrics-text;q=high, text/plain;q=0.1", Format.TEXT),
        ("image/png", Format.TEXT),
        (",;=,,q=1;/;", Format.TEXT),
    ],
)
def test_format_for_an_accept_header(accept: str | None, expected: Format) -> None:
    assert negotiate_format(accept) is expected


@pytest.mark.parametrize(
    ("accept_encoding", "expected"),
    [
        (None, Encoding.IDENTITY),
        ("", Encoding.IDENTITY),
        ("gzip", Encoding.GZIP),
        ("GZIP", Encoding.GZIP),
        ("x-gzip", Encoding.GZIP),
        ("gzip, deflate, br, zstd", Encoding.GZIP),
        ("zstd,gzip;q=0.4", Encoding.GZIP),
        ("deflate, br", Encoding.IDENTITY),
        ("identity", Encoding.IDENTITY),
        ("gzip;q=0", Encoding.IDENTITY),
        ("gzip;q=0.000, *", Encoding.IDENTITY),
        ("gzip;q=0.5, identity", Encoding.IDENTITY),
        ("gzip, identity;q=0.5", Encoding.GZIP),
        ("gzip;q=0.5, identity;q=0", Encoding.GZIP),
        ("*", Encoding.GZIP),
        ("*;q=0", Encoding.IDENTITY),
        ("gzip;q=", Encoding.IDENTITY),
    ],
)
def test_encoding_for_an_accept_encoding_header(accept_encoding: str | None, expected: Encoding) -> None:
    assert negotiate_encoding(accept_encoding) is expected


@given(st.one_of(st.text(), st.text(alphabet='/*;,=q01. \t"textplainopmerics-vsaygz')))
def test_no_header_raises(header: str) -> None:
    assert negotiate_format(header) in Format
    assert negotiate_encoding(header) in Encoding


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_the_higher_weight_wins(text: int, openmetrics: int) -> None:
    header = f"text/plain;q={text / 1000:.3f}, application/openmetrics-text;q={openmetrics / 1000:.3f}"
    expected = Format.OPENMETRICS if openmetrics > text else Format.TEXT
    assert negotiate_format(header) is expected
