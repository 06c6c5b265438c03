"""A systemd unit as its files say it, and what it would run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.helm import REPOSITORY

NAME = "honest-gpu-exporter.service"
SYSTEMD = REPOSITORY / "packaging" / "systemd"
UNIT = SYSTEMD / NAME
TEXTFILE = SYSTEMD / "honest-gpu-exporter-textfile.service"
DROP_INS = {path.stem: path for path in sorted((SYSTEMD / "drop-ins").glob("*.conf"))}


@dataclass(frozen=True)
class Unit:
    """(section, key, value) of each line, in their order."""

    lines: tuple[tuple[str, str, str], ...]

    @classmethod
    def read(cls, *files: Path) -> Unit:
        """The unit's file, and its drop-ins."""
        lines = []
        for file in files:
            section = ""
            for line in file.read_text().splitlines():
                if line.startswith("["):
                    section = line.strip("[]")
                elif line and not line.startswith("#"):
                    key, _, value = line.partition("=")
                    lines.append((section, key, value))
        return cls(tuple(lines))

    def all(self, key: str, section: str = "Service") -> list[str]:
        """The values of a key that may be given more than once."""
        return [value for where, name, value in self.lines if (where, name) == (section, key)]

    def one(self, key: str, section: str = "Service") -> str:
        """The value that counts: the last one."""
        return self.all(key, section)[-1]

    @property
    def command(self) -> list[str]:
        return shlex.split(self.one("ExecStart"))

    def environment(self, root: Path = Path("/")) -> dict[str, str]:
        """What the process gets; ``root`` is where the machine's files are."""
        pairs = [pair for line in self.all("Environment") for pair in shlex.split(line)]
        for named in self.all("EnvironmentFile"):
            file = root / named.lstrip("-/")
            pairs += [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
        return dict(pair.split("=", 1) for pair in pairs)
