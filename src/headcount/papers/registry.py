"""Every study by the name one types. Importing this needs no JAX."""

import importlib
import pkgutil

from ..answer.claim import ClaimResult
from ..errors import did_you_mean, require
from .base import ClosedFormStudy, Study
from .real_data.base import RealDataStudy

ROOMS = ("head_count", "rank", "beyond", "others", "real_data")
"""The folders whose files make studies."""
ORDER = (
    *("table2", "table3", "table4", "table5", "figure1b", "figure2e", "figure3", "figure4"),
    *("table2-draws", "converged"),
    *("rank-figure1", "rank-figure-n", "rank-figure-d", "rank-positions", "rank-in-context", "rank-norms"),
    *("depth", "shared-keys", "sparse", "architectures", "norm", "alphabet"),
    "memorise",
)
"""The order in which studies are listed; others follow."""
ALIASES = {"figure1a": "table2", "variants": "converged"}
"""Figure 1a draws what Table 2 prints; variants is what `converged` was called in the folders of its first run."""


def _studies() -> dict[str, Study | ClosedFormStudy]:
    found: dict[str, Study | ClosedFormStudy] = {}
    for room in ROOMS:
        package = importlib.import_module(f".{room}", __package__)
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for made in vars(importlib.import_module(module.name)).values():
                if isinstance(made, Study | ClosedFormStudy):
                    found[made.name] = made
    return {name: found[name] for name in dict.fromkeys((*ORDER, *found))}


_ALL = _studies()
REAL_DATA = {name: each for name, each in _ALL.items() if isinstance(each, RealDataStudy)}
"""Studies of real data, which must be given."""
CLOSED_FORM = {name: each for name, each in _ALL.items() if isinstance(each, ClosedFormStudy)}
"""Studies that train nothing."""
STUDIES = {name: each for name, each in _ALL.items() if isinstance(each, Study) and name not in REAL_DATA}
"""All others."""


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
    """The verdicts of every study's rules on the numbers that the papers print or plot, by the study's name.

    Example:
        >>> [claim.verdict.value for claim in published_claims()["table4"]]
        ['undecided', 'differs', 'holds', 'holds']
    """
    judged = {name: each.published_claims() for name, each in (STUDIES | CLOSED_FORM | REAL_DATA).items()}
    return {name: claims for name, claims in judged.items() if claims}


def readers_of(trained_by: str) -> list[Study]:
    trained_by = ALIASES.get(trained_by, trained_by)
    readers = [each for each in (STUDIES | REAL_DATA).values() if each.trained_by == trained_by]
    return sorted(readers, key=lambda each: each.name != trained_by)
