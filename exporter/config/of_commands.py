"""Options of the commands beside serve: textfile, record, profiling, top."""

from __future__ import annotations

from pathlib import Path

from exporter.config import parsers
from exporter.config.option import Command, Option

TEXTFILE_OUTPUT = Option[Path | None](
    "output",
    parsers.path,
    None,
    "File to write, in the folder of node_exporter's --collector.textfile.directory; ends in .prom. "
    "Example: /var/lib/prometheus/node-exporter/honest_gpu.prom",
    "FILE",
    (Command.TEXTFILE,),
)
TEXTFILE_INTERVAL = Option(
    "interval",
    parsers.duration,
    15.0,
    "Time between two writes; at least --sampling.interval. Example: 30s",
    "DURATION",
    (Command.TEXTFILE,),
)
RECORD_OUT = Option[Path | None](
    "out",
    parsers.path,
    None,
    "File to write: gzipped JSON lines. Example: node.jsonl.gz",
    "FILE",
    (Command.RECORD,),
)
RECORD_DURATION = Option[float | None](
    "duration",
    parsers.duration,
    None,
    "How long to record; without it, until the source ends or a signal arrives. Example: 10m",
    "DURATION",
    (Command.RECORD,),
)
PROFILING_FOR = Option[float | None](
    "for",
    parsers.duration,
    None,
    "With pause: resume after this time, or on Ctrl-C. Example: 10m",
    "DURATION",
    (Command.PROFILING,),
)
TOP_URL = Option[str](
    "url",
    parsers.text,
    "http://127.0.0.1:9836",
    "Exporter to show. Example: https://USER:PASSWORD@gpu-node-1:9836",
    "URL",
    (Command.TOP,),
)
ONCE = Option("once", parsers.boolean, False, "Print or write once and exit.", commands=(Command.TOP, Command.TEXTFILE))
