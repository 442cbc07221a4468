"""`headcount collide`: the error that no readout of a stored model can go below."""

import functools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import typer

from ..._cache import keep_compiled_programs
from ...cli.app import Folder, messages, say
from ...cli.arguments import counts
from ...cli.options import SEQUENCE, TARGETS
from ...errors import InputError, require
from ...models import ClassTokenTransformer, from_arrays, spec_from_dict
from ...report.chart import Chart, Series
from ...report.document import Document, Grid, Text, line
from ...report.files import write_whole
from ...report.progress import counted_progress
from ...report.render import save_chart
from ...report.render.pictures import save_pair
from ...store import Record, Store
from ...tasks import GeneratedTask, Regression
from ...tasks.find import task_of_spec
from .. import Certificate
from ..collisions.observables import seen_by_readout
from ..collisions.stored import WHERE, Floors, SearchOptions, chosen, left_out
from ..collisions.stored import as_json as floors_json
from ..collisions.stored import collide as search

MIN_DRAWN = 1e-4
"""Floors below this share of the target's spread are drawn at it."""


def collide(
    folder: Folder,
    heads: Annotated[str | None, typer.Option(help="Only these heads, as 1:6 or 1,2,4.")] = None,
    lengths: Annotated[str | None, typer.Option(help="Only these lengths.")] = None,
    seeds: Annotated[int, typer.Option(help="Models of each kind, the best first.")] = 1,
    radius: Annotated[
        float, typer.Option(help="Of the domain, where tokens are Gaussian: every number within this.")
    ] = SearchOptions.radius,
    anchors: Annotated[int, typer.Option(help="Drawn sequences to find a partner for.")] = SearchOptions.anchors,
    starts: Annotated[int, typer.Option(help="Searches from each of them.")] = SearchOptions.starts,
    steps: Annotated[int, typer.Option(help="Steps of a search.")] = SearchOptions.steps,
    slope: Annotated[
        float, typer.Option(help="Readouts of at most this slope are bounded where no exact collision is proved.")
    ] = SearchOptions.slope,
    seed: Annotated[int, typer.Option(min=0, help="Draws the starts.")] = SearchOptions.seed,
    task: Annotated[str | None, typer.Option(metavar="FILE", help="Your own task: FILE.py:NAME, or your data.")] = None,
    targets: Annotated[str | None, typer.Option(metavar="COLUMN|FILE", help=TARGETS)] = None,
    sequence: Annotated[str | None, typer.Option(metavar="COLUMN", help=SEQUENCE)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where figures and certificates go (default DIR/collisions).")
    ] = None,
) -> Document:
    """Find sequences that stored models cannot tell apart, certify them, and draw the error floor against heads.

    Nothing stored is changed.
    """
    keep_compiled_programs()
    options = SearchOptions(radius=radius, anchors=anchors, starts=starts, steps=steps, slope=slope, seed=seed)
    task_of = functools.partial(_generated_task, reference=task, targets=targets, sequence=sequence)
    with Store.open_for_reading(folder) as store:
        records = store.records()
        groups = _filtered(chosen(store.experiments(), records, seeds), heads, lengths)
        if left_out(records):
            say(f"left out: {left_out(records)}")
        found: list[Floors] = []
        with counted_progress(messages, "searching", sum(len(group) for group in groups), "models") as on_done:
            for floors in search(groups, store, task_of, options):
                found += floors
                on_done(len(floors))
        target = out or folder / "collisions"
        content = [floors_json(each) for each in found]
        write_whole(target / "certificates.json", (json.dumps(content, indent=1) + "\n").encode())
        drawn = _draw_all(found, store, task_of, target)
    return Document(
        content=lambda: content,
        blocks=(_floors_grid(found), *_explained(found)),
        messages=(f"certificates and {drawn} figures are in {target}",),
    )


def _filtered(groups: list[list[Record]], heads: str | None, lengths: str | None) -> list[list[Record]]:
    own_heads, own_lengths = [each[0].cell.model["heads"] for each in groups], [each[0].cell.length for each in groups]
    wanted_heads, wanted_lengths = counts(heads, "--heads") or own_heads, counts(lengths, "--lengths") or own_lengths
    sizes = zip(groups, own_heads, own_lengths, strict=True)
    kept = [group for group, h, length in sizes if h in wanted_heads and length in wanted_lengths]
    stored = f"heads {sorted(set(own_heads))}, lengths {sorted(set(own_lengths))}"
    require(len(kept) > 0, f"no stored model has these heads and lengths; there are {stored}.")
    return kept


def _generated_task(
    spec: dict[str, Any], reference: str | None, targets: str | None, sequence: str | None
) -> GeneratedTask:
    """The task of a spec, whose target can be computed for any sequence."""
    stored = (
        f"{spec['task']} has stored examples only; a collision needs a target that can be computed for any sequence."
    )
    require("fingerprint" not in spec, stored)
    task = task_of_spec(spec, reference, targets=targets, sequence=sequence)
    if not isinstance(task, GeneratedTask) or not isinstance(task.objective, Regression):
        raise InputError(f"{task.name} is data with labels: a collision needs a numeric target for any sequence.")
    return task


def _draw_all(
    found: list[Floors], store: Store, task_of: Callable[[dict[str, Any]], GeneratedTask], target: Path
) -> int:
    """A chart for each question, and a picture of the pair of every head count at the greatest length."""
    for where in WHERE:
        save_chart(floor_chart(found, where), target / f"floor-{where.replace(' ', '-')}.svg")
    longest = max(floors.record.cell.length for floors in found)
    pictures = 0
    for floors in found:
        cell, certificate = floors.record.cell, floors.certificates["anywhere"]
        if cell.length == longest and certificate is not None and certificate.floor(floors.slope) > 0:
            path = target / f"pair-{cell.model['heads']}-heads-{cell.key[:6]}.svg"
            _draw_pair(path, floors, certificate, store, task_of(cell.task).at(cell.length))
            pictures += 1
    return len(WHERE) + pictures


def floor_chart(found: list[Floors], where: str) -> Chart:
    """The smallest certified floor of all models of a head count and length, against heads, one line per length.

    Models with a norm before the readout have lines of their own.
    """
    lines = sorted({(floors.record.cell.length, floors.normed) for floors in found})
    heads = sorted({floors.record.cell.model["heads"] for floors in found})
    estimated = any(each and each.estimated for each in (floors.certificates[where] for floors in found))

    least: dict[tuple[int, bool, int], float] = {}
    for each in found:
        place = each.record.cell.length, each.normed, each.record.cell.model["heads"]
        least[place] = min(least.get(place, math.inf), max(each.share_of_spread(where), MIN_DRAWN))
    words = "both sequences searched for" if where == "anywhere" else "one sequence drawn, one searched for"
    return Chart(
        name=f"floor-{where.replace(' ', '-')}",
        title=f"{'Estimated' if estimated else 'Certified'} error floor, {where}",
        x_label="attention heads",
        y_label="floor / spread of the target",
        x_ticks=tuple(heads),
        series=tuple(
            Series(
                f"{length} tokens{', norm' if normed else ''}",
                tuple(heads),
                tuple(least.get((length, normed, h), math.nan) for h in heads),
                place=i,
            )
            for i, (length, normed) in enumerate(lines)
        ),
        caption=f"a readout of slope up to {found[0].slope:g} errs by this; {words}; below {MIN_DRAWN:g} drawn there",
    )


def _draw_pair(path: Path, floors: Floors, certificate: Certificate, store: Store, task: GeneratedTask) -> None:
    """Draw the pair of a certificate, as its model sees it."""
    cell = floors.record.cell
    arrays = {name: np.asarray(array, np.float64) for name, array in store.weights(cell.key).items()}
    with jax.enable_x64(True):
        model, pair = from_arrays(spec_from_dict(cell.model), arrays), jnp.asarray(certificate.pair)
        assert isinstance(model, ClassTokenTransformer)
        outputs = np.stack([np.asarray(seen_by_readout(model, tokens)) for tokens in pair])
        targets = np.stack([np.asarray(task.target(tokens)) for tokens in pair])
        single = len(model.attention) == 1
        weights = np.stack([np.asarray(model.attention_weights(x)[0]).T for x in pair]) if single else None
    if certificate.exact:
        kind, readouts = "an exact collision is proved", "every readout"
    else:
        kind, readouts = f"{certificate.distance:.1e} apart", f"every readout of slope at most {floors.slope:g}"
    if certificate.estimated:
        kind += "; the gap is estimated"
    save_pair(
        path,
        title=f"{task.name}: two sequences of {cell.length} tokens that {cell.model['heads']} heads "
        + ("and a norm " if floors.normed else "")
        + ("cannot tell apart" if certificate.exact else "can hardly tell apart"),
        caption=f"{kind}; targets differ by {certificate.gap:.3g}, so {readouts} errs by "
        f"{certificate.floor(floors.slope):.3g} on one of them",
        tokens=certificate.pair,
        weights=weights,
        outputs=outputs,
        targets=targets,
    )


def _floors_grid(found: list[Floors]) -> Grid:
    """Model by model: its measured error, and the floor that is certified for each question."""
    normed = any(floors.normed for floors in found)
    columns = ["model", "T", "heads", *(["norm"] if normed else []), "seed", "NMSE"]
    rows = []
    for floors in found:
        cell = floors.record.cell
        of_norm = ["yes" if floors.normed else "no"] if normed else []
        shape = [str(cell.length), str(cell.model["heads"]), *of_norm, str(cell.seed)]
        floor = [f"{floors.share_of_spread(where):.2g} {_kind(floors.certificates[where])}" for where in WHERE]
        rows.append((cell.key[:6], *shape, f"{floors.record.metrics['nmse']:.1e}", *floor))
    columns += [f"floor, {question}" for question in WHERE]
    return Grid(columns=tuple(columns), rows=tuple(rows), align="r" * len(columns))


def _kind(certificate: Certificate | None) -> str:
    if certificate is None:
        return "none found"
    return (
        f"{'any readout' if certificate.exact else 'bounded slope'}{', gap estimated' if certificate.estimated else ''}"
    )


def _explained(found: list[Floors]) -> list[Text]:
    certificates = [each for floors in found for each in floors.certificates.values()]
    reasons = dict.fromkeys(each.estimated for each in certificates if each and each.estimated)
    lines = [
        "a floor is the error, in standard deviations of the target, that a readout must make on one of two sequences",
        "  any readout: an exact collision is proved, so it holds whatever the readout's size",
        f"  bounded slope: it holds for every readout of slope at most {found[0].slope:g}",
        *(f"  gap estimated: {reason}" for reason in reasons),
    ]
    return list(map(line, lines))
