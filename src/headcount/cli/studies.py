"""`headcount reproduce`: the published tables and figures, made again."""

from pathlib import Path
from typing import Annotated

import typer

from ..engine import Plan, RunSummary, hardware, plan_sweep, run_sweep
from ..report.page import page, write_page
from ..report.text import section_view, study_costs_view
from ..store import Outcome, Store
from ..studies import STUDIES, AbstractStudy, Scale, study
from ..studies.folder import own_records, sections_of, what_was_lost
from .app import Json, app, data, print_json, talk
from .results import section_json
from .running import describe_plan, run, settled


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME|all", help="A study; none lists them with their costs.")
    ] = None,
    scale: Annotated[
        Scale, typer.Option(help="smoke: under a minute; laptop: about ten on 2 cores; paper: the published grid.")
    ] = Scale.LAPTOP,
    out: Annotated[Path | None, typer.Option(help="Results folder (default: results/NAME-SCALE).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is left to do and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Make a published table or figure again, and judge its claims. The same command again continues."""
    if name is None:
        _list_studies(out, as_json)
        return
    chosen = list(STUDIES.values()) if name == "all" else [study(name)]
    root = out or Path("results") / f"{name}-{scale}"
    if dry_run:
        _print_plans({each.name: plan_sweep(each.sweep(scale), settled(root)) for each in chosen}, root, as_json)
        return
    failed, results = 0, []
    try:
        for each in chosen:
            talk.print(f"[bold]{each.title}[/bold]: {each.asks}", highlight=False)
            summary: RunSummary = run(each.sweep(scale), root, run_sweep)
            failed += summary.failed
            results.append(_result(each, scale, root, as_json) | {"seconds": round(summary.seconds, 2)})
    finally:  # stopped on the way, the studies that are done still have their report
        anything = any(result["headline"] is not None for result in results)
        if as_json and results:
            print_json(results)
        if anything:
            sections, warnings = sections_of(root)
            write_page(page(sections, folder=str(root), warnings=warnings), root / "report.html")
            talk.print(f"the report is {root / 'report.html'}", markup=False, highlight=False)
    if failed or not anything:
        raise typer.Exit(3 if failed else 1)


def _print_plans(plans: dict[str, Plan], root: Path, as_json: bool) -> None:
    if not as_json:
        for name, plan in plans.items():
            data.print(f"{name}: {describe_plan(plan, root)}", markup=False, highlight=False)
        return
    print_json(
        {
            name: {
                "cells": plan.cells,
                "already_done": plan.settled,
                "expected_seconds": round(plan.seconds, 1),
            }
            for name, plan in plans.items()
        }
    )


def _result(each: AbstractStudy, scale: Scale, root: Path, as_json: bool) -> dict:
    """Print what one study found, and give it as JSON would have it."""
    with Store.open_for_reading(root) as store:
        records = own_records(each, scale, store.records())
    lost = what_was_lost(records)
    if lost:
        talk.print(f"{each.title}: {lost}", style="red", markup=False, highlight=False)
    if not any(record.outcome is Outcome.FINISHED for record in records):
        return {"name": each.name, "headline": None, "claims": [], "scale": scale.value}
    section = each.section(records, scale)
    if not as_json:
        data.print(section_view(section))
    return section_json(section) | {"scale": scale.value}


def _list_studies(out: Path | None, as_json: bool) -> None:
    """Every study with what it costs on this machine at each scale."""
    done = set() if out is None else settled(out)
    plans = {
        each.name: {scale.value: plan_sweep(each.sweep(scale), done) for scale in Scale} for each in STUDIES.values()
    }
    if as_json:
        print_json(
            {
                key: {
                    "asks": STUDIES[key].asks,
                    "costs": {
                        scale: {"cells": plan.cells, "expected_seconds": round(plan.seconds, 1)}
                        for scale, plan in by_scale.items()
                    },
                }
                for key, by_scale in plans.items()
            }
        )
        return
    rows = [(STUDIES[key].name, STUDIES[key].title, STUDIES[key].asks, by_scale) for key, by_scale in plans.items()]
    shared = "In one folder figure2e and figure3 read table2's models, and figure4 holds figure1b's at paper scale."
    data.print(study_costs_view(rows, f"Expected times on {hardware().description}. {shared}"))
