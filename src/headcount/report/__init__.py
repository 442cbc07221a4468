"""Draws analysis results only."""
