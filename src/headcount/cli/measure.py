"""`headcount measure`: a task to an answer."""

import functools
import sys
from dataclasses import replace

import typer

from .._cache import cache_folder, keep_compiled_programs
from ..api import default_folder, lengths_of, measure_sweep
from ..engine import Sweep, check_where, plan_sweep
from ..measurement import Measurement
from ..registry import live_page, task_facts
from ..report.cells import error_cells
from ..report.provenance import backends_of
from ..report.render import check_ending
from ..report.render.terminal import section_view
from ..report.section import Section, experiment_section, with_coverage
from ..request import Request
from ..search import DEFAULT_EFFORT, effort_of
from ..search.costs import costs
from ..store import Outcome, Store
from ..tasks.find import find_task
from ..tasks.stand_in import planned_task
from . import options as o
from .app import Json, messages, print_json, say, show_view
from .arguments import counts, given, numbers
from .arguments import windows as fractions
from .plans import print_costs, print_plan
from .running import ask, run, settled, this_command, training_on


def measure(
    task: o.TaskName, heads: o.Heads = None, ranks: o.Ranks = None, kv_heads: o.KvHeads = None,
    head_dims: o.HeadDims = None, lengths: o.Lengths = None, seeds: o.Seeds = None,
    effort: o.Effort = None, minutes: o.Minutes = None, out: o.Out = None, figure: o.Figure = None,
    live: o.Live = False, on: o.On = None, workers: o.Workers = None,
    dry_run: o.DryRun = False, as_json: Json = False,
    steps: o.Steps = None, batch: o.Batch = None, learning_rates: o.LearningRates = None,
    train_examples: o.TrainExamples = None, validation_examples: o.ValidationExamples = None,
    precision: o.Precision = None, backend: o.Backend = None,
    head_dim: o.HeadDim = None, total_dim: o.TotalDim = None, hidden: o.Hidden = None,
    layers: o.Layers = None, positions: o.Positions = None, beta: o.Beta = None, multiplier: o.Multiplier = None,
    window: o.Window = None, causal: o.Causal = False, attention: o.Attention = None, top_k: o.TopK = None,
    inner_hidden: o.InnerHidden = None, final_norm: o.FinalNorm = False,
    intrinsic_dim: o.IntrinsicDim = None, dim: o.Dim = None, directions: o.Directions = None,
    distribution: o.Distribution = None, windows: o.Windows = None, task_seed: o.TaskSeed = None,
    points: o.Points = None, terms: o.Terms = None, inputs: o.Inputs = None, noise: o.Noise = None,
    targets: o.Targets = None, sequence: o.Sequence = None, labels: o.Labels = None, answered_at: o.AnsweredAt = None,
    vocabulary: o.Vocabulary = None, shorter: o.Shorter = None, validation_fraction: o.ValidationFraction = None,
    patch: o.Patch = None, side: o.Side = None, embeddings: o.Embeddings = None, layout: o.Layout = None,
    split: o.Split = None,
) -> None:  # fmt: skip
    """Say how many heads a task needs, from models trained on it. The same command again continues."""
    keep_compiled_programs()
    check_where(on, workers)
    if figure is not None:
        check_ending(figure)
    find = planned_task if dry_run else functools.partial(find_task, cache=cache_folder())
    asked_task = find(
        task,
        **given(
            intrinsic_dim=intrinsic_dim, dim=dim, directions=directions, distribution=distribution,
            windows=fractions(windows), task_seed=task_seed, points=points, terms=terms, inputs=inputs, noise=noise,
            targets=targets, sequence=sequence, labels=labels, answered_at=answered_at, vocabulary=vocabulary,
            shorter=shorter, validation_fraction=validation_fraction,
            patch=patch, side=side, embeddings=embeddings, layout=layout, split=split,
        ),
    )  # fmt: skip
    groups = counts(kv_heads, "--kv-heads")
    request = Request(
        task=asked_task, effort=effort, minutes=minutes,
        heads=counts(heads, "--heads"), ranks=counts(ranks, "--ranks"), lengths=counts(lengths, "--lengths"),
        kv_heads=groups[0] if groups is not None and len(groups) == 1 else groups,
        head_dims=counts(head_dims, "--head-dims"),
        seeds=seeds, learning_rates=numbers(learning_rates, "--learning-rates"),
        options=given(
            steps=steps, batch=batch, train_examples=train_examples, validation_examples=validation_examples,
            precision=precision, head_dim=head_dim, total_dim=total_dim, hidden=hidden, layers=layers,
            positions=positions, beta=beta, multiplier=multiplier, window=window, causal=causal or None,
            attention=attention, top_k=top_k, inner_hidden=inner_hidden, final_norm=final_norm or None,
        ),
    )  # fmt: skip
    asked = request.planned()
    for note in (*asked_task.notes, *request.notes):
        say(note)
    folder = out or default_folder(asked_task.name)
    if dry_run:
        with training_on(on, workers) as executor:
            machine = executor.machine
        if isinstance(asked, Sweep):
            print_plan(plan_sweep(asked, settled(folder), machine), folder, as_json)
        else:
            print_costs(costs(asked, effort_of(effort or DEFAULT_EFFORT), machine), folder, as_json)
        return
    facts = task_facts(asked_task, lengths_of(asked))
    for fact in facts:
        say(fact.words)
    page = live_page(folder) if live else None
    if page is not None:
        say(f"live page: {page.address}")
    stored = isinstance(asked, Sweep) and settled(folder).issuperset(cell.key for cell in asked.cells)
    with training_on(on, workers, needed=not stored, folder=folder) as executor:
        if isinstance(asked, Sweep):
            measurement = run(asked, folder, measure_sweep, executor)
        else:
            measurement = ask(asked, folder, executor, effort=effort, minutes=minutes)
    with Store.open_for_writing(folder) if facts else Store.open_for_reading(folder) as store:
        for fact in facts:
            store.attach(measurement.experiment.name, fact.name, fact.content)
        attachments = store.attachments(measurement.experiment.name)
    section = experiment_section(
        measurement.experiment, measurement.records, attachments, folder=str(folder), command=this_command()
    )
    section = with_coverage(section, replace(measurement.coverage, command=this_command()))
    show_view(section_view(section), messages)
    failed = [record for record in measurement.records if record.outcome is Outcome.FAILED]
    if failed:
        say(f"{len(failed)} cells failed; the first: {failed[0].message}", style="red")
    _print_answer(measurement, section, as_json)
    if figure is not None:
        measurement.plot(figure)
        say(f"drawn in {figure}")
    if measurement.ended == "budget":
        say(f"--minutes {minutes:g} ended it: more training may change the answer. To go on, run it again, with more:")
        say(f"  {this_command()}")
    if page is not None:
        sys.stdout.flush()  # who reads the answer from a pipe has it now
        say(f"the page stays at {page.address} until Ctrl-C")
        page.wait()
    if failed or measurement.ended == "budget":
        raise typer.Exit(3 if failed else 4)


def _print_answer(measurement: Measurement, section: Section, as_json: bool) -> None:
    if not as_json:
        print(measurement.answer().sentence)
        return
    run = measurement.run
    assert run is not None
    print_json(
        measurement.answer().as_dict()
        | {
            "experiment": measurement.experiment.name,
            "out": str(measurement.folder),
            "already_done": run.already_done,
            "trained": {outcome.value: count for outcome, count in run.outcomes.items()},
            "seconds": round(run.seconds, 2),
            "ended": measurement.ended,
            "early": measurement.early,
            "backends": backends_of(measurement.records),
            "errors": error_cells(section),
        }
        | ({} if section.coverage is None else section.coverage.as_dict())
    )
