"""Flags before environment before file, into checked Settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exporter.config.layers import from_environment, from_file, from_flags
from exporter.config.of_commands import RECORD_OUT
from exporter.config.option import ENVIRONMENT_PREFIX, Command, Repeated
from exporter.config.options import (
    DCGM_ADDRESS,
    OPTIONS,
    SAMPLING_INTERVAL,
    SOURCE,
    SOURCE_ONCE,
    SOURCE_PATH,
    SOURCE_SPEED,
    SOURCE_URL,
    SOURCE_WORKLOAD,
)
from exporter.config.settings import ConfigError, Given, Settings

SHORTEST_INTERVAL = 0.1  # seconds: GPM's and DCGM's hard floor (docs/inputs.md)


@dataclass(frozen=True)
class Loaded:
    """Settings, and warnings about them to log once logging is set up."""

    settings: Settings
    warnings: tuple[str, ...]
    file: Path | None


def load(command: Command, arguments: Mapping[str, object], environment: Mapping[str, str]) -> Loaded:
    """The settings in force for a command. Raises ConfigError."""
    named = arguments.get("config") or environment.get(f"{ENVIRONMENT_PREFIX}CONFIG")
    file = Path(str(named)) if named else None
    given: dict[str, Given] = from_file(file) if file else {}
    variables, warnings = from_environment(environment)
    given |= variables
    given |= from_flags(arguments)
    settings = Settings(dict(_parse(given)), given)
    _check_together(command, settings)
    return Loaded(settings, tuple(warnings), file)


def _parse(given: Mapping[str, Given]) -> dict[str, object]:
    values: dict[str, object] = {}
    for option in OPTIONS:
        found = given.get(option.name)
        if found is None:
            continue
        if isinstance(option, Repeated):
            items = [part for text in found.texts for part in text.split(",") if part]
            parsed = [_one(option.parse, item, found.where) for item in items]
            values[option.name] = tuple(value for each in parsed if isinstance(each, tuple) for value in each)
        else:
            values[option.name] = _one(option.parse, found.texts[-1], found.where)
    return values


def _one(parse: object, text: str, where: str) -> object:
    try:
        return parse(text)  # type: ignore[operator]
    except ValueError as error:
        raise ConfigError(f"{where}: {text!r}: {error}") from error


def _check_together(command: Command, settings: Settings) -> None:
    """Checks that concern more than one option."""
    source, interval = settings[SOURCE], settings[SAMPLING_INTERVAL]
    if interval < SHORTEST_INTERVAL:
        raise ConfigError(f"{settings.where(SAMPLING_INTERVAL)}: {interval * 1000:g}ms: expected at least 100ms")
    needs = {
        "dcgm-exporter": (SOURCE_URL, "http://127.0.0.1:9400/metrics"),
        "dcgm": (DCGM_ADDRESS, "localhost:5555"),
        "replay": (SOURCE_PATH, "trace.json.gz"),
    }
    if source in needs:
        option, example = needs[source]
        if not settings[option]:
            raise ConfigError(f"{settings.where(SOURCE)}: {source} needs {option.flag}, such as {example}")
    owners = ((SOURCE_URL, "dcgm-exporter"), (SOURCE_PATH, "replay"), (SOURCE_WORKLOAD, "simulated"))
    for owned, owner in owners:
        if settings[owned] and source != owner:
            raise ConfigError(f"{settings.where(owned)}: only applies to {SOURCE.flag} {owner}, not to {source}")
    only_played = f"only applies to {SOURCE.flag} replay and simulated"
    played = source in ("replay", "simulated")
    if settings[SOURCE_SPEED] != 1.0 and not played:
        raise ConfigError(f"{settings.where(SOURCE_SPEED)}: {only_played}; {source} runs in real time")
    if settings[SOURCE_ONCE] and not played:
        raise ConfigError(f"{settings.where(SOURCE_ONCE)}: {only_played}; {source} has no end")
    if settings[SOURCE_SPEED] is None and not settings[SOURCE_ONCE]:
        raise ConfigError(f"{settings.where(SOURCE_SPEED)}: max needs {SOURCE_ONCE.flag}: a loop would never end")
    if command is Command.RECORD and settings[RECORD_OUT] is None:
        raise ConfigError(f"{RECORD_OUT.flag}: required: the file to write, such as node.jsonl.gz")
