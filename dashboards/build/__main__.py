"""Writes the four files, and the chart's copies of them; or, given a folder, the four files there."""

from __future__ import annotations

import sys
from pathlib import Path

from dashboards.build import exporter_health, fleet, node_gpu, workload
from dashboards.build.pages import written

REPOSITORY = Path(__file__).parents[2]
FOLDERS = (REPOSITORY / "dashboards", REPOSITORY / "helm" / "honest-gpu-exporter" / "dashboards")
PAGES = {
    "fleet.json": fleet.page,
    "node-gpu.json": node_gpu.page,
    "workload.json": workload.page,
    "exporter-health.json": exporter_health.page,
}

if __name__ == "__main__":
    folders = [Path(sys.argv[1])] if len(sys.argv) > 1 else FOLDERS
    for name, page in PAGES.items():
        text = written(page())
        for folder in folders:
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text)
