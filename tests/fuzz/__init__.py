"""Hostile input: every parser of what comes from outside gives a value or its documented error, nothing else."""
