"""Heads of lower rank."""
