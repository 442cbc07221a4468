"""`headcount models`: head counts of published models, and what the bounds say of them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from ...cli.app import Json, print_json, say, show_view
from ...report.chart import Chart, Series
from ...report.render import FORMATS, check_ending, save_chart
from ...report.render.fitted import FittedTable, Prose
from ..model_heads import SOURCE, PublishedModel, published_models

COLUMNS = ("year", "layers", "heads", "key heads", "head_dim", "width")
HEAD_DIMS = (64, 128, 256)
"""Of the lines along which heads share the width."""
SHARED = "width / 64, 128, 256"
GROUPS = {"2017 to 2019": range(2017, 2020)} | {str(year): range(year, year + 1) for year in range(2020, 2025)}
"""Years of one colour."""
APART = 270.0
"""Distance along the width between markers of models of one size."""


def models(
    figure: Annotated[
        Path | None, typer.Option(help=f"Draw heads against width, by year ({', '.join(FORMATS)}).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Head counts of published models, and what the bounds say of them.

    Heads are those of one layer. An empty cell is not known.
    """
    if figure is not None:
        check_ending(figure)
    known = published_models()
    words = what_the_bounds_say(known)
    if figure is not None:
        save_chart(heads_chart(known), figure)
        say(f"drawn in {figure}")
    if as_json:
        rows = [asdict(each) | {"rank_share": round(each.rank_share, 4)} for each in known]
        print_json({"source": SOURCE, "models": rows, "words": list(words)})
    else:
        show_view(_view(known, words))


def what_the_bounds_say(known: Sequence[PublishedModel]) -> tuple[str, ...]:
    """The bounds of both papers applied to these sizes, with what they leave open."""
    heads, shares = [each.heads for each in known], [each.rank_share for each in known]
    shared = sum(each.kv_heads is not None and each.kv_heads < each.heads for each in known)
    unknown = sum(each.kv_heads is None for each in known)
    return (
        f"Heads: {min(heads)} to {max(heads)} per layer. By Theorem 2(1) of the first paper one layer of h heads with "
        "nets around it is enough for a task of D <= h, if the nets are large enough. The converse, that fewer than D "
        "heads need nets that grow with the length, is proved for one layer, nets of bounded slope and no layer norm. "
        "All these models have several layers, nets between them and norms: for none of them does h < D rule anything "
        "out.",
        f"Rank: the scores of a head have rank head_dim at most, {min(shares):.1%} to {max(shares):.1%} of the width "
        "here. The second paper's bounds hold for one layer and for a task that uses every direction of the width, the "
        "nearest of random points. What the tokens of a trained model use is not known from its sizes, and further "
        "layers are not covered, so low rank is no proof that a model lacks anything.",
        f"Key heads: {shared} of {len(known) - unknown} models share keys between heads ({unknown} not known). Neither "
        "paper has a bound for shared keys.",
        "None of the counts was measured here: they say what was built, not how many heads a task needs.",
    )


def heads_chart(known: Sequence[PublishedModel]) -> Chart:
    """Heads against width: a marker per model, a colour per year, thin lines where heads of one head_dim share it."""
    drawn = {name: [each for each in known if each.year in years] for name, years in GROUPS.items()}
    series = [_markers(name, chosen, known, place) for place, (name, chosen) in enumerate(drawn.items())]
    most, widest = max(each.heads for each in known), max(each.width for each in known)
    for head_dim in HEAD_DIMS:
        end = min(widest, most * head_dim)
        series.append(Series(SHARED, (0.0, end), (0.0, end / head_dim), place=len(drawn), kind="fit", thin=True))
    return Chart(
        name="models",
        title="Attention heads of published models",
        x_label="width of the residual stream",
        y_label="attention heads per layer",
        x_ticks=tuple(range(0, widest + 1, 4096)),
        log_y=False,
        series=tuple(series),
        caption="One marker per model, moved apart where models have one size; thin lines: heads of 64, 128 and 256 "
        f"numbers that share the width. {SOURCE}",
    )


def _markers(name: str, chosen: Sequence[PublishedModel], known: Sequence[PublishedModel], place: int) -> Series:
    """Markers that no line joins: a gap after each."""
    x, y = [], []
    for each in chosen:
        alike = [other.model for other in known if (other.width, other.heads) == (each.width, each.heads)]
        x += [each.width + APART * (alike.index(each.model) - (len(alike) - 1) / 2)] * 2
        y += [float(each.heads), float("nan")]
    return Series(name, tuple(x), tuple(y), place=place)


def _view(known: Sequence[PublishedModel], words: Sequence[str]) -> RenderableType:
    table = FittedTable()
    table.add_column("model")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for each in known:
        keys = "" if each.kv_heads is None else str(each.kv_heads)
        cells = map(str, (each.year, each.layers, each.heads, keys, each.head_dim, each.width))
        table.add_row(f"[bold]{escape(each.model)}[/bold]", *cells)
    notes = [Prose(f"[dim]{escape(each.model)}: {escape(each.note)}[/dim]") for each in known if each.note]
    said = [part for sentence in words for part in (Prose(escape(sentence)), "")]
    return Group(table, "", *notes, "", *said, Prose(f"[dim]{escape(SOURCE)}[/dim]"))
