"""Every rendered object against the schemas of Kubernetes and of the Prometheus operator."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.data import HERE
from tests.packaging.helm import Helm, Manifest
from tests.packaging.value_sets import VALUE_SETS

pytestmark = pytest.mark.system

VERSIONS = ("1.25", "1.31", "1.34")
NAMES = sorted(VALUE_SETS)
FOREIGN = ("monitoring.coreos.com/", "cert-manager.io/")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_every_object(helm: Helm, name: str, version: str) -> None:
    checker = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate (PyPI) is not installed")
    for manifest in helm.render(VALUE_SETS[name]):
        if not manifest["apiVersion"].startswith(FOREIGN):
            checker.validate(manifest, version, strict=True)


def test_the_check_would_notice(helm: Helm) -> None:
    checker = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate (PyPI) is not installed")
    (daemonset,) = [o for o in helm.render({}) if o["kind"] == "DaemonSet"]
    daemonset["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(checker.ValidationError):
        checker.validate(daemonset, VERSIONS[0], strict=True)


def closed(schema: Any) -> Any:
    """The schema without room for unknown fields, which the API server would drop silently."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if isinstance(made.get("pattern"), str):
        made["pattern"] = made["pattern"].replace("^(?i)", "(?i)^")  # Go takes the flag anywhere, Python in front only
    if "properties" in made and isinstance(made["properties"], dict) and "additionalProperties" not in made:
        made["additionalProperties"] = False
    return made


def crd_schemas() -> dict[str, Any]:
    """Kind -> schema of its spec, from the operator's own definitions."""
    found: dict[str, Any] = json.loads((HERE / "operator.json").read_text())
    return {kind: closed(schema) for kind, schema in found.items()}


def operator_objects(helm: Helm) -> list[Manifest]:
    """All objects of the operator over all sets of values, each as PodMonitor and as ServiceMonitor."""
    found: list[Manifest] = []
    for values in VALUE_SETS.values():
        for kind in ("PodMonitor", "ServiceMonitor"):
            changed = copy.deepcopy(dict(values))
            changed["monitor"] = {**changed.get("monitor", {}), "kind": kind}
            changed["service"] = {"enabled": True}
            objects = helm.render(changed)
            found += [o for o in objects if o["apiVersion"].startswith("monitoring.coreos.com/")]
    return found


def test_the_operator_takes_monitors_and_rules(helm: Helm) -> None:
    checker = pytest.importorskip("jsonschema", reason="jsonschema (PyPI) is not installed")
    schemas = crd_schemas()
    objects = operator_objects(helm)
    assert {o["kind"] for o in objects} == {"PodMonitor", "ServiceMonitor", "PrometheusRule"}
    for manifest in objects:
        checker.validate(manifest["spec"], schemas[manifest["kind"]])


def test_the_operators_check_would_notice(helm: Helm) -> None:
    checker = pytest.importorskip("jsonschema", reason="jsonschema (PyPI) is not installed")
    (monitor,) = [o for o in helm.render({}) if o["kind"] == "PodMonitor"]
    monitor["spec"]["podMetricsEndpoints"][0]["honourLabels"] = True
    with pytest.raises(checker.ValidationError):
        checker.validate(monitor["spec"], crd_schemas()["PodMonitor"])
