"""Flags, environment and YAML file: three ways to say the same things."""
