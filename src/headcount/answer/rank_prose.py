"""The answer about heads and rank in a few sentences."""

import numpy as np

from .answer_base import Answer
from .signals import MIN_FOLD
from .table import ErrorTable
from .words import as_sentence, error_name, error_words, factor_words, heads_listed, listed, size_of


def rank_prose(table: ErrorTable, answer: Answer) -> tuple[str, ...]:
    """One or two sentences about a table of heads x rank x length x seed."""
    table = table.ordered("heads", "rank", "length", "seed")
    heads, ranks = table.values("heads"), table.values("rank")
    errors = table.reduced("seed").errors
    there = np.isfinite(errors).all(axis=2)
    worst = np.where(there, errors.max(axis=2, initial=-np.inf, where=np.isfinite(errors)), np.nan)
    name, tried = error_name(table.metric), f"{heads_listed(heads)} of rank {listed(ranks)}"
    if not there.any():
        return (as_sentence(f"there is no answer: {answer.reason}"),)
    if answer.kind == "none":
        row, column = np.unravel_index(np.nanargmin(worst), worst.shape)
        best = f"{error_words(table.metric, [worst[row, column]])} at best, with {size_of(heads[row], ranks[column])}"
        return (as_sentence(f"of {tried} {name} is {best}"), as_sentence(f"there is no answer: {answer.reason}"))
    if answer.kind == "floor":
        spread = error_words(table.metric, worst[there])
        return (as_sentence(f"{name} is {spread} for all of {tried}: neither heads nor rank makes a difference"),)
    solved = np.array([[answer.solves(count, rank) for rank in ranks] for count in heads]) & there
    words = f"from {' or '.join(dict.fromkeys(size_of(*answer.frontier[end]) for end in (0, -1)))} on {name} is"
    words = f"{words} {error_words(table.metric, worst[solved])}"
    unsolved = worst[there & ~solved]
    if not unsolved.size:
        return (as_sentence(f"{words}, for all that was tried: {tried}"),)
    fold = answer.fold if answer.fold is not None and answer.fold >= MIN_FOLD else None
    times = "" if fold is None else f", {factor_words(fold)} times less than beside them"
    below = f"the others of {tried} have {error_words(table.metric, unsolved)}"
    return (as_sentence(f"{words}{times}"), as_sentence(below))
