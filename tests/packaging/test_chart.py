"""The chart as a whole: it lints, renders for every set of values, and its objects fit together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporter.config.loading import load
from exporter.config.option import Command
from exporter.config.options import DCGM_ADDRESS, METRICS_EXCLUDE, POD_RESOURCES, SOURCE, SOURCE_URL
from exporter.version import VERSION
from tests.packaging.helm import CHART, Helm, Manifest, config_of, container_of, only, pod_of
from tests.packaging.value_sets import VALUE_SETS

pytestmark = pytest.mark.system

NAMES = sorted(VALUE_SETS)


@pytest.fixture(params=NAMES)
def objects(request: pytest.FixtureRequest, helm: Helm) -> list[Manifest]:
    """The chart, rendered with one set of values after the other."""
    return helm.render(VALUE_SETS[request.param])


def test_it_lints(helm: Helm) -> None:
    done = helm.run("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_it_lints_with_values(helm: Helm, name: str) -> None:
    done = helm.run("lint", "--strict", str(CHART), values=VALUE_SETS[name])
    assert done.returncode == 0, done.stdout + done.stderr


def test_versions_are_that_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    semver = VERSION.replace(".dev", "-dev.")  # which helm asks for
    assert (chart["version"], chart["appVersion"]) == (semver, VERSION)


def test_no_object_is_rendered_twice(objects: list[Manifest]) -> None:
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects]
    assert len(set(names)) == len(names)


def test_the_exporter_takes_its_configuration(objects: list[Manifest], tmp_path: Path) -> None:
    """Every key that the chart writes is an option, and its values go together: by the program's own loader."""
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config_of(objects)))
    loaded = load(Command.SERVE, {"config": str(file)}, environment_of(objects))
    assert loaded.warnings == ()


def environment_of(objects: list[Manifest]) -> dict[str, str]:
    """The container's variables, filled in as a kubelet does."""
    fields = {"status.hostIP": "10.0.0.7", "spec.nodeName": "gpu-7.example.org"}
    values = {
        entry["name"]: entry["value"] if "value" in entry else fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        for entry in container_of(objects)["env"]
    }
    return {name: value.replace("$(NODE_IP)", values.get("NODE_IP", "")) for name, value in values.items()}


def settings(helm: Helm, name: str, folder: Path) -> Any:
    rendered = helm.render(VALUE_SETS[name])
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config_of(rendered)))
    return load(Command.SERVE, {"config": str(file)}, environment_of(rendered)).settings


def test_values_arrive_in_the_program(helm: Helm, tmp_path: Path) -> None:
    assert settings(helm, "hostengine-of-the-node", tmp_path)[DCGM_ADDRESS] == "10.0.0.7:5555"
    assert settings(helm, "hostengine-of-the-node", tmp_path)[SOURCE] == "dcgm"
    assert settings(helm, "embedded", tmp_path)[DCGM_ADDRESS] == "embedded"
    assert settings(helm, "dcgm-exporter", tmp_path)[SOURCE_URL].startswith("http://nvidia-dcgm-exporter.")
    assert settings(helm, "small", tmp_path)[METRICS_EXCLUDE] == ("honest_gpu_ecc_*",)
    assert settings(helm, "everything", tmp_path)[POD_RESOURCES] == Path("/var/lib/kubelet/pod-resources/kubelet.sock")


def test_every_volume_is_mounted_and_every_mount_has_one(objects: list[Manifest]) -> None:
    mounts = {mount["name"] for mount in container_of(objects)["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod_of(objects)["volumes"]}


def test_files_are_mounted_as_folders_so_that_they_change(objects: list[Manifest]) -> None:
    for mount in container_of(objects)["volumeMounts"]:
        assert "subPath" not in mount


def test_configuration_is_where_the_program_looks(objects: list[Manifest]) -> None:
    container = container_of(objects)
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert os.path.dirname(container["args"][-1]) in mounts
    for path in web_files(objects):
        assert os.path.dirname(path) in mounts


def web_files(objects: list[Manifest]) -> list[str]:
    """All files that the configuration names."""
    web = config_of(objects)["web"].get("config", {}).get("file")
    named = [web] if web else []
    for own in (o for o in objects if o["kind"] == "ConfigMap" and o["metadata"]["name"].endswith("-web")):
        tls = yaml.safe_load(own["data"]["web.yaml"])["tls_server_config"]
        named += [value for key, value in tls.items() if key.endswith("_file")]
    return named


def test_web_configuration_is_one_that_the_program_takes(helm: Helm, tmp_path: Path) -> None:
    from exporter.web.config_format import read_settings

    text = only(helm.render(VALUE_SETS["mutual-tls"]), "ConfigMap", "-web")["data"]["web.yaml"]
    file = tmp_path / "web.yaml"
    file.write_text(text)
    tls = read_settings(file).tls
    assert tls is not None
    assert tls.client_auth_type == "RequireAndVerifyClientCert"
    assert tls.client_allowed_sans == ("prometheus",)


def test_a_change_of_configuration_makes_new_pods(helm: Helm) -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = only(helm.render(values), "DaemonSet")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    assert checksum({}) != checksum({"log": {"level": "debug"}})
    assert checksum({}) == checksum({"monitor": {"interval": "30s"}})


def test_upgrades_keep_the_selector(objects: list[Manifest]) -> None:
    spec = only(objects, "DaemonSet")["spec"]
    expected = {"app.kubernetes.io/name": "honest-gpu-exporter", "app.kubernetes.io/instance": "gpu"}
    assert spec["selector"] == {"matchLabels": expected}
    assert expected.items() <= spec["template"]["metadata"]["labels"].items()


def test_releases_live_side_by_side(helm: Helm) -> None:
    values = VALUE_SETS["everything"]
    first, second = (helm.render(values, release=name) for name in ("blue", "green"))

    def names(objects: list[Manifest]) -> set[tuple[str, str]]:
        return {(o["kind"], o["metadata"]["name"]) for o in objects}

    assert not names(first) & names(second)
    selectors = [only(o, "DaemonSet")["spec"]["selector"] for o in (first, second)]
    assert selectors[0] != selectors[1]
    other = helm.render(values, release="blue", namespace="elsewhere")  # cluster-wide names differ, too
    for kind in ("PriorityClass", "ClusterRole", "ClusterRoleBinding"):
        assert only(first, kind)["metadata"]["name"] != only(other, kind)["metadata"]["name"]


def test_the_service_finds_pods_and_not_the_test(helm: Helm) -> None:
    rendered = helm.render({})
    selector = only(rendered, "Service")["spec"]["selector"].items()
    assert selector <= only(rendered, "DaemonSet")["spec"]["template"]["metadata"]["labels"].items()
    assert not selector <= only(rendered, "Pod", "-test")["metadata"]["labels"].items()


def test_images(helm: Helm) -> None:
    def image(name: str) -> str:
        return str(container_of(helm.render(VALUE_SETS[name]))["image"])

    assert image("default") == f"honest-gpu-exporter:{VERSION}"
    assert image("hostengine") == image("embedded") == f"honest-gpu-exporter:{VERSION}-dcgm"
    assert image("air-gapped") == f"registry.example.org:5000/mirror/gpu@sha256:{'0' * 64}"


@pytest.fixture
def notes(helm: Helm, tmp_path: Path) -> Callable[[str], str]:
    """What is printed after an installation; helm itself prints it with a cluster only."""
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    text = (chart / "templates" / "NOTES.txt").read_text()
    printed = f'{{{{ define "notes" }}}}{text}{{{{ end }}}}kind: Notes\nmetadata: {{name: notes}}\n'
    (chart / "templates" / "notes.yaml").write_text(printed + 'text: {{ include "notes" . | toJson }}\n')

    def render(name: str) -> str:
        return str(only(Helm(helm.binary, chart).render(VALUE_SETS[name]), "Notes")["text"])

    return render


def test_notes_say_what_is_simulated_and_what_runs_as_root(notes: Callable[[str], str]) -> None:
    assert "SIMULATED" in notes("simulated")
    assert "user 0 with SYS_ADMIN, because" in notes("embedded")
    assert "SIMULATED" not in notes("default")
    assert "because an enabled feature needs it" not in notes("default")
    assert "list and watch pods and resource slices in the whole cluster" in notes("resource-slices")
    assert "token" not in notes("gpu-operator")
    assert "No monitor was created" in notes("air-gapped")
    assert "No monitor was created" not in notes("default")
    for name in NAMES:
        assert "<no value>" not in notes(name)
