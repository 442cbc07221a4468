"""Readers of data as people have it: arrays, tables, lines and images."""
