"""Plays traces of profilers and own recordings."""
