"""Whose GPU is it: pods, jobs and processes that hold GPUs."""
