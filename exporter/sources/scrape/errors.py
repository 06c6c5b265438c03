"""The errors of fetching a page, and of a page without GPUs: what failed, why, and what fixes it."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Sequence

from exporter.model import SourceError
from exporter.sources.scrape.identity import is_elsewhere, is_gpu_family
from exporter.sources.scrape.target import PageTarget
from exporter.sources.scrape.text import Exposition

CHECK = "check the URL and that dcgm-exporter runs there; it listens on port 9400 by default"
_LOG = "check that exporter's log"
_EXCERPT = 80  # characters of a foreign text that are quoted


def too_large(target: PageTarget, limit: int) -> SourceError:
    """The page is beyond the limit, in bytes."""
    return SourceError(f"the page of {target} is larger than {limit >> 10} KiB", f"is it the right page? {CHECK}")


def not_followed(target: PageTarget, error: ValueError) -> SourceError:
    """A redirect that is not followed."""
    return SourceError(f"a redirect of {target} is not followed: {error}", "use the final URL")


def refused(target: PageTarget, response: http.client.HTTPResponse) -> SourceError:
    """A status other than 200."""
    status = response.status
    remedies = {401: "put user and password in the URL", 403: "put user and password in the URL"}
    remedy = remedies.get(status, _LOG if status >= 500 else CHECK)
    return SourceError(f"{target} returned {status} {printable(response.reason)}{_excerpt(response)}", remedy)


def failed(target: PageTarget, error: Exception, timeout: float) -> SourceError:
    """A request without an answer. ``timeout``: its time limit in seconds."""
    if isinstance(error, TimeoutError):
        return SourceError(
            f"no complete answer from {target} within {timeout:g} s",
            f"check that exporter, for example with `time curl {target}`",
        )
    if isinstance(error, socket.gaierror):
        return SourceError(f"cannot resolve host {target.host}: {error.strerror}", "check the name in the URL")
    if isinstance(error, ConnectionRefusedError):
        return SourceError(f"nothing listens on {target.host} port {target.port}", CHECK)
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        return SourceError(f"the certificate of {target} is not trusted: {why}", "name its CA in SSL_CERT_FILE")
    if isinstance(error, ssl.SSLError):
        return SourceError(
            f"TLS handshake with {target} failed: {error.reason or error}", "use http:// if it has no TLS"
        )
    if isinstance(error, OSError):
        return SourceError(f"{target} cannot be read: {error.strerror or error}", CHECK)
    detail = printable(f"{type(error).__name__} {error}")
    return SourceError(f"{target} did not send a valid HTTP response: {detail}", CHECK)


def printable(text: str) -> str:
    """Text from the other side, for a message: one line, short, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_EXCERPT]


def _excerpt(response: http.client.HTTPResponse) -> str:
    """The beginning of a plain body, if it arrives in time."""
    kind = response.getheader("Content-Type", "text/plain").partition(";")[0].strip().lower()
    if kind != "text/plain" or response.getheader("Content-Encoding"):
        return ""
    try:
        text = printable(response.read(_EXCERPT).decode("utf-8", errors="replace"))
    except (OSError, http.client.HTTPException, ValueError):
        return ""
    return f": {text}" if text else ""


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
