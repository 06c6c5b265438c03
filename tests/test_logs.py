"""Log lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from exporter import logs


@pytest.fixture(autouse=True)
def _root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_text_is_one_line_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("info", "text")
    logging.getLogger("x").info("two\nlines of %s", "it")
    logging.getLogger("x").debug("not shown")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("Z info    two\\nlines of it")


def test_json_holds_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("debug", "json")
    try:
        raise OSError("no")
    except OSError:
        logging.getLogger("x").exception('with "quotes"')
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["level"], event["logger"], event["message"]) == ("error", "x", 'with "quotes"')
    assert "OSError: no" in event["trace"]
