"""The tolerant parser: a line that cannot be read costs that line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.sources.scrape.text import Exposition, PageSample, parse


def one(text: str) -> PageSample:
    exposition = parse(text)
    assert exposition.unparseable == 0
    (sample,) = exposition.samples
    return sample


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("up 1", PageSample("up", {}, "1")),
        ("up{} 1", PageSample("up", {}, "1")),
        ("  up\t0.5  ", PageSample("up", {}, "0.5")),
        ('a{b="c"} 1e-05', PageSample("a", {"b": "c"}, "1e-05")),
        ('a{b="c",} +Inf', PageSample("a", {"b": "c"}, "+Inf")),
        ('a { b = "c" , d = "" } NaN', PageSample("a", {"b": "c", "d": ""}, "NaN")),
        ('a{gpu="0", UUID="GPU-1"} 139', PageSample("a", {"gpu": "0", "UUID": "GPU-1"}, "139")),
        ('a{b="c"}1', PageSample("a", {"b": "c"}, "1")),
        ('a{b="c"} 1 1700000000000', PageSample("a", {"b": "c"}, "1")),
        ('a{b="c"} 1 1700000000.123', PageSample("a", {"b": "c"}, "1")),
        ('a_total{b="c"} 1 # {trace="x"} 0.5 17', PageSample("a_total", {"b": "c"}, "1")),
        ("a 9223372036854775794\r", PageSample("a", {}, "9223372036854775794")),
        ("a <<<NOT_SUPPORTED>>>", PageSample("a", {}, "<<<NOT_SUPPORTED>>>")),
        (r'a{b="x\"y\\z\nw"} 1', PageSample("a", {"b": 'x"y\\z\nw'}, "1")),
        ("\ufeffup 1", PageSample("up", {}, "1")),
    ],
)
def test_lines_of_the_format(text: str, expected: PageSample) -> None:
    assert one(text) == expected


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        (r'm="NVIDIA "H100" 80GB",gpu="0"', {"m": 'NVIDIA "H100" 80GB', "gpu": "0"}),
        (r'm="C:\dir\",gpu="0"', {"m": "C:\\dir\\", "gpu": "0"}),
        (r'm="{a,b="c}",gpu="0"', {"m": '{a,b="c}', "gpu": "0"}),
        (r'm="a, b",gpu="0"', {"m": "a, b", "gpu": "0"}),
        ('m="\x0b\x85\u2028",gpu="0"', {"m": "\x0b\x85\u2028", "gpu": "0"}),
        (r'k8s.io="x",gpu="0"', {"k8s.io": "x", "gpu": "0"}),
        (r'gpu="0",gpu="1"', {"gpu": "0"}),
    ],
)
def test_label_values_that_are_not_escaped(body: str, labels: dict[str, str]) -> None:
    assert one(f"a{{{body}}} 1") == PageSample("a", labels, "1")


@pytest.mark.parametrize(
    "line",
    [
        "Active 1g.5gb",
        "4 Active Workloads",
        "a N/A",
        "a [Not Supported]",
        "a",
        "a{",
        'a{b="c" 1',
        'a{b="c"}',
        "a{b=c} 1",
        'a{"b"="c"} 1',
        "a 1 2 3",
        "a 1_000",
        "a 0x10",
        "a \u0661",
        "<html>",
        "=====",
    ],
)
def test_a_line_that_cannot_be_read_costs_that_line(line: str) -> None:
    exposition = parse(f"before 1\n{line}\nafter 2\n")
    assert [sample.name for sample in exposition.samples] == ["before", "after"]
    assert exposition.unparseable == 1


def test_comments_cost_nothing_and_the_first_help_counts() -> None:
    text = "# HELP a First (in MHz).\n# TYPE a gauge\na 1\n\n# anything\n#HELP b\n# HELP a Second.\na 2\n# EOF\n"
    exposition = parse(text)
    assert exposition == Exposition(
        (PageSample("a", {}, "1"), PageSample("a", {}, "2")), {"a": "First (in MHz).", "b": ""}, 0
    )


_PIECES = st.sampled_from([*'{}",=\\ \n#0aA.<>', "a{", '"} 1', "HELP ", "NaN", "DCGM_FI_", "\u2028", '="'])


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(_PIECES).map("".join)))
def test_no_text_makes_it_raise_and_every_line_is_accounted_for(text: str) -> None:
    exposition = parse(text)
    meant = [line for line in text.removeprefix("\ufeff").split("\n") if line.strip() and line.strip()[0] != "#"]
    assert len(exposition.samples) + exposition.unparseable == len(meant)


@settings(deadline=None)
@given(
    st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True), st.text(max_size=20), max_size=5),
    st.floats(),
)
def test_what_is_written_by_the_rules_is_read_back(labels: dict[str, str], value: float) -> None:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

    # a carriage return, or a label name in the guise of the next label, cannot be told from unescaped text
    kept = {name: text.replace("\r", "").replace("=", "") for name, text in labels.items()}
    body = ",".join(f'{name}="{escaped(text)}"' for name, text in kept.items())
    sample = one(f"name{{{body}}} {value!r}")
    assert sample.labels == kept
    assert sample.value == repr(value)


@pytest.mark.parametrize(
    "line",
    [
        "a{" + 'b="",' * 200_000 + "} 1",
        'a{b="' + '",c="' * 200_000 + '"} 1',
        'a{b="' + '"    ' * 200_000 + "} 1",
        'a{b="' + '",c ' * 200_000 + "} 1",
        "a{b=" + '"' * 1_000_000,
        "a{b=" + "}" * 1_000_000,
        "a" * 1_000_000,
        "a" + " " * 1_000_000 + "x",
        'a{b=""' + " " * 1_000_000 + "x} 1",
        'a{b="", ' + " " * 1_000_000 + "x} 1",
        "a 1" + " " * 1_000_000 + "x",
        "a " + "1" * 1_000_000 + "x",
        "a " + "1." * 500_000,
        "a 1 " + "1" * 1_000_000 + "x",
        "a 1e" + "1" * 1_000_000 + "x",
        "a 1" + " # {" * 250_000,
        "# HELP" + " " * 1_000_000,
    ],
    ids=lambda line: line[:8],
)
def test_the_time_to_read_a_line_grows_with_its_length_only(line: str) -> None:
    """With a square of the length these would not end within hours."""
    assert parse(f"{line}\nup 1").samples[-1].name == "up"
