"""Benchmarks: they print figures and ratios, and assert nothing."""
