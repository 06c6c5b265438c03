"""Flags, environment variables and a YAML file: three ways to set the same options."""
