"""Three ways to set an option, their order, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from exporter.cli.arguments import parse
from exporter.config.loading import Loaded, load
from exporter.config.options import (
    LISTEN_ADDRESS,
    SAMPLING_INTERVAL,
    SOURCE,
    SOURCE_GPUS,
    SOURCE_ONCE,
    SOURCE_PATH,
    SOURCE_SPEED,
    SOURCE_WORKLOAD,
    WAIT_FOR_GPUS,
    WEB_CONFIG,
)
from exporter.config.settings import ConfigError


def loaded(*argv: str, environment: Mapping[str, str] | None = None) -> Loaded:
    asked = parse(argv)
    return load(asked.command, asked.flags, environment or {})


def in_file(folder: Path, text: str) -> Loaded:
    path = folder / "exporter.yaml"
    path.write_text(text)
    return loaded("--config", str(path))


FLAGS = (
    "--source=simulated",
    "--source.workload=hang,flapping",
    "--source.gpus=2",
    "--source.speed=max",
    "--source.once",
    "--sampling.interval=500ms",
    "--web.listen-address=127.0.0.1:1",
    "--web.listen-address=[::1]:2",
    "--web.config.file=web.yaml",
)
ENVIRONMENT = {
    "HONEST_GPU_SOURCE": "simulated",
    "HONEST_GPU_SOURCE_WORKLOAD": "hang, flapping",
    "HONEST_GPU_SOURCE_GPUS": "2",
    "HONEST_GPU_SOURCE_SPEED": "max",
    "HONEST_GPU_SOURCE_ONCE": "true",
    "HONEST_GPU_SAMPLING_INTERVAL": "500ms",
    "HONEST_GPU_WEB_LISTEN_ADDRESS": "127.0.0.1:1,[::1]:2",
    "HONEST_GPU_WEB_CONFIG_FILE": "web.yaml",
}
FILE = """
source:
  type: simulated
  workload: [hang, flapping]
  gpus: 2
  speed: max
  once: true
sampling: {interval: 500ms}
web:
  listen-address: ["127.0.0.1:1", "[::1]:2"]
  config:
    file: web.yaml
"""


def test_flags_environment_and_file_say_the_same(tmp_path: Path) -> None:
    by_flags = loaded(*FLAGS).settings.values
    assert by_flags == loaded(environment=ENVIRONMENT).settings.values
    assert by_flags == in_file(tmp_path, FILE).settings.values
    settings = loaded(*FLAGS).settings
    assert settings[SOURCE_WORKLOAD] == ("hang", "flapping")
    assert settings[SOURCE_SPEED] is None
    assert settings[SOURCE_ONCE] is True
    assert settings[SAMPLING_INTERVAL] == 0.5
    assert settings[LISTEN_ADDRESS] == ("127.0.0.1:1", "[::1]:2")
    assert settings[WEB_CONFIG] == Path("web.yaml")


def test_flags_go_before_environment_before_file(tmp_path: Path) -> None:
    path = tmp_path / "exporter.yaml"
    path.write_text("source: simulated\nsource.gpus: 1\nsampling.interval: 3s\nwait_for_gpus: true\n")
    environment = {"HONEST_GPU_CONFIG": str(path), "HONEST_GPU_SOURCE_GPUS": "2", "HONEST_GPU_SAMPLING_INTERVAL": "2s"}
    settings = loaded("--sampling.interval=1s", "--no-wait-for-gpus", environment=environment).settings
    assert settings[SOURCE] == "simulated"
    assert settings[SOURCE_GPUS] == 2
    assert settings[SAMPLING_INTERVAL] == 1.0
    assert settings[WAIT_FOR_GPUS] is False


def test_a_repeated_flag_replaces_the_list_of_the_environment() -> None:
    settings = loaded("--web.listen-address=:1", environment={"HONEST_GPU_WEB_LISTEN_ADDRESS": ":2,:3"}).settings
    assert settings[LISTEN_ADDRESS] == (":1",)


def test_an_empty_variable_says_nothing() -> None:
    assert loaded(environment={"HONEST_GPU_SOURCE": ""}).settings[SOURCE] == "auto"


def test_a_mistyped_variable_is_reported_and_a_services_is_not() -> None:
    environment = {
        "HONEST_GPU_SOURCE_GPU": "2",
        "HONEST_GPU_EXPORTER_PORT": "tcp://10.0.0.1:9836",
        "HONEST_GPU_EXPORTER_SERVICE_HOST": "10.0.0.1",
    }
    (warning,) = loaded(environment=environment).warnings
    assert "HONEST_GPU_SOURCE_GPU " in warning
    assert "HONEST_GPU_SOURCE_GPUS" in warning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sampling: {intervall: 1s}", r"sampling.intervall: no such option; did you mean sampling.interval\?"),
        ("smapling: {interval: 1s}", r"smapling: no such option"),
        ("sampling: {interval: soon}", "sampling.interval: 'soon': expected a duration"),
        ("sampling: {interval: 10ms}", "sampling.interval: 10ms: expected at least 100ms"),
        ("sampling: {interval: [1s, 2s]}", "sampling.interval: expected a single value, got a list"),
        ("source: [replay]", "source: expected a single value"),
        ("source: simulated\nsource: replay", "'source' is given twice"),
        ("source: {type: sim}", "source.type: 'sim': expected auto"),
        ("- source", "expected keys and values"),
        ("source: {", "is not YAML"),
        ("source: {1: 2}", "source.1: the key must be a string"),
        ("source: replay", "replay needs --source.path"),
        ("source: dcgm-exporter", "dcgm-exporter needs --source.url"),
        ("source: simulated\nsource.url: http://x/", "source.url: only applies to --source dcgm-exporter"),
        ("source: {type: simulated, speed: max}", "source.speed: max needs --source.once"),
        ("source: {speed: 2}", "source.speed: only applies to --source replay and simulated"),
        ("metrics: {include: 'a b'}", "metrics.include: 'a b': expected a metric name"),
        ("web: {telemetry-path: metrics}", "web.telemetry-path: 'metrics': expected a path"),
        ("web: {listen-address: 2001-01-01}", "web.listen-address: expected a string"),
    ],
)
def test_bad_files_are_refused_by_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        in_file(tmp_path, text)
    assert "exporter.yaml" in str(raised.value)


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert in_file(tmp_path, "# nothing\n").settings.values == {}


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        loaded("--config=/nonexistent.yaml")


def test_record_needs_a_file() -> None:
    with pytest.raises(ConfigError, match="--out: required"):
        loaded("record", "--source=simulated")
    assert loaded("record", "--source=replay", "--source.path=a", "--out=b").settings[SOURCE_PATH] == Path("a")


def test_wrong_use_leaves_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, hint in (["serv"], "serve?"), (["--source.sped=1"], "--source.speed?"), (["--source"], "expected one"):
        with pytest.raises(SystemExit) as raised:
            parse(argv)
        assert raised.value.code == 2
        assert hint in capsys.readouterr().err
