"""Documents as lines of a terminal."""

from __future__ import annotations

import math
import textwrap
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDE = 110  # columns from which bar and trail have all their cells
INDENT = 8
TRAIL_SECONDS = 600.0
PARTS = ("working", "stalled", "hollow", "unexplained", "idle")
_COLOUR = {"working": 32, "stalled": 33, "hollow": 31, "unexplained": 35, "idle": 39}  # ECMA-48 SGR


@dataclass(frozen=True)
class Style:
    """What the terminal can show. ``width``: columns."""

    width: int = 120
    colour: bool = False
    unicode: bool = True

    @property
    def bar(self) -> int:
        """Cells of the bar of parts."""
        return 30 if self.width >= WIDE else 20

    @property
    def trail(self) -> int:
        """Cells of the last ten minutes."""
        return 20 if self.width >= WIDE else 10

    @property
    def fills(self) -> Mapping[str, str]:
        """One character a part: told apart without colour."""
        return dict(zip(PARTS, "█▓░? " if self.unicode else "#=.? ", strict=True))

    @property
    def levels(self) -> str:
        """From 0 to 1; no value is a space."""
        return "▁▂▃▄▅▆▇█" if self.unicode else "_.:-=+*#"

    def paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text.strip() else text


class Trail:
    """SM active over the last ten minutes, gathered from the histories of one document after the other."""

    def __init__(self) -> None:
        self.since = 0.0  # Unix seconds: what to ask for next
        self._points: dict[str, deque[tuple[float, float]]] = {}  # id -> (end, ratio)

    def add(self, history: Mapping[str, Any]) -> None:
        """Take in the ``history`` of a document."""
        ends = history["timestamps"]
        if not ends:
            return
        if ends[0] <= self.since:  # the exporter sent all of it again: its clock was set back
            self._points.clear()
        self.since = ends[-1]
        for name, columns in history["gpus"].items():
            points = self._points.setdefault(name, deque())
            points.extend((end, ratio) for end, ratio in zip(ends, columns["sm"], strict=True) if ratio is not None)
        for name, points in list(self._points.items()):
            while points and points[0][0] <= self.since - TRAIL_SECONDS:
                points.popleft()
            if not points:
                del self._points[name]

    def cells(self, name: str, count: int) -> list[float | None]:
        """Means over ``count`` equal stretches of the ten minutes; None where there is no value."""
        sums, numbers = [0.0] * count, [0] * count
        for end, ratio in self._points.get(name, ()):
            place = max(
                0, math.ceil((end - self.since + TRAIL_SECONDS) / TRAIL_SECONDS * count) - 1
            )  # a point lies before its end
            sums[place] += ratio
            numbers[place] += 1
        return [total / number if number else None for total, number in zip(sums, numbers, strict=True)]


def render(
    document: Mapping[str, Any], trails: Mapping[str, Sequence[float | None]], style: Style, *, details: bool = True
) -> list[str]:
    """The node. ``trails``: id -> SM active over the last ten minutes; ``details``: more lines under each GPU."""
    when = time.strftime("%H:%M:%S", time.localtime(document["timestamp"]))
    sources = ", ".join(f"{source['name']} {'up' if source['up'] else 'down'}" for source in document["sources"])
    gpus = f"{document['present_gpus']} of {document['expected_gpus']} GPUs"
    version = f"honest-gpu-exporter {document['exporter_version']}"
    lines = [f"{version}: {gpus}, source {sources or 'none'}, values from {when}"]
    lines += [f"! {text}" for text in document["warnings"]]
    lines += [f"! {_problem(problem)}" for problem in document["problems"]]
    head = f"{'GPU':<{INDENT}}{'claimed':>8}{'SM':>8}  {'where the time went':<{style.bar + 2}}"
    lines.append(f"{head}  {'10 min':<{style.trail}}  state")
    lines = [_clip(line, style) for line in lines]
    for gpu in document["gpus"]:
        lines.append(_row(gpu, trails.get(gpu["id"], ()), style))
        if details:
            lines += [style.paint(f"{'':<{INDENT}}{text}", 2) for text in _details(gpu, style)]
    fills = "  ".join(f"{fill if fill.strip() else 'blank'} {part}" for part, fill in style.fills.items())
    return [*lines, _clip(f"{fills}  - not known (never 0); 10 min: SM active", style)]


def _row(gpu: Mapping[str, Any], trail: Sequence[float | None], style: Style) -> str:
    values = gpu["values"]
    claimed = values["busy"] if values["busy"] is not None or gpu["claim"] is None else values[gpu["claim"]]
    name = gpu["index"] if gpu["gpu_instance"] is None else f"{gpu['index']}/{gpu['gpu_instance']}"
    start = f"{_clean(name):<{INDENT}}{_percent(claimed):>8}{_percent(values['sm']):>8}  ["
    state = "-" if gpu["state"] is None else _words(gpu["state"])
    end = f"]  {_trail(trail, style):<{style.trail}}  {state}"
    return f"{start}{_bar(gpu['parts'], style)}{_clip(end, style, len(start) + style.bar)}"


def _bar(parts: Mapping[str, float] | None, style: Style) -> str:
    """Cells by largest remainder, so that they add up to the bar."""
    if parts is None:
        return f"{'not known':^{style.bar}}"
    exact = {part: share * style.bar for part, share in parts.items()}
    cells = {part: int(cell) for part, cell in exact.items()}
    for part in sorted(exact, key=lambda part: cells[part] - exact[part])[: style.bar - sum(cells.values())]:
        cells[part] += 1
    return "".join(style.paint(style.fills[part] * cells[part], _COLOUR[part]) for part in PARTS if part in cells)


def _trail(cells: Sequence[float | None], style: Style) -> str:
    levels = style.levels
    return "".join(" " if cell is None else levels[min(len(levels) - 1, int(cell * len(levels)))] for cell in cells)


def _details(gpu: Mapping[str, Any], style: Style) -> list[str]:
    """Why it is in its state, the shares, who holds it, how good the data is; as many lines as that takes."""
    shares = " ".join(f"{part} {_percent(gpu['parts'][part])}" for part in PARTS if part in (gpu["parts"] or ()))
    parts = shares or f"parts: {_words(gpu['absent']['parts'])}"
    throttled = f"throttled: {', '.join(map(_words, gpu['throttled']))}" if gpu["throttled"] else ""
    quality = "gone" if not gpu["present"] else f"profiling {_words(gpu['quality']['profiling'])}{_missing(gpu)}"
    state = gpu["state_reason"] or f"state: {_words(gpu['absent']['state_reason'])}"
    model = " ".join(filter(None, (gpu["model"], gpu["mig_profile"])))
    told = " | ".join(_clean(text) for text in (state, throttled, parts, _holders(gpu), quality, model) if text)
    return textwrap.wrap(told, max(20, style.width - INDENT), subsequent_indent="  ")


def _missing(gpu: Mapping[str, Any]) -> str:
    names: dict[str, list[str]] = {}
    for name in gpu["values"]:
        if (reason := gpu["absent"].get(name, "not_reported")) != "not_reported":
            names.setdefault(reason, []).append(name)
    listed = (f"{each[0] if len(each) == 1 else f'{len(each)} fields'} {_words(why)}" for why, each in names.items())
    return "".join(f", {text}" for text in listed)


def _holders(gpu: Mapping[str, Any]) -> str:
    if gpu["holders"] is None:
        return f"holder: {_words(gpu['absent']['holders'])}"
    return "; ".join(map(_holder, gpu["holders"])) or "held by nobody"


def _holder(holder: Mapping[str, str | None]) -> str:
    pod = "/".join(filter(None, (holder["namespace"], holder["pod"], holder["container"])))
    job = f"job {holder['job_id']}" if holder["job_id"] else None
    return " ".join(filter(None, (pod, job, holder["user"], holder["account"])))


def _problem(problem: Mapping[str, str | None]) -> str:
    remedy = f" -> {problem['remedy']}" if problem["remedy"] else ""
    return f"{problem['gpu'] or ''} {problem['what']}: {problem['why']}{remedy}".strip()


def _percent(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return "0 %" if ratio == 0 else "<0.1 %" if ratio < 0.001 else f"{100 * ratio:.1f} %"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _clean(text: str) -> str:
    """Names come from elsewhere: nothing in them may steer the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _clip(text: str, style: Style, used: int = 0) -> str:
    return _clean(text)[: max(0, style.width - used)].rstrip()
