"""Work that may hang or fail: its threads, when to try again, how long its results count, what is worth a log line."""
