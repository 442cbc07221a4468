"""Certificates of collisions: what two given sequences prove about a model, by interval arithmetic.

Near. The distance A of what the readout sees of two sequences, after the norm where the model has one, and the gap B of
their targets are enclosed. The predictions of a readout of slope at most K differ by at most K A, so its error on one
of the sequences is at least (B - K A) / 2. By Lemma 4 a two-layer net with weights of at most 1 and error below eps has
M >= (B - 2 eps) / (A sqrt(E)) units.

Exact. Krawczyk's test (`krawczyk`) proves that an exact collision lies within a stated radius of the pair. Then *every*
readout, whatever its size and slope, has an error of at least B / 2.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._precision import in_double
from ...errors import require
from ...models import ClassTokenTransformer, folded
from ...tasks import GeneratedTask
from ..bounds import steep_net_size
from ..intervals import Box, EnclosureError, add, enclose, point, product, subtract
from .domain import Domain
from .heads import coordinates_read, fold
from .krawczyk import EnclosedObservables, prove_collision
from .observables import HeadOutputs, check_fit, mixing_of, seen_by_readout
from .search import Collision

ESTIMATE_SLACK = 1e-6
"""Subtracted from a gap that could not be enclosed, relative to the targets."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a pair of sequences proves. `gap` is guaranteed at the pair, or at the exact collision near it."""

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
        """Every readout of at most this slope has at least this error somewhere on the domain."""
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
    """What the pair of a collision proves about the model; an exact collision where that can be proved. Raises
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
    """An upper bound on the Euclidean distance of what the readout sees of the pair."""
    if len(model.attention) == 1:
        coordinates = coordinates_read([model])
        observables = HeadOutputs(heads=fold(model, coordinates, pair.shape[1])[0], coordinates=coordinates)
        enclosed = EnclosedObservables(observables, model, pair.shape[1])
        outputs = [enclosed.enclose(lambda one, x: one.of(x, None), point(tokens)) for tokens in pair]
        mixing = point(mixing_of(model, coordinates))
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
    """The matrix times the vector."""
    return product(matrix, vector.map(lambda end: end[:, None])).map(lambda end: end[:, 0])


def _min_gap(task: GeneratedTask, boxes: list[Box]) -> tuple[float, str]:
    """A lower bound on the difference of the targets of two boxes, and why it is only an estimate where it is."""
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
