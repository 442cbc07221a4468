"""Theorem 2(2) as a program: the pair of sequences of its proof, for one model of s < D heads and one task on the cube.

    responsive   for every head j the token y_j and place t_j of its highest score; both sequences contain them, so no
                 other token has more weight, and the denominators of the softmax cannot be small
    basin        s tokens cannot cover all D minimisers x^(i): for some i there is a segment near x^(i), below all fixed
                 tokens, along which f_i rises with slope at least L
    grids        T0 = T/4 - s - D + 1 free places of S_i, each with its own points on the segment; all values of f_i
                 differ by at least `spacing`
    pigeonhole   among many choices of one point per place, the two whose (n + 1) s moments are nearest
    completion   where both chose the same point both get a filler; the y_j, the x^(k) of the other minima and fillers
                 take the remaining places

The minima of f_i then differ by at least the spacing and all others are z_k*, while the readout sees nearly the same:
by Lemma 4 it must be large. Minimisers, most responsive tokens, L and the slope of F0 come from searches and samples in
float64; `certificates` can enclose the pair, however it was found.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(2), repaired: y_j is searched over all unused places, the paper uses
S_j only; the targets are compared by minima, where it writes max; points that both subsequences chose are removed
first, or the two minima could be equal; the segment ends below f_i(y_j) and f_i(x^(k)); and clause 2.3 of Assumption 2
(a positive definite Hessian at x^(i)) is not needed: a rise along the segment is all that is used.
"""

import dataclasses
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int
from scipy.spatial import KDTree

from ..._precision import in_double
from ...errors import require, require_count
from ...keys import named_generator
from ...models import ClassTokenTransformer
from ...tasks import Retrieval
from ..assumptions import check_assumptions
from ..bounds import steep_net_size
from .basins import Responsive, Segment, map_over, most_responsive, uncovered_basin
from .domain import CUBE
from .heads import Coordinates, FoldedHeads, coordinates_read, fold_heads
from .observables import Moments, check_fit, seen_by_readout
from .search import Collision

CLAUSES_USED = ("2.1", "2.2", "2.4", "sets")
"""The clauses of Assumption 2 that the proof uses. Theorem 2(2) states 2.3 (Hessian) too, of which the proof uses only
that f_i rises along a segment from its minimiser: linear components do too, and `uncovered_basin` tests it by itself.
That f_i lies in [0, 1] is only a matter of units."""
MIN_FREE = 2
ROUNDING = 1e-15
"""Distances below this, relative to the size of the attention outputs, are rounding in float64."""


@dataclass(frozen=True, kw_only=True)
class Pigeonhole:
    """Two sequences that differ at the places `free` only, and the readout size that they require."""

    pair: Float[np.ndarray, "2 length dim"]
    component: int
    """The index i of the minimum that differs, from 0."""
    segment: Segment
    radius: float
    """Distance from x^(i) to the nearest fixed token."""
    spacing: float
    """Any two grid points differ in f_i by at least this."""
    free: tuple[int, ...]
    responsive: tuple[Responsive, ...]
    subsequences: int
    resolution: int
    """Grid points per place."""
    moment_distance: float
    """Distance of the moments of the two subsequences, scaled to the order of one."""
    promised_moment_distance: float
    """Upper bound on it for this many subsequences, by the pigeonhole principle."""
    distance: float
    """Euclidean distance of what the readout sees of the two, in float64."""
    gap: float
    """The largest difference of a target number."""
    size: float
    """Lemma 4 for a readout with error below a third of the gap, as in the proof, where the gap is 3 eps. Up to
    rounding: `certify(..).size_needed` is guaranteed."""
    observables: Moments

    @property
    def promised_gap(self) -> float:
        """Lower bound on `gap` that holds before a pair is chosen."""
        return self.segment.outer_slope * self.spacing

    def as_collision(self) -> Collision:
        """Return the pair with the moments of its free places, for `certify`."""
        with jax.enable_x64(True):
            pair = jnp.asarray(self.pair)
            distance = float(jnp.linalg.norm(self.observables.difference(pair, self.observables.scale(pair))))
        return Collision(pair=self.pair, distance=distance, gap=self.gap, observables=self.observables)


def find_pigeonhole(
    model: ClassTokenTransformer,
    task: Retrieval,
    *,
    subsequences: int = 20_000,
    resolution: int | None = None,
    seed: int = 0,
    any_heads: bool = False,
) -> Pigeonhole:
    """Return the pair of the proof, for one model and one task.

    The model has one attention layer of fewer than D heads, the task is on the cube and meets Assumption 2 (in place of
    clause 2.3: some f_i rises along an axis from its minimiser), and 4 divides its length. `subsequences` are choices
    of one grid point per free place, `resolution` the points per place, by default as many as that number of choices
    needs. At a fixed resolution more subsequences include those of fewer, and the nearest two come nearer. With
    `any_heads` D heads or more are tried too: the proof's basin may then not exist, a `NoBasinError`.
    """
    count, dims = len(model.attention[0].query), len(task.position_sets)
    require(any_heads or count < dims, f"Theorem 2(2) needs fewer than D = {dims} heads, got {count}.")
    require_count("subsequences", subsequences, least=2)
    _check(model, task)
    free_places = task.length // 4 - count - dims + 1
    if resolution is None:
        resolution = max(2, int(np.ceil(subsequences ** (1 / free_places) - 1e-9)))
    require_count("resolution", resolution, least=2)
    report = check_assumptions(task)
    failed = [clause for clause in report.clauses if clause.name in CLAUSES_USED and not clause.holds]
    reasons = "; ".join(f"{clause.name} fails: {clause.evidence}" for clause in failed)
    require(not failed, f"{task.name} must meet Assumption 2 for the proof of Theorem 2(2), but clause {reasons}.")
    with jax.enable_x64(True):
        wide, coordinates = in_double(task), coordinates_read([model])
        heads = jax.tree.map(jnp.asarray, fold_heads(model, coordinates, task.length)[0])
        responsive = most_responsive(heads, task.dim, seed)
        component, radius, segment = uncovered_basin(wide, report, responsive)
        base, free = _base(task, report.minimisers, responsive, component, segment.stop)
        free = free[:free_places]
        # Point q of place p is point q T0 + p of the segment: every place covers all of it. Equal steps help: where the
        # moments are nearly polynomial along the segment, choices with equal power sums are much nearer than the
        # pigeonhole principle promises.
        shares = np.linspace(0, 1, free_places * resolution).reshape(resolution, free_places).T
        grid = segment.start + shares[..., None] * (segment.stop - segment.start)
        features = np.asarray(map_over(wide.features, grid.reshape(-1, task.dim)))
        values = features[:, component].reshape(grid.shape[:2])
        spacing = float(np.diff(np.sort(values, axis=None)).min())
        too_close = f"resolution {resolution} puts grid points within rounding of each other, {spacing:.1e}"
        require(spacing > ROUNDING, f"{too_close}; use a lower one.")
        choices = _choices(free_places, resolution, subsequences, seed)
        table = np.asarray(_moments(heads, coordinates, jnp.asarray(free), jnp.asarray(grid)))
        (one, other), nearest, promised = _nearest(table, choices, values)
        differs = one != other
        pair = np.stack([base, base])
        for tokens, choice in zip(pair, (one, other), strict=True):
            tokens[free[differs]] = grid[np.arange(free_places), choice][differs]
        functions = Partial(seen_by_readout, in_double(model)), wide.target
        seen, targets = (np.asarray(map_over(function, pair)) for function in functions)
    distance, gap = float(np.linalg.norm(seen[0] - seen[1])), float(np.abs(targets[0] - targets[1]).max())
    min_distance = max(distance, ROUNDING * max(1.0, float(np.linalg.norm(seen[0]))))
    shared = tuple(np.setdiff1d(np.arange(task.length), free[differs]).tolist())
    return Pigeonhole(
        pair=pair,
        component=component,
        segment=segment,
        radius=radius,
        spacing=spacing,
        free=tuple(free[differs].tolist()),
        responsive=responsive,
        subsequences=len(choices),
        resolution=resolution,
        moment_distance=nearest,
        promised_moment_distance=promised,
        distance=distance,
        gap=gap,
        size=steep_net_size(gap / 3, min_distance, len(model.class_token)),
        observables=Moments(heads=heads, coordinates=coordinates, shared=shared),
    )


def _check(model: ClassTokenTransformer, task: Retrieval) -> None:
    check_fit(model, task)
    layers, count, dims = len(model.attention), len(model.attention[0].query), len(task.position_sets)
    require(layers == 1, f"Theorem 2(2) needs one attention layer, the model has {layers}.")
    require(
        task.distribution == "cube", f'{task.name}: Theorem 2(2) needs tokens in the cube; set distribution="cube".'
    )
    require(task.length % 4 == 0, f"length must be a multiple of 4, {task.name} has {task.length}.")
    min_length = 4 * (count + dims - 1 + MIN_FREE)
    require(
        task.length >= min_length,
        f"length {task.length} leaves fewer than {MIN_FREE} free places for {count} heads and D = {dims}; "
        f"length must be at least {min_length}.",
    )


def _base(
    task: Retrieval, minimisers: np.ndarray, responsive: tuple[Responsive, ...], component: int, filler: np.ndarray
) -> tuple[Float[np.ndarray, "length dim"], Int[np.ndarray, " free"]]:
    """Return the sequence common to both, with fillers at the free places, and all places of S_i that are left free.

    The filler is the upper end of the segment: no value of f_i on the segment is higher, so it is no minimum. A quarter
    of the places is T0 + s + D - 1, so every S_k has enough.
    """
    base = np.tile(filler, (task.length, 1))
    used = {point.place for point in responsive}
    for point in responsive:
        base[point.place] = point.token
    for k, minimiser in enumerate(minimisers):
        if k != component:
            place = next(place for place in task.position_sets[k] if place not in used)
            base[place] = CUBE.clip(minimiser)
            used.add(place)
    return base, np.array([place for place in task.position_sets[component] if place not in used])


def _choices(free_places: int, resolution: int, subsequences: int, seed: int) -> Int[np.ndarray, "subsequences free"]:
    """Return all choices of one grid point per place, or `subsequences` random ones without duplicates."""
    if resolution**free_places <= subsequences:
        return np.indices((resolution,) * free_places).reshape(free_places, -1).T
    drawn = named_generator(seed, "subsequences").integers(resolution, size=(subsequences, free_places))
    return np.unique(drawn, axis=0)


@eqx.filter_jit
def _moments(
    heads: FoldedHeads, coordinates: Coordinates, free: Int[Array, " free"], grid: Float[Array, "free resolution dim"]
) -> Float[Array, "free resolution observed"]:
    """Return the contribution of every grid point to every moment.

    Scores are relative to the highest of each head, and every moment is scaled to a maximum of one, so that no moment
    dominates the distance.
    """
    scores = jax.vmap(jax.vmap(heads.scores, in_axes=(0, None)))(grid, free)
    scale = jnp.max(scores, axis=(0, 1))

    def alone(place: Array, points: Array) -> Array:
        """Return the moments of sequences of one token at this place."""
        biases = {name: getattr(heads, name)[place][None] for name in ("bias", "score_bias", "value_bias")}
        observables = Moments(heads=dataclasses.replace(heads, **biases), coordinates=coordinates)
        return jax.vmap(lambda token: observables.observe(token[None], scale))(points)

    added = jax.vmap(alone)(free, grid)
    return added / jnp.maximum(jnp.max(jnp.abs(added), axis=(0, 1)), 1e-300)


def _nearest(
    table: Float[np.ndarray, "free resolution observed"],
    choices: Int[np.ndarray, "subsequences free"],
    values: Float[np.ndarray, "free resolution"],
) -> tuple[Int[np.ndarray, "2 free"], float, float]:
    """Return the two choices with the nearest moments, their distance, and the bound of the pigeonhole principle.

    Among pairs that are tied up to rounding, the one whose minima of f_i differ most.
    """
    places = np.arange(table.shape[0])
    moments = table[places, choices].sum(axis=1)
    # A box with every side cut into k has k^m cells: with more points than that, two are in one cell.
    sides, parts = np.ptp(moments, axis=0), int((len(moments) - 1) ** (1 / moments.shape[1]) + 1e-9)
    promised = float(np.linalg.norm(sides)) / parts
    # Where a head is sharp, many choices have equal moments to the last bit: a tree would compare them all.
    distinct, kept, group = np.unique(moments, axis=0, return_index=True, return_inverse=True)
    if len(distinct) < len(moments):
        order = np.lexsort((values[places, choices].min(axis=1), group.ravel()))
        same = np.diff(group.ravel()[order]) == 0
        pairs, apart = np.stack([order[:-1][same], order[1:][same]], axis=1), np.zeros(int(same.sum()))
    else:
        distances, neighbours = (np.asarray(part)[:, 1] for part in KDTree(distinct).query(distinct, k=2))
        pairs, apart = np.stack([kept, kept[neighbours]], axis=1), distances
    one, other = choices[pairs[:, 0]], choices[pairs[:, 1]]
    minima = [np.where(one != other, values[places, choice], np.inf).min(axis=1) for choice in (one, other)]
    tied = apart <= apart.min() + ROUNDING * len(places)
    best = int(np.argmax(np.where(tied, np.abs(minima[0] - minima[1]), -1.0)))
    return np.stack([one[best], other[best]]), float(apart[best]), promised
