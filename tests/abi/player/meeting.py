"""Meeting a player through NVIDIA's own Python bindings, in a process of its own."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from .playing import Playing

ROOT = Path(__file__).parents[3]

PRELUDE = """
import ctypes, json, os, struct, sys, threading, time

def set_clock(seconds):
    with open(clock_path, "r+b") as file:
        file.write(struct.pack("d", seconds))

def code(function, *arguments):
    try:
        function(*arguments)
    except errors as error:
        return error.value
    return 0
"""
"""The player's own prelude sets ``errors``: the exceptions of its bindings."""


def run_script(playing: Playing, prelude: str, script: str) -> subprocess.CompletedProcess[str]:
    """Prints ``result`` as JSON at its end."""
    clock = f'clock_path = os.environ["HONEST_TEST_{playing.player}_CLOCK"]\n'
    whole = PRELUDE + clock + prelude + textwrap.dedent(script) + "\nprint(json.dumps(result))\n"
    environment = playing.environment() | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", whole]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def result_of(done: subprocess.CompletedProcess[str]) -> object:
    """The value of ``result`` at the end of a script."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
