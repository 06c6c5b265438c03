"""What a kubelet makes of a rendered DaemonSet on its node: volumes as folders, variables, user, capabilities."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.helm import Manifest, container_of, pod_of

NODE_IP = "127.0.0.1"
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Mount:
    """A folder of the node, and where it lies in the container."""

    source: Path
    target: str
    read_only: bool


@dataclass(frozen=True)
class Order:
    """What a container runtime is asked to run."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    user: int
    group: int
    read_only_root: bool
    dropped: tuple[str, ...]
    added: tuple[str, ...]
    may_gain_privileges: bool
    host_pid: bool
    port: int


class Node:
    """Has Secrets, and folders that stand for those of the host; writes volumes below ``folder``."""

    def __init__(
        self, folder: Path, secrets: Mapping[str, Files] | None = None, host: Mapping[str, Path] | None = None
    ) -> None:
        self._folder = folder
        self._secrets = secrets or {}
        self._host = host or {}

    def order(self, objects: Sequence[Manifest]) -> Order:
        """For the exporter's container of the rendered chart."""
        self._folder.mkdir(exist_ok=True)
        pod, container = pod_of(objects), container_of(objects)
        maps = {o["metadata"]["name"]: o["data"] for o in objects if o["kind"] == "ConfigMap"}
        group = pod["securityContext"].get("fsGroup", 0)
        sources = {volume["name"]: self._volume(volume, maps, group) for volume in pod["volumes"]}
        context = container["securityContext"]
        return Order(
            arguments=tuple(container["args"]),
            environment={entry["name"]: entry.get("value", NODE_IP) for entry in container["env"]},
            mounts=tuple(
                Mount(sources[mount["name"]], mount["mountPath"], mount.get("readOnly", False))
                for mount in container["volumeMounts"]
            ),
            user=pod["securityContext"]["runAsUser"],
            group=pod["securityContext"]["runAsGroup"],
            read_only_root=context["readOnlyRootFilesystem"],
            dropped=tuple(context["capabilities"]["drop"]),
            added=tuple(context["capabilities"].get("add", ())),
            may_gain_privileges=context["allowPrivilegeEscalation"],
            host_pid=pod.get("hostPID", False),
            port=container["ports"][0]["containerPort"],
        )

    def _volume(self, volume: Manifest, maps: Mapping[str, Mapping[str, str]], group: int) -> Path:
        if "hostPath" in volume:
            return self._host[volume["hostPath"]["path"]]
        target = self._folder.joinpath(volume["name"])
        if "configMap" in volume:
            files = {key: text.encode() for key, text in maps[volume["configMap"]["name"]].items()}
            project(target, files, 0o644, group)
        elif "secret" in volume:
            project(target, self._secrets[volume["secret"]["secretName"]], volume["secret"]["defaultMode"], group)
        else:
            target.mkdir()
            target.chmod(0o777)
        return target


def project(target: Path, files: Files, mode: int, group: int) -> None:
    """Write or replace a volume as a kubelet does: all files change at once, by one link (its atomic writer)."""
    target.mkdir(exist_ok=True)
    target.chmod(0o755)
    generation = target / f"..{len(list(target.iterdir()))}"
    generation.mkdir()
    generation.chmod(0o755)
    for name, content in files.items():
        file = generation / name
        file.write_bytes(content)
        file.chmod(mode)
        if os.geteuid() == 0:
            os.chown(file, 0, group)
        if not (target / name).is_symlink():
            (target / name).symlink_to(f"..data/{name}")
    fresh = target / "..data_tmp"
    fresh.symlink_to(generation.name)
    fresh.replace(target / "..data")
