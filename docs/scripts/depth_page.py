"""Writes the figure and the tables of docs/depth.md from a results folder of the study `depth`.

headcount reproduce depth --scale paper --out results/depth-paper
python docs/scripts/depth_page.py results/depth-paper
"""

import sys
from pathlib import Path

from headcount.papers.base import Scale
from headcount.papers.beyond.depth import STUDY
from headcount.report.document import Document, Grid
from headcount.report.render import save_chart
from headcount.store import Outcome, Store

DOCS = Path(__file__).parents[1]
BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def grid_lines(grid: Grid) -> list[str]:
    """A grid as a Markdown table under its title."""
    rows = [grid.columns, ["---"] * len(grid.columns), *grid.rows]
    return [f"**{grid.title.capitalize()}**", "", *("| " + " | ".join(row) + " |" for row in rows), ""]


def results(document: Document, scale: Scale, finished: int, asked: int) -> str:
    """What stands between the two marks of the page."""
    lines = [
        BEGIN,
        f"`headcount reproduce depth --scale {scale}` prints, with {finished:,} of {asked:,} models finished:",
        "",
        f"> {document.headline}.",
        "",
        *(line for grid in document.grids for line in grid_lines(grid)),
        "**The laws, judged**",
        "",
        *(f"* {claim.statement} **{claim.verdict}**: {claim.evidence}." for claim in document.claims),
        END,
    ]
    return "\n".join(lines)


def main(folder: Path) -> None:
    with Store.open_for_reading(folder) as store:
        (experiment,) = (one for one in store.experiments() if one.study == STUDY.name)
        records = experiment.own(store.records())
    scale = Scale(experiment.scale)
    document = STUDY.document(experiment, records, scale)
    finished = sum(record.outcome is Outcome.FINISHED for record in records)
    save_chart(document.charts[0], DOCS / "depth.svg", f"{document.title}: {document.charts[0].title.lower()}")
    page = DOCS / "depth.md"
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(before + results(document, scale, finished, len(experiment.places)) + after)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
