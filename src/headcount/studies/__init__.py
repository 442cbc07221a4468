"""The published tables and figures, made again: one file each."""

from .._errors import did_you_mean, require
from . import figure1b, figure2e, figure3, figure4, table2, table3, table4, table5
from .base import AbstractStudy, Effort, Scale

STUDIES: dict[str, AbstractStudy] = {
    module.STUDY.name: module.STUDY for module in (table2, table3, table4, table5, figure1b, figure2e, figure3, figure4)
}
ALIASES = {"figure1a": "table2"}
"""Figure 1a draws what Table 2 prints."""


def study(name: str) -> AbstractStudy:
    """The study called `name`; an unknown name is refused with the nearest known one."""
    name = ALIASES.get(name, name)
    require(
        name in STUDIES,
        f'unknown study "{name}".{did_you_mean(name, [*STUDIES, *ALIASES])} Known: {", ".join(STUDIES)}, all.',
    )
    return STUDIES[name]


__all__ = ["ALIASES", "STUDIES", "AbstractStudy", "Effort", "Scale", "study"]
