"""Collisions of stored models: how wrong must any readout of a trained attention layer be?

For every model two questions, each answered by a certificate (`theory.certificates`):

    anywhere    two sequences of the domain that look alike to the readout, both searched for: the worst case, which
                the theorems are about
    near data   a sequence drawn from the task, and another that looks like it; the drawn one is clipped to the domain,
                and an exact collision lies within the certificate's radius of it

Training sees neither: a model with enough heads can be near perfect on data and still confuse sequences that data
never show. Look for the transition at h = D near data.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._limits import require_fits, shortened
from ...engine.data import PROBE_EXAMPLES
from ...errors import require, require_count
from ...models import ClassTokenSpec, ClassTokenTransformer, from_arrays, spec_from_dict
from ...models.attention import ATTENTION_FIELDS
from ...store import Cell, Experiment, Outcome, Record, Store
from ...tasks import GeneratedTask
from .. import Certificate, Collision, Domain, certify, domain_of, find_collisions
from ..doors import require_counts, require_positive
from .observables import CentredOutputs

NEAR_ENOUGH = 1e-6
"""Pairs further apart than this are not worth a certificate."""
CANDIDATES = 12
"""Pairs certified for a model and question, the largest gap first, until one is exact; with a norm twice as many."""
WHERE = ("anywhere", "near data")
"""The questions."""
SPREAD_EXAMPLES = 2000
MAX_SEARCH_STEPS = 10**8
"""For one model and question; by default there are 14,400, which take seconds."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Effort and domain of a search."""

    radius: float = 3.0
    """Of the domain of Gaussian tokens; tokens on the cube have the cube."""
    anchors: int = 8
    """Sequences drawn from the task."""
    starts: int = 12
    """Searches from each anchor; four times as many where both sequences are free."""
    steps: int = 150
    slope: float = 1e6
    """A near collision bounds the error of readouts of at most this slope; an exact one that of all."""
    seed: int = 0

    def __post_init__(self):
        require_counts(anchors=self.anchors, starts=self.starts, steps=self.steps)
        require_count("seed", self.seed, least=0)
        require_positive(radius=self.radius, slope=self.slope)
        steps = self.steps * self.starts * max(4, self.anchors)
        require(
            steps <= MAX_SEARCH_STEPS,
            f"anchors x starts x steps = {shortened(self.anchors)} x {shortened(self.starts)} x "
            f"{shortened(self.steps)} are {shortened(steps)} steps of a search, and the limit is {MAX_SEARCH_STEPS:,}; "
            "use fewer.",
            what="anchors starts steps",
            given=steps,
        )


@dataclass(frozen=True, kw_only=True)
class Floors:
    """Certified error floors of one stored model; None where no pair came near enough to a collision."""

    record: Record
    spread: float
    """The standard deviation of the task's target."""
    certificates: dict[str, Certificate | None]
    """By the questions of `WHERE`."""
    slope: float

    @property
    def normed(self) -> bool:
        """Whether the model has a norm before its readout."""
        return bool(self.record.cell.model.get("final_norm", False))

    def share_of_spread(self, where: str) -> float:
        """Return the certified floor in units of the target's standard deviation; 0 where there is no certificate."""
        certificate = self.certificates[where]
        return 0.0 if certificate is None else certificate.floor(self.slope) / self.spread


def chosen(experiments: list[Experiment], records: Iterable[Record], seeds: int) -> list[list[Record]]:
    """Return finished class-token models that differ by seed and learning rate alone, the best `seeds` of each kind.

    Kinds come by length and then heads; a model of two experiments counts once. Models that read otherwise are left
    out: `left_out` says how many. Raises `InputError` where none is left.
    """
    require_count("seeds", seeds)
    groups: dict[tuple, list[Record]] = {}
    grouped: set[str] = set()
    for experiment in experiments:
        for record in experiment.own(records):
            cell = record.cell
            if _finished(record) and not _reads_otherwise(cell) and cell.key not in grouped:
                place = experiment.coordinates(cell.key)
                kind = tuple((axis, value) for axis, value in place.items() if axis not in ("seed", "learning_rate"))
                groups.setdefault((experiment.name, kind), []).append(record)
                grouped.add(cell.key)
    none = "of class-token models none is finished, and encoders have no single output that could collide"
    require(len(groups) > 0, f"there is no model to search: {left_out(records) or none}; name another folder.")
    best = [sorted(group, key=lambda record: record.error)[:seeds] for group in groups.values()]
    return sorted(best, key=lambda group: (group[0].cell.length, group[0].cell.model["heads"], group[0].cell.key))


def left_out(records: Iterable[Record]) -> str:
    """Return a sentence on the finished class-token models that are not searched; empty where all are."""
    models = {record.cell.key: record.cell for record in records if _finished(record)}
    otherwise = [names for cell in models.values() if (names := _reads_otherwise(cell))]
    if not otherwise:
        return ""
    given = ", ".join(name for name in ATTENTION_FIELDS if any(name in names for names in otherwise))
    count = f"{len(otherwise)} {'model has' if len(otherwise) == 1 else 'models have'}"
    return f"{count} another {given}; soft attention over all tokens is searched, of heads with their own keys"


def _finished(record: Record) -> bool:
    return record.outcome is Outcome.FINISHED and record.cell.model.get("kind") == ClassTokenSpec.kind


def _reads_otherwise(cell: Cell) -> list[str]:
    """Return the fields by which the heads of a model read otherwise; a stored spec leaves out defaults."""
    return [name for name in ATTENTION_FIELDS if name in cell.model]


def collide(
    groups: list[list[Record]],
    store: Store,
    task_of: Callable[[dict[str, Any]], GeneratedTask],
    options: SearchOptions,
) -> Iterator[list[Floors]]:
    """Search and certify, group after group."""
    for group in groups:
        cell = group[0].cell
        task = task_of(cell.task).at(cell.length)
        pairs = options.starts * max(4, options.anchors)
        require_fits(f"a search from {pairs:,} pairs", 8 * 2 * pairs * cell.length * task.dim * len(group))
        models = [_stored_model(record.cell, store) for record in group]
        domain = domain_of(task, options.radius)
        tokens, spread = _drawn_sequences(task, cell, domain, options)
        search = functools.partial(find_collisions, models, task, domain, steps=options.steps, seed=options.seed)
        found = {
            "anywhere": search(starts=4 * options.starts),
            "near data": search(starts=options.starts, anchors=tokens),
        }
        yield [
            Floors(
                record=record,
                spread=spread,
                certificates={
                    where: best_certificate(of_models[i], model, task, domain, options.slope)
                    for where, of_models in found.items()
                },
                slope=options.slope,
            )
            for i, (record, model) in enumerate(zip(group, models, strict=True))
        ]


def best_certificate(
    found: list[Collision], model: ClassTokenTransformer, task: GeneratedTask, domain: Domain, slope: float
) -> Certificate | None:
    """Return the certificate with the highest floor among the first pairs. An exact one, which holds for every readout,
    is preferred if its floor is half as high.
    """
    near = [collision for collision in found if collision.distance < NEAR_ENOUGH]
    # Pairs that only a norm merges have larger gaps: they must not crowd out the others.
    merged = [each for each in near if isinstance(each.observables, CentredOutputs)][:CANDIDATES]
    others = [each for each in near if not isinstance(each.observables, CentredOutputs)][:CANDIDATES]
    best = exact = None
    for collision in sorted(merged + others, key=lambda each: -each.gap):
        certificate = certify(collision, model, task, domain)
        if best is None or certificate.floor(slope) > best.floor(slope):
            best = certificate
        if certificate.exact:
            exact = certificate
            break
    return exact if exact is not None and best is not None and 2 * exact.floor() >= best.floor(slope) else best


def _stored_model(cell: Cell, store: Store) -> ClassTokenTransformer:
    model = from_arrays(spec_from_dict(cell.model), store.weights(cell.key))
    assert isinstance(model, ClassTokenTransformer)
    return model


def _drawn_sequences(
    task: GeneratedTask, cell: Cell, domain: Domain, options: SearchOptions
) -> tuple[np.ndarray, float]:
    """Return validation sequences of the data the model was judged on, and the spread of the target there."""
    examples = max(SPREAD_EXAMPLES, options.anchors)
    validation = task.examples(cell.train.train_examples or PROBE_EXAMPLES, examples, cell.train.data_seed).validation
    tokens, targets = np.asarray(validation.content, float), np.asarray(validation.targets, float)
    inside = np.all((tokens > domain.low) & (tokens < domain.high), axis=(1, 2))
    # Sequences that need not be cut to the domain first.
    order = np.argsort(~inside, kind="stable")[: options.anchors]
    return domain.clip(tokens[order]), float(np.max(targets.std(axis=0)))


def as_json(floors: Floors) -> dict[str, Any]:
    """Return everything needed to check a certificate elsewhere, the two sequences included."""

    def certificate(found: Certificate | None) -> dict[str, Any] | None:
        if found is None:
            return None
        written = dataclasses.asdict(found) | {"pair": np.asarray(found.pair).tolist(), "exact": found.exact}
        written["floor"] = found.floor(floors.slope)
        finite = {name: None for name in ("contraction", "distance") if not math.isfinite(written[name])}
        return written | finite

    cell = floors.record.cell
    return {
        "key": cell.key,
        "heads": cell.model["heads"],
        "length": cell.length,
        "final_norm": floors.normed,
        "seed": cell.seed,
        "nmse": floors.record.metrics["nmse"],
        "spread": floors.spread,
        "slope": floors.slope,
        **{where.replace(" ", "_"): certificate(found) for where, found in floors.certificates.items()},
    }
