"""The papers' plugin: their verbs, and readers of studies and of closed forms."""

from pathlib import Path
from typing import TYPE_CHECKING

from ..registry import Plugin, StoredExperiment, StudyReader, Verb

if TYPE_CHECKING:
    from ..report.section import Section

VERBS: dict[str, Verb] = {
    "reproduce": Verb(
        summary="Reproduce a published table or figure, and judge its claims.",
        group="Measure",
        home="headcount.papers.cli.reproduce",
        examples=(
            ("headcount reproduce", "the studies and what they cost here"),
            ("headcount reproduce table2 --scale smoke", "one of them, in a minute or two"),
            ("headcount reproduce rank-figure1 --scale paper --layers 3 --seeds 1", "a part; others are added to it"),
        ),
    ),
}


class PaperReader(StudyReader):
    """Reads the experiment of any study; all studies are imported when one is read."""

    def sections(self, stored: StoredExperiment) -> "list[Section]":
        from .folder import study_sections

        return study_sections(stored)


class PapersPlugin(Plugin):
    """Published tables and figures."""

    verbs = VERBS

    def reader(self, study: str) -> StudyReader:
        return PaperReader()

    def file_sections(self, folder: Path) -> "list[Section]":
        from .folder import computed_sections

        return computed_sections(folder)


PLUGIN = PapersPlugin()
