"""Every study by the name one types. Importing this needs no JAX."""

from types import ModuleType

from ..answer.claim import ClaimResult as Claim
from ..errors import did_you_mean, require
from .base import AbstractStudy, ClosedFormStudy
from .beyond import alphabet, architectures, depth, norm, shared_keys, sparse
from .head_count import converged, figure1b, figure2e, figure3, figure4, table2, table2_draws, table3, table4, table5
from .others import memorise
from .rank import figure1, figure_d, figure_n, in_context, norms, positions, random_features
from .real_data import cifar, cifar_places, marco, marco_epochs, marco_queries
from .real_data.base import RealDataStudy

HEAD_COUNT = (table2, table3, table4, table5, figure1b, figure2e, figure3, figure4)
RANK = (figure1, figure_n, figure_d, positions, in_context, norms)
CHOICES = (table2_draws, converged)
"""Studies of what a published table owes to choices that the paper does not name: the draws, and the training."""
BEYOND: tuple[ModuleType, ...] = (depth, shared_keys, sparse, architectures, norm, alphabet)
"""Studies of questions that neither paper answers; nothing is published beside them."""
OTHERS: tuple[ModuleType, ...] = (memorise,)
"""Studies of what other papers say of heads."""
STUDIES: dict[str, AbstractStudy] = {
    module.STUDY.name: module.STUDY for module in (*HEAD_COUNT, *CHOICES, *RANK, *BEYOND, *OTHERS)
}
CLOSED_FORM: dict[str, ClosedFormStudy] = {random_features.STUDY.name: random_features.STUDY}
"""Studies that train nothing."""
REAL_DATA: dict[str, RealDataStudy] = {
    module.STUDY.name: module.STUDY for module in (cifar, cifar_places, marco, marco_epochs, marco_queries)
}
"""Studies of real data, which must be given."""
ALIASES = {"figure1a": "table2", "variants": "converged"}
"""Figure 1a draws what Table 2 prints; variants is what `converged` was called in the folders of its first run."""


def study(name: str) -> AbstractStudy | ClosedFormStudy:
    """The study called `name`. Raises InputError for an unknown name, with the nearest known one."""
    name = ALIASES.get(name, name)
    known = STUDIES | CLOSED_FORM | REAL_DATA
    require(
        name in known,
        f'unknown study "{name}".{did_you_mean(name, [*known, *ALIASES])} Known: {", ".join(known)}, all.',
    )
    return known[name]


def published_claims() -> dict[str, tuple[Claim, ...]]:
    """What the rules of every study say of the numbers that the papers print or plot, by the study's name.

    Example:
        >>> [claim.verdict.value for claim in published_claims()["table4"]]
        ['undecided', 'differs', 'holds', 'holds']
    """
    known: dict[str, AbstractStudy | ClosedFormStudy] = STUDIES | CLOSED_FORM | REAL_DATA
    judged = {name: each.published_claims() for name, each in known.items()}
    return {name: claims for name, claims in judged.items() if claims}


def readers_of(trained_by: str) -> list[AbstractStudy]:
    """The studies that read the experiment of the study called `trained_by`, that study first."""
    trained_by = ALIASES.get(trained_by, trained_by)
    readers = [each for each in (STUDIES | REAL_DATA).values() if each.trained_by == trained_by]
    return sorted(readers, key=lambda each: each.name != trained_by)
