"""Machines for the NVML player: models and nodes as their ``nvidia-smi -q`` shows them, and what runs on them."""
