"""The source `dcgm`: a DCGM hostengine, read through NVIDIA's own Python bindings."""
