"""What a page without GPUs looks like, for the person who gave its URL."""

from __future__ import annotations

from collections.abc import Sequence

from exporter.model import SourceError
from exporter.sources.scrape.identity import is_elsewhere, is_gpu_family
from exporter.sources.scrape.text import Exposition

_ELSEWHERE = "use the URL of dcgm-exporter; it listens on port 9400 by default"
# prefix of a name -> what the page is, what to do
_LOOKS: Sequence[tuple[str, str, str]] = (
    ("honest_gpu_", "it is a page of this exporter itself", _ELSEWHERE),
    ("node_", "it looks like node_exporter's", _ELSEWHERE),
    ("nvidia_smi_", "it looks like nvidia_gpu_exporter's", _ELSEWHERE),
    ("nvidia_gpu_", "it looks like nvidia_gpu_prometheus_exporter's", _ELSEWHERE),
    (
        "DCGM_",
        "it is dcgm-exporter's, but only covers switches, links or CPUs",
        "configure dcgm-exporter to monitor GPUs: -d f or -d g",
    ),
    ("dcgm_", "it looks like dcgm-exporter 1's, whose metric names are not supported", "use dcgm-exporter 2 or later"),
    ("prometheus_", "it looks like a Prometheus server's own", _ELSEWHERE),
)


def no_gpus(url: object, exposition: Exposition) -> SourceError:
    """The error to raise when no sample names a GPU."""
    samples = exposition.samples
    if not samples:
        lines = exposition.unparseable
        why = f"none of its {lines} lines is a sample" if lines else "it is empty"
        return SourceError(
            f"the page of {url} has no metrics: {why}",
            "dcgm-exporter's page is empty until its first collection, and when it has no GPU: check its log",
        )
    families = sorted({sample.name for sample in samples})
    if any(is_gpu_family(sample.name) and not is_elsewhere(sample.labels) for sample in samples):
        return SourceError(
            f"the page of {url} has DCGM metrics, but none of their rows names a GPU by its UUID",
            "GPUs are identified by UUID: have dcgm-exporter export it, and do not drop the label on the way",
        )
    for prefix, looks, remedy in _LOOKS:
        if any(name.startswith(prefix) for name in families):
            return SourceError(f"the page of {url} has no GPU metrics: {looks}", remedy)
    looks = f"{len(families)} families, such as {families[0][:60]}"
    return SourceError(f"the page of {url} has no GPU metrics: {looks}", _ELSEWHERE)
