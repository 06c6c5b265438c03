"""The API server: what the switch brings with it, exactly, and nothing of it without."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporter.attribution.holdings import AttributionError
from exporter.attribution.kubernetes.api_server import ApiServer
from exporter.attribution.kubernetes.credentials import CA, TOKEN
from exporter.attribution.kubernetes.slices import PATHS as SLICES_PATHS
from exporter.cli.attribution import build_attribution
from exporter.config.loading import load
from exporter.config.option import Command
from exporter.config.options import (
    API_CA,
    API_SERVER,
    API_TOKEN,
    NODE_NAME,
    POD_LABELS,
    POD_OWNER,
    POD_UID,
    PROCESS_FAMILIES,
    PROCESS_MOST,
    RESOURCE_SLICES,
)
from exporter.config.settings import Settings
from tests.attribution.kubernetes.api_double import Collection, api_server
from tests.end_to_end.processes import wait_for
from tests.packaging.helm import Helm, Manifest, config_of, container_of, only, pod_of
from tests.packaging.test_chart import environment_of
from tests.packaging.value_sets import VALUE_SETS

pytestmark = pytest.mark.system

NAMES = sorted(VALUE_SETS)
RIGHTS = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
SLICES = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list", "watch"]}


def switched_on(name: str) -> bool:
    values: Any = VALUE_SETS[name]
    return bool(values.get("collectors", {}).get("kubernetes", {}).get("apiServer", {}).get("enabled"))


OFF = [name for name in NAMES if not switched_on(name)]
ON = [name for name in NAMES if switched_on(name)]


def settings(objects: list[Manifest], folder: Path, flags: Mapping[str, str] | None = None) -> Settings:
    """As the program loads them in the rendered pod. ``flags``: in addition."""
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config_of(objects)))
    loaded = load(Command.SERVE, {"config": str(file), **(flags or {})}, environment_of(objects))
    assert loaded.warnings == ()
    return loaded.settings


def tokens(objects: list[Manifest]) -> list[Manifest]:
    """Volumes that bring a token."""
    return [
        volume
        for volume in pod_of(objects)["volumes"]
        if any("serviceAccountToken" in source for source in volume.get("projected", {}).get("sources", ()))
    ]


@pytest.mark.parametrize("name", OFF)
def test_without_it_there_is_no_token_and_no_right(helm: Helm, name: str) -> None:
    objects = helm.render(VALUE_SETS[name])
    of_openshift = [o for o in objects if o["metadata"]["name"].endswith("-scc")]
    assert [o for o in objects if o["kind"] in RIGHTS and o not in of_openshift] == []
    assert tokens(objects) == []
    assert "serviceaccount" not in str(container_of(objects)["volumeMounts"])
    accounts = [o for o in objects if o["kind"] == "ServiceAccount"]
    assert [o["automountServiceAccountToken"] for o in accounts] == [False] * len(accounts)


@pytest.mark.parametrize("name", ON)
def test_with_it_the_pod_has_a_short_lived_token_where_the_program_looks(helm: Helm, name: str, tmp_path: Path) -> None:
    objects = helm.render(VALUE_SETS[name])
    (volume,) = tokens(objects)
    (mount,) = [m for m in container_of(objects)["volumeMounts"] if m["name"] == volume["name"]]
    assert mount["readOnly"] is True
    token, authority = volume["projected"]["sources"]
    assert token == {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}  # audience: the API server
    assert authority["configMap"]["name"] == "kube-root-ca.crt"  # which is in every namespace
    found = settings(objects, tmp_path)
    assert Path(mount["mountPath"]) / token["serviceAccountToken"]["path"] == found[API_TOKEN] == TOKEN
    assert Path(mount["mountPath"]) / authority["configMap"]["items"][0]["path"] == found[API_CA] == CA


@pytest.mark.parametrize("name", ON)
def test_the_right_is_to_list_and_watch_and_nothing_else(helm: Helm, name: str) -> None:
    objects = helm.render(VALUE_SETS[name])
    values: Any = VALUE_SETS[name]
    slices = values["collectors"]["kubernetes"]["apiServer"].get("resourceSlices", False)
    role, binding = only(objects, "ClusterRole"), only(objects, "ClusterRoleBinding")
    assert role["rules"] == ([PODS, SLICES] if slices else [PODS])
    assert "aggregationRule" not in role
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": role["metadata"]["name"],
    }
    account = {"kind": "ServiceAccount", "name": pod_of(objects)["serviceAccountName"], "namespace": "monitoring"}
    assert binding["subjects"] == [account]
    assert account["name"] != "default"


def permitted(objects: list[Manifest]) -> set[tuple[str, str, str]]:
    """(API group, resource, verb) of the role."""
    rules = only(objects, "ClusterRole")["rules"]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def wanted(path: str, query: Mapping[str, str]) -> tuple[str, str, str]:
    """What an API server checks a question for."""
    parts = path.strip("/").split("/")
    return (parts[1] if parts[0] == "apis" else "", parts[-1], "watch" if "watch" in query else "list")


def test_the_right_is_what_the_program_uses(helm: Helm, tmp_path: Path) -> None:
    """All of it is used, and nothing else is asked for: by a program that runs with the chart's configuration."""
    pytest.importorskip("grpc", reason="the extra [kubernetes] is not installed")
    with api_server(tmp_path) as api:
        api.collections[SLICES_PATHS[0]] = Collection()
        switches = {"enabled": True, "address": api.url, "resourceSlices": True}
        objects = helm.render({"collectors": {"kubernetes": {"apiServer": switches, "enabled": True}}})
        files = {"kubernetes.token-file": str(api.credentials.token), "kubernetes.ca-file": str(api.credentials.ca)}
        stage = build_attribution(settings(objects, tmp_path, files))
        assert stage is not None
        stage.start()
        try:
            wait_for(lambda: {wanted(*each) for each in api.asked} == permitted(objects), "questions and rights agree")
        finally:
            stage.stop(5.0)
        assert {query["fieldSelector"].split(",")[0] for _, query in api.asked} == {"spec.nodeName=gpu-7.example.org"}
        assert {wanted(*each) for each in api.asked} == permitted(objects)


def test_the_remedy_of_a_refusal_is_what_the_chart_does(tmp_path: Path) -> None:
    with api_server(tmp_path) as api:
        api.refuse = 403
        for path, rule in (("/api/v1/pods", PODS), *((path, SLICES) for path in SLICES_PATHS)):
            with pytest.raises(AttributionError, match="403") as caught:
                ApiServer("127.0.0.1", api.port, api.credentials).list(path, "")
            remedy = caught.value.remedy
            assert yaml.safe_load(remedy[remedy.index("{") : remedy.rindex("}") + 1]) == rule
            assert "collectors.kubernetes.apiServer.enabled" in remedy


@pytest.mark.parametrize("name", NAMES)
def test_the_program_builds_what_the_chart_asks_for(
    helm: Helm, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that go together in the chart go together in the program. Nothing is connected to yet."""
    pytest.importorskip("grpc", reason="the extra [kubernetes] is not installed")
    objects = helm.render(VALUE_SETS[name])
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")  # a kubelet sets it, also without enableServiceLinks
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    asked = any(config_of(objects)["collector"][name] for name in ("kubernetes", "processes", "slurm"))
    assert (build_attribution(settings(objects, tmp_path)) is not None) == asked


def test_values_arrive_in_the_program(helm: Helm, tmp_path: Path) -> None:
    found = settings(helm.render(VALUE_SETS["api-server"]), tmp_path)
    assert found[API_SERVER] == "in-cluster"
    assert found[NODE_NAME] == "gpu-7.example.org"
    assert found[POD_LABELS] == ("team", "app.kubernetes.io/name")
    assert (found[POD_UID], found[POD_OWNER], found[RESOURCE_SLICES]) == (True, True, False)
    found = settings(helm.render(VALUE_SETS["resource-slices"]), tmp_path)
    assert found[API_SERVER] == "https://kube.example.org:16443"
    assert (found[POD_LABELS], found[POD_UID], found[POD_OWNER], found[RESOURCE_SLICES]) == ((), False, False, True)
    found = settings(helm.render(VALUE_SETS["single-processes"]), tmp_path)
    assert (found[PROCESS_FAMILIES], found[PROCESS_MOST]) == (True, 16)
    assert settings(helm.render({}), tmp_path)[API_SERVER] == ""
    assert settings(helm.render(VALUE_SETS["processes"]), tmp_path)[PROCESS_FAMILIES] is False


def test_the_network_policy_lets_it_out_to_the_api_server(helm: Helm) -> None:
    def egress(values: Any) -> list[Manifest]:
        rules: list[Manifest] = only(helm.render(values), "NetworkPolicy")["spec"]["egress"]
        return rules

    def ports(rule: Manifest) -> list[int]:
        return [port["port"] for port in rule["ports"]]

    (rule,) = egress(VALUE_SETS["api-server"])
    assert ports(rule) == [443, 6443]  # the Service, and what is behind it: policies see the one or the other
    assert rule["to"] == [{"ipBlock": {"cidr": "10.96.0.1/32"}}, {"ipBlock": {"cidr": "192.0.2.0/28"}}]
    names, rule = egress(VALUE_SETS["resource-slices"])
    assert (ports(names), ports(rule)) == ([53, 53], [16443])
    assert "to" not in rule
    without_port = {
        "collectors": {
            "kubernetes": {"enabled": True, "apiServer": {"enabled": True, "address": "https://kube.example.org"}}
        },
        "networkPolicy": {"enabled": True},
    }
    assert ports(egress(without_port)[1]) == [443]
    both = {**VALUE_SETS["api-server"], **VALUE_SETS["hostengine"]}
    assert [ports(rule) for rule in egress(both)] == [[53, 53], [5555], [443, 6443]]
