"""What Prometheus and Grafana get: monitors, rules with thresholds, dashboards."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging.helm import CHART, REPOSITORY, Helm, Manifest, container_of, only
from tests.packaging.value_sets import VALUE_SETS

pytestmark = pytest.mark.system

KINDS = {"PodMonitor": "podMetricsEndpoints", "ServiceMonitor": "endpoints"}


def endpoint(objects: list[Manifest], kind: str = "PodMonitor") -> Manifest:
    """The one endpoint of the monitor."""
    (found,) = only(objects, kind)["spec"][KINDS[kind]]
    made: Manifest = found
    return made


def test_a_monitor_is_made_where_the_operator_is(helm: Helm) -> None:
    def kinds(**options: Any) -> set[str]:
        return {o["kind"] for o in helm.render(**options)} & KINDS.keys()

    assert kinds() == {"PodMonitor"}
    assert kinds(apis=()) == set()
    assert kinds(values={"monitor": {"kind": "none"}}) == set()
    assert kinds(values={"monitor": {"kind": "ServiceMonitor"}}, apis=()) == {"ServiceMonitor"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_labels_are_honoured_and_the_node_is_named(helm: Helm, kind: str) -> None:
    objects = helm.render({"monitor": {"kind": kind}})
    found = endpoint(objects, kind)
    assert found["honorLabels"] is True
    assert found["relabelings"][0]["sourceLabels"] == ["__meta_kubernetes_pod_node_name"]
    assert found["relabelings"][0]["targetLabel"] == "node"
    monitor = only(objects, kind)
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["monitoring"]}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_monitor_selects_what_the_chart_makes(helm: Helm, kind: str) -> None:
    objects = helm.render({"monitor": {"kind": kind}})
    selected = only(objects, kind)["spec"]["selector"]["matchLabels"].items()
    if kind == "PodMonitor":
        assert selected <= only(objects, "DaemonSet")["spec"]["template"]["metadata"]["labels"].items()
        ports = {port["name"] for port in container_of(objects)["ports"]}
    else:
        assert selected <= only(objects, "Service")["metadata"]["labels"].items()
        ports = {port["name"] for port in only(objects, "Service")["spec"]["ports"]}
    assert endpoint(objects, kind)["port"] in ports


@pytest.mark.parametrize("values", [{}, {"fullnameOverride": "gpus"}])
def test_alerts_know_the_job_whatever_the_release_is_called(helm: Helm, values: dict[str, Any]) -> None:
    objects = helm.render(values)
    label = only(objects, "PodMonitor")["spec"]["jobLabel"]
    job = only(objects, "DaemonSet")["spec"]["template"]["metadata"]["labels"][label]
    assert "honest-gpu" in job
    assert 'up{job=~".*honest-gpu.*"}' in (REPOSITORY / "rules" / "alerts.yml").read_text()


def test_tls_and_password_reach_the_scrape(helm: Helm) -> None:
    found = endpoint(helm.render(VALUE_SETS["tls-and-password"]))
    assert found["scheme"] == "https"
    assert found["tlsConfig"]["ca"] == {"secret": {"name": "gpu-tls", "key": "ca.crt"}}
    assert found["tlsConfig"]["serverName"] == "gpu-honest-gpu-exporter.monitoring.svc"
    assert found["basicAuth"]["password"] == {"name": "scrape", "key": "password"}
    mutual = VALUE_SETS["mutual-tls"]
    objects = helm.render(mutual)
    assert endpoint(objects, "ServiceMonitor")["tlsConfig"] == mutual["monitor"]["tlsConfig"]
    names = only(objects, "Certificate")["spec"]["dnsNames"]
    assert endpoint(objects, "ServiceMonitor")["tlsConfig"]["serverName"] in names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("default", {"httpGet": {"path": "/-/ready", "port": "metrics", "scheme": "HTTP"}}),
        ("everything", {"httpGet": {"path": "/-/ready", "port": "metrics", "scheme": "HTTPS"}}),
        ("tls-and-password", {"tcpSocket": {"port": "metrics"}}),
        ("mutual-tls", {"tcpSocket": {"port": "metrics"}}),
    ],
)
def test_probes_need_no_password_and_no_certificate(helm: Helm, name: str, expected: Manifest) -> None:
    container = container_of(helm.render(VALUE_SETS[name]))
    assert expected.items() <= container["readinessProbe"].items()
    assert expected.keys() <= container["livenessProbe"].keys()


def test_rules_in_the_chart_are_those_of_the_repository() -> None:
    """Copies, since a chart cannot reach outside its folder: cp rules/*.yml helm/honest-gpu-exporter/rules/"""
    ours = {path.name: path.read_bytes() for path in (REPOSITORY / "rules").glob("*.y*ml")}
    assert {path.name: path.read_bytes() for path in (CHART / "rules").glob("*.y*ml")} == ours


def test_dashboards_in_the_chart_are_those_of_the_repository() -> None:
    """Copies: cp dashboards/*.json helm/honest-gpu-exporter/dashboards/"""
    ours = {path.name: path.read_bytes() for path in (REPOSITORY / "dashboards").glob("*.json")}
    assert {path.name: path.read_bytes() for path in (CHART / "dashboards").glob("*.json")} == ours


def groups(objects: list[Manifest]) -> list[Manifest]:
    found: list[Manifest] = only(objects, "PrometheusRule")["spec"]["groups"]
    return found


def test_rules_arrive_unchanged(helm: Helm) -> None:
    files = sorted((CHART / "rules").glob("*.y*ml"))
    expected = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    assert groups(helm.render({"rules": {"enabled": True}})) == expected


def thresholds(objects: list[Manifest]) -> dict[str, str]:
    """Name -> expression of all thresholds."""
    rules = [rule for group in groups(objects) for rule in group["rules"]]
    return {rule["labels"]["name"]: rule["expr"] for rule in rules if rule.get("record") == "honest_gpu:threshold"}


def test_thresholds_are_values(helm: Helm) -> None:
    values = {"rules": {"enabled": True, "thresholds": {"divergence_busy": 0.85, "stale_seconds": 1000000}}}
    before, after = thresholds(helm.render({"rules": {"enabled": True}})), thresholds(helm.render(values))
    differ = {name: after[name] for name in before if before[name] != after[name]}
    assert differ.keys() == {"divergence_busy", "stale_seconds"}
    assert differ["divergence_busy"] == "0.85 * cluster:honest_gpu_up:group"
    assert float(differ["stale_seconds"].removesuffix(" * cluster:honest_gpu_up:group")) == 1000000


def test_alerts_can_be_left_out_and_runbooks_be_elsewhere(helm: Helm) -> None:
    values = {
        "rules": {
            "enabled": True,
            "disabledAlerts": ["HonestGpuPoolTooSmall"],
            "runbookBaseUrl": "https://example.org/gpu/",
        }
    }
    rules = [rule for group in groups(helm.render(values)) for rule in group["rules"] if "alert" in rule]
    assert "HonestGpuPoolTooSmall" not in {rule["alert"] for rule in rules}
    assert all(r["annotations"]["runbook_url"].startswith("https://example.org/gpu/docs/runbooks/") for r in rules)


def test_promtool_takes_the_rendered_rules(helm: Helm, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    file = tmp_path / "rules.yml"
    values = {"rules": {"enabled": True, "thresholds": {"divergence_busy": 0.85, "stale_seconds": 1000000}}}
    file.write_text(json.dumps({"groups": groups(helm.render(values))}))
    done = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_dashboards_become_config_maps_for_the_sidecar(helm: Helm, tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    (chart / "dashboards").mkdir(exist_ok=True)
    document = {"title": "{{ $labels.gpu }} stays as it is", "panels": [{"expr": 'up{job="x"}'}]}
    (chart / "dashboards" / "fleet_view.json").write_text(json.dumps(document, indent=2))
    values = {"dashboards": {"enabled": True, "annotations": {"grafana_folder": "GPU"}, "namespace": "grafana"}}
    made = only(Helm(helm.binary, chart).render(values), "ConfigMap", "-fleet-view")
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert made["metadata"]["annotations"] == {"grafana_folder": "GPU"}
    assert made["metadata"]["namespace"] == "grafana"
    assert json.loads(made["data"]["fleet_view.json"]) == document
    assert not [o for o in Helm(helm.binary, chart).render({}) if o["metadata"]["name"].endswith("-fleet-view")]
