"""Pairs of sequences that a model cannot tell apart: the search, its proof, and the pair of Theorem 2(2)."""
