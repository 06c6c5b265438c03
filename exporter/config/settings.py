"""The values in force, and the error when they cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from exporter.config.option import Option

T = TypeVar("T")


class ConfigError(Exception):
    """A configuration that is not valid. The message says where it was given, what is wrong and what is expected."""


@dataclass(frozen=True)
class Given:
    """What was given for an option, and where: one text, or several for a list."""

    texts: tuple[str, ...]
    where: str  # "--source.url", "HONEST_GPU_SOURCE_URL", "/etc/x.yaml: source.url"


@dataclass(frozen=True)
class Settings:
    """One value per option: ``settings[SAMPLING_INTERVAL]``."""

    values: Mapping[str, object] = field(default_factory=dict)
    given: Mapping[str, Given] = field(default_factory=dict)

    def __getitem__(self, option: Option[T]) -> T:
        return cast("T", self.values[option.name]) if option.name in self.values else option.default

    def where(self, option: Option[object]) -> str:
        """Where the value was given, for messages; the flag when it was not."""
        given = self.given.get(option.name)
        return given.where if given else option.flag

    def changed(self, other: Settings) -> tuple[str, ...]:
        """Names of the options whose values differ."""
        names = sorted({*self.values, *other.values})
        missing = object()
        return tuple(name for name in names if self.values.get(name, missing) != other.values.get(name, missing))
