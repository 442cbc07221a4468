"""The papers' plugin: their verbs, and readers of studies and of closed forms."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._options import Option
from ..registry import Plugin, StoredExperiment, StudyReader, Verb

if TYPE_CHECKING:
    from ..report.document import Document
    from ..tasks import AbstractTask

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
PASSAGE_OPTIONS = {
    "embeddings": Option("Folder of the BERT model that passages are read with.", kind=Path),
    "layout": Option("Passages: candidates (as tokens) or pairs."),
    "split": Option("Which queries of a folder: train, dev."),
}


class PaperReader(StudyReader):
    """Reads the experiment of any study; all studies are imported when one is read."""

    def documents(self, stored: StoredExperiment) -> "list[Document]":
        from .folder import study_documents

        return study_documents(stored)


class PapersPlugin(Plugin):
    """Published tables and figures."""

    verbs = VERBS
    data_options = PASSAGE_OPTIONS

    def reader(self, study: str) -> StudyReader:
        return PaperReader()

    def file_documents(self, folder: Path) -> "list[Document]":
        from .folder import computed_documents

        return computed_documents(folder)

    def task_at(
        self, path: Path, options: dict[str, Any], *, cache: Path | None, planned: bool
    ) -> "AbstractTask | None":
        from .tasks.find import task_at

        return task_at(path, options, cache=cache, planned=planned)

    def task_of_spec(self, spec: Mapping[str, Any]) -> "AbstractTask | None":
        if spec["task"] != "random-labels":
            return None
        from .tasks.random_labels import RandomLabels

        return RandomLabels(**{option: value for option, value in spec.items() if option != "task"})


PLUGIN = PapersPlugin()
