"""Certificates of collisions: what two given sequences prove about a model, by interval arithmetic.

Near. The distance A of what the readout sees of two sequences and the gap B of their targets are enclosed. A readout of
slope at most K answers them within K A of each other, so it errs on one of them by (B - K A) / 2 at least. By Lemma 4 a
two-layer net whose weights are at most 1 that errs by less than eps has M >= (B - 2 eps) / (A sqrt(E)) units.

Exact. That an exact collision exists within a stated radius is Krawczyk's test on H(y) = G(z0 + C y), where z0 is the
pair, G the difference of what is seen and C an approximate right inverse of its derivative. If for all |y_i| <= r

    |G(z0)|_i + r sum_j |I - DG(z0 + C y) C|_ij <= r,

then y -> y - H(y) maps this cube into itself, and by Brouwer's theorem G has a zero in it. DG is enclosed over the
whole cube, kinks of ReLU included, so this is a proof. Then *every* readout, whatever its size and slope, errs by B / 2
at least.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._errors import require
from .._precision import in_double
from ..models import ClassTokenTransformer, folded
from ..tasks import AbstractTask
from . import intervals
from .bounds import Bound, steep_net_size
from .collisions import Collision, Domain
from .enclosure import enclose
from .heads import fold, numbers_read
from .intervals import EnclosureError, Interval, ball, point
from .sight import (
    AbstractHeadSight,
    AbstractSight,
    ClassOutputs,
    HeadOutputs,
    Moments,
    Scale,
    check_fit,
    steady,
    with_features,
)

GROWTHS = (2.0, 8.0, 64.0, 1024.0)
"""The radii tried, in units of what G is at the pair."""
ESTIMATE_SLACK = 1e-6
"""What is taken off a gap that could not be enclosed, relative to the targets."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a pair of sequences proves. `gap` is guaranteed, at the pair, or at the exact collision near it."""

    pair: Float[np.ndarray, "2 length dim"]
    domain: Domain
    distance: float
    """At most this far apart is what the readout sees of the pair (Euclidean)."""
    gap: float
    """At least this much the targets differ."""
    seen: int
    """Numbers that the readout sees, E."""
    radius: float | None
    """Within this of the pair, number by number, lies an exact collision; None where none is proved."""
    contraction: float
    """The largest row sum of |I - DG C|; an exact collision needs less than 1."""
    estimated: str
    """Why the gap is estimated and not enclosed; empty where it is enclosed."""

    @property
    def exact(self) -> bool:
        return self.radius is not None

    def floor(self, slope: float = math.inf) -> float:
        """Every readout of at most this slope errs by this much somewhere on the domain."""
        require(slope >= 0, f"slope must not be negative, got {slope!r}.")
        if self.exact:
            return self.gap / 2
        if not (math.isfinite(slope) and math.isfinite(self.distance)):
            return 0.0
        return max(0.0, (self.gap - slope * self.distance) / 2)

    def size_needed(self, eps: float) -> Bound:
        """Lemma 4: units of a two-layer net with weights of at most 1 that errs by less than `eps` on the pair."""
        require(0 <= eps < self.gap / 2, f"eps must be less than half of the gap, {self.gap / 2:.3g}, got {eps!r}.")
        return steep_net_size(self.gap - 2 * eps, max(self.distance, 1e-300), self.seen)


def certify(collision: Collision, model: ClassTokenTransformer, task: AbstractTask, domain: Domain) -> Certificate:
    """What the pair proves of the model, an exact collision if it can be."""
    check_fit(model, task)
    pair = np.asarray(collision.pair, np.float64)
    wanted = (2, task.length, task.dim)
    require(pair.shape == wanted, f"a pair of {task.name} has shape {wanted}, got {pair.shape}.")
    with jax.enable_x64(True):
        wide = in_double(task)
        low, high = float(pair.min()), float(pair.max())
        require(
            domain.low <= low and high <= domain.high,
            f"the pair must lie in [{domain.low:g}, {domain.high:g}], its numbers go from {low:g} to {high:g}.",
        )
        try:
            distance = _distance(model, pair)
        except EnclosureError:
            distance = math.inf
        radius, contraction, boxes = _exact(_Enclosed(collision.sight, model, task.length), pair, domain)
        gap, estimated = _gap(wide, boxes if boxes is not None else [point(tokens) for tokens in pair])
    return Certificate(
        pair=pair,
        domain=domain,
        distance=distance,
        gap=gap,
        seen=len(model.class_token),
        radius=radius,
        contraction=contraction,
        estimated=estimated,
    )


class _Enclosed:
    """What is seen of a model, its constants intervals: folded heads are known between two ends only.

    Of the sight that a pair was found with only its kind and its shared places are used: the numbers are the model's.
    """

    def __init__(self, found: AbstractSight, model: ClassTokenTransformer, length: int):
        self.knows_places = model.position_table is not None
        if isinstance(found, AbstractHeadSight) and len(model.attention) == 1:
            numbers, kind = numbers_read([model]), type(found)
            # Only in moments do shared tokens cancel.
            shared = found.shared if kind is Moments and len(found.shared) < length else ()
            ends = [kind(heads=end, numbers=numbers, shared=shared) for end in fold(model, numbers, length)]
        else:
            ends = [ClassOutputs(model=in_double(model))] * 2
        self.sight: AbstractSight = ends[0]
        self.leaves = [
            Interval(np.asarray(low, np.float64), np.asarray(high, np.float64))
            for low, high in zip(*(jax.tree.leaves(end) for end in ends), strict=True)
        ]

    def enclose(self, function: Callable[[AbstractSight, Array], Array], box: Interval) -> Interval:
        """function(sight, x) for all x in the box, and all constants within their ends."""
        shape = jax.tree.structure(self.sight)
        return enclose(lambda x, *leaves: function(jax.tree.unflatten(shape, leaves), x), box, *self.leaves)

    def jacobian(self, scale: Scale, boxes: list[Interval]) -> Interval:
        """DG for all pairs in the boxes."""
        one, other = (self.enclose(lambda sight, x: sight.jacobian(x, scale), box) for box in boxes)
        count = one.shape[0]
        low = np.concatenate([one.low.reshape(count, -1), -other.high.reshape(count, -1)], axis=1)
        high = np.concatenate([one.high.reshape(count, -1), -other.low.reshape(count, -1)], axis=1)
        return Interval(low, high)


def _distance(model: ClassTokenTransformer, pair: np.ndarray) -> float:
    """The largest Euclidean distance that what the readout sees of the pair can have."""
    if len(model.attention) == 1:
        (layer,) = model.attention
        numbers = numbers_read([model])
        heads, rows = np.array(numbers).T
        enclosed = _Enclosed(
            HeadOutputs(heads=fold(model, numbers, pair.shape[1])[0], numbers=numbers), model, pair.shape[1]
        )
        outputs = [enclosed.enclose(lambda one, x: one.of(x, None), point(tokens)) for tokens in pair]
        mixing = np.asarray(layer.output, np.float64)[:, heads, rows]
        apart = intervals.product(point(mixing), intervals.subtract(*outputs).map(lambda end: end[:, None]))
    else:
        wide = in_double(model)
        outputs = [enclose(lambda x: folded.class_output(wide, x), point(tokens)) for tokens in pair]
        apart = intervals.subtract(*outputs)
    largest = float(apart.magnitude.max())
    if not math.isfinite(largest):
        return math.inf
    return largest * float(np.linalg.norm(apart.magnitude / largest)) * (1 + 1e-12) if largest > 0 else 0.0


def _gap(task: AbstractTask, boxes: list[Interval]) -> tuple[float, str]:
    """How far the targets of two boxes are apart at least, and why that is only an estimate where it is."""
    try:
        targets = [enclose(task.target, box) for box in boxes]
        gap = float(intervals.subtract(*targets).mignitude.max())
        if not math.isfinite(gap):
            raise EnclosureError("it is not finite.")
        return gap, ""
    except Exception as error:  # a user's function may hold what no rule foresees
        values = [np.asarray(task.target(jnp.asarray((box.low + box.high) / 2))) for box in boxes]
        slack = ESTIMATE_SLACK * max(1.0, float(np.abs(values).max()))
        return max(0.0, float(np.abs(values[0] - values[1]).max()) - slack), f"the target is not enclosed: {error}"


def _exact(
    enclosed: "_Enclosed", pair: np.ndarray, domain: Domain
) -> tuple[float | None, float, list[Interval] | None]:
    """The radius within which a zero of G is proved, the contraction seen, and boxes that hold the zero."""
    if not enclosed.knows_places:
        enclosed.sight = with_features(enclosed.sight, pair)
    sight, points = enclosed.sight, [point(tokens) for tokens in pair]
    if isinstance(sight, AbstractHeadSight) and sight.features == ():
        # No hidden unit is on at any token: all sequences hereabouts look alike.
        return (0.0, 0.0, points) if steady(sight, points) else (None, math.inf, None)
    shared = np.array(sight.shared, int)
    if not np.array_equal(pair[0, shared], pair[1, shared]):
        return None, math.inf, None  # what is taken to cancel does not
    try:
        scale = _scale(enclosed, pair)
        seen = [enclosed.enclose(lambda one, x: one.of(x, scale), tokens) for tokens in points]
        residual = intervals.subtract(*seen).magnitude
        jacobian = enclosed.jacobian(scale, points)
        inverse = np.linalg.pinv((jacobian.low + jacobian.high) / 2, rcond=1e-15)
        inverse.reshape(*pair.shape, -1)[:, shared] = 0.0  # shared tokens stay where they are: any C will do
    except (EnclosureError, np.linalg.LinAlgError):
        return None, math.inf, None
    best = math.inf
    for growth in GROWTHS:
        cube = growth * float(residual.max()) + 1e-300
        reach = (np.abs(inverse).sum(axis=1) * cube * (1 + 1e-12)).reshape(pair.shape)
        boxes = [ball(tokens, width) for tokens, width in zip(pair, reach, strict=True)]
        inside = all(domain.low <= box.low.min() and box.high.max() <= domain.high for box in boxes)
        if not inside or not steady(sight, boxes):
            break
        rows = _contraction(enclosed, scale, boxes, inverse)
        if rows is None:
            break
        best = min(best, float(rows.max()))
        if np.all(residual + rows * cube * (1 + 1e-12) <= cube):
            return float(reach.max()), float(rows.max()), boxes
    return None, best, None


def _scale(enclosed: "_Enclosed", pair: np.ndarray) -> np.ndarray | None:
    """The scale of the pair, any number near it: it only has to be the same for both sequences."""
    if not isinstance(enclosed.sight, Moments):
        return None
    return enclosed.enclose(lambda one, pair: one.scale(pair), point(pair)).low


def _contraction(enclosed: "_Enclosed", scale: Scale, boxes: list[Interval], inverse: np.ndarray) -> np.ndarray | None:
    """The row sums of |I - DG C| over the boxes."""
    try:
        jacobian = enclosed.jacobian(scale, boxes)
    except EnclosureError:
        return None
    if not (np.isfinite(jacobian.low).all() and np.isfinite(jacobian.high).all()):
        return None
    remainder = intervals.subtract(point(np.eye(len(jacobian.low))), intervals.product(jacobian, point(inverse)))
    return remainder.magnitude.sum(axis=1) * (1 + 1e-12)
