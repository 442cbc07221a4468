"""One part of a report: the question, the answer, and what it is compared with. Page, terminal and figures read it."""

from dataclasses import dataclass, replace

from ..analysis import (
    Answer,
    Bottleneck,
    ErrorTable,
    Experiment,
    RankTable,
    answer_from_table,
    bottleneck,
    error_table,
    rank_table,
)
from ..analysis.comparison import Claim, PublishedTable
from ..analysis.summary import NMSE
from .chart import Chart, HeatMap
from .charts import error_chart, heat_map, rank_chart, rank_map
from .provenance import Provenance


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A small table of words and numbers; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A finished picture, as a PNG."""

    name: str
    title: str
    png: bytes
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of a report; `headline` answers `asks` in one sentence. All but the first four fields are optional.

    A sweep over heads and rank has `rank_table` and `bottleneck` in place of `table` and `answer`. `unit` says what the
    errors are where there is no table.
    """

    name: str
    title: str
    asks: str
    headline: str
    claims: tuple[Claim, ...] = ()
    table: ErrorTable | None = None
    answer: Answer | None = None
    published: PublishedTable | None = None
    grids: tuple[Grid, ...] = ()
    charts: tuple[Chart | HeatMap, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None
    rank_table: RankTable | None = None
    bottleneck: Bottleneck | None = None
    unit: str | None = None

    @property
    def about_rank(self) -> bool:
        """Whether the section answers for heads and rank."""
        return self.bottleneck is not None

    @property
    def counts_variance(self) -> bool:
        """Whether errors are shares of the target's variance (NMSE), not of wrong answers."""
        table = self.table or self.rank_table
        return (self.unit or (NMSE if table is None else table.unit)) == NMSE


def with_provenance(section: Section, provenance: Provenance, scale: str = "") -> Section:
    """The section with where its numbers come from; `scale` is added to its title."""
    return replace(section, provenance=provenance, title=f"{section.title}, {scale}" if scale else section.title)


def headline(subject: str, answer: Answer) -> str:
    """The answer as a sentence about something."""
    return f"{subject} {answer.sentence}" if answer.heads is not None else f"{subject}: {answer.sentence}"


def bottleneck_headline(subject: str, found: Bottleneck) -> str:
    """The verdict on heads and rank as a sentence about something."""
    return f"{subject}: {found.sentence}" if found.limit == "unknown" else f"{subject} {found.sentence}"


def experiment_section(experiment: Experiment, name: str, told_apart_by: str = "") -> Section:
    """The section of a user's own experiment with at least one finished cell.

    `told_apart_by` names the settings in which it differs from the folder's other experiments.
    """
    task = experiment.settings["task"]["task"]
    title = f"{task}, {told_apart_by}" if told_apart_by else task
    if experiment.is_map:
        ranks = rank_table(experiment.records)
        found = bottleneck(ranks)
        return Section(
            name=name,
            title=title,
            asks="Does this task need more heads, or heads of a higher rank?",
            headline=bottleneck_headline(task, found),
            rank_table=ranks,
            bottleneck=found,
            charts=(rank_map(ranks, found), rank_chart(ranks, found)),
        )
    table = error_table(experiment.records)
    answer = answer_from_table(table)
    return Section(
        name=name,
        title=title,
        asks="How many attention heads does this task need?",
        headline=headline(task, answer),
        table=table,
        answer=answer,
        charts=(error_chart(table, answer), heat_map(table)),
    )
