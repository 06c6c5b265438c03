"""Prints docs/metrics.md from the catalogue: python -m exporter.metrics.docs > docs/metrics.md"""

from __future__ import annotations

from exporter.metrics.catalogue import COMPATIBILITY, groups
from exporter.metrics.own import OwnState

_HEAD = """# Metrics

For anyone writing a query: every exported metric family. Generated from the catalogue (`make docs`); a test checks
that it is current.

Profile: the smallest `--metrics.profile` that includes the family. Device series carry `gpu` (the driver's index),
`uuid` and, on MIG instances only, `gpu_instance`; join everything else from `honest_gpu_info`. A missing
series means that the number is not known; `honest_gpu_field_supported` and `honest_gpu_profiling_state` say why. It
never means 0.

Gauges show the last closed sampling window. For anything longer, use the counters:
`rate(honest_gpu_sm_active_seconds_total[5m]) / ignoring(of) rate(honest_gpu_observed_seconds_total{of="sm"}[5m])`
is the exact mean over the five minutes, whatever the scrape interval.
"""


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for group in groups(OwnState(), compatibility=COMPATIBILITY):
        lines.append(f"\n## {group.title}\n\n| name | type | labels | profile | meaning |\n|---|---|---|---|---|\n")
        for family in group.families:
            labels = ", ".join(f"`{label}`" for label in family.labels)
            text = family.help.replace("|", "\\|")
            profile = family.profile.name.lower()
            lines.append(f"| `{family.series_name}` | {family.type.value} | {labels} | {profile} | {text} |\n")
    return "".join(lines)


if __name__ == "__main__":
    print(page(), end="")
