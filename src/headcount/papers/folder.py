"""Read the papers' part of a results folder: experiments of studies, and files of closed forms."""

from dataclasses import replace
from pathlib import Path

from ..errors import StoreError
from ..registry import StoredExperiment
from ..report.document import Document
from ..store.database import RESTORE
from .base import Scale


def study_documents(stored: StoredExperiment) -> list[Document]:
    """The documents of the studies that read an experiment, none where its study is not known; its scale is added to
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

    documents = []
    for each in readers_of(experiment.study):
        document = each.document(experiment, stored.records, scale)
        blocks = (*document.blocks, *each.pictures(stored.folder))
        documents.append(replace(document, title=f"{document.title}, {words}", blocks=blocks))
    return documents


def computed_documents(root: Path) -> list[Document]:
    """The documents of closed-form studies in a folder."""
    if not any(any(root.glob(f"*-{scale}.json")) for scale in Scale):
        return []
    from .registry import CLOSED_FORM

    return [
        replace(document, name=f"{document.name}-{scale}", title=f"{document.title}, {scale} scale")
        for each in CLOSED_FORM.values()
        for scale in Scale
        if (pieces := each.read(root, scale))
        for document in [each.stored_document(root, pieces, scale)]
    ]
