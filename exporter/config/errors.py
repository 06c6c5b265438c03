"""What is wrong with a configuration."""

from __future__ import annotations


class ConfigError(Exception):
    """A configuration that cannot be put in force. The text names where it was said, what is wrong and what to say."""
