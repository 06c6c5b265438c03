"""What the players of NVIDIA's interfaces share: compiled into each library, and used by the Python beside it."""
