"""Theorem 2(2) as a program: the proof's own pair of sequences, for one model of s < D heads and one task on the cube.

    responsive   for every head j a token y_j and a place t_j where it scores highest; both sequences hold them, so what
                 else they hold has at most as much weight, and a head's denominators cannot be small
    basin        s tokens cannot hold all D minimisers x^(i): some i keeps a segment near x^(i), below everything fixed,
                 along which f_i rises at least with slope L
    grids        T0 = T/4 - s - D + 1 free places of S_i, each with points of its own on the segment; all values of f_i
                 differ by at least the `spacing`
    pigeonhole   of many choices of one point a place, the two whose (n + 1) s moments lie nearest
    completion   where both chose one point both get a filler instead; the y_j, the x^(k) of the other minima and
                 fillers take the places that are left

The minima of f_i then differ by at least the spacing and all others are z_k*, while the readout sees nearly one thing:
by Lemma 4 it must be large. Minimisers, most responsive tokens, L and the slope of F0 come from searches and samples in
float64; the pair is what it is, however it was found, and `certificates` can enclose it.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(2), repaired: y_j is sought at all places that are not yet used, where
the paper looks in S_j only; the targets are compared by minima, where it writes max; points that both subsequences
chose are taken out before that, or the two minima could be one; and the segment ends below f_i(y_j) and f_i(x^(k)).
"""

import dataclasses
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.spatial import KDTree

from .._errors import require, require_count
from .._keys import named_generator
from .._precision import in_double
from ..models import ClassTokenTransformer, folded
from ..tasks import Retrieval
from ..tasks.assumptions import AssumptionReport, check_assumptions
from .basins import CUBE, Responsive, Segment, most_responsive, over, uncovered_basin
from .bounds import Bound, steep_net_size
from .collisions import Collision
from .heads import Heads, Numbers, fold, numbers_read
from .sight import Moments, check_fit

NEEDED = ("2.1", "2.2", "2.3", "2.4", "sets")
"""The clauses the proof rests on. That f_i stays within [0, 1] is only a matter of units."""
LEAST_FREE = 2
ROUNDING = 1e-15
"""Two attention outputs nearer than this, relative to their size, are one as far as float64 tells."""


@dataclass(frozen=True, kw_only=True)
class Pigeonhole:
    """Two sequences that differ at the places `free` only, and what they ask of a readout."""

    pair: Float[np.ndarray, "2 length dim"]
    component: int
    """The i, from 0, whose minimum differs."""
    segment: Segment
    radius: float
    """How far from x^(i) the nearest fixed token is."""
    spacing: float
    """Any two grid points differ in f_i by this at least."""
    free: tuple[int, ...]
    responsive: tuple[Responsive, ...]
    subsequences: int
    resolution: int
    """Grid points a place."""
    moment_distance: float
    """How near the two subsequences lie, in moments of the order of one."""
    promised_moment_distance: float
    """How near two of so many must lie, by the pigeonhole principle."""
    distance: float
    """How far apart the class token is after attention (Euclidean, float64)."""
    gap: float
    """The largest difference of a target number."""
    size: Bound
    """Lemma 4 for a readout that errs by less than a third of the gap, as in the proof, where the gap is 3 eps. Up to
    rounding: `certify(..).size_needed` gives a guaranteed one."""
    sight: Moments

    @property
    def promised_gap(self) -> float:
        """What the construction promises of `gap` before a pair is known."""
        return self.segment.outer_slope * self.spacing

    def as_collision(self) -> Collision:
        """The pair with the moments of its free places, for `certify` or for Newton steps to an exact collision."""
        with jax.enable_x64(True):
            pair = jnp.asarray(self.pair)
            apart = float(jnp.linalg.norm(self.sight.difference(pair, self.sight.scale(pair))))
        return Collision(pair=self.pair, distance=apart, gap=self.gap, sight=self.sight)


def find_pigeonhole(
    model: ClassTokenTransformer,
    task: Retrieval,
    *,
    subsequences: int = 20_000,
    resolution: int | None = None,
    seed: int = 0,
) -> Pigeonhole:
    """The proof's pair, from `subsequences` choices on grids of `resolution` points a place.

    Without `resolution` the grids are as fine as that many choices need. With it, more subsequences include those of
    fewer, and the nearest two of them come nearer.
    """
    require_count("subsequences", subsequences, least=2)
    _check(model, task)
    count = len(model.attention[0].query)
    free_places = task.length // 4 - count - len(task.position_sets) + 1
    if resolution is None:
        resolution = max(2, int(np.ceil(subsequences ** (1 / free_places) - 1e-9)))
    require_count("resolution", resolution, least=2)
    report = check_assumptions(task)
    failed = [clause for clause in report.clauses if clause.name in NEEDED and not clause.holds]
    words = "; ".join(f"{clause.name} fails: {clause.evidence}" for clause in failed)
    require(not failed, f"{task.name} must meet Assumption 2 for the proof of Theorem 2(2), but clause {words}.")
    with jax.enable_x64(True):
        wide, numbers = in_double(task), numbers_read([model])
        heads = jax.tree.map(jnp.asarray, fold(model, numbers, task.length)[0])
        responsive = most_responsive(heads, task.dim, seed)
        component, radius, segment = uncovered_basin(wide, report, responsive)
        base, free = _base(task, report, responsive, component, segment.stop, free_places)
        # Point q of place p is number q T0 + p along the segment: every place covers all of it. Equal steps help: where
        # what a head adds is nearly polynomial along the segment, choices with equal power sums are much nearer than
        # the pigeonhole promises.
        shares = np.linspace(0, 1, free_places * resolution).reshape(resolution, free_places).T
        grid = segment.at(shares)
        values = over(jax.vmap(wide.features), grid)[..., component]
        spacing = float(np.diff(np.sort(values, axis=None)).min())
        require(
            spacing > ROUNDING,
            f"resolution {resolution} puts grid points within rounding of each other, {spacing:.1e}; give less.",
        )
        choices = _choices(free_places, resolution, subsequences, seed)
        table = np.asarray(_moments(heads, numbers, jnp.asarray(free), jnp.asarray(grid)))
        (one, other), nearest, promised = _nearest(table, choices, values)
        differs = one != other
        pair = np.stack([base, base])
        for tokens, choice in zip(pair, (one, other), strict=True):
            tokens[free[differs]] = grid[np.arange(free_places), choice][differs]
        seen = over(partial(folded.class_output, in_double(model)), pair)
        targets = over(wide.target, pair)
    distance, gap = float(np.linalg.norm(seen[0] - seen[1])), float(np.abs(targets[0] - targets[1]).max())
    told_apart = max(distance, ROUNDING * max(1.0, float(np.linalg.norm(seen[0]))))
    own = free[differs]
    shared = tuple(np.setdiff1d(np.arange(task.length), own).tolist())
    return Pigeonhole(
        pair=pair,
        component=component,
        segment=segment,
        radius=radius,
        spacing=spacing,
        free=tuple(own.tolist()),
        responsive=responsive,
        subsequences=len(choices),
        resolution=resolution,
        moment_distance=nearest,
        promised_moment_distance=promised,
        distance=distance,
        gap=gap,
        size=steep_net_size(gap / 3, told_apart, len(model.class_token)),
        sight=Moments(heads=heads, numbers=numbers, shared=shared),
    )


def _check(model: ClassTokenTransformer, task: Retrieval) -> None:
    check_fit(model, task)
    layers, count, dims = len(model.attention), len(model.attention[0].query), len(task.position_sets)
    require(layers == 1, f"Theorem 2(2) is about one attention layer, the model has {layers}.")
    require(
        task.distribution == "cube", f'{task.name}: the proof is about tokens in the cube; give distribution="cube".'
    )
    require(count < dims, f"{count} heads are enough for D = {dims}: Theorem 2(2) is about fewer than D heads.")
    require(task.length % 4 == 0, f"the proof needs a length that 4 divides, {task.name} has {task.length}.")
    least = 4 * (count + dims - 1 + LEAST_FREE)
    require(
        task.length >= least,
        f"length {task.length} leaves fewer than {LEAST_FREE} free places to {count} heads and D = {dims}; "
        f"it takes length {least} or more.",
    )


def _base(
    task: Retrieval,
    report: AssumptionReport,
    responsive: tuple[Responsive, ...],
    component: int,
    filler: np.ndarray,
    free_places: int,
) -> tuple[Float[np.ndarray, "length dim"], Int[np.ndarray, " free"]]:
    """What both sequences hold, fillers at the free places included, and where these are.

    The filler is the upper end of the segment: no value of f_i on the segment is higher, so it undercuts none. A
    quarter of the places is T0 + s + D - 1 of them, so no S_k runs out.
    """
    base = np.tile(filler, (task.length, 1))
    used = {point.place for point in responsive}
    for point in responsive:
        base[point.place] = point.token
    for k, minimiser in enumerate(report.minimisers):
        if k != component:
            place = next(place for place in task.position_sets[k] if place not in used)
            base[place] = CUBE.clip(minimiser)
            used.add(place)
    left = [place for place in task.position_sets[component] if place not in used]
    return base, np.array(left[:free_places])


def _choices(free_places: int, resolution: int, subsequences: int, seed: int) -> Int[np.ndarray, "subsequences free"]:
    """All choices of one grid point a place, or as many as asked for, less those drawn twice."""
    if resolution**free_places <= subsequences:
        return np.indices((resolution,) * free_places).reshape(free_places, -1).T
    drawn = named_generator(seed, "subsequences").integers(resolution, size=(subsequences, free_places))
    return np.unique(drawn, axis=0)


@eqx.filter_jit
def _moments(
    heads: Heads, numbers: Numbers, free: Int[Array, " free"], grid: Float[Array, "free resolution dim"]
) -> Float[Array, "free resolution seen"]:
    """What every grid point adds to every moment: each head on the scale of its highest score, each number on its own
    so that none decides alone what near means."""
    scores = jax.vmap(jax.vmap(heads.scores, in_axes=(0, None)))(grid, free)
    scale = jnp.max(scores, axis=(0, 1))

    def alone(place: Array, points: Array) -> Array:
        """The moments of sequences of one token at this place."""
        biases = {name: getattr(heads, name)[place][None] for name in ("bias", "score_bias", "value_bias")}
        sight = Moments(heads=dataclasses.replace(heads, **biases), numbers=numbers)
        return jax.vmap(lambda token: sight.of(token[None], scale))(points)

    added = jax.vmap(alone)(free, grid)
    return added / jnp.maximum(jnp.max(jnp.abs(added), axis=(0, 1)), 1e-300)


def _nearest(
    table: Float[np.ndarray, "free resolution seen"],
    choices: Int[np.ndarray, "subsequences free"],
    values: Float[np.ndarray, "free resolution"],
) -> tuple[Int[np.ndarray, "2 free"], float, float]:
    """The two choices whose moments lie nearest, how near, and how near they had to be; of pairs that rounding cannot
    rank, those whose minima of f_i differ most."""
    places = np.arange(table.shape[0])
    moments = table[places, choices].sum(axis=1)
    # A box with every side cut in k has k^m cells: with more points than that, two lie in one cell.
    sides, parts = np.ptp(moments, axis=0), int((len(moments) - 1) ** (1 / moments.shape[1]) + 1e-9)
    promised = float(np.linalg.norm(sides)) / parts
    # Where a head is sharp, many choices have one vector of moments to the last bit: a tree would compare them all.
    distinct, kept, group = np.unique(moments, axis=0, return_index=True, return_inverse=True)
    if len(distinct) < len(moments):
        order = np.lexsort((values[places, choices].min(axis=1), group.ravel()))
        same = np.diff(group.ravel()[order]) == 0
        pairs, apart = np.stack([order[:-1][same], order[1:][same]], axis=1), np.zeros(int(same.sum()))
    else:
        distances, neighbours = (np.asarray(found)[:, 1] for found in KDTree(distinct).query(distinct, k=2))
        pairs, apart = np.stack([kept, kept[neighbours]], axis=1), distances
    one, other = choices[pairs[:, 0]], choices[pairs[:, 1]]
    own = [np.where(one != other, values[places, choice], np.inf).min(axis=1) for choice in (one, other)]
    tied = apart <= apart.min() + ROUNDING * len(places)
    best = int(np.argmax(np.where(tied, np.abs(own[0] - own[1]), -1.0)))
    return np.stack([one[best], other[best]]), float(apart[best]), promised
