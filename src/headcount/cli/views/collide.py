"""What `headcount collide` prints."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ...collide import Floors


def floors_view(models: Sequence[Floors], where: Sequence[str]) -> RenderableType:
    """Model by model: its measured error, and the floor that is certified for each question."""
    view = Table(box=None)
    for column in ("model", "T", "heads", "seed", "NMSE", *(f"floor, {question}" for question in where)):
        view.add_column(column, justify="right")
    for floors in models:
        cell = floors.record.cell
        cells = []
        for question in where:
            certificate = floors.near_data if question == "near data" else floors.anywhere
            kind = "none found" if certificate is None else "any readout" if certificate.exact else "bounded slope"
            if certificate is not None and certificate.estimated:
                kind += ", gap estimated"
            cells.append(f"{floors.floor(question):.2g} [dim]{kind}[/dim]")
        numbers = (cell.length, cell.model.heads, cell.seed)
        view.add_row(cell.key[:6], *map(str, numbers), f"{floors.record.metrics['nmse']:.1e}", *cells)
    reasons = dict.fromkeys(
        certificate.estimated
        for floors in models
        for certificate in (floors.anywhere, floors.near_data)
        if certificate is not None and certificate.estimated
    )
    slope = f"{models[0].slope:g}" if models else "-"
    return Group(
        view,
        "",
        "a floor is the error, in standard deviations of the target, that a readout must make on one of two sequences",
        "  any readout: an exact collision is proved, so it holds whatever the readout's size",
        f"  bounded slope: it holds for every readout of slope at most {slope}",
        *(f"  gap estimated: {escape(reason)}" for reason in reasons),
    )
