"""Losses: one number per example."""
