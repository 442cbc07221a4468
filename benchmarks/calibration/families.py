"""Tasks of known D, as arrays like a user's, by family; and tasks that no head count answers.

    z_i = max over t in S_i of a_i . x(t)      y = F0(z_1, .., z_D) + noise      D heads are needed, and enough

Every family varies the intrinsic dimension D with the token dimension d, the length T and the number of examples. While
the rule's thresholds were chosen, only the families of `OPEN` were looked at.

    y = sum over d of c^d max over t of a_d . x(t) + noise           a number of heads is enough, and none is needed

The set of `enough_set` is another: its error is known at every head count, and so is the answer of the rule to it.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headcount.answer.enough import WITHIN, ErrorCurve
from headcount.keys import named_generator
from headcount.tasks import ArrayTask

OPEN = ("maxima", "weighted", "basins", "noisy", "two-labels", "pure-noise")
"""Families that thresholds were chosen on; the others were held out."""

GRADUAL = "gradual"
"""The family of the tasks whose answer is the fewest heads that are enough."""
COMPONENTS = 10
"""Maxima of a gradual task."""
DECAYS, NOISES = (0.4, 0.5, 0.6, 0.7), (0.1, 0.3)
"""The weight of a maximum over that of the one before it, and the share of noise, of gradual tasks."""
EXAMPLES = 10_000
Tokens = Float[np.ndarray, "examples length dim"]


@dataclass(frozen=True)
class KnownTask:
    """A task of the calibration set; `intrinsic_dim` is D, None where no head count answers it.

    Of a gradual task it is the fewest heads that are enough, by the rule on the known errors.
    """

    family: str
    intrinsic_dim: int | None
    dim: int
    length: int
    examples: int = EXAMPLES
    noise: float = 0.0
    classes: int = 0
    variant: int = 0

    @property
    def name(self) -> str:
        """Unique within the set."""
        known = "none" if self.intrinsic_dim is None else f"D{self.intrinsic_dim}"
        return f"{self.family}-{known}-d{self.dim}-T{self.length}-v{self.variant}"

    @property
    def held_out(self) -> bool:
        """Whether no threshold was chosen on tasks of its family."""
        return self.family not in OPEN

    def arrays(self) -> tuple[Tokens, np.ndarray]:
        """x and y; y are integers where the task has classes."""
        draw = named_generator(self.variant, "calibration", self.family, str(self.intrinsic_dim), self.dim, self.length)
        x, y = FAMILIES[self.family](self, draw)
        y = (y - y.mean()) / y.std()
        if self.noise:
            y = np.sqrt(1 - self.noise) * y + np.sqrt(self.noise) * draw.standard_normal(len(y))
        if self.classes:
            edges = np.quantile(y, np.arange(1, self.classes) / self.classes)
            edges = np.minimum(edges, np.nextafter(y.max(), -np.inf))  # the median of a parity can be its larger value
            return x.astype(np.float32), np.searchsorted(edges, y)
        return x.astype(np.float32), y.astype(np.float32)

    def task(self) -> ArrayTask:
        """The arrays as `measure` takes them."""
        x, y = self.arrays()
        return ArrayTask(x, y, name=self.name, uses_positions=self.family == "windows", labels=self.classes > 0)


def _maxima(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    x = draw.standard_normal((task.examples, task.length, task.dim))
    return x, _retrieved(x, _directions(task, draw)).sum(axis=1)


def _weighted(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    x = draw.standard_normal((task.examples, task.length, task.dim))
    weights = draw.uniform(0.6, 1.4, _count(task)) * draw.choice([-1, 1], _count(task))
    return x, _retrieved(x, _directions(task, draw)) @ weights


def _basins(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    x = draw.uniform(0, 1, (task.examples, task.length, task.dim))
    centres = _spread(draw.uniform(0.1, 0.9, (64, _count(task), task.dim)))
    return x, sum(np.mean((x - centre) ** 2, axis=-1).min(axis=1) for centre in centres)  # type: ignore[return-value]


def _outer(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    """A map of the maxima that is not their sum: a norm, a saturating sum, a sum of squares, of products."""
    x = draw.standard_normal((task.examples, task.length, task.dim))
    z = _retrieved(x, _directions(task, draw))
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    shifted = z + 1.5
    maps: list[Callable[[], np.ndarray]] = [
        lambda: np.sqrt(np.sum(shifted**2, axis=1)),
        lambda: np.tanh(z.sum(axis=1) / np.sqrt(z.shape[1])),
        lambda: np.sum(z + 0.3 * z**2, axis=1),
        lambda: np.log(np.sum(np.exp(z), axis=1)),
    ]
    return x, maps[task.variant % len(maps)]()


def _windows(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    """Every maximum over its own half or quarter of the positions."""
    x = draw.standard_normal((task.examples, task.length, task.dim))
    directions, quarter = _directions(task, draw), task.length // 4
    windows = list(itertools.islice(itertools.cycle([(0, 2), (2, 4), (1, 3), (0, 1), (3, 4), (1, 2)]), _count(task)))
    parts = [
        _retrieved(x[:, start * quarter : stop * quarter], directions[[i]])[:, 0]
        for i, (start, stop) in enumerate(windows)
    ]
    return x, np.sum(parts, axis=0)


def _recall(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    """The first half of a token is a key, the second a value: the sum of the values at D largest keys."""
    x = draw.standard_normal((task.examples, task.length, task.dim))
    keys = task.dim // 2
    where = np.argmax(x[:, :, :keys] @ _unit_directions(_count(task), keys, draw).T, axis=1)
    readers = _unit_directions(_count(task), task.dim - keys, draw)
    rows = np.arange(len(x))
    return x, sum(x[rows, where[:, i], keys:] @ readers[i] for i in range(len(readers)))  # type: ignore[return-value]


def _laws(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    """Tokens that are uniform, heavy-tailed, correlated, or of two clusters."""
    shape = (task.examples, task.length, task.dim)
    laws: list[Callable[[], np.ndarray]] = [
        lambda: draw.uniform(-1, 1, shape),
        lambda: draw.laplace(size=shape),
        lambda: draw.standard_normal(shape) + 0.7 * draw.standard_normal((*shape[:2], 1)),
        lambda: draw.standard_normal(shape) + 2 * draw.choice([-1, 1], (*shape[:2], 1)),
    ]
    x = laws[task.variant % len(laws)]()
    return x, _retrieved(x, _directions(task, draw)).sum(axis=1)


def _gradual(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    """A sum of maxima of orthogonal directions, each weighing less than the one before it."""
    x = draw.standard_normal((task.examples, task.length, task.dim))
    directions = np.linalg.qr(draw.standard_normal((task.dim, task.dim)))[0][:COMPONENTS]
    return x, _retrieved(x, directions) @ DECAYS[task.variant % len(DECAYS)] ** np.arange(COMPONENTS)


def _enough(decay: float, noise: float) -> int:
    """Return the fewest heads that are enough by the rule, where h heads retrieve the h maxima that weigh most."""
    variances = decay ** (2 * np.arange(COMPONENTS))
    left = np.append(np.cumsum(variances[::-1])[::-1][1:], 0) / variances.sum()
    errors = noise + (1 - noise) * left
    return 1 + int(ErrorCurve(errors, errors, np.zeros((COMPONENTS, COMPONENTS))).within(WITHIN))


def _pure_noise(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    return draw.standard_normal((task.examples, task.length, task.dim)), draw.standard_normal(task.examples)


def _parity(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    """The sign of the product of one number over all tokens."""
    x = draw.standard_normal((task.examples, task.length, task.dim))
    return x, np.prod(np.sign(x[:, :, 0]), axis=1)


def _median(task: KnownTask, draw: np.random.Generator) -> tuple[Tokens, np.ndarray]:
    """The median over tokens of one direction: no D of them decide it."""
    x = draw.standard_normal((task.examples, task.length, task.dim))
    return x, np.median(x @ _unit_directions(1, task.dim, draw)[0], axis=1)


def _retrieved(x: Tokens, directions: Float[np.ndarray, "D dim"]) -> Float[np.ndarray, "examples D"]:
    return np.max(x @ directions.T, axis=1)


def _count(task: KnownTask) -> int:
    return task.intrinsic_dim or 1


def _directions(task: KnownTask, draw: np.random.Generator) -> Float[np.ndarray, "D dim"]:
    return _unit_directions(_count(task), task.dim, draw)


def _unit_directions(count: int, dim: int, draw: np.random.Generator) -> Float[np.ndarray, "D dim"]:
    normal = draw.standard_normal((64, count, dim))
    return _spread(normal / np.linalg.norm(normal, axis=-1, keepdims=True))


def _spread(drawn: Float[np.ndarray, "draws D dim"]) -> Float[np.ndarray, "D dim"]:
    """Of several draws, the one whose nearest two are farthest apart: two that nearly agree would be one."""
    apart = np.linalg.norm(drawn[:, :, None] - drawn[:, None], axis=-1) + 10 * np.eye(drawn.shape[1])
    return drawn[np.argmax(apart.min(axis=(1, 2)))]


FAMILIES: dict[str, Callable[[KnownTask, np.random.Generator], tuple[Tokens, np.ndarray]]] = {
    "maxima": _maxima,
    "weighted": _weighted,
    "basins": _basins,
    "noisy": _maxima,
    "few-examples": _weighted,
    "outer": _outer,
    "windows": _windows,
    "recall": _recall,
    "laws": _laws,
    "two-labels": _maxima,
    "ten-labels": _maxima,
    "pure-noise": _pure_noise,
    "parity": _parity,
    "median": _median,
    GRADUAL: _gradual,
}

SHAPES = ((4, 16), (8, 20), (8, 32))
"""(d, T) that the tasks of a family take in turn."""


def calibration_set() -> tuple[KnownTask, ...]:
    """Every task of the calibration, in a fixed order."""
    return tuple(_all())


def enough_set() -> tuple[KnownTask, ...]:
    """Every gradual task, in a fixed order; none is of the calibration set."""
    kinds = enumerate((decay, noise) for noise in NOISES for decay in DECAYS)
    return tuple(
        KnownTask(GRADUAL, _enough(decay, noise), COMPONENTS + 2, 16, noise=noise, variant=variant)
        for variant, (decay, noise) in kinds
    )


def _all() -> Iterator[KnownTask]:
    for family in ("maxima", "weighted"):
        for variant, count in itertools.product(range(2), range(1, 11)):
            yield KnownTask(family, count, *_shape(count, count + variant), variant=variant)
    for variant, count in itertools.product(range(3), range(1, 5)):
        yield KnownTask("basins", count, 2 + variant % 2, 16, variant=variant)
    for variant, count in itertools.product(range(3), range(1, 7)):
        yield KnownTask("noisy", count, *_shape(count, count), noise=(0.05, 0.1, 0.2)[variant], variant=variant)
    for variant, count in itertools.product(range(3), range(1, 5)):
        examples = (1000, 2000, 4000)[variant] if count < 3 else (2000, 3000, 5000)[variant]
        yield KnownTask("few-examples", count, 4, 16, examples=examples, variant=variant)
    for variant, count in itertools.product(range(4), (1, 2, 3, 5, 7)):
        yield KnownTask("outer", count, *_shape(count, count), variant=variant)
    for variant, count in itertools.product(range(2), range(1, 7)):
        yield KnownTask("windows", count, *_shape(count, 0 if variant else 1), variant=variant)
    for variant, count in itertools.product(range(3), range(1, 6)):
        yield KnownTask("recall", count, 8, (12, 20, 32)[variant], variant=variant)
    for variant, count in itertools.product(range(4), (2, 4, 6, 9, 10)):
        yield KnownTask("laws", count, *_shape(count, count + variant), variant=variant)
    for classes, family in ((2, "two-labels"), (10, "ten-labels")):
        for variant, count in itertools.product(range(2), range(1, 6)):
            yield KnownTask(family, count, *_shape(count, variant), classes=classes, variant=variant)
    for variant in range(8):
        examples, classes = (1000, 10_000)[variant % 2], (0, 0, 2, 10)[variant % 4]
        yield KnownTask("pure-noise", None, 4, 16, examples=examples, classes=classes, variant=variant)
    for variant in range(8):
        yield KnownTask("parity", None, 4, (8, 16)[variant % 2], classes=(0, 2)[variant // 4], variant=variant)
    for variant in range(8):
        yield KnownTask("median", None, (2, 4)[variant % 2], (15, 25)[variant // 4], variant=variant)


def _shape(count: int, turn: int) -> tuple[int, int]:
    """d and T of a task: D directions need a space to be apart in."""
    shapes = SHAPES if count <= 4 else SHAPES[1:]
    return shapes[turn % len(shapes)]
