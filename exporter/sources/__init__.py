"""Sources: each is one way to read GPUs, and yields readings."""
