"""Heads removed: which, in which order, with the output projection fitted again."""
