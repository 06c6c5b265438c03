"""Tests below the bindings: our own libraries with the true ABI, played by scenarios."""
