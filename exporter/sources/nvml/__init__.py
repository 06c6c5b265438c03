"""Reads GPUs through the driver's own library: the claim, the context, and GPM's measurement from Hopper on."""
