"""Every study by the name one types. Importing this needs no JAX."""

from ..answer.claim import ClaimResult
from ..errors import did_you_mean, require
from .base import ClosedFormStudy, Study
from .beyond import alphabet, architectures, depth, norm, shared_keys, sparse
from .head_count import converged, draws, tables, width
from .others import memorise
from .rank import figures, norms, random_features
from .real_data import cifar, cifar_places, marco, marco_epochs, marco_queries
from .real_data.base import RealDataStudy

HEAD_COUNT: tuple[Study, ...] = (
    tables.TABLE2,
    tables.TABLE3,
    tables.TABLE4,
    tables.TABLE5,
    width.FIGURE1B,
    tables.FIGURE2E,
    tables.FIGURE3,
    width.FIGURE4,
)
CHOICES = (draws.STUDY, converged.STUDY)
"""Studies of what a published table owes to choices that the paper does not name: the draws, and the training."""
RANK = (figures.FIGURE1, figures.FIGURE_N, figures.FIGURE_D, figures.POSITIONS, figures.IN_CONTEXT, norms.STUDY)
BEYOND = (depth.STUDY, shared_keys.STUDY, sparse.STUDY, architectures.STUDY, norm.STUDY, alphabet.STUDY)
"""Studies of questions that neither paper answers; nothing is published to compare them with."""
OTHERS = (memorise.STUDY,)
"""Studies of what other papers say of heads."""
STUDIES: dict[str, Study] = {each.name: each for each in (*HEAD_COUNT, *CHOICES, *RANK, *BEYOND, *OTHERS)}
CLOSED_FORM: dict[str, ClosedFormStudy] = {random_features.STUDY.name: random_features.STUDY}
"""Studies that train nothing."""
REAL_DATA: dict[str, RealDataStudy] = {
    each.name: each for each in (cifar.STUDY, cifar_places.STUDY, marco.STUDY, marco_epochs.STUDY, marco_queries.STUDY)
}
"""Studies of real data, which must be given."""
ALIASES = {"figure1a": "table2", "variants": "converged"}
"""Figure 1a draws what Table 2 prints; variants is what `converged` was called in the folders of its first run."""


def study(name: str) -> Study | ClosedFormStudy:
    """The study called `name`. Raises InputError for an unknown name, with the nearest known one."""
    name = ALIASES.get(name, name)
    known = STUDIES | CLOSED_FORM | REAL_DATA
    require(
        name in known,
        f'unknown study "{name}".{did_you_mean(name, [*known, *ALIASES])} Known: {", ".join(known)}, all.',
    )
    return known[name]


def published_claims() -> dict[str, tuple[ClaimResult, ...]]:
    """What the rules of every study say of the numbers that the papers print or plot, by the study's name.

    Example:
        >>> [claim.verdict.value for claim in published_claims()["table4"]]
        ['undecided', 'differs', 'holds', 'holds']
    """
    known: dict[str, Study | ClosedFormStudy] = STUDIES | CLOSED_FORM | REAL_DATA
    judged = {name: each.published_claims() for name, each in known.items()}
    return {name: claims for name, claims in judged.items() if claims}


def readers_of(trained_by: str) -> list[Study]:
    """The studies that read the experiment of the study called `trained_by`, that study first."""
    trained_by = ALIASES.get(trained_by, trained_by)
    readers = [each for each in (STUDIES | REAL_DATA).values() if each.trained_by == trained_by]
    return sorted(readers, key=lambda each: each.name != trained_by)
