"""The table of options, what --help makes of it, and names that were renamed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from exporter.cli.arguments import SECTIONS, parse, section
from exporter.cli.stages import build_assembly
from exporter.config import of_commands, options
from exporter.config.option import RENAMED, Command, Option, Repeated
from exporter.config.options import OPTIONS, by_name
from exporter.config.settings import ConfigError
from tests.config.test_loading import in_file, loaded


def help_of(*argv: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as raised:
        parse([*argv, "--help"])
    assert raised.value.code == 0
    return capsys.readouterr().out


def test_every_option_of_the_module_is_in_the_table() -> None:
    source = Path(options.__file__).read_text() + Path(of_commands.__file__).read_text()
    assert len(OPTIONS) == len(re.findall(r"^[A-Z_]+ = (?:Option|Repeated)\b", source, re.MULTILINE))
    assert len(by_name()) == len(OPTIONS) == len({option.variable for option in OPTIONS})


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_help_says_what_it_does_and_gives_an_example(option: Option[object]) -> None:
    text, _, example = option.help.partition(" Example: ")
    assert text[0].isupper()
    assert text[-1] == "."
    assert option.commands
    if option.switch:
        assert not example
        return
    assert option.metavar
    items = example.split(",") if isinstance(option, Repeated) else [example]
    assert all(option.parse(item) is not None for item in items)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_the_default_is_shown_as_a_user_would_write_it(option: Option[object]) -> None:
    text = option.default_text
    if isinstance(option, Repeated):
        items = [option.parse(item) for item in text.split(",") if item]
        assert tuple(value for item in items for value in item) == option.default
    elif text:
        assert option.parse(text) == option.default
    else:
        assert option.default in (None, "")


def test_help_starts_with_three_commands_and_groups_the_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = help_of(capsys=capsys)
    start = text.index("Start with these three:")
    assert start < text.index("honest-gpu-exporter doctor ") < text.index("honest-gpu-exporter top ")
    places = [text.index(f"\n{title}:\n") for title in SECTIONS]
    assert places == sorted(places)
    assert "--sampling.interval DURATION" in text
    assert "Example: 500ms [default: 1s]" in text
    assert "[default: :9836; may be repeated]" in " ".join(text.split())
    serving = [option for option in OPTIONS if Command.SERVE in option.commands]
    assert [option.name for option in serving if not section(option)] == []
    assert all(option.flag in text for option in serving)


def test_each_command_has_its_own_options_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    for command in Command:
        text = help_of(command.value, capsys=capsys)
        wanted = {option.flag for option in OPTIONS if command in option.commands}
        assert set(re.findall(r"^  (--[a-z.-]+)", text, re.MULTILINE)) >= wanted
        assert "Exit status: 0" in text
    assert "1 a GPU cannot be measured, or there is none" in help_of("doctor", capsys=capsys)


def test_a_renamed_option_is_refused_with_its_new_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(RENAMED, "reading.period", "sampling.interval")
    with pytest.raises(SystemExit) as raised:
        parse(["--reading.period=2s"])
    assert raised.value.code == 2
    assert "no such option of serve: --reading.period=2s; it was renamed to --sampling.interval" in (
        capsys.readouterr().err
    )
    with pytest.raises(ConfigError, match=r"reading.period: no such option; it was renamed to sampling.interval"):
        in_file(tmp_path, "reading: {period: 2s}")
    (warning,) = loaded(environment={"HONEST_GPU_READING_PERIOD": "2s"}).warnings
    assert "HONEST_GPU_READING_PERIOD is not an option" in warning
    assert "it was renamed to HONEST_GPU_SAMPLING_INTERVAL" in warning


def test_a_renamed_threshold_is_refused_with_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RENAMED, "sm_idle", "sm_starved")
    settings = loaded("--state.threshold=sm_idle=0.2").settings
    with pytest.raises(ConfigError, match=r"no such threshold: sm_idle; it was renamed to sm_starved"):
        build_assembly(settings, lambda _: None)
