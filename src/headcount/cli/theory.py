"""`headcount bounds`: what the theorems say of a setting. `headcount prove`: whether they hold when they are run."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from ..report.chart import Chart, Series
from ..report.figures import FORMATS, check_ending, draw, save_figure
from ..report.files import write_whole
from ..report.ledger import ledger_page, ledger_view
from ..report.progress import counted_progress
from ..report.text import bounds_view
from ..theory import Setting, all_bounds
from ..theory.bounds import exponent
from ..theory.ledger import CLAIMS, Entry, Verdict, prove
from .app import Json, app, data, print_json, talk

LENGTHS = (32, 64, 128, 256, 512, 1024)


@app.command()
def bounds(
    heads: Annotated[int, typer.Option(help="Heads h.")],
    intrinsic_dim: Annotated[int, typer.Option(help="The task's D.")],
    length: Annotated[int, typer.Option(help="Sequence length T.")],
    head_dim: Annotated[int, typer.Option(help="Numbers in a head, n.")] = Setting.head_dim,
    layers: Annotated[int, typer.Option(help="Attention layers L.")] = Setting.layers,
    dim: Annotated[int, typer.Option(help="Numbers in a token, d.")] = Setting.dim,
    eps: Annotated[float, typer.Option(help="The largest error allowed.")] = Setting.eps,
    outer_slope: Annotated[float | None, typer.Option(help="sup |grad F0|_1 (default: D, a sum's).")] = None,
    gamma: Annotated[float, typer.Option(help="Rate of the component nets: width C / delta^gamma.")] = Setting.gamma,
    plot: Annotated[
        Path | None, typer.Option(help=f"Draw the exponent k against heads and length ({', '.join(FORMATS)}).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Every bound of the first paper at one setting: value, claim, source, and whether its conditions hold."""
    if plot is not None:
        check_ending(plot)
    setting = Setting(
        heads=heads,
        intrinsic_dim=intrinsic_dim,
        length=length,
        head_dim=head_dim,
        layers=layers,
        dim=dim,
        eps=eps,
        outer_slope=outer_slope,
        gamma=gamma,
    )
    found = all_bounds(setting)
    if as_json:
        print_json([dataclasses.asdict(bound) | {"applies": bound.applies} for bound in found])
    else:
        data.print(bounds_view(found))
    if plot is not None:
        save_figure(draw(_exponent_chart(setting)), plot)
        talk.print(f"drawn in {plot}", highlight=False, markup=False)


@app.command("prove")
def prove_claims(
    write: Annotated[Path | None, typer.Option(help="Write the ledger as a Markdown page.")] = None,
    as_json: Json = False,
) -> None:
    """Run every claim of the first paper at small size: claim, program, evidence, verdict.

    Exits with 1 if a claim fails.
    """
    entries: list[Entry] = []
    with counted_progress(talk, "proving", len(CLAIMS), "claims") as on_done:
        for entry in prove():
            entries.append(entry)
            on_done(1)
    if as_json:
        print_json([dataclasses.asdict(entry) for entry in entries])
    else:
        data.print(ledger_view(entries))
    if write is not None:
        write_whole(write, ledger_page(entries, f"headcount prove --write {write}").encode())
        talk.print(f"written to {write}", highlight=False, markup=False)
    if any(entry.verdict is Verdict.FAILS for entry in entries):
        raise typer.Exit(1)


def _exponent_chart(setting: Setting) -> Chart:
    """k against heads below D, one line a length; a gap where the bound says nothing."""
    heads = tuple(range(1, max(2, setting.intrinsic_dim)))
    lengths = sorted({*LENGTHS, setting.length})
    rows = {t: [exponent(h, setting.intrinsic_dim, t, setting.head_dim) for h in heads] for t in lengths}
    return Chart(
        name="exponent",
        title=f"Too few heads for D = {setting.intrinsic_dim}, heads of {setting.head_dim} numbers",
        x_label="attention heads",
        y_label="exponent k of M = Omega(eps^-k)",
        x_ticks=heads,
        log_y=False,
        series=tuple(
            Series(f"{t} tokens", heads, tuple(k if k > 0 else float("nan") for k in row), place=place)
            for place, (t, row) in enumerate(rows.items())
        ),
        caption="Theorem 2(2), arXiv 2510.06662; a gap where the bound is vacuous",
    )
