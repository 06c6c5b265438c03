"""What a finished pass says of each GPU, for people: the parts, the gap, the limiter."""

from __future__ import annotations

from exporter.core.snapshot import EntityView, Snapshot


def summary(snapshot: Snapshot) -> str:
    """A few lines a GPU; shares of the observed time, from the counters."""
    lines = [_entity(view) for view in snapshot.entities]
    return "\n".join(lines) if lines else "No GPU was seen."


def _entity(view: EntityView) -> str:
    totals, device = view.totals, view.device
    instance = "" if device.entity.gpu_instance is None else f" instance {device.entity.gpu_instance}"
    head = f"GPU {device.index}{instance} {device.model or ''} ({device.entity.uuid})".replace("  ", " ")
    observed = totals.observed.get("parts", 0.0)
    if observed <= 0:
        return f"{head}\n  nothing was observed that can be split into parts"
    lines = [head, f"  observed   {observed:10.3f} s  (form {view.form.value}, source {view.source})"]
    for part in view.parts:
        seconds = totals.parts.get(part, 0.0)
        lines.append(f"  {part:<11}{seconds:10.3f} s  {seconds / observed:7.2%}")
    claimed, measured = _mean(view, "busy"), _mean(view, "sm")
    if claimed is not None and measured is not None:
        lines.append(f"  the driver claims {claimed:.2%}, SM active {measured:.2%}: gap {claimed - measured:.2%}")
    elif claimed is not None:
        lines.append(f"  the driver claims {claimed:.2%}; SM active is not known")
    if totals.limiters:
        limiter, seconds = max(totals.limiters.items(), key=lambda item: item[1])
        lines.append(f"  limiter    {limiter} for {seconds / observed:.2%} of the time")
    return "\n".join(lines)


def _mean(view: EntityView, field: str) -> float | None:
    observed = view.totals.observed.get(field, 0.0)
    return view.totals.seconds[field] / observed if observed > 0 else None
