"""Trained models from a folder, a hub or memory."""
