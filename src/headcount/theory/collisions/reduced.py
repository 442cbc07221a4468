"""Fewer observables where most hidden units do not switch among the tokens of a pair.

Where tokens are clustered, the n coordinates of a head move in fewer than n directions: the Jacobian of the observables
is singular, and Krawczyk's test fails. In terms of the hidden units that switch there are fewer coordinates.
"""

import numpy as np
from jaxtyping import Float

from ..intervals import Interval, add, point, product
from .observables import AbstractHeadObservables, AbstractObservables, Moments

STEADY = 1e-6
"""A hidden unit this far from its kink at every token is assumed not to switch; `is_steady` proves it."""


def reduced(observables: AbstractObservables, pair: Float[np.ndarray, "2 length dim"]) -> AbstractObservables:
    """The same observables on fewer coordinates, where few hidden units switch among the tokens of this pair.

    Only for models without positions: otherwise values are no function of the features.
    """
    if not isinstance(observables, AbstractHeadObservables) or observables.features is not None:
        return observables
    if np.ptp(observables.heads.bias, axis=0).any() or np.ptp(observables.heads.value_bias, axis=0).any():
        return observables
    before, dim = _preactivations(observables, pair), pair.shape[-1]
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


def is_steady(observables: AbstractObservables, boxes: list[Interval]) -> bool:
    """Whether no hidden unit outside the features switches anywhere in the boxes of two sequences."""
    if not isinstance(observables, AbstractHeadObservables) or observables.features is None:
        return True
    dim, places = boxes[0].shape[-1], observables.places(len(boxes[0].low))
    heads = observables.heads
    others = np.setdiff1d(np.arange(len(heads.inwards)), np.array(observables.features, int) - dim)
    weight, bias = np.asarray(heads.inwards)[others], np.asarray(heads.bias)[0, others]
    both = Interval(*(np.concatenate([getattr(box, end)[places] for box in boxes]) for end in ("low", "high")))
    before = add(product(both, point(weight.T)), point(bias))
    on, off = np.all(before.low > 0, axis=0), np.all(before.high < 0, axis=0)
    return bool(np.all(np.logical_or(on, off) if 0 in observables.features else off))


def _preactivations(
    observables: AbstractHeadObservables, pair: Float[np.ndarray, "2 length dim"]
) -> Float[np.ndarray, "tokens hidden"]:
    """Inputs of the ReLU at all tokens that are not shared."""
    tokens = np.asarray(pair)[:, observables.places(pair.shape[1])].reshape(-1, pair.shape[-1])
    return tokens @ np.asarray(observables.heads.inwards).T + np.asarray(observables.heads.bias)[0]
