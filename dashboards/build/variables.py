"""What can be chosen at the top of the dashboards, and links that carry it on.

*All* is ``.*``: it also matches series without the label, so all works where there is no cluster, no pod or no job.
"""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

from dashboards.build.promql import CLUSTER

Variable = dashboard.QueryVariable | dashboard.DatasourceVariable

_CARRIED = "${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"


def data_source() -> dashboard.DatasourceVariable:
    """Which Prometheus is asked."""
    return dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")


def _choice(name: str, label: str, series: str, of: str, says: str) -> dashboard.QueryVariable:
    query = {
        "qryType": 1,
        "query": f"label_values({series}, {of})",
        "refId": "PrometheusVariableQueryEditor-VariableQuery",
    }
    made = dashboard.QueryVariable(name).label(label).description(says).query(query)
    made.datasource(model.DataSourceRef(type_val="prometheus", uid="${datasource}"))
    return made.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)


def _several(made: dashboard.QueryVariable) -> dashboard.QueryVariable:
    made.multi(True).include_all(True).all_value(".*")
    return made.current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))


def cluster() -> dashboard.QueryVariable:
    """An external or target label; there is none in a set-up with one cluster."""
    return _several(
        _choice("cluster", "Cluster", "honest_gpu_info", "cluster", "Only All if no series has a cluster label.")
    )


def gpu_model() -> dashboard.QueryVariable:
    """By the driver's name of the model."""
    return _several(
        _choice("model", "Model", f"honest_gpu_info{{{CLUSTER}}}", "model", "The driver's name of the GPU model.")
    )


def nodes() -> dashboard.QueryVariable:
    """Several scrape targets."""
    return _several(
        _choice(
            "node", "Node", f"honest_gpu_build_info{{{CLUSTER}}}", "instance", "The scrape target: the label instance."
        )
    )


def one_node() -> dashboard.QueryVariable:
    """One scrape target."""
    series = f'honest_gpu_info{{{CLUSTER}, model=~"$model"}}'
    made = _choice(
        "node", "Node", series, "instance", "The scrape target (label instance), with a GPU of the selected model."
    )
    return made.multi(False).include_all(False)


def gpus() -> dashboard.QueryVariable:
    """GPUs of the node, by the driver's index."""
    series = f'honest_gpu_info{{{CLUSTER}, instance="$node", model=~"$model"}}'
    made = _choice("gpu", "GPU", series, "gpu", "The driver's index; includes the instances of a GPU.")
    return _several(made.sort(model.VariableSort.NUMERICAL_ASC))


def namespace() -> dashboard.QueryVariable:
    """Namespaces of pods that hold GPUs."""
    return _several(
        _choice(
            "namespace",
            "Namespace",
            f"honest_gpu_allocation_info{{{CLUSTER}}}",
            "namespace",
            "Namespaces of pods that hold a GPU.",
        )
    )


def pod() -> dashboard.QueryVariable:
    """Pods that hold GPUs."""
    series = f'honest_gpu_allocation_info{{{CLUSTER}, namespace=~"$namespace"}}'
    return _several(_choice("pod", "Pod", series, "pod", "Pods that hold a GPU."))


def job() -> dashboard.QueryVariable:
    """Slurm jobs that hold GPUs."""
    series = f"honest_gpu_allocation_info{{{CLUSTER}}}"
    made = _choice("job_id", "Job", series, "job_id", "Slurm jobs that hold a GPU.")
    return _several(made.sort(model.VariableSort.NUMERICAL_ASC))


def holding_nodes() -> dashboard.QueryVariable:
    """The nodes of the chosen holders. *All* is those nodes here, not ``.*``: no other node's series are read."""
    series = f'honest_gpu_allocation_info{{{CLUSTER}, namespace=~"$namespace", pod=~"$pod", job_id=~"$job_id"}}'
    made = _choice("node", "Node", series, "instance", "The nodes whose GPUs the selection holds.").multi(True)
    return made.include_all(True).current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))


@dataclass(frozen=True, slots=True)
class Link:
    """From a cell of a table to a dashboard; the time range, the data source and the cluster go along."""

    title: str
    url: str


def to_node(choice: str) -> Link:
    """To one node. ``choice``: parameters that name it, such as var-node=10.0.0.7:9836."""
    return Link("Node and GPU", f"/d/honest-gpu-node?{choice}&{_CARRIED}")


def to_workload(choice: str) -> Link:
    """To one workload. ``choice``: parameters that name it, such as var-namespace=ml."""
    return Link("Workload", f"/d/honest-gpu-workload?{choice}&{_CARRIED}")
