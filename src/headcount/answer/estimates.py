"""Other estimates of how many heads a task needs: an early look at a large model, and the support dimension.

The support dimension is JSON, stored with the experiment. A task with a gradient has the one of its target
(`theory.support_dim`); data have an estimate from the gradients of a trained model, with how often it was right on
tasks of known D.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..store import Record
from .answer_base import Answer
from .words import count_of_heads

SUPPORT = "support"
"""The name under which the support dimension is stored with an experiment."""


def early_record(records: Iterable[Record]) -> Record | None:
    """Return the record with the first estimate that was made part-way through training."""
    seen = [record for record in records if "early" in record.provenance]
    return min(seen, key=lambda record: record.provenance["early"]["seconds"], default=None)


def support_words(support: Mapping[str, Any] | None, answer: Answer | None) -> str:
    """Return the support dimension in words and whether the answer agrees; "" where there is none."""
    if not support or "skipped" in support:
        return ""
    if "estimate" in support:
        return f"{support['words']}; {_agreement(round(support['estimate']), answer, estimated=True)}"
    words = str(support["sentence"])
    if support.get("every_token") or support.get("grows") or support.get("answered_at") != "sequence":
        return words
    known = support["exact"] and support["components"] is not None
    return f"{words}; {_agreement(int(support['value']), answer, estimated=not known)}"


def _agreement(value: int, answer: Answer | None, *, estimated: bool) -> str:
    if answer is None or answer.heads is None:
        return "there is no answer to compare it with"
    if answer.heads == value:
        return "the answer agrees"
    if answer.low is not None and answer.high is not None and answer.low <= value <= answer.high:
        return f"the answer differs, {count_of_heads(answer.heads)}, but its interval holds {value}"
    if answer.heads < value:
        may = "fewer heads can do at these lengths and errors, or the target changes little with some of the tokens"
    else:
        may = "training may have missed a smaller solution, or the target is no retrieval"
    estimate = ", or the estimate is off" if estimated else ""
    return f"the answer differs, {count_of_heads(answer.heads)}: {may}{estimate}"
