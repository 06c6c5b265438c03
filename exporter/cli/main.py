"""Entry point: parse, load, dispatch; every foreseen failure becomes one line and an exit status."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from exporter import logs
from exporter.cli.arguments import PROGRAM, WRONG_USE, Asked, parse
from exporter.config.loading import Loaded, load
from exporter.config.option import Command
from exporter.config.options import LOG_FORMAT, LOG_LEVEL, SOURCE_WORKLOAD
from exporter.config.settings import ConfigError
from exporter.model import SourceError
from exporter.web.listen import ListenError

log = logging.getLogger(__name__)
CANNOT = 1  # exit status: cannot do its job


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status: 0 clean end, 1 cannot do its job, 2 wrong use or configuration."""
    asked = parse(sys.argv[1:] if argv is None else argv)
    try:
        loaded = load(asked.command, asked.flags, os.environ)
        settings = loaded.settings
        if settings[SOURCE_WORKLOAD] == ("list",):
            return _list_workloads()
        logs.set_up(settings[LOG_LEVEL], settings[LOG_FORMAT])
        for warning in loaded.warnings:
            log.warning(warning)
        return _run(asked, loaded)
    except ConfigError as error:
        return _failed(str(error), WRONG_USE)
    except SourceError as error:
        return _failed(f"{error}; {error.remedy}" if error.remedy else str(error), CANNOT)
    except ListenError as error:
        return _failed(str(error), CANNOT)


def _run(asked: Asked, loaded: Loaded) -> int:
    # imported where they are needed: --version and a wrong flag should not wait for the web server
    if asked.command is Command.TOP:
        return _top(asked, loaded)
    if asked.command is Command.DOCTOR:
        from exporter.cli.doctor import doctor

        return doctor(loaded.settings, as_json=bool(asked.flags["json"]))
    if asked.command is Command.PROFILING:
        from exporter.cli.profiling import profiling

        return profiling(loaded.settings, str(asked.flags["action"]))
    from exporter.cli.building import check_source
    from exporter.cli.serve import check_serving, serve

    check_source(loaded.settings)
    if asked.command is Command.SERVE:
        check_serving(loaded.settings)
    elif asked.command is Command.TEXTFILE:
        from exporter.cli.textfile import check_textfile, textfile

        check_textfile(loaded.settings)
    if asked.flags.get("check_config"):
        print("the configuration is valid")
        return 0
    if asked.command is Command.TEXTFILE:
        return textfile(loaded.settings)
    if asked.command is Command.RECORD:
        from exporter.cli.record import record

        return record(loaded.settings)
    return serve(asked, loaded)


def _top(asked: Asked, loaded: Loaded) -> int:
    from exporter.cli.top import check_top, top
    from exporter.cli.top_client import Unreachable

    check_top(loaded.settings)
    if asked.flags.get("check_config"):
        print("the configuration is valid")
        return 0
    try:
        return top(loaded.settings)
    except Unreachable as error:
        return _failed(str(error), CANNOT)


def _failed(message: str, status: int) -> int:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    return status


def _list_workloads() -> int:
    from exporter.sources.simulated.workloads import WORKLOADS

    for name, workload in WORKLOADS.items():
        print(f"{name:<20} {workload.description}")
    return 0
