"""Asks a running exporter whether it is well; the image's health check and the chart's test. Needs no shell.

usage: healthcheck.py [URL]    default: $HEALTHCHECK_URL, else http://127.0.0.1:9836/-/healthy
http:// and https:// want the answer 200, or 401: it runs, and keeps strangers out. tcp://HOST:PORT wants an open port
only, as with client certificates. The server's certificate is not verified: asked is whether it answers, not who it is.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
import urllib.error
import urllib.request
from urllib.parse import urlsplit

DEFAULT = "http://127.0.0.1:9836/-/healthy"
PATIENCE = 5.0  # seconds
WELL = (200, 401)


def status(url: str) -> int:
    """The status of the answer to a GET. Raises OSError or ValueError."""
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)
    )
    try:
        with opener.open(url, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def check(url: str) -> str:
    """What is wrong; empty when all is well."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "tcp":
            with socket.create_connection((parts.hostname or "", parts.port or 0), PATIENCE):
                return ""
        if parts.scheme not in ("http", "https"):
            return "expected http://, https:// or tcp://"
        got = status(url)
    except (OSError, ValueError) as error:
        return str(error)
    return "" if got in WELL else f"answered {got}"


def main(arguments: list[str]) -> int:
    """0 well, 1 not, with one line that says why."""
    url = arguments[0] if arguments else os.environ.get("HEALTHCHECK_URL") or DEFAULT
    wrong = check(url)
    print(f"{url}: {wrong or 'well'}", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
