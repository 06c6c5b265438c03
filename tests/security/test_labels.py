"""Names that pods, jobs and processes choose: they stay values of labels, whole or cut, whatever they are made of."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.attribution.holdings import Holding, Sharing, Workload
from exporter.attribution.view import AttributionView, ProcessList, ProcessView
from exporter.exposition import Rendered
from exporter.metrics.family import LONGEST_LABEL
from exporter.metrics.single_processes import LONGEST_COMMAND
from exporter.model import Entity
from exporter.page.api import document
from exporter.page.history import Freshness
from tests.attribution.kubernetes.kubelet import Kubelet, pod
from tests.end_to_end.processes import daemon, prometheus, wait_for
from tests.end_to_end.test_pods import GPU
from tests.test_exposition import collect, snapshot

pytestmark = pytest.mark.system

HOSTILE = [
    'a"} 1\nhonest_gpu_up{source="forged"} 0\n# ',
    'a\\",pod="other',
    "a\\",
    "a\\n",
    "\n# HELP honest_gpu_up forged\n# EOF\n",
    "</script><script>alert(1)</script>",
    "\x1b]0;title\x07\x1b[2J\r\0\x85\u2028\u202e",
    "名前" * 100,
    "x" * 100_000,
]


def cut(text: str, most: int = LONGEST_LABEL) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def test_hostile_names_of_pods_in_a_real_prometheus(tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path / "kubelet.sock")
    kubelet.pods(pod(name, GPU.format(number), namespace=name) for number, name in enumerate(HOSTILE))
    kubelet.start()
    arguments = ("--source=simulated", f"--source.gpus={len(HOSTILE)}", "--collector.kubernetes")
    socket = f"--kubernetes.pod-resources-socket={tmp_path / 'kubelet.sock'}"
    with daemon(tmp_path, *arguments, socket) as running, prometheus(tmp_path, running.ready().url) as watching:
        held = "honest_gpu_allocation_info"
        wait_for(lambda: len(watching.query(held)) == len(HOSTILE), "the holders")
        found = {series["gpu"]: series for series, _ in watching.query(held)}
        for number, name in enumerate(HOSTILE):
            series = found[str(number)]
            assert (series["pod"], series["namespace"], series["container"]) == (cut(name), cut(name), "main")
        assert [series["source"] for series, _ in watching.query("honest_gpu_up")] == ["simulated"]
        assert watching.one("min_over_time(up[5m])") == 1
        assert "\n# HELP" not in running.log
    kubelet.stop()


texts = st.text(max_size=40) | st.sampled_from(HOSTILE) | st.just("\ud800")
BOARD = Entity("GPU-0")


@settings(deadline=None, max_examples=50)
@given(st.builds(Workload, texts, texts, texts, texts, texts, texts), texts, texts)
def test_any_name_is_read_back_and_makes_no_series(workload: Workload, label: str, command: str) -> None:
    holding = Holding(BOARD, workload, Sharing.EXCLUSIVE, {"label_app": label})
    listed = ProcessList((ProcessView(BOARD, 7, command, 1.0),), {BOARD: 0})
    taken = dataclasses.replace(snapshot(), attribution=AttributionView(holdings=[holding], processes=listed))
    rendered = Rendered(taken, collect)
    plain = [s for f in parse_text(rendered.get((False, False)).decode()) for s in f.samples]
    parsed = openmetrics_parser.text_string_to_metric_families(  # type: ignore[no-untyped-call]
        rendered.get((True, False)).decode()
    )
    assert len(plain) == sum(len(family.samples) for family in parsed)
    (held,) = [sample.labels for sample in plain if sample.name == "honest_gpu_allocation_info"]
    told = {key: value for key, value in {**workload._asdict(), "label_app": label}.items() if value}
    assert {key: value for key, value in held.items() if key not in ("gpu", "uuid", "sharing")} == {
        key: cut(value).encode(errors="replace").decode() for key, value in told.items()
    }
    (shown,) = [sample.labels for sample in plain if sample.name == "honest_gpu_process_memory_bytes"]
    assert len(shown.get("command", "")) <= LONGEST_COMMAND
    assert shown.get("command", "x").isprintable()
    json.dumps(document(taken, Freshness(0.0, False)), allow_nan=False)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_model_that_a_driver_or_another_exporter_names(name: str) -> None:
    text = Rendered(snapshot(name), collect).get((False, False)).decode()
    models = {s.labels["model"] for f in parse_text(text) for s in f.samples if "model" in s.labels}
    assert models == {cut(name)}
