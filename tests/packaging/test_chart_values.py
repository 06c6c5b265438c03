"""Wrong values are refused, with a message that names the value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.packaging.helm import CHART, Helm

pytestmark = pytest.mark.system


def api_server(**values: Any) -> dict[str, Any]:
    """With the kubelet asked, and these values of the API server."""
    return {"collectors": {"kubernetes": {"enabled": True, "apiServer": values}}}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "misspelt key": ({"sampling": {"intervall": "1s"}}, "intervall"),
    "misspelt section": ({"collector": {"kubernetes": {"enabled": True}}}, "collector"),
    "unknown source": ({"source": {"type": "prometheus"}}, "source.type"),
    "duration without unit": ({"sampling": {"interval": "fast"}}, "sampling.interval"),
    "text for a switch": ({"collectors": {"processes": {"enabled": "yes"}}}, "collectors.processes.enabled"),
    "port of root": ({"web": {"port": 80}}, "web.port"),
    "a GPU of its own": ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, "nvidia.com.gpu"),
    "user 0 by hand": ({"security": {"runAsUser": 0}}, "security.runAsUser"),
    "digest cut short": ({"image": {"digest": "sha256:abc"}}, "image.digest"),
    "a dialect for a switch": ({"compat": {"jobstats": "0.2"}}, "compat.jobstats"),
    "unknown profile": ({"metrics": {"profile": "tiny"}}, "metrics.profile"),
    "text for a list": ({"metrics": {"exclude": "honest_gpu_ecc_*"}}, "metrics.exclude"),
    "resource without its domain": ({"collectors": {"kubernetes": {"resourceNames": ["gpu"]}}}, "resourceNames"),
    "relative path": ({"web": {"telemetryPath": "metrics"}}, "web.telemetryPath"),
    "threshold as text": ({"rules": {"thresholds": {"divergence_busy": "high"}}}, "divergence_busy"),
    "certificate in the values": ({"web": {"tls": {"certificate": "-----BEGIN"}}}, "certificate"),
    "dcgm without a hostengine": ({"source": {"type": "dcgm"}}, "dcgm.mode"),
    "hostengine without address": ({"dcgm": {"mode": "hostengine"}}, "dcgm.address"),
    "address without a use": ({"dcgm": {"address": "localhost:5555"}}, "dcgm.address"),
    "exporter without address": ({"source": {"type": "dcgm-exporter"}}, "source.url"),
    "address of no exporter": ({"source": {"url": "http://localhost:9400/metrics"}}, "source.url"),
    "replay of nothing": ({"source": {"type": "replay"}}, "source.path"),
    "workload of a real GPU": ({"source": {"workload": ["tiny-kernels"]}}, "source.workload"),
    "TLS without a certificate": ({"web": {"tls": {"enabled": True}}}, "existingSecret"),
    "certificate without TLS": ({"web": {"tls": {"existingSecret": "x"}}}, "web.tls.enabled"),
    "issuer without a name": ({"web": {"tls": {"enabled": True, "certManager": {"enabled": True}}}}, "issuerRef.name"),
    "password without a file": ({"web": {"basicAuth": True}}, "web.existingConfigSecret"),
    "ServiceMonitor of no Service": (
        {"monitor": {"kind": "ServiceMonitor"}, "service": {"enabled": False}},
        "service.enabled",
    ),
    "two priority classes": ({"priorityClass": {"create": True}, "priorityClassName": "high"}, "priorityClassName"),
    "labels without the API server": (
        api_server(labels=["team"]),
        "labels needs collectors.kubernetes.apiServer.enabled",
    ),
    "UIDs without the API server": (api_server(podUID=True), "podUID needs collectors.kubernetes.apiServer.enabled"),
    "owners without the API server": (api_server(owner=True), "owner needs collectors.kubernetes.apiServer.enabled"),
    "slices without the API server": (
        api_server(resourceSlices=True),
        "resourceSlices needs collectors.kubernetes.apiServer.enabled",
    ),
    "address of an API server that is not asked": (api_server(address="https://10.0.0.1:6443"), "apiServer.address"),
    "API server in clear text": (api_server(enabled=True, address="http://10.0.0.1:8080"), "apiServer.address"),
    "a glob over labels": (api_server(enabled=True, labels=["team-*"]), "apiServer.labels"),
    "a label twice": (api_server(enabled=True, labels=["team", "team"]), "apiServer.labels"),
    "labels that become one": (api_server(enabled=True, labels=["a.b", "a-b"]), "a.b, a-b would become the same"),
    "slices of no pods": (
        {
            "collectors": {
                "kubernetes": {"apiServer": {"enabled": True, "resourceSlices": True}},
                "processes": {"enabled": True},
            }
        },
        "resourceSlices needs collectors.kubernetes.enabled",
    ),
    "an API server for nothing": (
        {"collectors": {"kubernetes": {"apiServer": {"enabled": True}}}},
        "collectors.kubernetes.enabled or collectors.processes.enabled",
    ),
    "rights for everybody's account": (
        {**api_server(enabled=True), "serviceAccount": {"create": False}},
        "needs a service account of its own",
    ),
    "families of processes that are not looked at": (
        {"collectors": {"processes": {"families": True}}},
        "collectors.processes.families needs collectors.processes.enabled",
    ),
    "no process at most": ({"collectors": {"processes": {"enabled": True, "most": 0}}}, "collectors.processes.most"),
    "an address for a block of them": ({"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1"]}}}, "apiServer.cidrs"),
    "unknown threshold": ({"rules": {"enabled": True, "thresholds": {"busy": 1}}}, "rules.thresholds.busy"),
    "unknown alert": ({"rules": {"enabled": True, "disabledAlerts": ["GpuOnFire"]}}, "GpuOnFire"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_values_are_refused_by_name(helm: Helm, name: str) -> None:
    values, named = WRONG[name]
    assert named in helm.refusal(values).replace("/", ".")  # helm 4 writes source/type


def test_all_that_is_wrong_is_said_at_once(helm: Helm) -> None:
    said = helm.refusal({"source": {"type": "dcgm"}, "web": {"basicAuth": True}})
    assert "dcgm.mode" in said
    assert "existingConfigSecret" in said


def sections(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All objects with known keys in the schema."""
    for name, part in schema.get("properties", {}).items():
        if "properties" in part:
            yield f"{path}{name}", part
            yield from sections(part, f"{path}{name}.")


SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def test_the_schema_is_strict_everywhere() -> None:
    assert SCHEMA["additionalProperties"] is False
    loose = [path for path, part in sections(SCHEMA) if part.get("additionalProperties") is not False]
    assert loose == []


def test_every_value_has_a_default_and_a_schema() -> None:
    """Both files have the same keys, else one of them has a value that does nothing."""
    optional = {"", "global", "resources", "security.seLinuxOptions", "monitor.basicAuth"}
    assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()
    for path, part in sections(SCHEMA):
        if path in optional:
            continue
        defaults: Any = VALUES
        for key in path.split("."):
            defaults = defaults[key]
        assert part["properties"].keys() == defaults.keys(), path


def test_every_value_is_used() -> None:
    """A value that no template reads would be accepted and do nothing."""
    templates = "".join(p.read_text() for p in CHART.rglob("templates/**/*") if p.is_file())
    leaves = [(path, key) for path, part in sections(SCHEMA) for key in part["properties"]]
    passed_whole = {
        "resources", "updateStrategy", "web.tls.certManager.issuerRef", "security.seLinuxOptions", "monitor.basicAuth"
    }  # fmt: skip
    unused = [f"{path}.{key}" for path, key in leaves if path not in passed_whole and f".{key}" not in templates]
    assert unused == []
