"""The command line: which command, with which flags, and what --help says."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from exporter.config.option import RENAMED, Command, Option, Repeated, flag_of, hint
from exporter.config.options import OPTIONS
from exporter.version import VERSION

PROGRAM = "honest-gpu-exporter"
WRONG_USE = 2  # exit status (docs/operations.md)
# Section of --help -> the options in it, by the first parts of their names. What is in none is the command's own.
SECTIONS: dict[str, tuple[str, ...]] = {
    "source": ("source", "wait-for-gpus", "dcgm"),
    "sampling": ("sampling",),
    "web server": ("web",),
    "metrics": ("metrics", "compat", "cost"),
    "Kubernetes": ("collector.kubernetes", "kubernetes"),
    "Slurm": ("collector.slurm", "slurm"),
    "processes and workloads": ("collector.processes", "processes", "workload"),
    "host": ("collector.host", "path"),
    "state": ("state",),
    "hardware": ("hardware",),
    "logging": ("log",),
}
_ABOUT = {
    Command.SERVE: """\
Exports to Prometheus what the driver claims about each GPU next to what was measured.

Start with these three:
  honest-gpu-exporter doctor    check what can be measured on this machine, and how to fix what cannot
  honest-gpu-exporter           serve http://localhost:9836/metrics, and a page for people at http://localhost:9836/
  honest-gpu-exporter top       show the GPUs of a running exporter in this terminal

Other commands:
  honest-gpu-exporter textfile            write the metrics to a file for node_exporter, without a web server
  honest-gpu-exporter record              record the readings of a source in a file, to be replayed
  honest-gpu-exporter profiling pause     release the GPU's performance counters, for Nsight and other profilers
  honest-gpu-exporter profiling resume    take them back

`honest-gpu-exporter COMMAND --help` lists the options of a command. These are the options of serve, the default:""",
    Command.TEXTFILE: "Writes the metrics to a file for node_exporter's textfile collector, without a web server.",
    Command.RECORD: "Records the readings of a source in a file. Replay it with --source replay --source.path FILE.",
    Command.TOP: "Shows the GPUs of a running exporter in this terminal, until Ctrl-C.",
    Command.DOCTOR: "Checks what can be measured on this machine, and says how to fix what cannot.",
    Command.PROFILING: "Pauses or resumes DCGM's profiling, to release the counters for Nsight and other profilers.",
}
_SETTING = """\
Every option can also be set in the environment (--sampling.interval is HONEST_GPU_SAMPLING_INTERVAL) and in the YAML
file of --config (sampling: {interval: 500ms}). Flags take precedence over the environment, and both over the file."""
_STATUS = "Exit status: 0 success; 1 failed, with the reason in the message; 2 invalid options or configuration."
_DOCTOR_STATUS = """\
Exit status: 0 every GPU can be measured; 1 a GPU cannot be measured, or there is none; 2 invalid options or
configuration."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps names such as in-cluster and paths in one piece."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


@dataclass(frozen=True)
class Asked:
    """What the user asked for: the flags as texts, by option name."""

    command: Command
    flags: dict[str, object]


def parse(argv: Sequence[str]) -> Asked:
    """The command line. Exits with status 2 and a message when it is wrong, 0 after --help and --version."""
    command, rest = _command(list(argv))
    parser = _parser(command)
    known, unknown = parser.parse_known_args(rest)
    if unknown:
        flags = [option.flag for option in OPTIONS if command in option.commands]
        renamed = {flag_of(old): flag_of(new) for old, new in RENAMED.items()}
        flag = unknown[0].partition("=")[0]
        _wrong(f"no such option of {command.value}: {unknown[0]}; {hint(flag, flags, renamed)}")
    return Asked(command, vars(known))


def section(option: Option[object]) -> str:
    """Of --help; empty for an option of one command only."""
    for title, prefixes in SECTIONS.items():
        if any(option.name == prefix or option.name.startswith(f"{prefix}.") for prefix in prefixes):
            return title
    return ""


def _parser(command: Command) -> argparse.ArgumentParser:
    action = " pause|resume" if command is Command.PROFILING else ""
    named = f"[{command.value}]" if command is Command.SERVE else command.value
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {command.value}",
        usage=f"{PROGRAM} {named}{action} [OPTION ...]",
        description=_ABOUT[command],
        epilog=f"{_SETTING}\n\n{_DOCTOR_STATUS if command is Command.DOCTOR else _STATUS}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"{PROGRAM} {VERSION}", help="Print the version and exit."
    )
    parser.add_argument("--config", metavar="FILE", help="Read options from this YAML file. Example: exporter.yaml")
    parser.add_argument("--check-config", action="store_true", help="Check the configuration and exit.")
    if command is Command.DOCTOR:
        parser.add_argument("--json", action="store_true", help="Print JSON.")
    elif command is Command.PROFILING:
        parser.add_argument("action", choices=("pause", "resume"), help="What to do with profiling.")
    own = [option for option in OPTIONS if command in option.commands]
    for title in ("", *SECTIONS):
        listed = [option for option in own if section(option) == title]
        group = parser.add_argument_group(title) if title and listed else parser
        for option in listed:
            _add(group, option)
    return parser


def _add(group: argparse._ActionsContainer, option: Option[object]) -> None:
    """Values stay texts here: they are parsed the same whatever they come from."""
    text = _help(option).replace("%", "%%")
    if option.switch:
        action = argparse.BooleanOptionalAction
        group.add_argument(option.flag, dest=option.name, action=action, default=None, help=text)
    else:
        store = "append" if isinstance(option, Repeated) else "store"
        group.add_argument(option.flag, dest=option.name, action=store, default=None, metavar=option.metavar, help=text)


def _help(option: Option[object]) -> str:
    repeated = "; may be repeated" if isinstance(option, Repeated) else ""
    return f"{option.help} [default: {option.default_text or 'none'}{repeated}]"


def _command(argv: list[str]) -> tuple[Command, list[str]]:
    if not argv or argv[0].startswith("-"):
        return Command.SERVE, argv
    names = [command.value for command in Command]
    if argv[0] not in names:
        _wrong(f"no such command: {argv[0]}; {hint(argv[0], names, {})}")
    return Command(argv[0]), argv[1:]


def _wrong(message: str) -> NoReturn:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    raise SystemExit(WRONG_USE)
