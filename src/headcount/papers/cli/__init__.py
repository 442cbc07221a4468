"""The verbs of the papers: reproduce, models."""
