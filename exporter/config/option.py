"""What an option is: a flag, an environment variable and a key of the YAML file, all of one name."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from exporter.config import parsers

T_co = TypeVar("T_co", covariant=True)
ENVIRONMENT_PREFIX = "HONEST_GPU_"
# Name of an option or of a threshold that was renamed -> its name now.
RENAMED: dict[str, str] = {}


class Command(enum.Enum):
    """What the program can be asked to do."""

    SERVE = "serve"
    TEXTFILE = "textfile"
    RECORD = "record"
    TOP = "top"
    DOCTOR = "doctor"
    PROFILING = "profiling"


@dataclass(frozen=True)
class Option(Generic[T_co]):
    """One option. ``name`` is dotted; ``parse`` takes one text; ``default`` is the value when it is not given.

    ``help``: what it does, in whole sentences; unless it is a switch, it ends with ``Example: VALUE``.
    """

    name: str
    parse: Callable[[str], T_co]
    default: T_co
    help: str
    metavar: str = ""
    commands: tuple[Command, ...] = (Command.SERVE, Command.TEXTFILE)

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return variable_of(self.name)

    @property
    def switch(self) -> bool:
        """True when the flag takes no value."""
        return self.default is True or self.default is False

    @property
    def default_text(self) -> str:
        """The default as a user would write it; empty when there is none."""
        value: object = self.default
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            if self.parse is not parsers.duration:
                return f"{value:g}"
            return f"{value:g}s" if value % 60 else f"{value / 60:g}m"
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return "" if value is None else str(value)


@dataclass(frozen=True)
class Repeated(Option[tuple[T_co, ...]]):
    """An option that takes several values: repeated as a flag, comma-separated in the environment, a list in YAML."""


def flag_of(name: str) -> str:
    return f"--{name}"


def variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper().replace(".", "_").replace("-", "_")


def hint(name: str, known: Iterable[str], renamed: Mapping[str, str], otherwise: str = "--help lists them all") -> str:
    """What the user may have meant. ``renamed``: RENAMED, spelled as ``name`` is; ``otherwise``: if none is close."""
    if name in renamed:
        return f"it was renamed to {renamed[name]}"
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else otherwise
