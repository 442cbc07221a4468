"""How much is tried before an answer counts as settled."""

from dataclasses import dataclass

from .._choices import require_choice

DESCENT_SHARE = 0.25
"""Steps of a model that starts from a trained one, as a share of those from random weights."""
DESCENT_RATE = 0.3
"""Its peak learning rate, as a share of theirs: enough to move on, too little to lose what was learned."""

VALIDATED, MAX_SPLITS = 1500, 5
"""Validation examples of all splits together that are enough to compare head counts, and the most splits."""


@dataclass(frozen=True, kw_only=True)
class SearchEffort:
    """The numbers of an effort.

    Args:
        top_seeds: Random starts at the largest head count.
        low_seeds: Random starts at the head count just below the answer.
        parents: Trained models that others descend from.
        children: Heads whose removal is tried per parent at the answer's boundary.
        draws: Draws of the data, where they can be drawn again.
        continuations: How often the largest models are trained on when no answer shows.
        more_seeds: Seeds per head count, at most, where heads cannot be removed.
    """

    top_seeds: int
    low_seeds: int
    parents: int
    children: int
    draws: int
    continuations: int
    more_seeds: int

    def splits_of(self, validation_examples: int) -> int:
        """Return on how many splits of stored examples head counts are compared where none is needed."""
        return self.draws if self.draws == 1 else min(MAX_SPLITS, max(self.draws, -(-VALIDATED // validation_examples)))


EFFORTS: dict[str, SearchEffort] = {
    "quick": SearchEffort(top_seeds=2, low_seeds=2, parents=2, children=1, draws=1, continuations=0, more_seeds=4),
    "normal": SearchEffort(top_seeds=3, low_seeds=3, parents=2, children=2, draws=2, continuations=1, more_seeds=8),
    "thorough": SearchEffort(top_seeds=6, low_seeds=8, parents=3, children=3, draws=3, continuations=2, more_seeds=16),
}


DEFAULT_EFFORT = "normal"


def effort_of(name: str) -> SearchEffort:
    """Return the effort called `name`. Raises `InputError` for an unknown one."""
    require_choice("effort", name, EFFORTS)
    return EFFORTS[name]
