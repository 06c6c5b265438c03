"""Meeting the player through NVIDIA's own bindings, in a process of its own."""

import subprocess
from collections.abc import Callable

from ..player.meeting import result_of, run_script
from .playing import Playing
from .scenario import Scenario

PRELUDE = """
from tests.abi.dcgm.bindings import load_bindings
a, s, f = load_bindings()
errors = s.DCGMError
folder = os.environ["LD_LIBRARY_PATH"].split(":")[0]
wall = 1767225600.0
SWITCH, GI, CI = 3, 4, 5

def connect(address="127.0.0.1:5555", timeout=1000):
    params = s.c_dcgmConnectV2Params_v2()
    params.timeoutMs = timeout
    return a.dcgmConnect_v2(address, params)

def group_of(handle, *entities, name="g"):
    group = a.dcgmGroupCreate(handle, s.DCGM_GROUP_EMPTY, name)
    for kind, number in entities:
        a.dcgmGroupAddEntity(handle, group, kind, number)
    return group

def watched(handle, entities, fields, interval=1.0, name="fields", keep=300.0):
    group = group_of(handle, *entities)
    fields = a.dcgmFieldGroupCreate(handle, fields, name)
    a.dcgmWatchFields(handle, group, fields, int(interval * 1e6), keep, 0)
    return group, fields

def content(row):
    if row.fieldType == ord("d"):
        return row.value.dbl
    if row.fieldType == ord("s"):
        text = row.value.str
        return text.decode() if isinstance(text, bytes) else text
    return row.value.i64

def since(handle, group, fields, start=0):
    rows = []
    def each(kind, number, values, count, _):
        for i in range(count):
            row = values[i]
            at = round(row.ts / 1e6 - wall, 6) if row.ts else None
            rows.append([kind, number, row.fieldId, row.status, at, content(row)])
        return 0
    callback = a.dcgmFieldValueEntityEnumeration_f(each)
    following = a.dcgmGetValuesSince_v2(handle, group, fields, start, callback, None)
    return rows, following

def latest(handle, entities, fields, flags=0):
    pairs = []
    for kind, number in entities:
        pair = s.c_dcgmGroupEntityPair_t()
        pair.entityGroupId, pair.entityId = kind, number
        pairs.append(pair)
    rows = a.dcgmEntitiesGetLatestValues(handle, pairs, fields, flags)
    return [[row.status, content(row)] for row in rows]

s._dcgmInit(folder)
player = s.dcgmLib
a.dcgmInit()
"""

Run = Callable[[Scenario, str], object]
"""The fixture ``run``: what the script leaves in ``result``, under a scenario whose clock stands at 0."""


def process(playing: Playing, script: str) -> subprocess.CompletedProcess[str]:
    return run_script(playing, PRELUDE, script)


def run_python(playing: Playing, script: str) -> object:
    """The value of ``result`` at the end of a script that meets the player through NVIDIA's bindings."""
    return result_of(process(playing, script))
