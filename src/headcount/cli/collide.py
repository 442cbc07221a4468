"""`headcount collide`: the error that no readout of a stored model can go below."""

import functools
from pathlib import Path
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import typer

from .._arguments import counts
from .._errors import InputError, require
from ..collide import WHERE, Floors, SearchOptions, as_json, chosen, collide, to_json
from ..models import ClassTokenSpec, folded, from_arrays
from ..report.chart import Chart, Series
from ..report.files import write_whole
from ..report.progress import counted_progress
from ..report.render import save_chart
from ..report.render.pictures import PairPicture, save_pair
from ..store import Store
from ..tasks import AbstractTask
from ..tasks.find import task_of_spec
from ..theory import Certificate
from .app import Folder, Json, app, data, print_json, talk
from .views.collide import floors_view

MIN_DRAWN = 1e-4
"""Floors below this share of the target's spread are drawn at it."""


@app.command("collide")
def collide_folder(
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
    task: Annotated[str | None, typer.Option(metavar="FILE", help="Your own task: FILE.py:NAME.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where figures and certificates go (default DIR/collisions).")
    ] = None,
    as_json_: Json = False,
) -> None:
    """Find sequences that stored models cannot tell apart, certify them, and draw the error floor against heads.

    Nothing stored is changed.
    """
    options = SearchOptions(radius=radius, anchors=anchors, starts=starts, steps=steps, slope=slope, seed=seed)
    task_of = functools.partial(_task_with_a_law, reference=task)
    with Store.open_for_reading(folder) as store:
        groups = _filtered(chosen(store.records(), seeds), heads, lengths)
        found: list[Floors] = []
        with counted_progress(talk, "searching", sum(len(group) for group in groups), "models") as on_done:
            for floors in collide(groups, store, task_of, options):
                found += floors
                on_done(len(floors))
        target = out or folder / "collisions"
        write_whole(target / "certificates.json", to_json(found).encode())
        drawn = _draw_all(found, store, task_of, target)
    if as_json_:
        print_json([as_json(floors) for floors in found])
    else:
        data.print(floors_view(found, WHERE))
    talk.print(f"certificates and {drawn} figures are in {target}", highlight=False, markup=False)


def _filtered(groups: list, heads: str | None, lengths: str | None) -> list:
    kept = groups
    if heads is not None:
        wanted = counts(heads, "--heads")
        kept = [group for group in kept if group[0].cell.model.heads in wanted]
    if lengths is not None:
        wanted = counts(lengths, "--lengths")
        kept = [group for group in kept if group[0].cell.length in wanted]
    known = sorted({(group[0].cell.length, group[0].cell.model.heads) for group in groups})
    words = f"heads {sorted({h for _, h in known})}, lengths {sorted({t for t, _ in known})}"
    require(len(kept) > 0, f"no stored model has these heads and lengths; there are {words}.")
    return kept


def _task_with_a_law(spec: dict, reference: str | None) -> AbstractTask:
    """The task of a spec, of which any sequence has a target; of stored images or passages only the stored ones do."""
    found = task_of_spec(spec, reference)
    if not isinstance(found, AbstractTask):
        raise InputError(f"{found.name} is data with labels: sequences that collide would have no right answer.")
    return found


def _draw_all(found: list[Floors], store: Store, task_of, target: Path) -> int:
    """A chart for each question, and a picture of the pair of every head count at the greatest length."""
    for where in WHERE:
        save_chart(floor_chart(found, where), target / f"floor-{where.replace(' ', '-')}.svg")
    longest = max(floors.record.cell.length for floors in found)
    pictures = 0
    for floors in found:
        cell, certificate = floors.record.cell, floors.anywhere
        if cell.length == longest and certificate is not None and certificate.floor(floors.slope) > 0:
            picture = pair_picture(floors, certificate, store, task_of(cell.task).at(cell.length))
            save_pair(picture, target / f"pair-{cell.model.heads}-heads-{cell.key[:6]}.svg")
            pictures += 1
    return len(WHERE) + pictures


def _is_estimated(floors: Floors, where: str) -> bool:
    certificate = floors.near_data if where == "near data" else floors.anywhere
    return certificate is not None and bool(certificate.estimated)


def floor_chart(found: list[Floors], where: str) -> Chart:
    """The least certified floor of all models of a head count and length, against heads, one line a length."""
    lengths = sorted({floors.record.cell.length for floors in found})
    heads = sorted({floors.record.cell.model.heads for floors in found})

    def least(h: int, t: int) -> float:
        own = [f.floor(where) for f in found if (f.record.cell.model.heads, f.record.cell.length) == (h, t)]
        return max(min(own), MIN_DRAWN) if own else float("nan")

    words = {
        "anywhere": "both sequences searched for",
        "near data": "one sequence drawn, one searched for",
    }[where]
    return Chart(
        name=f"floor-{where.replace(' ', '-')}",
        title=f"{'Estimated' if any(_is_estimated(f, where) for f in found) else 'Certified'} error floor, {where}",
        x_label="attention heads",
        y_label="floor / spread of the target",
        x_ticks=tuple(heads),
        series=tuple(
            Series(f"{t} tokens", tuple(heads), tuple(least(h, t) for h in heads), place=i)
            for i, t in enumerate(lengths)
        ),
        caption=f"a readout of slope up to {found[0].slope:g} errs by this; {words}; below {MIN_DRAWN:g} drawn there",
    )


def pair_picture(floors: Floors, certificate: Certificate, store: Store, task: AbstractTask) -> PairPicture:
    """The pair of a certificate, as its model sees it."""
    cell = floors.record.cell
    assert isinstance(cell.model, ClassTokenSpec)
    arrays = {name: np.asarray(array, np.float64) for name, array in store.weights(cell.key).items()}
    with jax.enable_x64(True):
        model, pair = from_arrays(cell.model, arrays), jnp.asarray(certificate.pair)
        outputs = np.stack([np.asarray(folded.class_output(model, tokens)) for tokens in pair])
        targets = np.stack([np.asarray(task.target(tokens)) for tokens in pair])
        single = cell.model.layers == 1
        weights = np.stack([np.asarray(folded.attention_weights(model, x)) for x in pair]) if single else None
    if certificate.exact:
        kind, readouts = "an exact collision is proved", "every readout"
    else:
        kind, readouts = f"{certificate.distance:.1e} apart", f"every readout of slope at most {floors.slope:g}"
    if certificate.estimated:
        kind += "; the gap is estimated"
    return PairPicture(
        title=f"{task.name}: two sequences of {cell.length} tokens that {cell.model.heads} heads "
        + ("cannot tell apart" if certificate.exact else "can hardly tell apart"),
        caption=f"{kind}; targets differ by {certificate.gap:.3g}, so {readouts} errs by "
        f"{certificate.floor(floors.slope):.3g} on one of them",
        tokens=certificate.pair,
        weights=weights,
        outputs=outputs,
        targets=targets,
    )
