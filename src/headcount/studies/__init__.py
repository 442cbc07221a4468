"""The published tables and figures, made again: one file each."""

from .._errors import did_you_mean, require
from . import (
    cifar,
    figure1b,
    figure2e,
    figure3,
    figure4,
    marco,
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
from .computed import ClosedFormStudy
from .labelled import LabelledStudy

FIRST_PAPER = (table2, table3, table4, table5, figure1b, figure2e, figure3, figure4)
SECOND_PAPER = (rank_figure1, rank_figure_n, rank_figure_d, rank_positions, rank_in_context)
STUDIES: dict[str, AbstractStudy] = {module.STUDY.name: module.STUDY for module in (*FIRST_PAPER, *SECOND_PAPER)}
COMPUTED: dict[str, ClosedFormStudy] = {rank_random_features.STUDY.name: rank_random_features.STUDY}
"""Studies that train nothing."""
LABELLED: dict[str, LabelledStudy] = {module.STUDY.name: module.STUDY for module in (cifar, marco)}
"""Studies of real data, which must be given."""
ALIASES = {"figure1a": "table2"}
"""Figure 1a draws what Table 2 prints."""


def study(name: str) -> AbstractStudy | ClosedFormStudy | LabelledStudy:
    """The study called `name`; an unknown name is refused with the nearest known one."""
    name = ALIASES.get(name, name)
    known = STUDIES | COMPUTED | LABELLED
    require(
        name in known,
        f'unknown study "{name}".{did_you_mean(name, [*known, *ALIASES])} Known: {", ".join(known)}, all.',
    )
    return known[name]


__all__ = [
    "ALIASES",
    "COMPUTED",
    "LABELLED",
    "STUDIES",
    "AbstractStudy",
    "ClosedFormStudy",
    "Effort",
    "LabelledStudy",
    "Scale",
    "study",
]
