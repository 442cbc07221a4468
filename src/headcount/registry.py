"""What satellites add to the core: verbs, readers of what they stored, and hooks of a run.

The core imports no satellite. Each has a `plugin.py` with `PLUGIN`, an instance of a subclass of `Plugin`, which
imports nothing heavy: a hook imports what it needs when it is called. Another distribution adds its own by an entry
point in the group "headcount.satellites" that names such an instance.

To add a verb: one file with a function of the verb's name that returns a `Document` (`cli/show.py` is a short one), and
its row in `CORE` of `cli/verbs.py`, or in `verbs` of a satellite's plugin.
"""

import functools
import importlib
import importlib.metadata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from ._options import Option

if TYPE_CHECKING:
    from .engine import Executor
    from .report.document import Document
    from .store import Experiment, Record, Store
    from .tasks import AbstractTask

    ModelFact = Callable[[Store, Experiment, Record, AbstractTask], dict[str, Any]]

T = TypeVar("T")
SATELLITES = ("pretrained", "theory", "cluster", "serve", "stock", "papers")
"""In the order in which they are asked; papers comes last because it reads every study that no other knows."""
ENTRY_POINTS = "headcount.satellites"


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A row of the help. `home` is the module whose function has the verb's name; `examples` are commands with what
    they do. `figure` are the flag and the help of the option that saves a figure, where the verb draws one."""

    summary: str
    group: str
    home: str
    examples: tuple[tuple[str, str], ...] = ()
    figure: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class StoredExperiment:
    """An experiment as a results folder holds it, and the last command that asked for it."""

    experiment: "Experiment"
    records: "Sequence[Record]"
    attachments: Mapping[str, Any]
    folder: Path
    command: str


@dataclass(frozen=True)
class TaskFact:
    """Something known of a task before training: JSON that is stored under `name`, and a sentence."""

    name: str
    content: dict[str, Any]
    words: str


@runtime_checkable
class LivePage(Protocol):
    """A page that shows a run while it trains."""

    address: str

    def wait(self) -> None: ...


class StudyReader:
    """Reads experiments of a satellite's study. One that trains no cells overrides all methods."""

    has_cells = True
    name = "study"
    """What its experiments are called in sentences."""

    def documents(self, stored: StoredExperiment) -> "list[Document]":
        """Return what a report shows of it; nothing where the study is not known here."""
        raise NotImplementedError

    def is_complete(self, facts: Iterable[str]) -> bool:
        """Whether an experiment without cells has ended, by the names of its stored facts."""
        return True

    def progress_words(self, task: str, attachments: Mapping[str, Any]) -> str:
        """Return how far an experiment without cells is."""
        return ""

    def go_on(self, command: str) -> str:
        """Return what to do with an experiment without cells of which nothing can be shown yet."""
        return ""

    def rows(self, experiment: str, attachments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what `export` writes of an experiment without cells."""
        return []


class Plugin:
    """What a satellite adds; a subclass overrides what it has."""

    verbs: Mapping[str, Verb] = {}
    data_options: Mapping[str, Option] = {}
    """Options of the data that `task_at` reads, with the words of the help."""

    def reader(self, study: str) -> StudyReader | None:
        """Return the reader of experiments whose `study` is this; None where it is another's."""
        return None

    def check_folder(self, folder: Path) -> "Document | None":
        """Check a folder that the satellite wrote, for `verify`; None where it wrote none. Raises InputError."""
        return None

    def executor(self, on: str, *, workers: int | None) -> "Executor | None":
        """Return what trains at a place other than this process; None where another satellite does."""
        return None

    def live_page(self, folder: Path) -> LivePage | None:
        """Return a live page of a run that is about to begin."""
        return None

    def task_at(
        self, path: Path, options: dict[str, Any], *, cache: Path | None, planned: bool
    ) -> "AbstractTask | None":
        """Return the task of the data at a path, with `options` as of `data_options`; None for other data.

        `planned`: it is to plan with, and what takes long is left out.
        """
        return None

    def task_of_spec(self, spec: Mapping[str, Any]) -> "AbstractTask | None":
        """Return the task of a study that has this stored spec and needs no data; None where it is another's."""
        return None

    def task_facts(self, task: "AbstractTask", lengths: Sequence[int], stored: Mapping[str, Any]) -> Iterable[TaskFact]:
        """Return what is known of a task before training, unless `stored` has it. Raises nothing."""
        return ()

    def model_facts(self, task: "AbstractTask") -> Mapping[str, "ModelFact"]:
        """Return what to find out about the best model that was trained on a task, by the name it is stored under."""
        return {}


@functools.cache
def plugins() -> tuple[Plugin, ...]:
    """Return the plugins of other distributions, then ours."""
    others = [each.load() for each in importlib.metadata.entry_points(group=ENTRY_POINTS)]
    ours = [importlib.import_module(f"{__package__}.{name}.plugin").PLUGIN for name in SATELLITES]
    return (*others, *ours)


def reader_of(study: str) -> StudyReader | None:
    """Return the reader of a study's experiments; None for a user's own, and for a study that nobody knows."""
    if not study:
        return None
    return first_of(lambda each: each.reader(study))


def has_cells(study: str) -> bool:
    """Whether experiments of a study consist of trained cells."""
    reader = reader_of(study)
    return reader is None or reader.has_cells


def first_of(ask: Callable[[Plugin], T | None]) -> T | None:
    """Return the answer of the first satellite that has one: `first_of(lambda each: each.live_page(folder))`."""
    return next((found for each in plugins() if (found := ask(each)) is not None), None)


def task_facts(task: "AbstractTask", lengths: Sequence[int], stored: Mapping[str, Any] | None = None) -> list[TaskFact]:
    """Return what the satellites know of a task before training, less what is stored."""
    return [fact for each in plugins() for fact in each.task_facts(task, lengths, stored or {})]
