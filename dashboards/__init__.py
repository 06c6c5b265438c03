"""Grafana dashboards, as JSON, and the package that writes them."""
