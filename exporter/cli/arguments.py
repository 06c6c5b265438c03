"""Which command, with which flags."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from exporter.config.layers import add_flags
from exporter.config.options import OPTIONS, Command
from exporter.version import VERSION

PROGRAM = "honest-gpu-exporter"
WRONG_USE = 2  # exit status (docs/operations.md)
_ABOUT = {
    Command.SERVE: "Read GPUs and serve what the driver claims next to what the silicon did, for Prometheus.",
    Command.RECORD: "Read GPUs and write every sample to a file, which --source=replay plays.",
    Command.TOP: "Show the node of an exporter that runs, in this terminal.",
    Command.DOCTOR: "Say what works here, what does not, why, and what to do. Status 1: no honest numbers.",
    Command.PROFILING: "Pause or resume DCGM's profiling, for Nsight and others who need the GPU's counters.",
}
_EPILOG = (
    "Every option is also HONEST_GPU_<OPTION> in the environment (dots and dashes as underscores) and a key of the "
    "YAML file of --config (dots as nesting); flags go before environment before file. Commands: "
)


@dataclass(frozen=True)
class Asked:
    """What the user asked for: the flags as texts, by option name."""

    command: Command
    flags: dict[str, object]


def parse(argv: Sequence[str]) -> Asked:
    """The command line. Leaves with status 2 and a message when it is wrong, 0 after --help and --version."""
    command, rest = _command(list(argv))
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {command.value}",
        description=_ABOUT[command],
        epilog=_EPILOG + ", ".join(f"{each.value} ({about})" for each, about in _ABOUT.items()),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {VERSION}")
    parser.add_argument("--config", metavar="FILE", help="YAML file with the options below")
    parser.add_argument("--check-config", action="store_true", help="check the configuration and leave")
    if command is Command.DOCTOR:
        parser.add_argument("--json", action="store_true", help="for machines")
    elif command is Command.PROFILING:
        parser.add_argument("action", choices=("pause", "resume"))
    add_flags(parser, command)
    known, unknown = parser.parse_known_args(rest)
    if unknown:
        flags = [option.flag for option in OPTIONS if command in option.commands]
        close = difflib.get_close_matches(unknown[0].partition("=")[0], flags, n=1)
        _wrong(f"no such option of {command.value}: {unknown[0]}; {_hint(close)}")
    return Asked(command, vars(known))


def _command(argv: list[str]) -> tuple[Command, list[str]]:
    if not argv or argv[0].startswith("-"):
        return Command.SERVE, argv
    names = [command.value for command in Command]
    if argv[0] not in names:
        close = difflib.get_close_matches(argv[0], names, n=1)
        _wrong(f"no such command: {argv[0]}; {_hint(close)}")
    return Command(argv[0]), argv[1:]


def _hint(close: list[str]) -> str:
    return f"did you mean {close[0]}?" if close else "--help lists them"


def _wrong(message: str) -> NoReturn:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    raise SystemExit(WRONG_USE)
