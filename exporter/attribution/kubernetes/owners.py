"""Who made a pod, as far as the pod itself tells: by its owner reference, and by labels that controllers set.

No other object is read, so that nothing more than pods has to be permitted. Sources: Kubernetes' well-known labels
(pod-template-hash, batch.kubernetes.io); the CronJob controller, which names a Job CRONJOB-MINUTES, the minute since
1970 for which it was scheduled; JobSet, KubeRay, Kubeflow training-operator, Volcano and Kueue, by their API constants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_JOBSET = "jobset.sigs.k8s.io/jobset-name"
_RAY_KIND, _RAY_NAME = "ray.io/originated-from-crd", "ray.io/originated-from-cr-name"
_RAY_CLUSTER = "ray.io/cluster"
_KUBEFLOW_JOB, _KUBEFLOW_OPERATOR = "training.kubeflow.org/job-name", "training.kubeflow.org/operator-name"
_KUBEFLOW_KINDS = {
    "pytorchjob": "PyTorchJob",
    "tfjob": "TFJob",
    "mpijob": "MPIJob",
    "xgboostjob": "XGBoostJob",
    "paddlejob": "PaddleJob",
    "jaxjob": "JAXJob",
}
_VOLCANO_JOB = "volcano.sh/job-name"
_TEMPLATE_HASHES = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
_QUEUES = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name", "volcano.sh/queue-name")
_CRON = re.compile(r"(.+)-(\d{8})")
_CRON_WITHIN = 24 * 60  # minutes between a schedule and its pod: a queue may hold a Job back


class Reference(NamedTuple):
    """The object that controls a pod."""

    api: str = ""  # group/version
    kind: str = ""
    name: str = ""


class Owner(NamedTuple):
    """What a person would call the owner; empty: a pod of its own."""

    kind: str = ""
    name: str = ""


def owner(
    reference: Reference, labels: Mapping[str, str], annotations: Mapping[str, str], created_minute: int | None
) -> Owner:
    """``created_minute``: when the pod was made, in minutes since 1970; None: not known."""
    for found in (_jobset(labels), _ray(labels), _kubeflow(labels), _volcano(reference, labels, annotations)):
        if found is not None:
            return found
    if reference.kind == "ReplicaSet":
        return _of_replica_set(reference.name, labels)
    if reference.kind == "Job":
        return _of_job(reference.name, created_minute)
    return Owner(reference.kind, reference.name)


def queue(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The queue of Kueue or Volcano that let it in; empty: none is named."""
    return next((value for name in _QUEUES if (value := labels.get(name) or annotations.get(name))), "")


def references(metadata: Mapping[str, object]) -> Reference:
    """The controlling owner of an object's metadata; empty where nobody controls it."""
    listed = metadata.get("ownerReferences")
    for each in listed if isinstance(listed, Sequence) else ():
        if isinstance(each, dict) and each.get("controller") is True:
            return Reference(*(str(each.get(key) or "") for key in ("apiVersion", "kind", "name")))
    return Reference()


def _jobset(labels: Mapping[str, str]) -> Owner | None:
    name = labels.get(_JOBSET)
    return Owner("JobSet", name) if name else None


def _ray(labels: Mapping[str, str]) -> Owner | None:
    kind, name, cluster = labels.get(_RAY_KIND), labels.get(_RAY_NAME), labels.get(_RAY_CLUSTER)
    if kind and name:
        return Owner(kind, name)
    return Owner("RayCluster", cluster) if cluster else None


def _kubeflow(labels: Mapping[str, str]) -> Owner | None:
    name, operator = labels.get(_KUBEFLOW_JOB), labels.get(_KUBEFLOW_OPERATOR, "")
    if not name:
        return None
    return Owner(_KUBEFLOW_KINDS.get(operator.removesuffix("-controller"), "TrainingJob"), name)


def _volcano(reference: Reference, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Owner | None:
    name = labels.get(_VOLCANO_JOB) or annotations.get(_VOLCANO_JOB)
    if not name and reference.kind == "Job" and reference.api.startswith("batch.volcano.sh/"):
        name = reference.name
    return Owner("VolcanoJob", name) if name else None


def _of_replica_set(name: str, labels: Mapping[str, str]) -> Owner:
    """A Deployment names its ReplicaSets NAME-HASH, and the hash is on the pod."""
    for label, kind in _TEMPLATE_HASHES.items():
        suffix = f"-{labels.get(label, '')}"
        if len(suffix) > 1 and name.endswith(suffix) and len(name) > len(suffix):
            return Owner(kind, name.removesuffix(suffix))
    return Owner("ReplicaSet", name)


def _of_job(name: str, created_minute: int | None) -> Owner:
    """A CronJob's, where the number in the name is a minute shortly before the pod was made: no other name has that."""
    match = _CRON.fullmatch(name)
    if match and created_minute is not None and 0 <= created_minute - int(match[2]) <= _CRON_WITHIN:
        return Owner("CronJob", match[1])
    return Owner("Job", name)
