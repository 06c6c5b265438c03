"""What flags, environment and file set, each as option name -> Given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from exporter import strict_yaml
from exporter.config.option import ENVIRONMENT_PREFIX, RENAMED, Option, Repeated, hint, variable_of
from exporter.config.options import OPTIONS, by_name
from exporter.config.settings import ConfigError, Given

_MOST_BYTES = 1024 * 1024
# Kubernetes sets these in every pod when a Service has this exporter's name: they are no options
_SERVICE_VARIABLES = f"{ENVIRONMENT_PREFIX}EXPORTER_"


def from_flags(arguments: Mapping[str, object]) -> dict[str, Given]:
    """From argparse's result."""
    given: dict[str, Given] = {}
    for option in OPTIONS:
        value = arguments.get(option.name)
        if value is not None:
            given[option.name] = Given(tuple(_texts(value)), option.flag)
    return given


def from_environment(environment: Mapping[str, str]) -> tuple[dict[str, Given], list[str]]:
    """From HONEST_GPU_*, where an empty variable counts as not set; and warnings about variables of no option."""
    given: dict[str, Given] = {}
    variables = {option.variable: option for option in OPTIONS}
    warnings: list[str] = []
    for name, value in sorted(environment.items()):
        if not name.startswith(ENVIRONMENT_PREFIX) or not value.strip() or name == f"{ENVIRONMENT_PREFIX}CONFIG":
            continue
        option = variables.get(name)
        if option is not None:
            items = value.split(",") if isinstance(option, Repeated) else [value]
            given[option.name] = Given(tuple(item.strip() for item in items if item.strip()), name)
        elif not name.startswith(_SERVICE_VARIABLES):
            renamed = {variable_of(old): variable_of(new) for old, new in RENAMED.items()}
            advice = hint(name, variables, renamed)
            warnings.append(f"environment variable {name} is not an option and has no effect; {advice}")
    return given, warnings


def from_file(path: Path) -> dict[str, Given]:
    """From a YAML file. ConfigError names the file, the key and what was expected."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check --config") from error
    if len(text) > _MOST_BYTES:
        raise ConfigError(f"{path}: larger than {_MOST_BYTES} bytes, so not a configuration file")
    try:
        document = strict_yaml.load(text)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: expected keys and values such as `sampling: {{interval: 1s}}`")
    return dict(_walk(path, "", document))


def _walk(path: Path, prefix: str, mapping: Mapping[object, object]) -> Iterator[tuple[str, Given]]:
    options = by_name()
    for key, value in mapping.items():
        if not isinstance(key, str):
            raise ConfigError(f"{path}: {prefix}{key}: the key must be a string: quote it")
        name = prefix + key.replace("_", "-")
        if isinstance(value, dict):
            if not any(known.startswith(f"{name}.") for known in (*options, *RENAMED)):
                raise ConfigError(f"{path}: {_no_key(name, options)}")
            yield from _walk(path, f"{name}.", value)
            continue
        option = options.get(name)
        if option is None and key == "type" and prefix.rstrip(".") in options:
            option = options[prefix.rstrip(".")]  # `source: {type: replay, path: ...}`: a key cannot be both
        if option is None:
            raise ConfigError(f"{path}: {_no_key(name, options)}")
        if value is not None and value != "":
            yield option.name, Given(tuple(_items(f"{path}: {name}", option, value)), f"{path}: {name}")


def _items(where: str, option: Option[object], value: object) -> Iterator[str]:
    listed = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not isinstance(option, Repeated):
        raise ConfigError(f"{where}: expected a single value, got a list")
    for item in listed:
        if not isinstance(item, str | int | float):
            raise ConfigError(f"{where}: expected a string, a number, true or false, got {type(item).__name__}")
        yield from _texts(item)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, bool):
        yield "true" if value else "false"
    else:
        yield str(value)


def _no_key(name: str, options: Mapping[str, object]) -> str:
    return f"{name}: no such option; {hint(name, options, RENAMED)}"
