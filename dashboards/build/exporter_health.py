"""Exporter health: whether the numbers on the other dashboards can be trusted, and what is missing."""

from __future__ import annotations

from dashboards.build import exporters, variables
from dashboards.build.exporters import AGE, AT, LEFT_OUT, NONE, POINTS, SEEN, worst
from dashboards.build.pages import Page, Row
from dashboards.build.palette import GREEN, VERMILLION
from dashboards.build.panels import MINIMAL, TABLE, THIRD, Query, Text, lines, number, threshold
from dashboards.build.promql import WINDOW
from dashboards.build.tables import rows

_NOBODY = "No exporter was scraped"


def _profiling(ok: str) -> str:
    """By device, ``ok`` is = or !=. A board in MIG mode is left out: its instances have the measurement."""
    at = f'{AT}, state{ok}"ok"'
    boards = f'honest_gpu_profiling_state{{{at}, gpu_instance=""}}'
    instances = f'honest_gpu_profiling_state{{{at}, gpu_instance!=""}}'
    in_mig_mode = f'honest_gpu_info{{{AT}, gpu_instance!=""}}'
    return f"{boards} unless on (job, instance, gpu, uuid) {in_mig_mode} or {instances}"


def _now() -> Row:
    return Row(
        "Now",
        [
            number(
                Text("Scraped", "Exporters that answer.", "exporters that are not scrape targets.", NONE, _NOBODY),
                "short",
                Query(f"sum(up{{{AT}}} {SEEN})", instant=True),
                colour=GREEN,
            ),
            number(
                Text(
                    "Not answering",
                    "Exporters that answered in the time range but do not now.",
                    "those that disappeared earlier: select a longer range.",
                    NONE,
                    _NOBODY,
                ),
                "short",
                Query(f"sum((1 - up{{{AT}}}) {SEEN})", instant=True),
                colour=VERMILLION,
                alarm=True,
            ),
            number(
                Text(
                    "Sources down",
                    "Sources whose last read failed; their counters have stopped.",
                    "why: the exporter's log says it.",
                    NONE,
                    _NOBODY,
                ),
                "short",
                Query(f"count(honest_gpu_up{{{AT}}}) - sum(honest_gpu_up{{{AT}}})", instant=True),
                colour=VERMILLION,
                alarm=True,
            ),
            number(
                Text(
                    "GPUs missing",
                    "Boards seen since the exporter started that are no longer listed.",
                    "boards that were gone before it started.",
                    NONE,
                    _NOBODY,
                ),
                "short",
                Query(f"sum(honest_gpu_expected_gpus{{{AT}}} - honest_gpu_present_gpus{{{AT}}})", instant=True),
                colour=VERMILLION,
                alarm=True,
            ),
            number(
                Text(
                    "Simulated GPUs",
                    "Boards whose numbers are all simulated, on request.",
                    "replayed recordings from live ones: see the sources below.",
                    LEFT_OUT,
                    "Not in profile minimal",
                ),
                "short",
                Query(
                    f'count(honest_gpu_source_info{{{AT}, gpu_instance="", simulated="true"}})'
                    f" or 0 * count(honest_gpu_source_info{{{AT}}})",
                    instant=True,
                ),
                colour=VERMILLION,
                alarm=True,
            ),
            number(
                Text(
                    "Rejected reloads",
                    "Exporters that rejected their last configuration and run with the previous one.",
                    "why: the exporter's log says it.",
                    LEFT_OUT,
                    "Not in profile minimal",
                ),
                "short",
                Query(
                    f"count(honest_gpu_config_last_reload_successful{{{AT}}})"
                    f" - sum(honest_gpu_config_last_reload_successful{{{AT}}})",
                    instant=True,
                ),
                colour=VERMILLION,
                alarm=True,
            ),
        ],
    )


def _trust() -> Row:
    return Row(
        "Can the measurement be trusted?",
        [
            lines(
                Text(
                    "Profiling that is not ok",
                    "GPUs by what is wrong with their profiling data, and their total: 0 when all are ok. Data that is "
                    "stuck_at_zero or frozen is treated as absent.",
                    "values that are wrong but plausible.",
                    LEFT_OUT,
                ),
                "short",
                Query(f"sum by (state) ({_profiling('!=')})", "{{state}}"),
                Query(f"sum(1 - ({_profiling('=')}))", "in all"),
                size=THIRD,
                points=POINTS,
            ),
            lines(
                Text(
                    "Rejected values",
                    "Values per second that were rejected instead of exported, by field and reason.",
                    "values that are wrong but in range.",
                    f"No value was rejected since the exporters started. {MINIMAL}",
                ),
                "short",
                Query(
                    f"sum by (field, reason) (rate(honest_gpu_rejected_samples_total{{{AT}}}{WINDOW}))",
                    "{{field}}: {{reason}}",
                ),
                size=THIRD,
                points=POINTS,
            ),
            worst(
                Text(
                    "Age of the newest sample",
                    "Time since the last valid sample, of the GPU with the oldest one. Dashed: the alert's threshold.",
                    "whether the value is right; a node clock that differs from Prometheus's looks like age.",
                    NONE,
                ),
                "s",
                f"max by (instance) ({AGE})",
                threshold("stale_seconds"),
            ),
            rows(
                Text(
                    "Sources and forms",
                    "Devices by source and available inputs. full: all parts known; claim_only: only the claim; "
                    "none: a board whose MIG instances have the numbers.",
                    "why an input is missing: run `honest-gpu-exporter doctor` on the node.",
                    LEFT_OUT,
                ),
                "string",
                Query(
                    f"count by (source, claim, form, simulated, estimated) (honest_gpu_source_info{{{AT}}})",
                    instant=True,
                    form=TABLE,
                ),
                columns={
                    "source": "Source",
                    "claim": "Claim",
                    "form": "Form",
                    "simulated": "Simulated",
                    "estimated": "Estimated",
                    "Value #A": "Devices",
                },
                units={"Devices": "short"},
            ),
            rows(
                Text(
                    "Fields without a value",
                    "Devices for which a field has no value, and why.",
                    "fields that no source of this GPU has.",
                    "All fields have values, or the exporters lack --metrics.include honest_gpu_field_supported.",
                ),
                "string",
                Query(f"count by (field, reason) (honest_gpu_field_supported{{{AT}}} == 0)", instant=True, form=TABLE),
                columns={"field": "Field", "reason": "Reason", "Value #A": "Devices"},
                units={"Devices": "short"},
                sort="Devices",
            ),
        ],
    )


def page() -> Page:
    """The dashboard."""
    return Page(
        uid="honest-gpu-health",
        title="Honest GPU / Exporter health",
        says="Whether the exporters run, whether their numbers can be trusted, and what is missing.",
        since="now-6h",
        variables=[variables.cluster(), variables.nodes()],
        rows=[_now(), _trust(), exporters.nodes(), exporters.reading(), exporters.attribution(), exporters.itself()],
    )
