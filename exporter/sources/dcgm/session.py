"""One connection to a hostengine: opened, used for calls, closed. What was made on it ends with it.

No call has a time-out of ours: DCGM waits 60 s for an answer, whatever the time-out of the connection.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import time
from typing import Any

from exporter.model import SourceError
from exporter.sources.dcgm.address import Address
from exporter.sources.dcgm.bindings import Bindings, library_folder
from exporter.sources.dcgm.errors import START_HOSTENGINE, CallFailed, Code

GPU, SWITCH, GPU_INSTANCE, CPU = 1, 3, 4, 7  # dcgm_field_entity_group_t
LIVE_DATA = 1  # DCGM_FV_FLAG_LIVE_DATA. Never with a profiling field: hostengines 4.0 to 4.6 die of it
_UUID = 54  # a field that can be read live, for the time it was read at
_MODE_AUTO = 1  # DCGM_OPERATION_MODE_AUTO
_VERSION = re.compile(r"version:([0-9.]+)")


class Session:
    """Open from the start; ``open_session`` makes it."""

    def __init__(self, bindings: Bindings, address: Address, handle: Any) -> None:
        self.bindings = bindings
        self.address = address
        self.library_version = ""
        self.hostengine_version = ""
        self._handle = handle

    def call(self, function: str, *arguments: object) -> Any:
        """One call of dcgm_agent on this connection. Raises CallFailed."""
        return _call(self.bindings, function, self._handle, *arguments)

    def hostengine_now(self, gpu: int) -> int:
        """Microseconds since 1970 on the hostengine's clock, which may be another machine's; on this machine's clock if
        it does not report one. Raises CallFailed for a lost connection."""
        pair = self.bindings.structs.c_dcgmGroupEntityPair_t()
        pair.entityGroupId, pair.entityId = GPU, gpu
        try:
            rows = self.call("dcgmEntitiesGetLatestValues", [pair], [_UUID], LIVE_DATA)
            if rows[0].ts > 0:
                return int(rows[0].ts)
        except CallFailed as failure:
            if failure.connection_lost:
                raise
        return round(time.time() * 1e6)

    def close(self) -> None:
        """Close the connection; also if the hostengine is gone, which then cleans up by itself."""
        function = "dcgmStopEmbedded" if self.address.embedded else "dcgmDisconnect"
        with contextlib.suppress(CallFailed):
            self.call(function)

    def learn_versions(self) -> None:
        """Of the library in this process and of the hostengine; empty where it is not known."""
        with contextlib.suppress(CallFailed):
            self.library_version = _number(_call(self.bindings, "dcgmVersionInfo"))
        self.hostengine_version = self._ask_hostengine()

    def _ask_hostengine(self) -> str:
        """Without the bindings' help: older ones lack the function, which the library has since 2.0."""
        structs = self.bindings.structs
        info = structs.c_dcgmVersionInfo_v2()
        info.version = structs.dcgmVersionInfo_version2
        try:
            function = structs._dcgmGetFunctionPointer("dcgmHostengineVersionInfo")
        except structs.DCGMError:
            return ""
        return _number(info) if function(self._handle, ctypes.byref(info)) == 0 else ""


def open_session(bindings: Bindings, address: Address, timeout: float) -> Session:
    """Connects, or starts the embedded hostengine, and makes a call: a handle alone proves nothing, DCGM also returns
    one for a hostengine that never answered. Raises SourceError. ``timeout``: seconds to wait for a connection."""
    _load_library(bindings)
    session = Session(bindings, address, _connect(bindings, address, timeout))
    try:
        session.call("dcgmGetAllDevices")
    except CallFailed as failure:
        session.close()
        raise SourceError(f"the hostengine at {address} does not answer: {failure}", failure.remedy) from failure
    session.learn_versions()
    return session


def shut_down(bindings: Bindings) -> None:
    """Ends DCGM in this process, with every connection that is still open."""
    with contextlib.suppress(CallFailed):
        _call(bindings, "dcgmShutdown")


def _load_library(bindings: Bindings) -> None:
    try:
        bindings.structs._dcgmInit(library_folder())
        _call(bindings, "dcgmInit")
    except bindings.structs.DCGMError as error:
        failure = CallFailed("dcgm_structs._dcgmInit", error.value, str(error))
        raise SourceError(f"DCGM cannot be loaded: {failure}", failure.remedy) from error
    except CallFailed as failure:
        raise SourceError(f"DCGM cannot be started in this process: {failure}", failure.remedy) from failure


def _connect(bindings: Bindings, address: Address, timeout: float) -> Any:
    try:
        if address.embedded:
            handle = _call(bindings, "dcgmStartEmbedded", _MODE_AUTO)
        else:
            params = bindings.structs.c_dcgmConnectV2Params_v2()
            params.timeoutMs = max(1, round(timeout * 1000))
            params.addressIsUnixSocket = int(address.unix_socket)
            handle = _call(bindings, "dcgmConnect_v2", address.target, params)
    except CallFailed as failure:
        if address.embedded:
            raise SourceError(f"the embedded hostengine does not start: {failure}", failure.remedy) from failure
        reason = f"no hostengine at {address}" if failure.code == Code.CONNECTION_NOT_VALID else str(failure)
        raise SourceError(f"cannot connect to DCGM: {reason}", failure.remedy or START_HOSTENGINE) from failure
    if not handle.value:
        raise SourceError(
            f"DCGM gave no handle for {address}: one embedded hostengine already runs in this process",
            "use one embedded DCGM only",
        )
    return handle


def _call(bindings: Bindings, function: str, *arguments: object) -> Any:
    """Not ``==`` on their errors: that raises for anything that is none of theirs."""
    known = getattr(bindings.agent, function, None)
    if known is None:
        raise CallFailed(function, Code.FUNCTION_NOT_FOUND, "")
    try:
        return known(*arguments)
    except bindings.structs.DCGMError as error:
        raise CallFailed(function, error.value, str(error)) from error


def _number(info: Any) -> str:
    text = info.rawBuildInfoString
    found = _VERSION.search(text.decode(errors="replace") if isinstance(text, bytes) else str(text))
    return found[1] if found else ""
