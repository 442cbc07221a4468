"""The documents of experiments: a user's own, and those of a study of a paper."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

from ..answer import NMSE, Answer, ClaimResult, ErrorTable, Metric, answer, count_of_heads, error_table
from ..answer.answer import answer_of
from ..answer.baselines import Baseline, baselines_of, skipped_baselines, validation_examples
from ..answer.coverage import Coverage
from ..answer.estimates import SUPPORT, early_record, support_words
from ..answer.next_steps import Situation, next_steps
from ..answer.prose import prose
from ..errors import StoreError
from ..store import Experiment, Record
from ..store.database import RESTORE, UNREADABLE, reason_of, require_texts
from .chart import Chart, HeatMap
from .charts import charts_of
from .document import Claims, Document, DocumentSource, Grid, NamedFacts, Notes, Picture, Steps, Text
from .error_grid import cell_rows, error_grids
from .evidence import evidence_rows
from .heads import heads_read_of
from .heads_map import heads_map_charts, heads_needed_grid
from .provenance import Provenance
from .render.words import settings_line, spoken_time
from .training import curves_chart, fit_chart

STOCK_MODELS = "stock_models"
"""The name under which stock models that were chosen are stored, by library."""
EVIDENCE = "Evidence for the answer"


def headline_about(subject: str, answer: Answer) -> str:
    """Write the answer as a sentence about something."""
    separator = " " if answer.kind == "needs" or answer.limit == "neither" else ": "
    return f"{subject}{separator}{answer.sentence}"


def experiment_document(
    experiment: Experiment,
    records: Iterable[Record],
    attachments: Mapping[str, Any] = MappingProxyType({}),
    *,
    folder: str = "",
    command: str = "",
    table: ErrorTable | None = None,
    found: Answer | None = None,
) -> Document:
    """Return the document of a user's own experiment with at least one record.

    Arguments: `attachments` are those of the store; `folder` and the last `command` of the experiment are for the next
    steps, and empty where they are not known; `table` and `found` are its errors and answer, where they are computed
    already. Raises StoreError where an attachment is not what was stored.
    """
    records = experiment.own(records)
    table = error_table(experiment, records) if table is None else table
    try:
        found = answer_of(table, attachments) if found is None else found
        return _own_document(experiment, records, attachments, folder, command, table, found)
    except UNREADABLE as error:
        found = answer(table) if found is None else found
        _own_document(experiment, records, {}, folder, command, table, found)  # raises where they are not at fault
        raise StoreError(
            f"what {folder or 'the results folder'} holds next to the models of {experiment.name} "
            f"({', '.join(attachments)}) cannot be read: {reason_of(error)}. {RESTORE}"
        ) from error


def study_document(
    *,
    name: str,
    title: str,
    question: str,
    headline: str,
    claims: tuple[ClaimResult, ...] = (),
    table: ErrorTable | None = None,
    answer: Answer | None = None,
    published: ErrorTable | None = None,
    metric: Metric = NMSE,
    grids: tuple[Grid, ...] = (),
    charts: tuple[Chart | HeatMap, ...] = (),
    notes: tuple[str, ...] = (),
    pictures: tuple[Picture, ...] = (),
) -> Document:
    """Return the document of a study. `published` is next to `table`; `metric` says what errors are without a table."""
    errors = () if table is None else error_grids(table, answer, published=published)
    rests_on = []
    if answer is not None:
        rests_on = [*evidence_rows(table, answer, {}), *(("note", note) for note in answer.notes)]

    def content() -> dict[str, Any]:
        judged = {} if answer is None else answer.as_dict()
        return judged | ({} if table is None else {"cells": cell_rows(table, published=published)})

    return Document(
        content=content,
        kind="study",
        name=name,
        title=title,
        question=question,
        headline=headline,
        unit=(metric if table is None else table.metric).unit,
        blocks=(
            *errors,
            *charts,
            *pictures,
            *grids,
            Claims(claims),
            NamedFacts(tuple(rests_on), EVIDENCE, shown="page"),
            Notes(notes, "Notes on the reproduction", shown="page"),
        ),
        source=DocumentSource(task=title, table=table, answer=answer),
    )


def with_coverage(document: Document, coverage: Coverage, provenance: Provenance | None = None) -> Document:
    """Add how much of the experiment is trained, a warning where that is a part, and the origin to a document."""
    assert document.source is not None
    source = replace(document.source, coverage=coverage)
    document = replace(document, source=source, warning=document.warning or coverage.warning, provenance=provenance)
    if provenance is None:
        return document
    blocks, lost = list(document.blocks), provenance.lost_words(missing_too=not document.warning)
    if lost:
        blocks.append(Text((lost,), role="warning", shown="page"))
    if provenance.backend:
        blocks.append(Text(((f"back end: {provenance.backend}", "dim"),), shown="terminal"))
    return replace(document, blocks=tuple(blocks))


def _own_document(
    experiment: Experiment,
    records: Sequence[Record],
    attachments: Mapping[str, Any],
    folder: str,
    command: str,
    table: ErrorTable,
    found: Answer,
) -> Document:
    stored, notes = attachments.get("baselines", ()), _texts(attachments.get("notes", ()))
    baselines, examples = baselines_of(table, stored), validation_examples(stored)
    effort = attachments.get("effort", {})
    situation = Situation(
        experiment=experiment,
        records=records,
        table=table,
        answer=found,
        baselines=baselines,
        examples=examples,
        effort=effort,
        folder=folder,
        command=command,
    )
    overfits = situation.overfitted is not None
    sentences = prose(table, found, baselines, examples=examples, converged=situation.converged, overfits=overfits)
    steps, early = next_steps(situation), _early(records)
    support = support_words(attachments.get(SUPPORT), found)
    facts = evidence_rows(table, found, effort)
    facts += [("baselines", f"{each.label} was {each.note}") for each in baselines if each.note]
    facts += [("not computed", words) for words in skipped_baselines(table, stored)]
    facts += [("support dimension", support.removeprefix("support dimension "))] if support else []
    facts += [] if early is None else [("early estimate", _early_words(early))]
    facts += [("note", note) for note in (*notes, *found.notes)]
    chosen = attachments.get(STOCK_MODELS, {})
    settings, words = dict(experiment.settings), headline_about(experiment.task, found)

    def content() -> dict[str, Any]:
        said: dict[str, Any] = found.as_dict() | {"prose": list(sentences), "next_steps": list(map(asdict, steps))}
        said |= {"baselines": list(map(asdict, baselines))}
        said |= {"data_notes": list(notes)} if notes else {}
        said |= {"support_dimension": support} if support else {}
        said |= {STOCK_MODELS: chosen} if chosen else {}
        said |= {"settings": settings, "early": early}
        return said | {"cells": cell_rows(table, experiment=experiment)}

    return Document(
        content=content,
        kind="own",
        name=experiment.name,
        title=experiment.name,
        question=experiment.question,
        headline=words,
        heading=words.removesuffix(f": {found.reason}") if sentences and found.kind == "none" else "",
        unit=table.metric.unit,
        closing=found.sentence,
        blocks=(
            Text(((experiment.name, "bold"), f": {settings_line(settings)}"), shown="terminal"),
            *error_grids(table, found, experiment),
            *((heads_needed_grid(found),) if found.map else ()),
            *_charts(experiment, records, table, found, baselines),
            *filter(None, (heads_read_of(attachments.get("heads")),)),
            *_stock_models(chosen),
            NamedFacts(tuple(facts), EVIDENCE),
            *((Text.of_sentences(sentences),) if sentences else ()),
            Steps(tuple(steps)),
        ),
        source=DocumentSource(task=experiment.task, table=table, answer=found, settings=settings),
    )


def _stock_models(chosen: Mapping[str, Mapping[str, Any]]) -> Iterable[Grid | Text]:
    """Return the stock model that was chosen for each library, among those that were trained."""
    for library, each in chosen.items():
        rows = tuple(tuple(map(str, row)) for row in each["rows"])
        title = f"Stock models of {library}, smallest first"
        yield Grid(columns=tuple(each["columns"]), rows=rows, title=title, marked=(int(each["marked"]),))
        yield Text((str(each["sentence"]),))


def _charts(
    experiment: Experiment, records: Sequence[Record], table: ErrorTable, found: Answer, baselines: Sequence[Baseline]
) -> Iterable[Chart | HeatMap]:
    """Return the main chart, the curves, what else there is of the errors, and the fit."""
    main, *rest = heads_map_charts(table, found) if found.map else charts_of(table, found, baselines)
    curves, fit = curves_chart(experiment, records, table, found), fit_chart(experiment, records, table)
    return filter(None, (main, curves, *rest, fit))


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Return stored texts. Raises TypeError where one is something else."""
    texts = tuple(values)
    require_texts(texts)
    return texts


def _early(records: Iterable[Record]) -> dict[str, float] | None:
    record = early_record(records)
    return None if record is None else record.provenance["early"] | {"steps": record.cell.train.steps}


def _early_words(early: dict[str, float]) -> str:
    heads, step, steps = (int(early[name]) for name in ("heads", "step", "steps"))
    return f"{count_of_heads(heads)} after {step:,} of {steps:,} steps ({spoken_time(early['seconds'])})"
