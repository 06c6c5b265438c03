"""Version of the distribution; the only place it is written."""

VERSION = "0.2.0.dev0"
