"""What every reading that a parser lets out must be, whatever went in."""

from __future__ import annotations

import math

from exporter.fields import FIELDS
from exporter.model import Absence, Batch, Entity, Reading
from exporter.trust import range_check


def assert_fit(batch: Batch) -> None:
    """Types that the core relies on; and what the range check lets pass is finite and in range."""
    for device in batch.devices:
        _assert_entity(device.entity)
        texts = (device.index, device.model, device.pci_bus_id, device.driver_version, device.mig_profile)
        assert all(type(text) is str for text in (*texts, device.minor, device.mig_uuid)), device
        assert type(device.mig_enabled) is bool
    for reading in batch.readings:
        assert_reading(reading)
    assert all(type(count) is int for count in batch.rejected.values())
    assert all(type(text) is str for key in batch.rejected for text in key)
    assert type(batch.end) is float
    assert math.isfinite(batch.end)


def assert_reading(reading: Reading) -> None:
    _assert_entity(reading.entity)
    assert reading.field in FIELDS
    assert type(reading.label) is str
    assert math.isfinite(reading.end)
    assert reading.start is None or math.isfinite(reading.start)
    assert reading.value is None or type(reading.value) in (int, float)
    assert (reading.value is None) == (reading.absence is not None) or reading.value is None
    passed = range_check(reading)
    if passed.value is None:
        assert isinstance(passed.absence, Absence)
    else:
        assert math.isfinite(passed.value)
        assert FIELDS[passed.field].low <= passed.value <= FIELDS[passed.field].high


def _assert_entity(entity: Entity) -> None:
    assert type(entity.uuid) is str
    assert entity.gpu_instance is None or type(entity.gpu_instance) is int
