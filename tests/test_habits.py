"""What runs the checks elsewhere: the hooks of pre-commit, the workflows, the check of a release."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(path: Path) -> list[dict[str, object]]:
    workflow = yaml.safe_load(path.read_text())
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_hooks_call_what_dev_check_calls() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    called = {hook["entry"] for hook in hooks} - {"dev/check"}
    check = (ROOT / "dev" / "check").read_text()
    assert called == {f".venv/bin/{name}{rest}" for name, rest in re.findall(r'^"\$bin/(ruff|mypy)"(.*)$', check, re.M)}


def test_a_workflow_calls_dev_test() -> None:
    assert "dev/test" in {step.get("run") for step in steps(ROOT / ".github" / "workflows" / "test.yml")}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_scripts_of_a_workflow_exist_and_parse(path: Path) -> None:
    for step in steps(path):
        script = str(step.get("run", ""))
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        for named in re.findall(r"(?:^|\s)((?:dev|helm|packaging)/[\w./-]+)", script):
            assert (ROOT / named).exists(), named


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_githubs_form(path: Path) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema (PyPI) is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_version_that_is_not_everywhere_is_no_release() -> None:
    done = subprocess.run([ROOT / "dev" / "release-version", "99.0.0"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for file in ("exporter/version.py", "Dockerfile", "helm/honest-gpu-exporter/Chart.yaml", "CHANGELOG.md"):
        assert f"{file} has no " in done.stderr
