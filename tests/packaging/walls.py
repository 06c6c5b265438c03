"""A unit's seccomp walls without systemd: the same lists by libseccomp, but a call that is not let through kills.

usage: walls.py CALLS FAMILIES COMMAND...; CALLS: names with commas, FAMILIES: names with commas. It then becomes the
command, which may not make memory executable that it can write to, or could. No systemd is needed, nor root.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence

from tests.packaging.units import Unit

_ALLOW, _KILL = 0x7FFF0000, 0x80000000  # actions of seccomp.h
_EQUAL = 4  # SCMP_CMP_EQ
_NO_NEW_PRIVILEGES, _NO_WRITE_AND_EXECUTE, _REFUSE_EXEC_GAIN = 38, 65, 1  # prctl.h; the second since Linux 6.3
LIBRARY = "libseccomp.so.2"


class _Comparison(ctypes.Structure):
    _fields_ = (("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def calls(unit: Unit) -> set[str]:
    """The system calls that the unit lets through, by systemd's own groups. SystemCallFilter begins with a list."""
    found = _expand("@default")
    for line in unit.all("SystemCallFilter"):
        names: set[str] = set()
        for word in line.removeprefix("~").split():
            names |= _expand(word)
        found = found - names if line.startswith("~") else found | names
    return found


def _expand(word: str) -> set[str]:
    if not word.startswith("@"):
        return {word}
    command = ["systemd-analyze", "syscall-filter", "--no-pager", word]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    found: set[str] = set()
    for line in (line.strip() for line in listed):
        if line and not line.startswith("#"):
            found |= _expand(line)
    return found


def behind(unit: Unit, command: Sequence[str]) -> list[str]:
    """The command line that runs ``command`` as the unit would."""
    families = unit.one("RestrictAddressFamilies").split()
    walls = [sys.executable, "-m", "tests.packaging.walls", ",".join(sorted(calls(unit))), ",".join(families)]
    return [*walls, *command]


def missing() -> str:
    """Why walls cannot be built here; empty where they can."""
    if shutil.which("systemd-analyze") is None:
        return "systemd-analyze is not installed (Debian package systemd)"
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        return f"libseccomp cannot be loaded (Debian package libseccomp2): {error}"
    if ctypes.CDLL(None).prctl(66, 0, 0, 0, 0) < 0:  # PR_GET_MDWE
        return "this kernel cannot refuse memory that is writable and executable (Linux 6.3)"
    return ""


def _close(names: Sequence[str], families: Sequence[str]) -> None:
    """Put this process behind the walls. Raises OSError."""
    library, own = ctypes.CDLL(LIBRARY), ctypes.CDLL(None, use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    library.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    library.seccomp_rule_add_array.argtypes += [ctypes.POINTER(_Comparison)]
    rules = library.seccomp_init(ctypes.c_uint32(_KILL))

    def allow(name: str, *comparisons: _Comparison) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return  # not a call of this architecture
        array = (_Comparison * len(comparisons))(*comparisons)
        failed = library.seccomp_rule_add_array(rules, _ALLOW, number, len(comparisons), array)
        if failed:
            raise OSError(-failed, f"seccomp rule for {name}: {os.strerror(-failed)}")

    for name in names:
        if name != "socket":
            allow(name)
    for family in families:
        allow("socket", _Comparison(0, _EQUAL, int(getattr(socket, family)), 0))
    for option, value in ((_NO_NEW_PRIVILEGES, 1), (_NO_WRITE_AND_EXECUTE, _REFUSE_EXEC_GAIN)):
        if own.prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")
    failed = library.seccomp_load(rules)
    if failed:
        raise OSError(-failed, f"seccomp: {os.strerror(-failed)}")


if __name__ == "__main__":
    _close(sys.argv[1].split(","), sys.argv[2].split(","))
    os.execv(sys.argv[3], sys.argv[3:])
