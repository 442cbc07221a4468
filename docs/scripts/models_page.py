"""Draws docs/models.svg and writes the table of docs/models.md from model_heads.csv.

python docs/scripts/models_page.py

Model, year, layers, heads and width are Table 10 of Yu et al. (arXiv 2510.06662). Key heads, and head_dims other than
width / heads, were added from the models' papers and configuration files; a number that is not known is left empty.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headcount.report.chart import Chart, Series
from headcount.report.render import save_chart

DOCS = Path(__file__).parents[1]
SOURCE = "Table 10, arXiv 2510.06662; key heads and head_dim from the models' papers and configuration files"
BEGIN, END = "<!-- models -->", "<!-- end of models -->"
COLUMNS = ("model", "year", "layers", "heads", "key heads", "head_dim", "width")
HEAD_DIMS = (64, 128, 256)
"""Of the lines along which heads share the width."""
GROUPS = {"2017 to 2019": range(2017, 2020)} | {str(year): range(year, year + 1) for year in range(2020, 2025)}
"""Years of one colour."""
APART = 270.0
"""Distance along the width between markers of models of one size."""


@dataclass(frozen=True, kw_only=True)
class PublishedModel:
    """Sizes of one layer. `kv_heads` are heads with keys of their own; None where not known."""

    model: str
    year: int
    layers: int
    heads: int
    kv_heads: int | None
    head_dim: int
    width: int


def published_models() -> list[PublishedModel]:
    """Every model of the table, by year and then by size."""
    rows = list(csv.DictReader((DOCS / "scripts" / "model_heads.csv").read_text().splitlines()))
    models = []
    for row in rows:
        sizes = {name: int(row[name]) for name in ("year", "layers", "heads", "width")}
        kv_heads = int(row["kv_heads"]) if row["kv_heads"] else None
        head_dim = int(row["head_dim"] or sizes["width"] // sizes["heads"])
        models.append(PublishedModel(model=row["model"], kv_heads=kv_heads, head_dim=head_dim, **sizes))
    return sorted(models, key=lambda each: (each.year, each.width, each.layers, each.heads))


def table(known: Sequence[PublishedModel]) -> str:
    rows = [COLUMNS, ["---"] * len(COLUMNS)]
    for each in known:
        kv_heads = "" if each.kv_heads is None else each.kv_heads
        rows.append((each.model, each.year, each.layers, each.heads, kv_heads, each.head_dim, each.width))
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def heads_chart(known: Sequence[PublishedModel]) -> Chart:
    """Heads against width: a marker per model, a colour per year, thin lines where heads of one head_dim share it."""
    drawn = {name: [each for each in known if each.year in years] for name, years in GROUPS.items()}
    series = [_markers(name, chosen, known, place) for place, (name, chosen) in enumerate(drawn.items())]
    most, widest = max(each.heads for each in known), max(each.width for each in known)
    shared = f"width / {', '.join(map(str, HEAD_DIMS))}"
    for head_dim in HEAD_DIMS:
        end = min(widest, most * head_dim)
        series.append(Series(shared, (0.0, end), (0.0, end / head_dim), place=len(drawn), kind="fit", thin=True))
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


def main() -> None:
    known, page = published_models(), DOCS / "models.md"
    before, rest = page.read_text().split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table(known)}\n{END}{rest.split(END)[1]}")
    save_chart(heads_chart(known), DOCS / "models.svg")


if __name__ == "__main__":
    main()
