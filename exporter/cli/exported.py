"""From the settings to what is exported."""

from __future__ import annotations

from exporter.config.options import METRICS_EXCLUDE, METRICS_INCLUDE, METRICS_PROFILE, PRICES
from exporter.config.settings import Settings
from exporter.metrics.catalogue import Selection
from exporter.metrics.cost import Price
from exporter.metrics.family import Profile


def selection(settings: Settings) -> Selection:
    """Which families."""
    profile = Profile[settings[METRICS_PROFILE].upper()]
    return Selection(profile, settings[METRICS_INCLUDE], settings[METRICS_EXCLUDE])


def prices(settings: Settings) -> list[Price]:
    """Prices, by model."""
    return [Price(model, per_hour) for model, per_hour in settings[PRICES]]
