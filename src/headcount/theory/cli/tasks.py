"""`headcount tasks`: the named tasks; of one of them, its support dimension and the papers' assumptions."""

import inspect
from collections.abc import Iterator
from typing import Annotated

import typer

from ...report.document import Block, Document, Entry, Grid, NamedFacts, Text, text
from ...tasks import PRESETS, Retrieval, preset_options
from ...tasks.find import find_task
from ..assumptions import check_assumptions
from ..support import Support, support_dim
from ..support.dimension import RELATIVE

HOLDS = {True: Entry("yes", style="green"), False: Entry("no", style="red")}
SHOWN = 8
"""Tokens of a witness that are named."""


def tasks(
    name: Annotated[str | None, typer.Argument(help="A preset or a task of yours, to test it.")] = None,
    support: Annotated[
        bool, typer.Option("--support", help="The support dimension of every named task; takes seconds.")
    ] = False,
) -> Document:
    """The named tasks with their options, or one task: its support dimension, and the papers' assumptions."""
    if name is not None:
        return _one_task(name)
    if support:
        supports = {known: support_dim(find_task(known)) for known in PRESETS}
        content = {known: each.as_dict() for known, each in supports.items()}
        return Document(content=lambda: content, blocks=(_supports_grid(supports),))
    presets = {known: {"summary": make.__doc__, "options": preset_options(known)} for known, make in PRESETS.items()}
    return Document(content=lambda: presets, blocks=tuple(_presets()))


def _one_task(name: str) -> Document:
    task = find_task(name)
    support = support_dim(task)
    content = {"task": task.spec(), "intrinsic_dim": task.intrinsic_dim, "support": support.as_dict()}
    blocks: tuple[Block, ...] = _support_blocks(support)
    if isinstance(task, Retrieval):
        clauses = check_assumptions(task).clauses
        content["clauses"] = [{"clause": c.name, "holds": c.holds, "evidence": c.evidence} for c in clauses]
        rows = tuple((c.name, HOLDS[c.holds], c.evidence) for c in clauses)
        title = f"{task.name}: Assumption 2 on the cube"
        blocks += (Grid(title=title, columns=("clause", "holds", "evidence"), rows=rows, keys=2, align="llp"),)
    return Document(content=lambda: content, blocks=blocks)


def _support_blocks(support: Support) -> tuple[Block, ...]:
    """The support dimension with its witness: where the tokens lie that matter, and their gradients."""
    counted = [t for t, size in enumerate(support.gradients) if size > RELATIVE * support.gradients.max()]
    shown = [f"{t + 1} ({support.gradients[t]:.2g})" for t in counted[:SHOWN]]
    more = f" and {len(counted) - SHOWN} more" if len(counted) > SHOWN else ""
    rows = [
        ("witness", f"gradients at token {', '.join(shown)}{more}"),
        ("certificate", f"{support.proved} enclosed gradients exclude 0, on a box of half width {support.radius:g}"),
        ("drawn sequences", f"tokens that matter, median: {support.typical:g}"),
    ]
    if not support.proved:
        rows[1] = ("certificate", f"none: {support.unproved}")
    rows += [("means", support.consequence)] if support.consequence else []
    rows += [("not covered", words) for words in support.not_covered]
    return text((support.task, "bold"), f": {support.sentence}"), NamedFacts(tuple(rows))


def _supports_grid(supports: dict[str, Support]) -> Grid:
    rows = []
    for known, each in supports.items():
        components = "" if each.components is None else f"{each.components}"
        rows.append((known, f"{each.value}", f"{each.length}", components, f"{each.proved}", _in_short(each)))
    columns = ("task", "tokens", "T", "components", "proved", "means")
    return Grid(columns=columns, rows=tuple(rows), align="lrrrrl")


def _in_short(support: Support) -> str:
    if support.every_token or support.grows:
        return "every token matters, at all lengths tried" if support.every_token else "more in longer sequences"
    if support.answered_at != "sequence":
        return "the token that is read; the choice has no gradient"
    if support.exact and support.components is not None:
        return f"D = {support.value}, exact"
    return f"D is at least {support.proved}" if support.proved else "nothing is proved"


def _presets() -> Iterator[Text]:
    """Each task, what it asks, and the options of `measure` that it takes with their defaults."""
    for name, make in PRESETS.items():
        summary = " ".join(inspect.cleandoc(make.__doc__ or "").split())
        yield text((name, "bold"), f"  {summary}")
        options = {option: value for option, value in preset_options(name).items() if option != "length"}
        flags = (
            f"--{option.replace('_', '-')} {'none' if value is None else value}".replace(" ", "\xa0")
            for option, value in options.items()
        )
        yield text(("  ".join(flags), "dim"), indent=4)
    yield text("")
    yield text("headcount measure TASK with any of its options; every task takes --lengths")
