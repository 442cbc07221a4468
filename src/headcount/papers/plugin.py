"""The papers' plugin: its verb, and readers of its studies."""

from collections.abc import Iterable, Mapping
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

CLOSED_FORM = ("rank-random-features",)
"""The studies that train nothing, by name: naming them here keeps the others from being imported."""
COMPLETE = "complete"
"""The fact that says that all pieces of such a study are there."""


class PaperReader(StudyReader):
    """Reads the experiment of any study; all studies are imported when one is read."""

    def documents(self, stored: StoredExperiment) -> "list[Document]":
        from .folder import study_documents

        return study_documents(stored)


class ComputedReader(StudyReader):
    """Reads studies in closed form, which have facts and no cells."""

    has_cells = False
    name = "study"

    def documents(self, stored: StoredExperiment) -> "list[Document]":
        from .folder import computed_documents

        return computed_documents(stored)

    def is_complete(self, facts: Iterable[str]) -> bool:
        return COMPLETE in facts

    def progress_words(self, task: str, attachments: Mapping[str, Any]) -> str:
        return f"{task}, {len(attachments.keys() - {COMPLETE})} pieces computed"

    def go_on(self, command: str) -> str:
        return f"To continue, run: {command}" if command else ""

    def rows(self, experiment: str, attachments: Mapping[str, Any]) -> list[dict[str, Any]]:
        pieces = {name: piece for name, piece in attachments.items() if name != COMPLETE}
        return [{"experiment": experiment, "piece": name} | piece for name, piece in pieces.items()]


class PapersPlugin(Plugin):
    """Published tables and figures."""

    verbs = VERBS
    data_options = PASSAGE_OPTIONS

    def reader(self, study: str) -> StudyReader:
        return ComputedReader() if study in CLOSED_FORM else PaperReader()

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
