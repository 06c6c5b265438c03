"""Another exporter's page: any text, and any answer of its server."""

from __future__ import annotations

import gzip
import http.client
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.model import SourceError
from exporter.sources.scrape.client import Page, text_of
from exporter.sources.scrape.source import ExporterSource
from exporter.sources.scrape.target import parse_target
from exporter.sources.scrape.text import parse
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes, mutated_text
from tests.fuzz.range_check import assert_fit
from tests.fuzz.refusal import may_refuse

URL = "http://localhost:9400/metrics"
LABELS = 'gpu="0",UUID="GPU-1",pci_bus_id="00000000:53:00.0",modelName="NVIDIA H100",Hostname="node"'
MIG = LABELS + ',GPU_I_ID="3",GPU_I_PROFILE="1g.10gb"'
PAGE = f"""\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 91
DCGM_FI_DEV_GPU_UTIL_RATIO{{{LABELS}}} 0.91
DCGM_FI_PROF_SM_ACTIVE{{{LABELS}}} 0.156
DCGM_FI_PROF_SM_ACTIVE{{{MIG}}} 0.156 1700000000000
DCGM_FI_PROF_PCIE_TX_BYTES{{{LABELS}}} 1234567
# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy since boot (in mJ).
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{LABELS}}} 123456789
DCGM_FI_DEV_XID_ERRORS{{{LABELS},err_code="79"}} 79
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{{{LABELS}}} 4
DCGM_FI_DEV_FB_USED{{{LABELS}}} 9223372036854775794
DCGM_FI_DEV_MEMORY_TEMP{{{LABELS}}} 0 # {{trace_id="a"}} 1.0
"""
TOKENS = (
    *('"', "\\", "{", "}", ",", "=", "#", " ", "\n", "\r", "\t", "\0", " # {", 'UUID="', 'GPU_I_ID="', "<<<NULL>>>"),
    *(
        "NaN",
        "+Inf",
        "-1",
        "1e308",
        "1e-400",
        "140737488355328",
        "140737488355331.5",
        "2147483632",
        "0x1",
        "²",
        "\ufeff",
    ),
    *(
        "(in MiB)",
        "(in %",
        "# HELP DCGM_FI_DEV_GPU_UTIL ",
        "DCGM_FI_DEV_POWER_USAGE",
        "GPU-1::3",
        "{{",
        "\x85",
        "\u2028",
    ),
)
pages = st.one_of(
    mutated_text(PAGE, TOKENS, most=12), st.text(max_size=300), st.lists(st.sampled_from(TOKENS)).map("".join)
)


@fuzzed(200)
@given(pages, pages)
def test_two_reads_of_any_pages(first: str, second: str) -> None:
    texts = iter((first, second))
    source = ExporterSource(URL, fetch=lambda: Page(next(texts)))
    for now in (100.0, 101.0):
        with may_refuse(SourceError) as told:
            assert_fit(source.read(now))
        assert all(len(text) < 1000 for text in told)


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("# HELP DCGM_FI_DEV_GPU_UTIL (in", " ", "x"),
        ("# HELP DCGM_FI_DEV_GPU_UTIL ", "( in ", "x"),
        ("# HELP DCGM_FI_DEV_GPU_UTIL ", "(in a ", "x"),
        ("DCGM_FI_DEV_GPU_UTIL{", 'a="",', "1"),
        ("DCGM_FI_DEV_GPU_UTIL{", '"', "} 1"),
        ('DCGM_FI_DEV_GPU_UTIL{a="', '",a', "} 1"),
        ('DCGM_FI_DEV_GPU_UTIL{a="', '" ', "} 1"),
        ("DCGM_FI_DEV_GPU_UTIL{", "} ", "x"),
        ("DCGM_FI_DEV_GPU_UTIL{", "}1 ", "x"),
        ("DCGM_FI_DEV_GPU_UTIL{} ", "1", "x"),
        ("DCGM_FI_DEV_GPU_UTIL{} 1", " ", "x"),
        ("DCGM_FI_DEV_GPU_UTIL", " ", "x"),
        ("DCGM_FI_DEV_GPU_UTIL ", " # {", "x"),
    ],
)
def test_no_line_takes_more_than_its_length_in_time(before: str, piece: str, after: str) -> None:
    """Four times the length: four times the time. A factor of 16 would be a square, and a page may have 8 MiB."""

    def seconds(length: int) -> float:
        page = f'{before}{piece * (length // len(piece))}{after}\nDCGM_FI_DEV_GPU_UTIL{{UUID="GPU-1"}} 1\n'
        started = time.process_time()
        ExporterSource(URL, fetch=lambda: Page(page)).read(1.0)
        return time.process_time() - started

    seconds(1000)
    short = max(min(seconds(25_000) for _ in range(3)), 0.002)
    assert seconds(100_000) < 10 * short


@fuzzed()
@given(st.text(max_size=200) | mutated_text(PAGE, TOKENS))
def test_every_line_is_a_sample_a_comment_or_counted(text: str) -> None:
    found = parse(text)
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n")]
    assert len(found.samples) + found.unparseable == sum(bool(line) and line[0] != "#" for line in lines)


class _Wire:
    """The receiving side that http.client asks for."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object, **__: object) -> object:
        return io.BytesIO(self._data)


BODY = gzip.compress(PAGE.encode(), mtime=0)
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Encoding: gzip\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


@fuzzed(200)
@given(mutated_bytes(ANSWER) | st.binary(max_size=200), st.sampled_from([10, 1000, 1 << 20]))
def test_any_answer_of_the_server(data: bytes, limit: int) -> None:
    """What the client makes of it: a text within the limit, or one of the errors that it turns into a SourceError."""
    refused = may_refuse(SourceError, OSError, http.client.HTTPException, ValueError)
    with refused, http.client.HTTPResponse(_Wire(data), method="GET") as response:  # type: ignore[arg-type]
        response.begin()
        assert len(text_of(parse_target(URL), response, limit)) <= limit


def test_a_gzip_bomb_is_not_blown_up() -> None:
    bomb = gzip.compress(bytes(256 << 20), mtime=0)
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(bomb), bomb)
    with http.client.HTTPResponse(_Wire(answer), method="GET") as response:  # type: ignore[arg-type]
        response.begin()
        with pytest.raises(SourceError, match="larger than 8192 KiB"):
            text_of(parse_target(URL), response, 8 << 20)


@fuzzed()
@given(mutated_text("http://user:pass@[::1]:9400/metrics?x=1", ("[", "]", ":", "@", "/", "%", "\\", "?", "#", "65536")))
def test_any_url(url: str) -> None:
    with may_refuse(ValueError):
        target = parse_target(url)
        assert target.scheme in ("http", "https")
        assert 0 < target.port < 65536
        assert "pass" not in str(target) or "pass" in target.host + target.path
