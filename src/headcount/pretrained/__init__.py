"""Advice for a trained model: which heads it needs, which ranks, what can go. Torch is loaded when it is first used."""
