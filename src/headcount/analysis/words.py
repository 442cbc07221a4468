"""Counts in words, the same in every sentence."""


def count_of_heads(heads: int) -> str:
    """`1 head`, `4 heads`."""
    return f"{heads} {'head' if heads == 1 else 'heads'}"


def size_of(heads: int, rank: int) -> str:
    """`4 heads of rank 8`."""
    return f"{count_of_heads(heads)} of rank {rank}"
