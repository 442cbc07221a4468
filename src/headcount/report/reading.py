"""A results folder as documents: studies of the satellites, then the user's own experiments."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..answer.coverage import coverage_of
from ..errors import StoreError, require
from ..registry import StoredExperiment, StudyReader, reader_of
from ..store import FILE_NAME, Experiment, Outcome, Progress, Record, Store, read_live
from ..store.database import RESTORE, readable
from ..store.folders import WRITING, results_below, run_state
from .document import Document
from .experiment import experiment_document, with_coverage
from .provenance import provenance


def documents_of(root: Path) -> tuple[list[Document], list[str]]:
    """Return the documents of a folder, none where nothing has finished, and warnings about what none of them can say.

    Raises StoreError where the folder holds no results.
    """
    _require_one_folder(root)
    return _FolderReading(root).documents()


class _FolderReading:
    """What the store of a folder holds, read once."""

    def __init__(self, root: Path):
        self.root = root
        with Store.open_for_reading(root) as store:
            self.experiments, records = store.experiments(), store.records()
            self.records = {each.name: each.own(records) for each in self.experiments}
            self.progress = {each.experiment: each for each in store.progress()}
            self.attachments = {each.name: store.facts(each.name) for each in self.experiments}
        self.running = run_state(root, read_live(root)) in WRITING
        self.warnings: list[str] = []
        self.unknown: list[str] = []

    def documents(self) -> tuple[list[Document], list[str]]:
        studied, own = [], []
        for experiment in self.experiments:
            reader = reader_of(experiment.study)
            if reader is not None and not reader.has_cells:
                own += self._without_cells(experiment, reader)
            elif not any(record.finished for record in self.records[experiment.name]):
                self.warnings.append(self._nothing_finished(experiment))
            elif experiment.study:
                studied += self._of_study(experiment, reader)
            else:
                own.append(self._of_user(experiment))
        if self.unknown and not (studied or own):
            raise StoreError(self.unknown[0])
        warnings = self.warnings + self.unknown
        if not self.experiments:
            warnings.append(
                f"{self.root} holds no experiment yet; `headcount measure TASK --out {self.root}` makes one."
            )
        return [*_distinct(studied), *own], warnings

    def _without_cells(self, experiment: Experiment, reader: StudyReader) -> list[Document]:
        """Return the documents of an experiment that has facts and no cells. Raises StoreError for damaged facts."""
        stored = self._stored(experiment)
        with readable(self.root / FILE_NAME):
            documents = reader.documents(stored)
        if not documents:
            words = f"Nothing of the {reader.name} {experiment.name} is measured yet."
            self.warnings.append(f"{words} {reader.go_on(stored.command)}")
        return documents

    def _nothing_finished(self, experiment: Experiment) -> str:
        lost, progress = what_was_lost(self.records[experiment.name]), self.progress[experiment.name]
        reason = f" ({lost.rstrip('.')})" if lost else ""
        return f"None of the {progress.cells} models of {experiment.name} has finished{reason}. {_go_on(progress)}"

    def _of_study(self, experiment: Experiment, reader: StudyReader | None) -> list[Document]:
        documents = [] if reader is None else reader.documents(self._stored(experiment))
        if not documents:
            self.unknown.append(
                f"{self.root} holds {experiment.name} of a study that is not known here, {experiment.study!r:.40}. "
                f"Read it with the version of headcount that made it. {RESTORE}"
            )
        return [self._with_coverage(each, experiment) for each in documents]

    def _of_user(self, experiment: Experiment) -> Document:
        stored = self._stored(experiment)
        with readable(self.root / FILE_NAME):
            document = experiment_document(
                experiment, stored.records, stored.attachments, folder=str(self.root), command=stored.command
            )
            return self._with_coverage(document, experiment)

    def _stored(self, experiment: Experiment) -> StoredExperiment:
        return StoredExperiment(
            experiment=experiment,
            records=self.records[experiment.name],
            attachments=self.attachments[experiment.name],
            folder=self.root,
            command=_last_command(self.progress[experiment.name]),
        )

    def _with_coverage(self, document: Document, experiment: Experiment) -> Document:
        records, progress = self.records[experiment.name], self.progress[experiment.name]
        coverage = coverage_of(progress, self.attachments[experiment.name], running=self.running)
        origin = provenance(records, missing=progress.cells - len(records), runs=progress.runs)
        return with_coverage(document, coverage, origin)


def _last_command(progress: Progress) -> str:
    """Return the last command of an experiment; empty where it was run from Python."""
    return next((command for command, _ in reversed(progress.runs) if command), "")


def _require_one_folder(root: Path) -> None:
    """Refuse a folder that holds no results itself, but folders that do."""
    below = [] if (root / FILE_NAME).exists() or not root.is_dir() else list(results_below(root))
    names = ", ".join(map(str, below[:3])) + (", .." if len(below) > 3 else "")
    hint = f"{root} holds results folders ({names}); name one of them, or list them with `headcount status {root}`."
    require(not below, hint, what="folder", given=str(root))


def _go_on(progress: Progress) -> str:
    """Say what to run for an experiment without a finished model."""
    if not progress.missing:
        return "All diverged: a smaller learning rate may help."
    command = _last_command(progress)
    return f"To continue, run: {command}" if command else "To continue, run the same Python code again."


def what_was_lost(records: Iterable[Record]) -> str:
    """Say how many cells failed or diverged, and the first reason given; "" where none did."""
    lost = [record for record in records if record.outcome is not Outcome.FINISHED]
    if not lost:
        return ""
    counts = Counter(record.outcome.value for record in lost)
    messages = [record.message.splitlines()[0].rstrip(".") for record in lost if record.message]
    return f"{', '.join(f'{count} {name}' for name, count in counts.items())}: {(messages or ['no reason given'])[0]}."


def _distinct(documents: list[Document]) -> list[Document]:
    """Add a number to a name that comes again: two scales or data sets of one study."""
    counted: Counter[str] = Counter()
    distinct = []
    for document in documents:
        counted[document.name] += 1
        number = counted[document.name]
        distinct.append(document if number == 1 else replace(document, name=f"{document.name}-{number}"))
    return distinct
