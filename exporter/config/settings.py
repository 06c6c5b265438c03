"""The values in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from exporter.config.options import Option

T = TypeVar("T")


@dataclass(frozen=True)
class Given:
    """What somebody said of an option: one text, or several, and where."""

    texts: tuple[str, ...]
    where: str  # "--source.url", "HONEST_GPU_SOURCE_URL", "/etc/x.yaml: source.url"


@dataclass(frozen=True)
class Settings:
    """One value an option: ``settings[SAMPLING_INTERVAL]``."""

    values: Mapping[str, object] = field(default_factory=dict)
    given: Mapping[str, Given] = field(default_factory=dict)

    def __getitem__(self, option: Option[T]) -> T:
        return cast("T", self.values[option.name]) if option.name in self.values else option.default

    def where(self, option: Option[object]) -> str:
        """Where the value was said, for messages; the flag when nobody said it."""
        said = self.given.get(option.name)
        return said.where if said else option.flag

    def changed(self, other: Settings) -> tuple[str, ...]:
        """Names of the options whose values differ."""
        names = sorted({*self.values, *other.values})
        missing = object()
        return tuple(name for name in names if self.values.get(name, missing) != other.values.get(name, missing))
