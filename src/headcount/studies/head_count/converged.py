"""Tables 3 and 4 from D heads on: published errors are 30 to 360 times below ours. Steps, batch, data or optimiser?

One change at a time from the training of the tables, then changes together. Float32 throughout.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis import ErrorTable, error_table
from ...analysis.metric import TRAIN_NMSE
from ...report.chart import HeatMap
from ...report.section import Grid, Section
from ...store import Experiment, Record, TrainSpec
from ..base import Effort, Scale
from ..claims.converged import BASE, NEAR, Variant, data_claim, reached_claim
from . import table3, table4
from .table import OUR_CHOICES, HeadCountStudy, paper_task

if TYPE_CHECKING:
    from ...engine import Sweep

TABLES = {each.name: each for each in (table3.STUDY, table4.STUDY)}
TITLES = {name: each.title for name, each in TABLES.items()}
WORDS = {
    "steps": "steps",
    "batch": "batch",
    "train_examples": "examples",
    "second_moment_decay": "beta2",
    "learning_rate": "rate",
    "clip": "clip",
}
"""What a change is called, by the field of `TrainSpec`."""
THOUSANDS = ("steps", "train_examples")
Change = dict[str, float]
"""New values by field of `TrainSpec`; that of `steps` is a factor."""
FRESH: Change = {"train_examples": 0}
ONE: tuple[Change, ...] = (
    {},
    {"steps": 5},
    {"batch": 256},
    {"train_examples": 80_000},
    {"second_moment_decay": 0.999},
    {"learning_rate": 3e-3},
)
ALONE: tuple[Change, ...] = (*ONE, {"steps": 20}, {"batch": 1024}, FRESH, {"learning_rate": 3e-2}, {"clip": 100.0})
TOGETHER: tuple[Change, ...] = (
    {"steps": 10, "train_examples": 80_000},
    {"steps": 10, "train_examples": 80_000, "learning_rate": 3e-3},
    {"steps": 10, "batch": 512, "train_examples": 80_000},
)


@dataclass(frozen=True, kw_only=True)
class ConvergedEffort(Effort):
    """How much is done, and which changes are tried."""

    changes: tuple[Change, ...]

    def variants(self) -> dict[str, TrainSpec]:
        """The training of every variant by its name, such as "steps 200k, examples 80k"."""
        base = self.train
        trains = [
            replace(base, **change | ({"steps": int(base.steps * change["steps"])} if "steps" in change else {}))  # pyright: ignore[reportArgumentType]
            for change in self.changes
        ]
        return {_name(base, train): train for train in trains}


def _name(base: TrainSpec, train: TrainSpec) -> str:
    changed = {field.name for field in fields(TrainSpec) if getattr(base, field.name) != getattr(train, field.name)}
    parts = []
    for field, word in WORDS.items():
        value = getattr(train, field)
        if field in changed:
            size = f"{value / 1000:g}k" if field in THOUSANDS else f"{value:g}"
            parts.append("fresh examples" if {field: value} == FRESH else f"{word} {size}")
    return ", ".join(parts) or BASE


@dataclass(frozen=True, kw_only=True)
class ConvergedStudy(HeadCountStudy):
    """Tables 3 and 4 at D heads, trained in several ways."""

    efforts: dict[Scale, ConvergedEffort]  # type: ignore[assignment]

    def sweep(self, scale: Scale) -> "Sweep":
        from ...engine import joined, sweep

        effort = self.efforts[scale]
        return joined(
            sweep(
                paper_task(table.intrinsic_dim),
                axes={"heads": [table.transition], "length": effort.lengths, "seed": range(effort.seeds)},
                model=table.model,
                train=train,
                at={"variant": variant, "table": name},
                **self.named(scale),
            )
            for name, table in TABLES.items()
            for variant, train in effort.variants().items()
        )

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        records = list(records)
        variants = _variants(error_table(experiment, records))
        training = _variants(error_table(experiment, records, metric=TRAIN_NMSE))
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(variants),
            claims=(
                *(
                    reached_claim(variants, name, title, joint=joint)
                    for joint in (False, True)
                    for name, title in TITLES.items()
                ),
                data_claim(variants, TITLES),
            ),
            grids=(_grid(variants), _gap_grid(variants, training)),
            charts=(_chart(variants),),
            notes=self.choices(scale),
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort = self.efforts[scale]
        smaller = (
            f"At {scale} scale: {len(effort.changes)} variants, {effort.seeds} seeds, lengths "
            f"{', '.join(map(str, effort.lengths))}, {effort.steps:,} steps without a change; errors are then far "
            "above the published ones whatever is changed. --scale paper has the training of the tables.",
        )
        return (
            *(smaller if scale is not Scale.PAPER else ()),
            "Published are minima over an unknown number of seeds, ours are the best of a few: with more seeds ours "
            "can only be smaller.",
            *OUR_CHOICES[:2],
        )


def _variants(table: ErrorTable) -> list[Variant]:
    """Every variant of which a model was trained, by table and variant."""
    variants = []
    for name in sorted(set(table.values("table")) & set(TABLES)):
        study = TABLES[name]
        if study.transition not in table.values("heads"):
            continue
        printed = {
            length: study.published.at(heads=study.transition, length=length) for length in table.values("length")
        }
        for variant in sorted(table.values("variant"), key=_order):
            errors = table.select(table=name, variant=variant)
            variants.append(Variant(name=variant, table=name, heads=study.transition, errors=errors, printed=printed))
    return variants


def _order(variant: str) -> tuple[bool, int, str]:
    """The base first, single changes, joint ones."""
    return variant != BASE, variant.count(", "), variant


def _headline(variants: Sequence[Variant]) -> str:
    """The change and the joint change that come nearest over both tables."""
    parts = []
    for word, chosen in (("Alone", [v for v in variants if v.single]), ("together", [v for v in variants if v.joint])):
        times: dict[str, list[float]] = {}
        for each in chosen:
            if each.best:
                times.setdefault(each.name, []).append(each.times)
        means = {name: float(np.exp(np.mean(np.log(np.maximum(values, 1e-30))))) for name, values in times.items()}
        if means:
            nearest = min(means, key=means.__getitem__)
            parts.append(f'{word} "{nearest}" comes nearest, {means[nearest]:.3g}-fold of the published errors')
    return "; ".join(parts) or "No change was trained yet"


def _rows(variants: Sequence[Variant]) -> tuple[list[str], list[tuple[str, int]]]:
    """The names of the variants, and the table and length of every column."""
    names = list(dict.fromkeys(each.name for each in variants if each.best))
    places = sorted({(each.table, length) for each in variants for length in each.best})
    return names, places


def _grid(variants: Sequence[Variant]) -> Grid:
    names, places = _rows(variants)
    cells = {
        (each.name, each.table, length): f"{error:.1e} ({each.ratios[length]:.3g})"
        for each in variants
        for length, error in each.best.items()
    }

    printed = ("published", *(f"{TABLES[t].published.at(heads=TABLES[t].transition, length=n):.1e}" for t, n in places))
    return Grid(
        title="best of seeds (times the published error)",
        columns=("", *(f"{TITLES[table]}, T = {length}" for table, length in places)),
        rows=(printed, *((name, *(cells.get((name, *place), "-") for place in places)) for name in names)),
    )


def _gap_grid(variants: Sequence[Variant], training: Sequence[Variant]) -> Grid:
    """Validation errors beside those of the last training batches: what generalising costs, and what optimising."""
    names, places = _rows(variants)
    ours, theirs = ({(e.name, e.table): e.best for e in each} for each in (variants, training))

    def cell(name: str, table: str, length: int) -> str:
        both = [each.get((name, table), {}).get(length) for each in (theirs, ours)]
        return "-" if None in both else " | ".join(f"{value:.1e}" for value in both)

    return Grid(
        title="training error | validation error, best of seeds",
        columns=("", *(f"{TITLES[table]}, T = {length}" for table, length in places)),
        rows=tuple((name, *(cell(name, *place) for place in places)) for name in names),
        folded=True,
    )


def _chart(variants: Sequence[Variant]) -> HeatMap:
    names, places = _rows(variants)
    ratios = {(each.name, each.table): each.ratios for each in variants}
    values = [[ratios.get((name, table), {}).get(length, np.nan) for table, length in places] for name in names]
    return HeatMap(
        name="converged",
        title="Times the published error, at D heads",
        rows=tuple(names),
        columns=tuple(f"{TITLES[table]}, {length}" for table, length in places),
        row_label="change to the training",
        column_label="table and length",
        values=np.array(values, float).reshape(len(names), len(places)),
        unit="times the published error",
        caption=f"best of seeds; {NEAR:g} and below counts as reached",
        scale=(0.3, 300.0),
        scale_label="times the published error",
        downward=True,
    )


STUDY = ConvergedStudy(
    name="converged",
    title="Tables 3 and 4, trained further",
    asks="Which part of the training keeps our errors above those of Tables 3 and 4: steps, batch, data or optimiser?",
    efforts={
        Scale.SMOKE: ConvergedEffort(
            lengths=(8,), seeds=2, steps=400, changes=(*ONE[:2], ONE[3], {"steps": 5, "train_examples": 80_000})
        ),
        Scale.LAPTOP: ConvergedEffort(
            lengths=(8, 32), seeds=2, steps=2000, changes=(*ONE, {"steps": 5, "train_examples": 80_000})
        ),
        Scale.PAPER: ConvergedEffort(lengths=(8, 32, 128), seeds=3, steps=20_000, changes=(*ALONE, *TOGETHER)),
    },
)
