"""The node in a terminal, from the JSON document of an exporter that runs here or elsewhere."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from exporter.cli.top_client import Target, Unreachable, fetch, parse_target
from exporter.cli.top_view import Style, Trail, render
from exporter.config.of_commands import ONCE, TOP_URL
from exporter.config.settings import ConfigError, Settings

EVERY = 1.0  # seconds
NO_TERMINAL = 1000  # columns of a file or a pipe: nothing is cut there
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # the other screen, without cursor; and back
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def check_top(settings: Settings) -> Target:
    """The exporter to look at. Raises ConfigError for an address that is none."""
    try:
        return parse_target(settings[TOP_URL])
    except ValueError as error:
        raise ConfigError(f"{settings.where(TOP_URL)}: {error}") from error


def top(settings: Settings) -> int:
    """Until Ctrl-C, or once; the exit status. Raises ConfigError, and Unreachable when the first answer fails."""
    target = check_top(settings)
    trail = Trail()
    document = _read(target, trail)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name may have letters that the terminal has not
    try:
        if settings[ONCE]:
            print("\n".join(_frame(document, trail, _style(), None)), flush=True)
            return 0
        with _screen() as steers, contextlib.suppress(KeyboardInterrupt):
            _watch(target, trail, document, steers)
    except BrokenPipeError:  # `| head` has seen enough; nothing is to be flushed into it at the end either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _watch(target: Target, trail: Trail, document: dict[str, Any], steers: bool) -> None:
    trouble = ""
    while True:
        lines = [f"honest-gpu-exporter top: {target} (Ctrl-C exits)"]
        if trouble:
            lines.append(f"! {trouble} The values below are the last ones received.")
        height = shutil.get_terminal_size().lines - len(lines) if steers else None
        lines += _frame(document, trail, _style(), height)
        if steers:
            text = "".join(f"{line}{_REST_OF_LINE}\r\n" for line in lines[:-1]) + lines[-1] + _REST_OF_LINE
            print(f"{_HOME}{text}{_REST_OF_SCREEN}", end="", flush=True)
        else:
            print("\n".join(lines), flush=True)
        time.sleep(EVERY)
        try:
            document, trouble = _read(target, trail), ""
        except Unreachable as error:
            trouble = f"{error}."


def _read(target: Target, trail: Trail) -> dict[str, Any]:
    document = fetch(target, trail.since)
    trail.add(document["history"])
    return document


def _frame(document: dict[str, Any], trail: Trail, style: Style, height: int | None) -> list[str]:
    """At most ``height`` lines: without the details where they do not fit, and cut where that is not enough."""
    trails = {gpu["id"]: trail.cells(gpu["id"], style.trail) for gpu in document["gpus"]}
    lines = render(document, trails, style)
    if height is not None and len(lines) > height:
        lines = render(document, trails, style, details=False)
    if height is not None and len(lines) > height:
        cut = len(lines) - height + 1
        lines = [*lines[: height - 1], f"... {cut} more lines: enlarge the terminal, or use --once"]
    return lines


def _style() -> Style:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return Style(
        width=shutil.get_terminal_size((NO_TERMINAL, 24)).columns,
        colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
        unicode=encoding.startswith("utf"),
    )


@contextlib.contextmanager
def _screen() -> Iterator[bool]:
    """A screen of its own, given back whatever happens; False where the output is no terminal."""
    if not sys.stdout.isatty():
        yield False
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(_ENTER, end="", flush=True)
    try:
        yield True
    finally:
        print(_LEAVE, end="", flush=True)
