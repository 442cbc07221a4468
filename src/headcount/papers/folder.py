"""Read the papers' part of a results folder: experiments of studies, and files of closed forms."""

from dataclasses import replace
from pathlib import Path

from ..errors import StoreError
from ..registry import StoredExperiment
from ..report.section import Section
from ..store.database import RESTORE
from .base import Scale


def study_sections(stored: StoredExperiment) -> list[Section]:
    """The sections of the studies that read an experiment, none where its study is not known; its scale is added to
    their titles.

    A study's cells run from Python may name no scale; they count as the published grid, with a title that says so.
    """
    experiment = stored.experiment
    if experiment.scale not in ("", *Scale):
        unknown = f"{stored.folder} holds {experiment.name} at an unknown scale, {experiment.scale!r:.40}."
        raise StoreError(f"{unknown} {RESTORE}")
    scale = Scale(experiment.scale or Scale.PAPER)
    words = f"{scale} scale" if experiment.scale else "run from Python"
    from .registry import readers_of  # all studies, which a user's own experiment does not need

    sections = []
    for each in readers_of(experiment.study):
        section = each.section(experiment, stored.records, scale)
        sections.append(replace(section, title=f"{section.title}, {words}", pictures=each.pictures(stored.folder)))
    return sections


def computed_sections(root: Path) -> list[Section]:
    """The sections of closed-form studies in a folder."""
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
