"""Krawczyk's test: does an exact collision exist near a pair?

Let z0 be the pair, G the difference of its observables, C an approximate right inverse of the derivative DG, and
H(y) = G(z0 + C y). If for all |y_i| <= r

    |G(z0)|_i + r sum_j |I - DG(z0 + C y) C|_ij <= r,

then y -> y - H(y) maps this cube into itself, and by Brouwer's theorem G has a zero in it. DG is enclosed over the
whole cube, kinks of ReLU included, so this is a proof.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array

from ..._precision import in_double
from ...models import ClassTokenTransformer
from ..intervals import Box, EnclosureError, add, ball, enclose, point, product, subtract
from .domain import Domain, Pair
from .heads import coordinates_read, fold
from .observables import (
    AbstractHeadObservables,
    AbstractObservables,
    CentredOutputs,
    ClassOutputs,
    HeadOutputs,
    Moments,
    Scale,
    mixing_of,
)

GROWTHS = (2.0, 8.0, 64.0, 1024.0)
"""Radii tried, in units of |G(z0)|."""
STEADY = 1e-6
"""A hidden unit this far from its kink at every token is assumed not to switch; `is_steady` proves it."""


@dataclass(frozen=True)
class ExactCollision:
    """`radius` and `contraction` as in `Certificate`, and boxes with the collision; None where none is proved."""

    radius: float | None = None
    contraction: float = math.inf
    boxes: list[Box] | None = None


class EnclosedObservables:
    """The observables of a model with enclosed constants: folded heads are known between two ends only.

    Of the observables that a pair was found with, only the kind and the shared places are used: all constants come from
    the model.
    """

    def __init__(self, found_with: AbstractObservables, model: ClassTokenTransformer, length: int):
        self.has_positions = model.position_table is not None
        if isinstance(found_with, AbstractHeadObservables) and len(model.attention) == 1:
            coordinates, kind = coordinates_read([model]), type(found_with)
            # Shared tokens cancel in moments only.
            shared = found_with.shared if kind is Moments and len(found_with.shared) < length else ()
            ends = [kind(heads=end, coordinates=coordinates, shared=shared) for end in fold(model, coordinates, length)]
        elif isinstance(found_with, CentredOutputs) and len(model.attention) == 1 and model.spec.final_norm:
            coordinates = coordinates_read([model])
            mixing = mixing_of(model, coordinates)
            centred = subtract(point(mixing[1:]), point(mixing[:1]))
            ends = [
                CentredOutputs(outputs=HeadOutputs(heads=heads, coordinates=coordinates), mixing=end)
                for heads, end in zip(fold(model, coordinates, length), (centred.low, centred.high), strict=True)
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
        """DG for all pairs in the boxes."""
        one, other = (self.enclose(lambda observables, x: observables.jacobian(x, scale), box) for box in boxes)
        count = one.shape[0]
        low = np.concatenate([one.low.reshape(count, -1), -other.high.reshape(count, -1)], axis=1)
        high = np.concatenate([one.high.reshape(count, -1), -other.low.reshape(count, -1)], axis=1)
        return Box(low, high)

    def scale(self, pair: np.ndarray) -> Scale:
        """A scale near that of the pair: any will do, as long as it is the same for both sequences."""
        if not isinstance(self.observables, Moments):
            return None
        return self.enclose(lambda observables, pair: observables.scale(pair), point(pair)).low


def prove_collision(
    found_with: AbstractObservables, model: ClassTokenTransformer, pair: Pair, domain: Domain
) -> ExactCollision:
    """Try to prove that an exact collision of `model` lies near the pair, inside the domain."""
    enclosed = EnclosedObservables(found_with, model, pair.shape[1])
    if not enclosed.has_positions:
        enclosed.observables = reduced(enclosed.observables, pair)
    observables, points = enclosed.observables, [point(tokens) for tokens in pair]
    if isinstance(observables, AbstractHeadObservables) and observables.features == ():
        # No hidden unit is on at any token: nearby sequences all have the same observables.
        return ExactCollision(0.0, 0.0, points) if is_steady(observables, points) else ExactCollision()
    shared = np.array(observables.shared, int)
    if not np.array_equal(pair[0, shared], pair[1, shared]):
        return ExactCollision()  # the tokens that should cancel differ
    try:
        scale = enclosed.scale(pair)
        observed = [enclosed.enclose(lambda one, x: one.of(x, scale), tokens) for tokens in points]
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


def reduced(observables: AbstractObservables, pair: Pair) -> AbstractObservables:
    """The same observables on fewer coordinates, where few hidden units switch among the tokens of this pair.

    Only for models without positions: otherwise values are no function of the features.
    """
    if not isinstance(observables, AbstractHeadObservables) or observables.features is not None:
        return observables
    if np.ptp(observables.heads.bias, axis=0).any() or np.ptp(observables.heads.value_bias, axis=0).any():
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
    """Whether no hidden unit outside the features switches anywhere in the boxes of two sequences."""
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
