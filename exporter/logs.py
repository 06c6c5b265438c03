"""Log lines on standard error: text for people, JSON for collectors. One line an event."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone

# A file's or a process's name may hold any of them: a line break would forge a line, an escape steer a terminal.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {ord("\n"): "\\n", 0x2028: "\\u2028"}


def set_up(level: str, form: str) -> None:
    """Log from ``level`` on, as ``text`` or ``json``; replaces what was set up before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname.lower():<7} {record.getMessage().translate(_CONTROLS)}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["trace"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)
