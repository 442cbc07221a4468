"""The published tables and figures, made again: one file each."""

from .._errors import did_you_mean, require
from . import (
    figure1b,
    figure2e,
    figure3,
    figure4,
    rank_figure1,
    rank_figure_d,
    rank_figure_n,
    rank_in_context,
    rank_positions,
    rank_random_features,
    table2,
    table3,
    table4,
    table5,
)
from .base import AbstractStudy, Effort, Scale
from .computed import ComputedStudy

FIRST_PAPER = (table2, table3, table4, table5, figure1b, figure2e, figure3, figure4)
SECOND_PAPER = (rank_figure1, rank_figure_n, rank_figure_d, rank_positions, rank_in_context)
STUDIES: dict[str, AbstractStudy] = {module.STUDY.name: module.STUDY for module in (*FIRST_PAPER, *SECOND_PAPER)}
COMPUTED: dict[str, ComputedStudy] = {rank_random_features.STUDY.name: rank_random_features.STUDY}
"""Studies that train nothing."""
ALIASES = {"figure1a": "table2"}
"""Figure 1a draws what Table 2 prints."""


def study(name: str) -> AbstractStudy | ComputedStudy:
    """The study called `name`; an unknown name is refused with the nearest known one."""
    name = ALIASES.get(name, name)
    known = STUDIES | COMPUTED
    require(
        name in known,
        f'unknown study "{name}".{did_you_mean(name, [*known, *ALIASES])} Known: {", ".join(known)}, all.',
    )
    return known[name]


__all__ = ["ALIASES", "COMPUTED", "STUDIES", "AbstractStudy", "ComputedStudy", "Effort", "Scale", "study"]
