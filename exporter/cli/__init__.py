"""The command line: the only room that wires the others together."""
