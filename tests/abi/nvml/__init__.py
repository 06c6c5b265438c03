"""A libnvidia-ml of our own that plays scenarios behind the true ABI: see scenario.py, build.py and playing.py."""
