"""The papers' plugin: their verbs, and readers of studies and of closed forms."""

from pathlib import Path
from typing import TYPE_CHECKING

from ..registry import Plugin, StoredExperiment, StudyReader, Verb

if TYPE_CHECKING:
    from ..report.document import Document

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

    def documents(self, stored: StoredExperiment) -> "list[Document]":
        from .folder import study_documents

        return study_documents(stored)


class PapersPlugin(Plugin):
    """Published tables and figures."""

    verbs = VERBS

    def reader(self, study: str) -> StudyReader:
        return PaperReader()

    def file_documents(self, folder: Path) -> "list[Document]":
        from .folder import computed_documents

        return computed_documents(folder)


PLUGIN = PapersPlugin()
