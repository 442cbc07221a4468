"""How many maxima do L layers of h heads learn? Conjecture 1 of Yu et al. (arXiv 2510.06662) says at most h L.

Class-token models whose heads share a width of 36, on sums of D maxima in six dimensions. D is taken near the values of
the laws that it may follow, each and one more, so that every law can be refuted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...answer import error_table
from ...report.section import Section
from ...store import Experiment, Record
from ..base import AbstractStudy, Effort, Scale
from ..claims.depth import ATTENTION_ONLY, FITS, LAWS, ONE_MISSED, SOLVED, inside_claim, law_claim, limits
from .depth_views import error_charts, error_grid, headline, largest_chart, largest_grid

if TYPE_CHECKING:
    from ...engine import Sweep
    from ...models import ClassTokenSpec

DIM, TOTAL_DIM = 6, 36
INNER_HIDDEN = 32
INSIDES: dict[str, dict[str, Any]] = {
    ATTENTION_ONLY: {},
    "nets": {"inner_hidden": INNER_HIDDEN},
    "positions": {"positions": "additive"},
    "nets and positions": {"inner_hidden": INNER_HIDDEN, "positions": "additive"},
}
"""What models have inside besides attention layers."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Models of one shape and the D that they are tried on, at some lengths and draws of the task."""

    layers: int
    heads: int
    dims: tuple[int, ...]
    lengths: tuple[int, ...]
    draws: tuple[int, ...] = (0,)
    inside: str = ATTENTION_ONLY

    def axes(self, dim: int, draw: int, seeds: int) -> dict[str, tuple[Any, ...]]:
        """The values along every axis of the study, of one task."""
        model = {"layers": (self.layers,), "heads": (self.heads,), "inside": (self.inside,)}
        return model | {
            "intrinsic_dim": (dim,),
            "task_seed": (draw,),
            "length": self.lengths,
            "seed": tuple(range(seeds)),
        }


@dataclass(frozen=True, kw_only=True)
class DepthEffort(Effort):
    """How much of the study is done."""

    shapes: tuple[Shape, ...]

    def grid(self) -> Iterator[dict[str, tuple[Any, ...]]]:
        """The axes of every task and shape."""
        for shape in self.shapes:
            for dim in shape.dims:
                for draw in shape.draws:
                    yield shape.axes(dim, draw, self.seeds)


@dataclass(frozen=True, kw_only=True)
class DepthStudy(AbstractStudy):
    """The largest D that each number of layers and heads solves, beside the laws."""

    efforts: dict[Scale, DepthEffort]  # type: ignore[assignment]

    def sweep(self, scale: Scale) -> "Sweep":
        from ...engine import joined, sweep
        from ...tasks import sum_of_maxima

        effort = self.efforts[scale]
        parts = []
        for axes in effort.grid():
            at = {axis: axes.pop(axis)[0] for axis in ("intrinsic_dim", "task_seed")}
            task = sum_of_maxima(dim=DIM, directions="random", length=axes["length"][0], **at)
            parts.append(sweep(task, axes=axes, model=_model, train=effort.train, at=at, **self.named(scale)))
        return joined(parts)

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(experiment, records)
        limited = limits(table)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=headline(limited),
            claims=(*(law_claim(law, limited) for law in LAWS), inside_claim(table)),
            grids=(largest_grid(table, limited), error_grid(table)),
            charts=(largest_chart(limited), *error_charts(table)),
            notes=(*(f"{law.name}: {law.origin}." for law in LAWS), *self.choices(scale)),
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        narrower = ", ".join(f"D = {dim} at L = {layers}, h = {heads}" for (layers, heads), dim in FITS.items())
        ours = (
            f"A model that misses one of D maxima leaves an NMSE of about {ONE_MISSED:g} / D. Solved: at most "
            f"{SOLVED:g} of that, best of seeds, geometric mean over lengths and draws; intervals are over all three.",
            "Not solved means that no start solved it. Where D is at most h (2 L - 1) a model that solves it is "
            f"written down (theory.roles_of_maxima), so those starts are stuck; of width {TOTAL_DIM} up to {narrower}. "
            "The same goes for L = h = 2, D = 8, task_seed 0, from 32 tokens on (theory.construct_by_content). Above, "
            "nobody knows.",
            f"Class-token models of width {TOTAL_DIM} shared by the heads, encoder and readout of 32 units, attention "
            f"layers with residuals; nets inside have {INNER_HIDDEN} units, positions are learned and added. Tokens "
            f"are standard normal in {DIM} dimensions, directions are unit vectors well apart.",
        )
        if scale is Scale.PAPER:
            return ours
        effort, paper = self.efforts[scale], self.efforts[Scale.PAPER]
        smaller = (
            f"At {scale} scale: {effort.seeds} seeds, {effort.steps:,} steps, up to "
            f"{max(shape.layers for shape in effort.shapes)} layers and {max(shape.heads for shape in effort.shapes)} "
            f"heads. At paper scale {paper.seeds} seeds, {paper.steps:,} steps, 4 layers and 4 heads: few starts and "
            "short training leave more unsolved."
        )
        return (smaller, *ours)


def _model(heads: int, layers: int, inside: str) -> "ClassTokenSpec":
    from ...models import ClassTokenSpec

    return ClassTokenSpec.with_total_dim(TOTAL_DIM, heads=heads, layers=layers, **INSIDES[inside])


def near_laws(layers: int, heads: int) -> tuple[int, ...]:
    """The values of the laws up to h L (L + 1) / 2, each and one more, and that plus 2."""
    most = heads * layers * (layers + 1) // 2 + 2
    values = {law.largest(layers, heads) + more for law in LAWS for more in (0, 1)}
    return tuple(sorted({dim for dim in (*values, most) if 2 <= dim <= most}))


def _paper_shapes() -> tuple[Shape, ...]:
    deep = []
    for heads in (1, 2):
        for layers in (2, 3):
            dims = near_laws(layers, heads)
            deep.append(Shape(layers=layers, heads=heads, dims=dims, lengths=(16,), draws=(0, 1)))
            deep.append(Shape(layers=layers, heads=heads, dims=dims, lengths=(8,)))
    deep.append(Shape(layers=2, heads=2, dims=(6, 7, 8, 9), lengths=(32,)))
    deep += [Shape(layers=2, heads=heads, dims=near_laws(2, heads), lengths=(16,)) for heads in (3, 4)]
    for layers, heads in ((3, 3), (3, 4), (4, 1), (4, 2), (4, 3), (4, 4)):
        laws = (heads * (2 * layers - 1), heads * layers * (layers + 1) // 2)
        below = {heads * fewer for fewer in (layers, layers + 1, 2 * layers - 2)}
        dims = tuple(sorted(below | {law + more for law in laws for more in (0, 1)}))
        deep.append(Shape(layers=layers, heads=heads, dims=dims, lengths=(16,)))
    for inside in ("nets", "positions", "nets and positions"):
        deep.append(Shape(layers=2, heads=1, dims=(3, 4, 6), lengths=(16,), inside=inside))
    deep.append(Shape(layers=2, heads=2, dims=(7, 8), lengths=(16,), inside="nets and positions"))
    deep.append(Shape(layers=3, heads=1, dims=(6, 7, 8), lengths=(16,), inside="nets and positions"))
    shallow = [Shape(layers=1, heads=heads, dims=(heads, heads + 1), lengths=(8, 16)) for heads in (1, 2, 3, 4)]
    return (*shallow, *deep)


STUDY = DepthStudy(
    name="depth",
    title="The law of depth",
    asks="How many maxima D do L layers of h heads learn: h L, as conjectured, or more?",
    efforts={
        Scale.SMOKE: DepthEffort(
            lengths=(8,),
            seeds=2,
            steps=1000,
            shapes=(
                Shape(layers=1, heads=1, dims=(2,), lengths=(8,)),
                Shape(layers=1, heads=4, dims=(4,), lengths=(8,)),
                Shape(layers=2, heads=1, dims=(2, 3, 4), lengths=(8,)),
                Shape(layers=2, heads=1, dims=(4,), lengths=(8,), inside="nets and positions"),
            ),
        ),
        Scale.LAPTOP: DepthEffort(
            lengths=(8,),
            seeds=4,
            steps=8000,
            shapes=(
                Shape(layers=1, heads=1, dims=(1, 2), lengths=(8,)),
                Shape(layers=1, heads=2, dims=(2, 3), lengths=(8,)),
                Shape(layers=1, heads=3, dims=(3, 4), lengths=(8,)),
                Shape(layers=2, heads=1, dims=(2, 3, 4, 5), lengths=(8,)),
                Shape(layers=2, heads=2, dims=(4, 5, 6, 7, 8), lengths=(8,)),
                Shape(layers=2, heads=1, dims=(4,), lengths=(8,), inside="nets and positions"),
            ),
        ),
        Scale.PAPER: DepthEffort(lengths=(8, 16, 32), seeds=8, steps=15_000, shapes=_paper_shapes()),
    },
)
