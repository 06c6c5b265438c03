"""Writes the dashboards: one module a dashboard, and what they share. ``python -m dashboards.build`` (Python 3.11+)."""
