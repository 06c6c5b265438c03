"""GPM: the measurement, from Hopper on, without a lock and without a service.

nvml.h: nvmlGpmMetricsGet computes means between two samples of the same entity, at least 100 ms apart. Percentages are
0..100, link rates MiB per second.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from exporter.fields import FIELDS, LINKS, Kind
from exporter.model import Absence, Entity, Reading
from exporter.sources.nvml.library import LOST, absence

SHORTEST = 0.1 - 1e-6  # seconds between two samples; a tenth of a second is not exact in binary
LONGEST = 60.0  # seconds; a mean over more says too little about when
MIB = 2**20
METRICS = tuple(name for name, spec in FIELDS.items() if spec.gpm is not None)
WITHOUT_LINKS = tuple(name for name in METRICS if name not in LINKS)


class Gpm:
    """Two samples of one entity. ``close`` frees them; so does every failure that makes them useless."""

    def __init__(self, nvml: Any, entity: Entity, fields: Sequence[str], mig_uuid: str = "") -> None:
        self._nvml, self._entity = nvml, entity
        self.of = (fields, mig_uuid)  # the number of an instance may come back as another instance
        self._last: tuple[float, Any] | None = None  # (time, sample)
        self._spare: Any = None
        self.broke = False  # the last read was refused, after one that was not
        self._samples = 0  # in a row: the first interval of an entity is not to be trusted
        self._fields = fields
        self._request = nvml.c_nvmlGpmMetricsGet_t()
        self._request.version = nvml.NVML_GPM_METRICS_GET_VERSION
        self._request.numMetrics = len(fields)
        metrics = self._request.metrics
        self._metrics = [metrics[position] for position in range(len(fields))]
        for metric, field in zip(self._metrics, fields, strict=True):
            metric.metricId = FIELDS[field].gpm
        self._scales = [MIB if FIELDS[field].kind is Kind.RATE else 0.01 for field in fields]

    def read(self, handle: Any, now: float) -> Iterator[Reading]:
        """Means since the last read; nothing before the second interval. NVMLError when the GPU is lost."""
        self.broke = False
        if self._last is not None and now - self._last[0] < SHORTEST:
            return
        try:
            sample = self._take(handle)
        except self._nvml.NVMLError as error:
            self.broke = self._last is not None
            self._forget()
            if error.value in LOST:
                raise
            for field in self._fields:
                yield Reading(self._entity, field, now, None, None, absence(error))
            return
        before, self._last, self._spare = self._last, (now, sample), None
        self._samples += 1
        if before is None:
            return
        start, older = before
        self._spare = older
        if self._samples < 3 or now - start > LONGEST:
            return
        yield from self._between(older, sample, start, now)

    def _take(self, handle: Any) -> Any:
        sample = self._spare if self._spare is not None else self._nvml.nvmlGpmSampleAlloc()
        self._spare = sample  # ours to free, whatever happens next
        if self._entity.gpu_instance is None:
            self._nvml.nvmlGpmSampleGet(handle, sample)
        else:
            self._nvml.nvmlGpmMigSampleGet(handle, self._entity.gpu_instance, sample)
        return sample

    def _between(self, older: Any, newer: Any, start: float, end: float) -> Iterator[Reading]:
        nvml, request = self._nvml, self._request
        request.sample1, request.sample2 = older, newer
        try:
            nvml.nvmlGpmMetricsGet(request)
        except nvml.NVMLError as error:
            if error.value in LOST:
                raise
            for field in self._fields:
                yield Reading(self._entity, field, end, None, start, absence(error))
            return
        # the binding's structs compute each attribute in Python: its plain C fields are read ten times as fast
        code_of, value_of = nvml.c_nvmlGpmMetric_t.nvmlReturn.__get__, nvml.c_nvmlGpmMetric_t.value.__get__
        for field, metric, scale in zip(self._fields, self._metrics, self._scales, strict=True):
            code, value = code_of(metric), value_of(metric)
            if code != 0:
                yield Reading(self._entity, field, end, None, start, absence(nvml.NVMLError(code)))
            elif math.isnan(value):
                yield Reading(self._entity, field, end, None, start, Absence.BLANK)
            else:
                yield Reading(self._entity, field, end, value * scale, start)

    def _forget(self) -> None:
        for sample in (self._last[1] if self._last else None, self._spare):
            if sample is not None:
                with contextlib.suppress(self._nvml.NVMLError):
                    self._nvml.nvmlGpmSampleFree(sample)
        self._last, self._spare, self._samples = None, None, 0

    def close(self) -> None:
        """Free the samples."""
        self._forget()
