"""`headcount measure`: a task to an answer."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .. import _arguments
from .._errors import InputError, require
from ..analysis import experiments
from ..engine import Plan, default_train, grid, joined, plan_sweep
from ..measure import Measurement, measure_sweep
from ..models import ClassTokenSpec
from ..report.render import FORMATS, check_ending, save_chart
from ..report.render.terminal import experiment_view
from ..report.section import experiment_section
from ..store import Outcome, TrainSpec
from ..studies.labelled import cache_folder
from ..tasks import AnyTask
from ..tasks.find import find_task
from .app import Json, app, data, print_json, talk
from .models import models_for
from .running import run, settled
from .views.measure import plan_view


@app.command()
def measure(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK|FILE|DIR", help="A task's name, FILE.npz, X.npy, FILE.py:NAME, FILE.jsonl, or a folder."
        ),
    ],
    heads: Annotated[str, typer.Option(help="Head counts: 1:6, or 1,2,4,8.")] = "1:6",
    ranks: Annotated[
        str | None, typer.Option(help="Query and key widths to try with every head count: 1,2,4,8.")
    ] = None,
    lengths: Annotated[str | None, typer.Option(help="Sequence lengths (default: 8,16,32, or your data's).")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds for every head count and length.")] = 4,
    out: Annotated[Path | None, typer.Option(help="Results folder (default: results/TASK).")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps of every model (default: 3000, data with labels 1000).")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Examples in a training step (default: 64, data with labels 32).")
    ] = None,
    learning_rates: Annotated[
        str | None,
        typer.Option(help="Peak learning rates; a seed's best one counts (default: 0.01, data with labels 0.001)."),
    ] = None,
    train_examples: Annotated[
        int | None,
        typer.Option(
            help="Examples to learn from; 0: fresh ones every step (default: 8000, encoders 0, data with labels all)."
        ),
    ] = None,
    validation_examples: Annotated[int, typer.Option(help="Examples to be judged on.")] = TrainSpec.validation_examples,
    precision: Annotated[
        str, typer.Option(help="float32; encoders also bfloat16, half precision for a GPU.")
    ] = TrainSpec.precision,
    head_dim: Annotated[
        int | None, typer.Option(help="Numbers a head carries (default: 8, an encoder's rank).")
    ] = None,
    total_dim: Annotated[int | None, typer.Option(help="Numbers shared by all heads, instead of --head-dim.")] = None,
    hidden: Annotated[
        int | None, typer.Option(help="Width of the feed-forward nets (default: 32, encoders 256).")
    ] = None,
    multiplier: Annotated[int, typer.Option(help="Attention blocks an encoder layer averages.")] = 1,
    layers: Annotated[int | None, typer.Option(help="Attention layers (default: 1, data with labels 2).")] = None,
    positions: Annotated[str, typer.Option(help="auto, none, additive or concatenated.")] = "auto",
    beta: Annotated[float, typer.Option(help="Factor on every attention score.")] = ClassTokenSpec.beta,
    intrinsic_dim: Annotated[int | None, typer.Option(help="The task's D.", rich_help_panel="Task")] = None,
    dim: Annotated[int | None, typer.Option(help="Numbers in a token.", rich_help_panel="Task")] = None,
    directions: Annotated[str | None, typer.Option(help="random, gaussian or basis.", rich_help_panel="Task")] = None,
    distribution: Annotated[str | None, typer.Option(help="gaussian or cube.", rich_help_panel="Task")] = None,
    windows: Annotated[
        str | None, typer.Option(help="Position sets as fractions: 0:0.5,0.5:1.", rich_help_panel="Task")
    ] = None,
    task_seed: Annotated[int | None, typer.Option(help="Draws the task's own numbers.", rich_help_panel="Task")] = None,
    points: Annotated[
        str | None, typer.Option(help="uniform, orthogonal or doubled points.", rich_help_panel="Task")
    ] = None,
    terms: Annotated[
        int | None, typer.Option(help="Biased nearest neighbours summed up.", rich_help_panel="Task")
    ] = None,
    inputs: Annotated[int | None, typer.Option(help="Numbers in a regressor x.", rich_help_panel="Task")] = None,
    noise: Annotated[
        float | None, typer.Option(help="Standard deviation of the noise.", rich_help_panel="Task")
    ] = None,
    targets: Annotated[
        Path | None, typer.Option(help="y.npy, when the file holds x alone.", rich_help_panel="Your data")
    ] = None,
    shorter: Annotated[
        str | None,
        typer.Option(help="How shorter lengths are made: given, leading, trailing.", rich_help_panel="Your data"),
    ] = None,
    validation_fraction: Annotated[
        float | None, typer.Option(help="Share of the examples kept for validation.", rich_help_panel="Your data")
    ] = None,
    patch: Annotated[
        int | None, typer.Option(help="Pixels of a square patch's side (default: 4).", rich_help_panel="Your data")
    ] = None,
    side: Annotated[
        int | None, typer.Option(help="Images are cut square and resized to this side.", rich_help_panel="Your data")
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="Folder of the BERT model that passages are read with.", rich_help_panel="Your data"),
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="Passages: candidates (as tokens) or pairs.", rich_help_panel="Your data")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Which queries of a folder: train, dev.", rich_help_panel="Your data")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help=f"Draw the result ({', '.join(FORMATS)}).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Train heads x lengths x seeds on a task and say how many heads it needs. The same command again continues."""
    require(seeds >= 1, f"--seeds must be at least 1, got {seeds}.")
    options = {
        "intrinsic_dim": intrinsic_dim,
        "dim": dim,
        "directions": directions,
        "distribution": distribution,
        "windows": None if windows is None else _arguments.windows(windows),
        "task_seed": task_seed,
        "points": points,
        "terms": terms,
        "inputs": inputs,
        "noise": noise,
        "targets": targets,
        "shorter": shorter,
        "validation_fraction": validation_fraction,
        "patch": patch,
        "side": side,
        "embeddings": embeddings,
        "layout": layout,
        "split": split,
    }
    found = find_task(
        task, cache=cache_folder(), **{name: value for name, value in options.items() if value is not None}
    )
    usual = default_train(found)
    given = {"steps": steps, "batch": batch, "train_examples": train_examples}
    train = replace(
        usual,
        **{name: value for name, value in given.items() if value is not None},
        validation_examples=validation_examples,
        precision=precision,
    )
    rates = [usual.learning_rate] if learning_rates is None else _arguments.numbers(learning_rates, "--learning-rates")
    options_of_model = {
        "head_dim": head_dim,
        "total_dim": total_dim,
        "hidden": hidden,
        "layers": layers,
        "positions": positions,
        "beta": beta,
        "multiplier": multiplier,
    }
    sweep = joined(
        grid(
            found,
            heads=_arguments.counts(heads, "--heads"),
            lengths=_default_lengths(found) if lengths is None else _arguments.counts(lengths, "--lengths"),
            seeds=range(seeds),
            learning_rates=rates,
            model=models_for(found, rank=rank, **options_of_model),
            train=train,
        )
        for rank in ([None] if ranks is None else _arguments.counts(ranks, "--ranks"))
    )
    if figure is not None:
        check_ending(figure)
    root = out or Path("results") / re.sub(r"[^\w.-]+", "-", found.name)
    if dry_run:
        _print_plan(plan_sweep(sweep, settled(root)), root, as_json)
        return
    measurement = run(sweep, root, measure_sweep)
    experiment = experiments(measurement.records)[0]
    section = experiment_section(experiment, "experiment")
    talk.print(experiment_view(experiment.settings, section))
    for record in measurement.records:
        if record.outcome is Outcome.FAILED:
            talk.print(f"{measurement.run.failed} cells failed; the first: {record.message}", style="red", markup=False)
            break
    _print_answer(measurement, root, as_json)
    if figure is not None:
        save_chart(section.charts[0], figure, f"{found.name}: {measurement.answer.sentence}")
        talk.print(f"drawn in {figure}", highlight=False, markup=False)
    if measurement.run.failed:
        raise typer.Exit(3)


def _print_plan(plan: Plan, root: Path, as_json: bool) -> None:
    if not as_json:
        data.print(plan_view(plan, root))
        return
    buckets = [
        {"length": b.shape.length, "heads": sorted({c.model.heads for c in b.cells}), "members": len(b.cells)}
        for b in plan.buckets
    ]
    print_json(
        {
            "out": str(root),
            "cells": plan.cells,
            "already_done": plan.settled,
            "buckets": buckets,
            "programs": plan.programs,
            "model_steps": plan.model_steps,
            "expected_seconds": round(plan.seconds, 1),
            "expected_bytes": plan.bytes,
            "device": plan.machine.description,
        }
    )


def _print_answer(measurement: Measurement, root: Path, as_json: bool) -> None:
    if not as_json:
        print(measurement.answer.sentence)
        return
    run = measurement.run
    outcomes = {outcome.value: count for outcome, count in run.outcomes.items()}
    print_json(
        measurement.answer.as_dict()
        | {"out": str(root), "already_done": run.already_done, "trained": outcomes, "seconds": round(run.seconds, 2)}
    )


def _default_lengths(task: AnyTask) -> list[int]:
    """8, 16 and 32 where the task has every length; its own where it has one only."""
    try:
        return [task.at(length).length for length in (8, 16, 32)]
    except InputError:
        return [task.length]
