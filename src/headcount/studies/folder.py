"""A results folder as the sections of a report: the studies it was asked for, then whatever else it holds."""

import dataclasses
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .._errors import require
from ..analysis import Experiment, experiments
from ..report.provenance import provenance
from ..report.section import Section, experiment_section, with_provenance
from ..store import FILE_NAME, Outcome, Record, Store
from . import COMPUTED, LABELLED, STUDIES, AbstractStudy, LabelledStudy
from .base import Scale


def studies_in(store: Store) -> list[tuple[AbstractStudy, Scale]]:
    """The studies a folder can tell of, finished or not: those whose cells are those of a remembered sweep.

    A study of real data is told by any of its cells: which ones it has hangs on the data, and some may be left out.
    """
    asked = {frozenset(sweep["keys"]) for sweep in store.sweeps()}
    trained = [(study, scale) for study in STUDIES.values() for scale in Scale if study.keys(scale) in asked]
    records = store.records()
    known = {record.cell.key for record in records}
    bound = [each for study in LABELLED.values() for each in study.told_by(records)]
    return trained + [(each, scale) for each in bound for scale in Scale if each.keys(scale) & known]


def own_records(study: AbstractStudy, scale: Scale, records: Iterable[Record]) -> list[Record]:
    """The records of a study's own cells."""
    keys = study.keys(scale)
    return [record for record in records if record.cell.key in keys]


def first_reason(records: Iterable[Record]) -> str:
    """The first line of the first message there is."""
    return next((record.message.splitlines()[0].rstrip(".") for record in records if record.message), "no reason given")


def what_was_lost(records: Iterable[Record]) -> str:
    """How many cells failed or diverged, and the first reason given; empty when none did."""
    lost = [record for record in records if record.outcome is not Outcome.FINISHED]
    if not lost:
        return ""
    counts = Counter(record.outcome.value for record in lost)
    return f"{', '.join(f'{count} {name}' for name, count in counts.items())}: {first_reason(lost)}."


def sections_of(root: Path) -> tuple[list[Section], list[str]]:
    """Every section that something is known about, and what must be said before them."""
    computed = _computed_sections(root)
    if computed and not (root / FILE_NAME).exists():
        return computed, []
    with Store.open_for_reading(root) as store:
        found = _Folder(root, store.records(), store.sweeps(), studies_in(store))
    sections = [*found.study_sections(), *computed, *found.experiment_sections()]
    found.say_what_has_not_begun()
    warnings = " ".join(found.warnings)
    require(
        len(sections) > 0,
        f"{root} holds no finished model yet. {warnings} `headcount status {root}` says how to go on.",
    )
    return sections, found.warnings


def _computed_sections(root: Path) -> list[Section]:
    """What studies that train nothing have left in a folder."""
    return [
        dataclasses.replace(section, name=f"{section.name}-{scale}", title=f"{section.title}, {scale} scale")
        for each in COMPUTED.values()
        for scale in Scale
        if (pieces := each.read(root, scale))
        for section in [each.section(pieces, scale)]
    ]


class _Folder:
    """What a folder holds, sorted step by step; `warnings` gathers what no section can say."""

    def __init__(
        self,
        root: Path,
        records: list[Record],
        sweeps: list[dict[str, Any]],
        studies: list[tuple[AbstractStudy, Scale]],
    ):
        self.root, self.records, self.sweeps, self.studies = root, records, sweeps, studies
        self.known = {record.cell.key for record in records}
        self.claimed = frozenset().union(*(study.keys(scale) for study, scale in studies))
        self.warnings: list[str] = []

    def study_sections(self) -> list[Section]:
        made = []
        several = {name for name, count in Counter(study.name for study, _ in self.studies).items() if count > 1}
        named: Counter[str] = Counter()
        for study, scale in self.studies:
            keys = study.keys(scale)
            own = own_records(study, scale, self.records)
            if not any(record.outcome is Outcome.FINISHED for record in own):
                lost = what_was_lost(own)
                self.warnings.append(
                    f"{study.title} at {scale} scale was asked for, but none of its {len(keys)} models has finished"
                    + (f" ({lost.rstrip('.')})." if lost else ".")
                )
                continue
            section = dataclasses.replace(study.section(own, scale), pictures=study.pictures(self.root))
            if study.name in several:
                name = f"{section.name}-{scale}"
                named[name] += 1  # two data sets of one study at one scale
                section = dataclasses.replace(section, name=f"{name}-{named[name]}" if named[name] > 1 else name)
            asking = [sweep for sweep in self.sweeps if _asks_for(study, keys, frozenset(sweep["keys"]))]
            missing = len(keys - self.known)
            made.append(with_provenance(section, provenance(own, missing=missing, sweeps=asking), f"{scale} scale"))
        return made

    def experiment_sections(self) -> list[Section]:
        made = []
        # An experiment that shares some models with a study is still shown whole.
        others = [one for one in experiments(self.records) if not _keys(one) <= self.claimed]
        for place, experiment in enumerate(others, start=1):
            own = experiment.records
            if not any(record.outcome is Outcome.FINISHED for record in own):
                task = experiment.settings["task"]["task"]
                self.warnings.append(f"none of the {len(own)} models on {task} finished: {first_reason(own)}.")
                continue
            asking = [sweep for sweep in self.sweeps if _keys(experiment) & set(sweep["keys"])]
            missing = set().union(*(sweep["keys"] for sweep in asking)) - self.known - self.claimed
            section = experiment_section(experiment, f"experiment-{place}", _told_apart_by(experiment, others))
            made.append(with_provenance(section, provenance(own, missing=len(missing), sweeps=asking)))
        if len(others) > 1:
            self.warnings.append(
                f"The folder holds {len(others)} experiments of different settings; each is shown on its own."
            )
        return made

    def say_what_has_not_begun(self) -> None:
        """Sweeps of which not one cell is known; a study among them has been named already."""
        for sweep in self.sweeps:
            keys = set(sweep["keys"])
            if keys and not keys & self.known and not keys <= self.claimed:
                command = sweep["command"] or "a sweep from Python"
                self.warnings.append(f"None of the {len(keys)} models of `{command}` is trained yet.")


def _asks_for(study: AbstractStudy, keys: frozenset[str], asked: frozenset[str]) -> bool:
    """Whether a sweep is a study's: all of its cells, or some of those of a study of real data."""
    return asked == keys or (isinstance(study, LabelledStudy) and asked <= keys)


def _keys(experiment: Experiment) -> frozenset[str]:
    return frozenset(record.cell.key for record in experiment.records)


def _told_apart_by(experiment: Experiment, others: list[Experiment]) -> str:
    """The settings in which an experiment differs from others of the same task, in words."""

    def flat(one: Experiment) -> dict[str, Any]:
        return {name: value for part in one.settings.values() for name, value in part.items()}

    own = flat(experiment)
    alike = [flat(other) for other in others if flat(other)["task"] == own["task"]]
    differing = [name for name in own if any(other.get(name) != own[name] for other in alike)]
    return ", ".join(f"{name.replace('_', ' ')} {own[name]}" for name in differing)
