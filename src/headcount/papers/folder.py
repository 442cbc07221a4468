"""A results folder as the sections of a report: its studies, then the user's own experiments and inspections."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._collection import collection_paused
from ..answer.coverage import coverage_of
from ..errors import StoreError, require
from ..pretrained.inspection.page import go_on, trained_model_section
from ..pretrained.inspection.stored import STUDY as INSPECTION
from ..report.provenance import provenance
from ..report.section import Section, experiment_section, with_coverage, with_provenance
from ..store import FILE_NAME, Experiment, Outcome, Progress, Record, Store, read_live
from ..store.cell import RESTORE
from ..store.folders import WRITING, results_below, run_state
from ..store.rows import UNREADABLE, reason_of
from .base import Scale


def sections_of(root: Path) -> tuple[list[Section], list[str]]:
    """The sections of a folder, none where nothing has finished, and warnings about what no section can say.

    Raises StoreError where the folder holds no results.
    """
    with collection_paused():
        return _sections_of(root)


def _sections_of(root: Path) -> tuple[list[Section], list[str]]:
    computed = _computed_sections(root)
    if computed and not (root / FILE_NAME).exists():
        return computed, []
    _require_one_folder(root)
    with Store.open_for_reading(root) as store:
        experiments, records = store.experiments(), store.records()
        own_records = {each.name: each.own(records) for each in experiments}
        settled = {name: len(each.settled()) for name, each in own_records.items()}
        progress = {each.experiment: each for each in store.progress(settled)}
        attachments = {each.name: store.attachments(each.name) for each in experiments}
    running = run_state(root, read_live(root)) in WRITING
    studied, own, warnings, unknown = [], [], [], []
    for experiment in experiments:
        results, how_far = own_records[experiment.name], progress[experiment.name]
        commands = [command for command, _ in how_far.runs if command]
        command = commands[-1] if commands else ""
        if experiment.study == INSPECTION:
            section = _inspection_section(experiment, attachments[experiment.name], root, command)
            own += [] if section is None else [section]
            if section is None:
                warnings.append(f"Nothing of the inspection {experiment.name} is measured yet. {go_on(command)}")
            continue
        if Outcome.FINISHED not in results.outcomes:
            lost = what_was_lost(results)
            reason = f" ({lost.rstrip('.')})" if lost else ""
            warnings.append(
                f"None of the {how_far.cells} models of {experiment.name} has finished{reason}. {_go_on(how_far)}"
            )
            continue
        origin = provenance(results, missing=how_far.cells - len(results), runs=how_far.runs)
        coverage = coverage_of(how_far, attachments[experiment.name], running=running)
        if experiment.study:
            sections = _study_sections(experiment, results, root)
            if not sections:
                unknown.append(
                    f"{root} holds {experiment.name} of a study that is not known here, {experiment.study!r:.40}. Read "
                    f"it with the version of headcount that made it. {RESTORE}"
                )
            studied += [with_coverage(with_provenance(each, origin), coverage) for each in sections]
        else:
            section = experiment_section(
                experiment, results, attachments[experiment.name], folder=str(root), command=command
            )
            own.append(with_coverage(with_provenance(section, origin), coverage))
    if unknown and not (studied or own or computed):
        raise StoreError(unknown[0])
    warnings += unknown
    if not experiments:
        warnings.append(f"{root} holds no experiment yet; `headcount measure TASK --out {root}` makes one.")
    return [*_distinct(studied), *computed, *own], warnings


def _inspection_section(
    experiment: Experiment, attachments: dict[str, Any], root: Path, command: str
) -> Section | None:
    """The section of an inspection. Raises StoreError where its facts are not what was stored."""
    try:
        return trained_model_section(experiment, attachments, folder=str(root), command=command)
    except UNREADABLE as error:
        damaged = f"{root} holds facts of the inspection {experiment.name} that cannot be read: {reason_of(error)}."
        raise StoreError(f"{damaged} {RESTORE}") from error


def _require_one_folder(root: Path) -> None:
    """Refuse a folder that holds no results itself, but folders that do."""
    below = [] if (root / FILE_NAME).exists() or not root.is_dir() else list(results_below(root))
    names = ", ".join(map(str, below[:3])) + (", .." if len(below) > 3 else "")
    hint = f"{root} holds results folders ({names}); name one of them, or list them with `headcount status {root}`."
    require(not below, hint, what="folder", given=str(root))


def _go_on(progress: Progress) -> str:
    """What to run for an experiment without a finished model."""
    if not progress.missing:
        return "All diverged: a smaller learning rate may help."
    commands = [command for command, _ in progress.runs if command]
    return f"To go on, run: {commands[-1]}" if commands else "To go on, run the same Python code again."


def what_was_lost(records: Iterable[Record]) -> str:
    """How many cells failed or diverged, and the first reason given; empty when none did."""
    lost = [record for record in records if record.outcome is not Outcome.FINISHED]
    if not lost:
        return ""
    counts = Counter(record.outcome.value for record in lost)
    messages = [record.message.splitlines()[0].rstrip(".") for record in lost if record.message]
    return f"{', '.join(f'{count} {name}' for name, count in counts.items())}: {(messages or ['no reason given'])[0]}."


def _study_sections(experiment: Experiment, records: Iterable[Record], root: Path) -> list[Section]:
    """The sections of the studies that read an experiment, none where its study is not known; its scale is added to
    their titles.

    A study's cells run from Python may name no scale; they count as the published grid, with a title that says so.
    """
    if experiment.scale not in ("", *Scale):
        raise StoreError(f"{root} holds {experiment.name} at an unknown scale, {experiment.scale!r:.40}. {RESTORE}")
    scale = Scale(experiment.scale or Scale.PAPER)
    words = f"{scale} scale" if experiment.scale else "run from Python"
    from .registry import readers_of  # all studies, which a user's own experiment does not need

    sections = []
    for each in readers_of(experiment.study):
        section = each.section(experiment, records, scale)
        title = f"{section.title}, {words}"
        sections.append(replace(section, title=title, pictures=each.pictures(root)))
    return sections


def _distinct(sections: list[Section]) -> list[Section]:
    """The sections with a number added to a name that comes again: two scales or data sets of one study."""
    counted: Counter[str] = Counter()
    distinct = []
    for section in sections:
        counted[section.name] += 1
        number = counted[section.name]
        distinct.append(section if number == 1 else replace(section, name=f"{section.name}-{number}"))
    return distinct


def _computed_sections(root: Path) -> list[Section]:
    """What closed-form studies have left in a folder."""
    if not any(any(root.glob(f"*-{scale}.json")) for scale in Scale):
        return []
    from .registry import CLOSED_FORM

    return [
        replace(section, name=f"{section.name}-{scale}", title=f"{section.title}, {scale} scale")
        for each in CLOSED_FORM.values()
        for scale in Scale
        if (pieces := each.read(root, scale))
        for section in [each.stored_section(root, pieces, scale)]
    ]
