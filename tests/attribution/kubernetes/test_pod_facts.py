"""What is kept of a pod: whether it has ended, its names, its labels, its owner."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.kubernetes.owners import Owner
from exporter.attribution.kubernetes.pod_facts import PodFacts, Wanted, label_names, pod_facts
from tests.attribution.kubernetes.api_objects import CONTAINER, UID, api_pod


def facts(pod: dict[str, Any], wanted: Wanted | None = None) -> PodFacts:
    found = pod_facts(pod, wanted or Wanted())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("pod", "holds"),
    [
        (api_pod("p", phase="Running"), True),
        (api_pod("p", phase="Pending"), True),
        (api_pod("p", phase="Unknown"), True),  # the node cannot be asked: nothing says that it ended
        (api_pod("p", phase="Succeeded"), False),
        (api_pod("p", phase="Failed"), False),
        (api_pod("p", deleted=True), True),  # it is being deleted, and still runs
        (api_pod("p", deleted=True, phase="Succeeded"), False),
    ],
)
def test_a_pod_holds_until_it_has_ended(pod: dict[str, Any], holds: bool) -> None:
    assert facts(pod).holds("main") is holds


@pytest.mark.parametrize(
    ("policy", "code", "holds"),
    [
        ("Never", 0, False),
        ("Never", 1, False),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),  # it is started again
        ("Always", 0, True),
        ("Always", 137, True),
    ],
)
def test_a_container_holds_until_it_is_not_started_again(policy: str, code: int, holds: bool) -> None:
    found = facts(api_pod("p", "main", "sidecar", policy=policy, terminated={"main": code}))
    assert found.holds("main") is holds
    assert found.holds("sidecar")


def test_a_container_may_have_a_policy_of_its_own() -> None:
    pod = api_pod("p", "main", policy="Never", terminated={"main": 1})
    pod["spec"]["containers"][0]["restartPolicy"] = "Always"
    assert facts(pod).holds("main")
    pod["spec"]["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}
    assert facts(pod).holds("main")


def test_init_containers_end_with_their_success() -> None:
    pod = api_pod("p")
    pod["spec"]["initContainers"] = [{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}]
    ended = {"terminated": {"exitCode": 0}}
    pod["status"]["initContainerStatuses"] = [{"name": "fetch", "state": ended}, {"name": "proxy", "state": ended}]
    found = facts(pod)
    assert (found.holds("fetch"), found.holds("proxy"), found.holds("main")) == (False, True, True)


def test_names_by_which_control_groups_know_it() -> None:
    pod = api_pod("p", "a", "b", number=3)
    found = facts(pod)
    assert found.uids == (UID.format(3),)
    assert found.containers == {CONTAINER.format(48): "a", CONTAINER.format(49): "b"}
    assert found.only == ""
    assert facts(api_pod("p", "a")).only == "a"
    static = api_pod("p", annotations={"kubernetes.io/config.hash": "5f1e0c1b0a"})
    assert facts(static).uids == (UID.format(1), "5f1e0c1b0a")


def test_the_run_before_is_known_by_its_id() -> None:
    pod = api_pod("p", "a")
    pod["status"]["containerStatuses"][0]["lastState"] = {"terminated": {"containerID": "cri-o://abc", "exitCode": 1}}
    assert facts(pod).containers["abc"] == "a"


def test_nothing_is_told_that_nobody_asked_for() -> None:
    pod = api_pod("p", labels={"team": "vision"}, owner=("apps/v1", "StatefulSet", "web"))
    assert facts(pod).labels == {}


def test_labels_by_an_allow_list() -> None:
    wanted = Wanted(label_names(["team", "app.kubernetes.io/name", "absent"]), uid=True)
    pod = api_pod("p", labels={"team": "vision", "app.kubernetes.io/name": "train", "secret": "x"})
    assert facts(pod, wanted).labels == {
        "label_team": "vision",
        "label_app_kubernetes_io_name": "train",
        "pod_uid": UID.format(1),
    }
    assert facts(api_pod("p", labels={"team": "x" * 200}), wanted).labels == {"pod_uid": UID.format(1)}


def test_two_labels_never_become_one() -> None:
    with pytest.raises(ValueError, match=r"a\.b and a-b would both become label_a_b"):
        label_names(["a.b", "a-b"])


def created_minute() -> int:
    import datetime

    return int(datetime.datetime(2026, 12, 1, 10, 0, tzinfo=datetime.timezone.utc).timestamp()) // 60


OWNERS: dict[str, tuple[dict[str, Any], Owner]] = {
    "nobody": ({}, Owner()),
    "DaemonSet": ({"owner": ("apps/v1", "DaemonSet", "agent")}, Owner("DaemonSet", "agent")),
    "Deployment": (
        {"owner": ("apps/v1", "ReplicaSet", "web-5d4f"), "labels": {"pod-template-hash": "5d4f"}},
        Owner("Deployment", "web"),
    ),
    "Rollout": (
        {"owner": ("apps/v1", "ReplicaSet", "web-5d4f"), "labels": {"rollouts-pod-template-hash": "5d4f"}},
        Owner("Rollout", "web"),
    ),
    "ReplicaSet of its own": ({"owner": ("apps/v1", "ReplicaSet", "web-5d4f")}, Owner("ReplicaSet", "web-5d4f")),
    "ReplicaSet with another hash": (
        {"owner": ("apps/v1", "ReplicaSet", "web-5d4f"), "labels": {"pod-template-hash": "4f"}},
        Owner("ReplicaSet", "web-5d4f"),
    ),
    "Job": ({"owner": ("batch/v1", "Job", "train")}, Owner("Job", "train")),
    "Job with a date": ({"owner": ("batch/v1", "Job", "train-20261201")}, Owner("Job", "train-20261201")),
    "CronJob": ({"owner": ("batch/v1", "Job", f"nightly-{created_minute() - 3}")}, Owner("CronJob", "nightly")),
    "Job with a minute to come": (
        {"owner": ("batch/v1", "Job", f"nightly-{created_minute() + 3}")},
        Owner("Job", f"nightly-{created_minute() + 3}"),
    ),
    "JobSet": (
        {"owner": ("batch/v1", "Job", "llm-workers-0"), "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"}},
        Owner("JobSet", "llm"),
    ),
    "RayCluster": (
        {"owner": ("ray.io/v1", "RayCluster", "tune-x"), "labels": {"ray.io/cluster": "tune-x"}},
        Owner("RayCluster", "tune-x"),
    ),
    "RayJob": (
        {
            "labels": {
                "ray.io/cluster": "tune-x",
                "ray.io/originated-from-crd": "RayJob",
                "ray.io/originated-from-cr-name": "tune",
            }
        },
        Owner("RayJob", "tune"),
    ),
    "Kubeflow": (
        {
            "owner": ("kubeflow.org/v1", "PyTorchJob", "bert"),
            "labels": {
                "training.kubeflow.org/job-name": "bert",
                "training.kubeflow.org/operator-name": "pytorchjob-controller",
            },
        },
        Owner("PyTorchJob", "bert"),
    ),
    "Volcano": (
        {"owner": ("batch.volcano.sh/v1alpha1", "Job", "mpi"), "labels": {"volcano.sh/job-name": "mpi"}},
        Owner("VolcanoJob", "mpi"),
    ),
}


@pytest.mark.parametrize("name", OWNERS)
def test_owners(name: str) -> None:
    given_, expected = OWNERS[name]
    labels = facts(api_pod("p", **given_), Wanted(owner=True)).labels
    assert Owner(labels.get("owner_kind", ""), labels.get("owner_name", "")) == expected


def test_queues() -> None:
    pod = api_pod("p", labels={"kueue.x-k8s.io/queue-name": "research"})
    assert facts(pod, Wanted(owner=True)).labels == {"queue": "research"}


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
keys = st.sampled_from(
    ["name", "uid", "labels", "ownerReferences", "containers", "containerStatuses", "state", "phase"]
)
parts = st.dictionaries(keys, json | st.lists(st.dictionaries(keys, json, max_size=3), max_size=2), max_size=5)


def test_values_of_any_type_do_no_harm() -> None:
    pod = api_pod("p", terminated={"main": 0}, owner=(None, [], {}), labels={"team": ["a"]})
    pod["spec"] |= {"containers": [{"name": ["main"]}, 1], "initContainers": {}, "restartPolicy": []}
    pod["status"]["phase"] = ["Failed"]
    pod["metadata"]["creationTimestamp"] = 7
    assert facts(pod, Wanted(label_names(["team"]), owner=True)).holds("main")


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), parts | json))
def test_any_object_is_a_pod_or_none(document: dict[str, Any]) -> None:
    found = pod_facts(document, Wanted(label_names(["team"]), uid=True, owner=True))
    assert found is None or isinstance(found.holds("main"), bool)
