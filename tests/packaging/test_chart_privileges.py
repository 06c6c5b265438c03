"""Least privilege: what the chart asks for by default, and what each feature adds to it, exactly."""

from __future__ import annotations

from typing import Any

import pytest

from tests.packaging.helm import Helm, Manifest, container_of, only, pod_of
from tests.packaging.value_sets import VALUE_SETS

pytestmark = pytest.mark.system

NAMES = sorted(VALUE_SETS)
HOST_NAMESPACES = ("hostPID", "hostIPC", "hostNetwork")


def privileges(objects: list[Manifest]) -> dict[str, Any]:
    """What this pod may do beyond a restricted one."""
    pod, container = pod_of(objects), container_of(objects)
    inner = container["securityContext"]
    found: dict[str, Any] = {name: True for name in HOST_NAMESPACES if pod.get(name)}
    if not pod["securityContext"]["runAsNonRoot"]:
        found["user"] = pod["securityContext"]["runAsUser"]
    if inner["capabilities"].get("add"):
        found["capabilities"] = inner["capabilities"]["add"]
    folders = [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]
    if folders:
        found["folders"] = folders
    return found


@pytest.mark.parametrize("name", NAMES)
def test_hardening_never_leaves(helm: Helm, name: str) -> None:
    objects = helm.render(VALUE_SETS[name])
    for pod in (pod_of(objects), *(o["spec"] for o in objects if o["kind"] == "Pod")):
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["privileged"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"]["drop"] == ["ALL"]


@pytest.mark.parametrize("name", NAMES)
def test_no_gpu_is_ever_taken_away(helm: Helm, name: str) -> None:
    resources = container_of(helm.render(VALUE_SETS[name]))["resources"]
    asked = {key for part in resources.values() for key in part or ()}
    assert asked <= {"cpu", "memory"}


@pytest.mark.parametrize("name", NAMES)
def test_host_folders_are_read_only(helm: Helm, name: str) -> None:
    objects = helm.render(VALUE_SETS[name])
    host = {volume["name"] for volume in pod_of(objects)["volumes"] if "hostPath" in volume}
    for mount in container_of(objects)["volumeMounts"]:
        assert mount["name"] not in host or mount["readOnly"] is True


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_made(helm: Helm, name: str) -> None:
    assert not [o for o in helm.render(VALUE_SETS[name]) if o["kind"] == "Secret"]


def test_by_default_there_is_none(helm: Helm) -> None:
    objects = helm.render({})
    assert privileges(objects) == {}
    assert pod_of(objects)["securityContext"]["runAsUser"] == 65534
    assert not [o for o in objects if "Role" in o["kind"]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"collectors": {"processes": {"enabled": True}}}, {"hostPID": True}),
        (
            {"collectors": {"kubernetes": {"enabled": True}}},
            {"user": 0, "folders": ["/var/lib/kubelet/pod-resources"]},
        ),
        ({"collectors": {"host": {"processIo": True}}}, {"user": 0, "capabilities": ["SYS_PTRACE"]}),
        ({"collectors": {"slurm": {"enabled": True}}}, {"folders": ["/run/honest-gpu-exporter/jobs"]}),
        ({"profiling": {"sysAdmin": True}}, {"user": 0, "capabilities": ["SYS_ADMIN"]}),
        ({"profiling": {"migMonitor": True}}, {"user": 0, "capabilities": ["SYS_ADMIN"]}),
        ({"profiling": {"sysAdmin": True, "migMonitor": True}}, {"user": 0, "capabilities": ["SYS_ADMIN"]}),
        ({"dcgm": {"mode": "embedded"}}, {}),
        ({"dcgm": {"mode": "hostengine", "address": "localhost:5555"}}, {}),
        ({"source": {"type": "dcgm-exporter", "url": "http://x/metrics"}}, {}),
        ({"hostNetwork": True}, {"hostNetwork": True}),
    ],
)
def test_each_privilege_comes_with_its_feature_alone(
    helm: Helm, values: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert privileges(helm.render(values)) == expected


def test_the_driver_is_mounted_where_it_is_read(helm: Helm) -> None:
    def variables(name: str) -> dict[str, str]:
        return {entry["name"]: entry.get("value", "") for entry in container_of(helm.render(VALUE_SETS[name]))["env"]}

    assert variables("default")["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert variables("default")["NVIDIA_DRIVER_CAPABILITIES"] == "utility"
    assert variables("dcgm-exporter")["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert variables("mig")["NVIDIA_MIG_MONITOR_DEVICES"] == "all"
    assert "NVIDIA_MIG_MONITOR_DEVICES" not in variables("default")


def test_on_openshift_the_platform_chooses_ids(helm: Helm) -> None:
    context = pod_of(helm.render({"security": {"assignIds": False}}))["securityContext"]
    assert not {"runAsUser", "runAsGroup", "fsGroup"} & context.keys()
    objects = helm.render(VALUE_SETS["openshift"])
    assert pod_of(objects)["securityContext"]["runAsUser"] == 0  # the kubelet's socket is root's
    binding = only(objects, "RoleBinding")
    assert binding["roleRef"]["name"] == "system:openshift:scc:honest-gpu-exporter"
    assert binding["subjects"][0]["name"] == pod_of(objects)["serviceAccountName"]


def test_large_ids_stay_whole_numbers(helm: Helm) -> None:
    """Helm reads numbers as floating point: 1000680000 must not become 1.00068e+09."""
    context = pod_of(helm.render({"security": {"runAsUser": 1000680000, "runAsGroup": 1000680000}}))["securityContext"]
    assert repr([context["runAsUser"], context["fsGroup"]]) == "[1000680000, 1000680000]"


def test_secrets_are_readable_for_the_pod_only(helm: Helm) -> None:
    for name in ("tls-and-password", "mutual-tls"):
        secrets = [v["secret"] for v in pod_of(helm.render(VALUE_SETS[name]))["volumes"] if "secret" in v]
        assert secrets
        assert {secret["defaultMode"] for secret in secrets} == {0o440}


def test_the_network_policy_lets_in_the_scrape_and_out_what_the_source_needs(helm: Helm) -> None:
    def policy(name: str) -> Manifest:
        found: Manifest = only(helm.render(VALUE_SETS[name]), "NetworkPolicy")["spec"]
        return found

    closed = only(helm.render({"networkPolicy": {"enabled": True}}), "NetworkPolicy")["spec"]
    assert closed["egress"] == []
    assert closed["ingress"] == [{"ports": [{"port": "metrics", "protocol": "TCP"}]}]
    assert 5555 in ports(policy("hostengine"))
    assert 9400 in ports(policy("dcgm-exporter"))
    assert policy("dcgm-exporter")["ingress"][0]["from"]
    plain = {"source": {"type": "dcgm-exporter", "url": "https://x/metrics"}, "networkPolicy": {"enabled": True}}
    assert 443 in ports(only(helm.render(plain), "NetworkPolicy")["spec"])


def ports(policy: Manifest) -> set[int]:
    return {port["port"] for rule in policy["egress"] for port in rule["ports"]}
