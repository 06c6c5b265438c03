"""From the settings to what is exported."""

from __future__ import annotations

from exporter.config.options import COMPAT_JOBSTATS, METRICS_EXCLUDE, METRICS_INCLUDE, METRICS_PROFILE, PRICES
from exporter.config.settings import Settings
from exporter.metrics import jobstats
from exporter.metrics.catalogue import Selection
from exporter.metrics.cost import Price
from exporter.metrics.family import Group, Profile


def selection(settings: Settings) -> Selection:
    """Which families."""
    profile = Profile[settings[METRICS_PROFILE].upper()]
    return Selection(profile, settings[METRICS_INCLUDE], settings[METRICS_EXCLUDE])


def prices(settings: Settings) -> list[Price]:
    """Prices, by model."""
    return [Price(model, per_hour) for model, per_hour in settings[PRICES]]


def compatibility(settings: Settings) -> tuple[Group, ...]:
    """Series under the names of other exporters."""
    return (jobstats.GROUP,) if settings[COMPAT_JOBSTATS] else ()
