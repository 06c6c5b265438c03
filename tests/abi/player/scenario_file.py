"""The form of a scenario file, as lines.c reads it: a keyword, then words `key=text`; texts are percent-encoded."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from .faults import CallFault
from .values import Absence, Counter, Events, Steps, Window

Word = str | float | None


def text(value: str | float) -> str:
    if isinstance(value, str):
        return quote(value, safe=":/.,-+()@<>;*?[]")
    return str(int(value)) if isinstance(value, int) else repr(float(value))


def line(keyword: str, **words: Word) -> str:
    """Words that are None are left out."""
    return " ".join([keyword, *(f"{key}={text(value)}" for key, value in words.items() if value is not None)])


def window_line(keyword: str, window: Window, **words: Word) -> str:
    return line(keyword, **words, **{"from": window.start, "until": window.end})


def listed(items: Sequence[str | float]) -> str:
    return ",".join(text(item) for item in items)


def _points(value: float | Absence | Steps) -> str:
    points = value.points if isinstance(value, Steps) else ((0.0, value),)
    return ",".join(f"{text(time)}:{'!' * isinstance(item, Absence)}{text(item)}" for time, item in points)


def value_line(value: float | Absence | str | Steps | Counter | Events, **words: Word) -> str:
    """The words say whose value it is."""
    if isinstance(value, str):
        return line("value", **words, kind="text", text=value)
    if isinstance(value, Events):
        return line("value", **words, kind="events", points=_points(Steps(value.points)))
    if isinstance(value, Counter):
        resets = listed(value.resets)
        return line("value", **words, kind="counter", start=value.start, resets=resets, points=_points(value.rate))
    return line("value", **words, kind="steps", points=_points(value))


def fault_line(fault: CallFault) -> str:
    words: dict[str, Word] = {"function": fault.function, "kind": fault.kind, "argument": fault.argument}
    return window_line("call_fault", fault.window, **words, gpu=fault.gpu, instance=fault.instance, limit=fault.limit)


def wall_offset(seconds: float | None) -> str | float:
    """The wall clock's time (seconds since 1970) at scenario time 0; None: the real time."""
    return "real" if seconds is None else seconds


def write(lines: Iterable[str], path: Path) -> Path:
    path.write_text("".join(f"{item}\n" for item in lines), encoding="ascii")
    return path
