"""Sources: each is one way to read GPUs."""
