"""Certificates of collisions: what two given sequences prove about a model, by interval arithmetic.

Near. The distance A of what the readout sees of two sequences, after the norm where the model has one, and the gap B of
their targets are enclosed. The predictions of a readout of slope at most K differ by at most K A, so its error on one
of the sequences is at least (B - K A) / 2. By Lemma 4 a two-layer net with weights of at most 1 and error below eps has
M >= (B - 2 eps) / (A sqrt(E)) units.

Exact. Krawczyk's test proves that an exact collision lies within a stated radius of the pair. Then *every* readout,
whatever its size and slope, has an error of at least B / 2. Let z0 be the pair, G the difference of its observables, C
an approximate right inverse of the derivative DG, and H(y) = G(z0 + C y). If for all |y_i| <= r

    |G(z0)|_i + r sum_j |I - DG(z0 + C y) C|_ij <= r,

then y -> y - H(y) maps this cube into itself, and by Brouwer's theorem G has a zero in it. DG is enclosed over the
whole cube, kinks of ReLU included, so this is a proof.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._precision import in_double
from ...errors import require
from ...models import ClassTokenTransformer, folded
from ...tasks import GeneratedTask
from ..bounds import steep_net_size
from ..intervals import Box, EnclosureError, add, ball, enclose, point, product, subtract
from .domain import Domain, Pair
from .heads import coordinates_read, fold_heads
from .observables import (
    AbstractHeadObservables,
    AbstractObservables,
    CentredOutputs,
    ClassOutputs,
    HeadOutputs,
    Moments,
    Scale,
    check_fit,
    mixing_of,
    seen_by_readout,
)
from .search import Collision

ESTIMATE_SLACK = 1e-6
"""Subtracted from a gap that could not be enclosed, relative to the targets."""

GROWTHS = (2.0, 8.0, 64.0, 1024.0)
"""Radii tried, in units of |G(z0)|."""
STEADY = 1e-6
"""A hidden unit this far from its kink at every token is assumed not to switch; `is_steady` proves it."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A proof from a pair of sequences. `gap` is guaranteed at the pair, or at the exact collision near it."""

    pair: Float[np.ndarray, "2 length dim"]
    domain: Domain
    distance: float
    """Upper bound on the Euclidean distance of what the readout sees of the pair."""
    gap: float
    """Lower bound on the difference of the targets."""
    seen: int
    """Inputs of the readout, E."""
    radius: float | None
    """An exact collision differs from the pair by at most this, entry by entry; None where none is proved."""
    contraction: float
    """The largest row sum of |I - DG C|; an exact collision needs less than 1."""
    estimated: str
    """Why the gap is estimated and not enclosed; empty where it is enclosed."""

    @property
    def exact(self) -> bool:
        return self.radius is not None

    def floor(self, slope: float = math.inf) -> float:
        """Return the error that every readout of at most this slope has, at least, somewhere on the domain."""
        require(slope >= 0, f"slope must not be negative, got {slope!r}.")
        if self.exact:
            return self.gap / 2
        if not (math.isfinite(slope) and math.isfinite(self.distance)):
            return 0.0
        return max(0.0, (self.gap - slope * self.distance) / 2)

    def size_needed(self, eps: float) -> float:
        """Lemma 4: units of a two-layer net with weights of at most 1 whose error on the pair is below `eps`."""
        require(0 <= eps < self.gap / 2, f"eps must be less than half of the gap, {self.gap / 2:.3g}, got {eps!r}.")
        return steep_net_size(self.gap - 2 * eps, max(self.distance, 1e-300), self.seen)


def certify(collision: Collision, model: ClassTokenTransformer, task: GeneratedTask, domain: Domain) -> Certificate:
    """Certify what the pair of a collision proves about the model, an exact collision where possible. Raises
    `InputError` where the model does not fit the task, or the pair has another shape or leaves the domain.
    """
    check_fit(model, task)
    pair = np.asarray(collision.pair, np.float64)
    shape = (2, task.length, task.dim)
    require(pair.shape == shape, f"a pair of {task.name} has shape {shape}, got {pair.shape}.")
    domain.require_inside("the pair", pair)
    with jax.enable_x64(True):
        try:
            distance = _max_distance(model, pair)
        except EnclosureError:
            distance = math.inf
        exact = prove_collision(collision.observables, model, pair, domain)
        boxes = exact.boxes if exact.boxes is not None else [point(tokens) for tokens in pair]
        gap, estimated = _min_gap(in_double(task), boxes)
    return Certificate(
        pair=pair,
        domain=domain,
        distance=distance,
        gap=gap,
        seen=len(model.class_token),
        radius=exact.radius,
        contraction=exact.contraction,
        estimated=estimated,
    )


def _max_distance(model: ClassTokenTransformer, pair: np.ndarray) -> float:
    """Return an upper bound on the Euclidean distance of what the readout sees of the pair."""
    if len(model.attention) == 1:
        enclosed = EnclosedObservables(HeadOutputs, model, pair.shape[1])
        outputs = [enclosed.enclose(lambda one, x: one.observe(x, None), point(tokens)) for tokens in pair]
        mixing = point(mixing_of(model, coordinates_read([model])))
        if model.spec.final_norm:
            class_token = point(np.asarray(model.class_token, np.float64))
            read = [add(class_token, _applied(mixing, output)) for output in outputs]
            apart = subtract(*(enclose(lambda c: folded.readout_input(model, c), box) for box in read))
        else:
            apart = _applied(mixing, subtract(*outputs))
    else:
        wide = in_double(model)
        apart = subtract(*(enclose(lambda x: seen_by_readout(wide, x), point(tokens)) for tokens in pair))
    largest = float(apart.magnitude.max())
    if not math.isfinite(largest):
        return math.inf
    return largest * float(np.linalg.norm(apart.magnitude / largest)) * (1 + 1e-12) if largest > 0 else 0.0


def _applied(matrix: Box, vector: Box) -> Box:
    return product(matrix, vector.map(lambda end: end[:, None])).map(lambda end: end[:, 0])


def _min_gap(task: GeneratedTask, boxes: list[Box]) -> tuple[float, str]:
    """Return a lower bound on the difference of the targets of two boxes, and why it is only an estimate."""
    try:
        targets = [enclose(task.target, box) for box in boxes]
        gap = float(subtract(*targets).mignitude.max())
        if not math.isfinite(gap):
            raise EnclosureError("it is not finite.")
        return gap, ""
    except EnclosureError as error:  # a user's function may contain operations that no rule covers
        values = [np.asarray(task.target(jnp.asarray((box.low + box.high) / 2))) for box in boxes]
        slack = ESTIMATE_SLACK * max(1.0, float(np.abs(values).max()))
        where = f' at "{error.operation}"' if error.operation else ""
        reason = f"the target is not enclosed{where}: {error}"
        return max(0.0, float(np.abs(values[0] - values[1]).max()) - slack), reason


class ExactCollision(NamedTuple):
    """`radius` and `contraction` as in `Certificate`, and boxes with the collision; None where none is proved."""

    radius: float | None = None
    contraction: float = math.inf
    boxes: list[Box] | None = None


class EnclosedObservables:
    """Observables of this kind of a model with enclosed constants: folded heads are known between two ends only."""

    def __init__(
        self,
        kind: type[AbstractObservables],
        model: ClassTokenTransformer,
        length: int,
        shared: tuple[int, ...] = (),
    ):
        if issubclass(kind, AbstractHeadObservables) and len(model.attention) == 1:
            coordinates = coordinates_read([model])
            # Shared tokens cancel in moments only.
            shared = shared if kind is Moments and len(shared) < length else ()
            ends = [
                kind(heads=end, coordinates=coordinates, shared=shared)
                for end in fold_heads(model, coordinates, length)
            ]
        elif issubclass(kind, CentredOutputs) and len(model.attention) == 1 and model.spec.final_norm:
            coordinates = coordinates_read([model])
            mixing = mixing_of(model, coordinates)
            centred = subtract(point(mixing[1:]), point(mixing[:1]))
            ends = [
                CentredOutputs(outputs=HeadOutputs(heads=heads, coordinates=coordinates), mixing=end)
                for heads, end in zip(fold_heads(model, coordinates, length), (centred.low, centred.high), strict=True)
            ]
        else:
            ends = [ClassOutputs(model=in_double(model))] * 2
        self.observables: AbstractObservables = ends[0]
        self.leaves = [
            Box(np.asarray(low, np.float64), np.asarray(high, np.float64))
            for low, high in zip(*(jax.tree.leaves(end) for end in ends), strict=True)
        ]

    def enclose(self, function: Callable[[AbstractObservables, Array], Array], box: Box) -> Box:
        """function(observables, x) for all x in the box, and all constants between their ends."""
        shape = jax.tree.structure(self.observables)
        return enclose(lambda x, *leaves: function(jax.tree.unflatten(shape, leaves), x), box, *self.leaves)

    def jacobian(self, scale: Scale, boxes: list[Box]) -> Box:
        """Enclose DG for all pairs in the boxes."""
        slopes = (self.enclose(lambda observables, x: observables.jacobian(x, scale), box) for box in boxes)
        one, other = (each.map(lambda end: end.reshape(len(end), -1)) for each in slopes)
        return Box(np.hstack([one.low, -other.high]), np.hstack([one.high, -other.low]))

    def scale(self, pair: np.ndarray) -> Scale:
        """Return a scale near that of the pair: any will do, as long as it is the same for both sequences."""
        if not isinstance(self.observables, Moments):
            return None
        return self.enclose(lambda observables, pair: observables.scale(pair), point(pair)).low


def prove_collision(
    found_with: AbstractObservables, model: ClassTokenTransformer, pair: Pair, domain: Domain
) -> ExactCollision:
    """Try to prove that an exact collision of `model` lies near the pair, inside the domain.

    Of what the pair was found with only the kind and the shared places are used: all constants come from the model.
    """
    enclosed = EnclosedObservables(type(found_with), model, pair.shape[1], found_with.shared)
    if model.position_table is None:  # else values are no function of the features, however little places matter
        enclosed.observables = reduced_observables(enclosed.observables, pair)
    observables, points = enclosed.observables, [point(tokens) for tokens in pair]
    if isinstance(observables, AbstractHeadObservables) and observables.features == ():
        # No hidden unit is on at any token: nearby sequences all have the same observables.
        return ExactCollision(0.0, 0.0, points) if is_steady(observables, points) else ExactCollision()
    shared = np.array(observables.shared, int)
    if not np.array_equal(pair[0, shared], pair[1, shared]):
        return ExactCollision()  # the tokens that should cancel differ
    try:
        scale = enclosed.scale(pair)
        observed = [enclosed.enclose(lambda one, x: one.observe(x, scale), tokens) for tokens in points]
        residual = subtract(*observed).magnitude
        jacobian = enclosed.jacobian(scale, points)
        inverse = np.linalg.pinv((jacobian.low + jacobian.high) / 2, rcond=1e-15)
        inverse.reshape(*pair.shape, -1)[:, shared] = 0.0  # shared tokens do not move: any C will do
    except (EnclosureError, np.linalg.LinAlgError):
        return ExactCollision()
    best = math.inf
    for growth in GROWTHS:
        cube = growth * float(residual.max()) + 1e-300
        reach = (np.abs(inverse).sum(axis=1) * cube * (1 + 1e-12)).reshape(pair.shape)
        boxes = [ball(tokens, width) for tokens, width in zip(pair, reach, strict=True)]
        inside = all(domain.low <= box.low.min() and box.high.max() <= domain.high for box in boxes)
        if not inside or not is_steady(observables, boxes):
            break
        try:
            jacobian = enclosed.jacobian(scale, boxes)
        except EnclosureError:
            break
        if not (np.isfinite(jacobian.low).all() and np.isfinite(jacobian.high).all()):
            break
        remainder = subtract(point(np.eye(len(jacobian.low))), product(jacobian, point(inverse)))
        rows = remainder.magnitude.sum(axis=1) * (1 + 1e-12)  # row sums of |I - DG C| over the boxes
        best = min(best, float(rows.max()))
        if np.all(residual + rows * cube * (1 + 1e-12) <= cube):
            return ExactCollision(float(reach.max()), float(rows.max()), boxes)
    return ExactCollision(contraction=best)


def reduced_observables(observables: AbstractObservables, pair: Pair) -> AbstractObservables:
    """Return the same observables on fewer coordinates, where few hidden units switch among the tokens of this pair.

    Only for models without positions.
    """
    if not isinstance(observables, AbstractHeadObservables):
        return observables
    dim, heads = pair.shape[-1], observables.heads
    tokens = np.asarray(pair)[:, observables.places(pair.shape[1])].reshape(-1, dim)
    before = tokens @ np.asarray(heads.inwards).T + np.asarray(heads.bias)[0]
    on, off = np.all(before > STEADY, axis=0), np.all(before < -STEADY, axis=0)
    if on.sum() > dim:  # units that are always on are affine in the token, which has fewer entries
        features = (*range(dim), *(dim + np.flatnonzero(~on & ~off)))
    else:
        features = tuple(dim + np.flatnonzero(~off))
    owners = np.unique(observables.owners)
    if len(features) * len(owners) >= len(observables.coordinates):
        return observables
    if not features and isinstance(observables, Moments):
        return observables
    return type(observables)(
        heads=observables.heads,
        coordinates=tuple((int(head), int(feature)) for head in owners for feature in features),
        shared=observables.shared,
        features=tuple(int(feature) for feature in features),
    )


def is_steady(observables: AbstractObservables, boxes: list[Box]) -> bool:
    """Return whether no hidden unit outside the features switches anywhere in the boxes of two sequences."""
    if not isinstance(observables, AbstractHeadObservables) or observables.features is None:
        return True
    dim, places = boxes[0].shape[-1], observables.places(len(boxes[0].low))
    heads = observables.heads
    others = np.setdiff1d(np.arange(len(heads.inwards)), np.array(observables.features, int) - dim)
    weight, bias = np.asarray(heads.inwards)[others], np.asarray(heads.bias)[0, others]
    both = Box(*(np.concatenate([getattr(box, end)[places] for box in boxes]) for end in ("low", "high")))
    before = add(product(both, point(weight.T)), point(bias))
    on, off = np.all(before.low > 0, axis=0), np.all(before.high < 0, axis=0)
    return bool(np.all(np.logical_or(on, off) if 0 in observables.features else off))
