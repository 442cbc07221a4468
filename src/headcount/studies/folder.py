"""A results folder as the sections of a report: the studies it was asked for, then whatever else it holds."""

from pathlib import Path
from typing import Any

from .._errors import require
from ..analysis import Experiment, experiments
from ..report.section import Section, account, experiment_section, with_account
from ..store import Outcome, Record, Store
from . import STUDIES, AbstractStudy
from .base import Scale


def studies_in(store: Store) -> list[tuple[AbstractStudy, Scale]]:
    """The studies a folder was asked for, finished or not: those whose cells are those of a remembered sweep."""
    asked = {frozenset(sweep["keys"]) for sweep in store.sweeps()}
    return [(study, scale) for study in STUDIES.values() for scale in Scale if study.keys(scale) in asked]


def own_records(study: AbstractStudy, scale: Scale, store: Store) -> list[Record]:
    """The records of a study's own cells."""
    keys = study.keys(scale)
    return [record for record in store.records() if record.cell.key in keys]


def sections_of(root: Path) -> tuple[list[Section], list[str]]:
    """Every section that something is known about, and what must be said before them."""
    with Store.open_for_reading(root) as store:
        records, sweeps, studies = store.records(), store.sweeps(), studies_in(store)
    warnings: list[str] = []
    sections: list[Section] = []
    claimed: set[str] = set()

    def commands(keys: frozenset[str]) -> list[str]:
        return [sweep["command"] for sweep in sweeps if sweep["command"] and keys & set(sweep["keys"])]

    for study, scale in studies:
        keys = study.keys(scale)
        claimed |= keys
        own = [record for record in records if record.cell.key in keys]
        if not any(record.outcome is Outcome.FINISHED for record in own):
            warnings.append(
                f"{study.title} at {scale} scale was asked for, but none of its {len(keys)} models is done."
            )
            continue
        exact = [sweep["command"] for sweep in sweeps if sweep["command"] and frozenset(sweep["keys"]) == keys]
        section = study.section(own, scale)
        sections.append(with_account(section, account(own, asked=len(keys), commands=exact), f"{scale} scale"))
    others = experiments(record for record in records if record.cell.key not in claimed)
    for place, experiment in enumerate(others, start=1):
        own = experiment.records
        task = experiment.settings["task"]["task"]
        if not any(record.outcome is Outcome.FINISHED for record in own):
            warnings.append(f"none of the {len(own)} models on {task} finished: {own[0].message or 'no reason given'}.")
            continue
        made = account(own, asked=_asked(sweeps, own) if len(others) == 1 else None, commands=commands(_keys(own)))
        section = experiment_section(experiment, f"experiment-{place}", _told_apart_by(experiment, others))
        sections.append(with_account(section, made))
    if len(others) > 1:
        warnings.append(f"The folder holds {len(others)} experiments of different settings; each is shown on its own.")
    require(
        len(sections) > 0,
        f"{root} holds no finished model yet. {' '.join(warnings)} `headcount status {root}` says how to go on.",
    )
    return sections, warnings


def _keys(records: tuple[Record, ...]) -> frozenset[str]:
    return frozenset(record.cell.key for record in records)


def _told_apart_by(experiment: Experiment, others: list[Experiment]) -> str:
    """The settings in which an experiment differs from others of the same task, in words."""

    def flat(one: Experiment) -> dict[str, Any]:
        return {name: value for part in one.settings.values() for name, value in part.items()}

    own = flat(experiment)
    alike = [flat(other) for other in others if flat(other)["task"] == own["task"]]
    differing = [name for name in own if any(other.get(name) != own[name] for other in alike)]
    return ", ".join(f"{name.replace('_', ' ')} {own[name]}" for name in differing)


def _asked(sweeps: list[dict], records: tuple[Record, ...]) -> int:
    """How many cells the commands that asked for these records asked for in all."""
    own = _keys(records)
    return len(set().union(*(sweep["keys"] for sweep in sweeps if own & set(sweep["keys"]))))
