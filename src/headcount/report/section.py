"""One part of a report: what was asked, what came out, what it was compared with. Page, terminal, figures read it."""

from dataclasses import dataclass, replace

from ..analysis import Answer, ErrorTable, Experiment, answer_from_table, error_table
from ..analysis.comparison import Claim, PublishedTable
from .account import Account
from .chart import Chart, HeatMap
from .charts import error_chart, heat_map


@dataclass(frozen=True, kw_only=True)
class Section:
    """`headline` answers in one sentence. Only `name`, `title`, `asks` and `headline` are always there."""

    name: str
    title: str
    asks: str
    headline: str
    claims: tuple[Claim, ...] = ()
    table: ErrorTable | None = None
    answer: Answer | None = None
    published: PublishedTable | None = None
    charts: tuple[Chart | HeatMap, ...] = ()
    notes: tuple[str, ...] = ()
    account: Account | None = None


def with_account(section: Section, made: Account, scale: str = "") -> Section:
    """The section with where it comes from; `scale` is added to its title."""
    return replace(section, account=made, title=f"{section.title}, {scale}" if scale else section.title)


def headline(subject: str, answer: Answer) -> str:
    """The answer as a sentence about something."""
    return f"{subject} {answer.sentence}" if answer.heads is not None else f"{subject}: {answer.sentence}"


def experiment_section(experiment: Experiment, name: str, told_apart_by: str = "") -> Section:
    """A user's own experiment, of which a cell has finished; `told_apart_by` is what no other in the folder shares."""
    table = error_table(experiment.records)
    answer = answer_from_table(table)
    task = experiment.settings["task"]["task"]
    return Section(
        name=name,
        title=f"{task}, {told_apart_by}" if told_apart_by else task,
        asks="How many attention heads does this task need?",
        headline=headline(task, answer),
        table=table,
        answer=answer,
        charts=(error_chart(table, answer), heat_map(table)),
    )
