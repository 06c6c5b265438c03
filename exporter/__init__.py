"""Honest GPU Exporter: what the driver claims, next to what the silicon did."""
