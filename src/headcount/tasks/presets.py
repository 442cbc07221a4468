"""Named tasks: those of the papers, and one that needs a single head.

Every public function here is an entry of `PRESETS`; its keyword arguments are the task's options, also on the command
line.
"""

import inspect
import json
import math
from typing import Annotated, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._choices import require_choice
from .._compile import on_device
from .._limits import require_fits, require_size
from .._options import Option, argument_options, merged
from .._shapes import Tokens
from ..errors import did_you_mean, require, require_count
from ..keys import named_generator
from ..registry import first_of
from .alphabet import AlphabetMaxima
from .base import AbstractTask, GeneratedTask
from .function import FunctionTask
from .in_context import InContextRegression
from .nearest import BiasedNearestNeighbour, FarthestPoint, NearestNeighbour, Points
from .retrieval import Distribution, Retrieval, Windows

IntrinsicDim = Annotated[int, Option("The task's D.")]
Dim = Annotated[int, Option("Numbers per token.")]
Directions = Annotated[str, Option("random, gaussian or basis.")]
DistributionOf = Annotated[Distribution, Option("Distribution of the tokens: gaussian or cube.")]
WindowsOf = Annotated[Windows | None, Option("Position sets as fractions: 0:0.5,0.5:1.")]
TaskSeed = Annotated[int, Option("Draws the task's own numbers.")]
PointsOf = Annotated[Points, Option("uniform, orthogonal or doubled points.")]
Terms = Annotated[int, Option("Biased nearest neighbours summed up.")]
Inputs = Annotated[int, Option("Numbers in a regressor x.")]
Noise = Annotated[float, Option("Standard deviation of the noise.")]


class Ridges(eqx.Module):
    """f_i(x) = -a_i . x, whose minimum over tokens is minus the maximum of a_i . x."""

    directions: Float[Array, "D dim"]

    def __call__(self, token: Float[Array, " dim"]) -> Float[Array, " D"]:
        return -self.directions @ token


class Basins(eqx.Module):
    """f_i(x) = |x - c_i|^2 / d, a bowl inside [0,1] on the cube with its one minimum at c_i."""

    centres: Float[Array, "D dim"]

    def __call__(self, token: Float[Array, " dim"]) -> Float[Array, " D"]:
        return jnp.mean((token - self.centres) ** 2, axis=-1)


class ScalarEnds(eqx.Module):
    """f_1(x) = 1 - x and f_2(x) = x: the largest and the smallest of scalars in [0,1]."""

    def __call__(self, token: Float[Array, " dim"]) -> Float[Array, " D"]:
        return jnp.concatenate([1 - token, token])


class LinearMean(eqx.Module):
    """The mean over tokens of a fixed direction."""

    direction: Float[Array, " dim"]

    def __call__(self, tokens: Tokens) -> Float[Array, ""]:
        return jnp.mean(tokens @ self.direction)


class ValueAtMaximum(eqx.Module):
    """v . x(t) of the token t with the largest k . x(t): one direction says where to look, the other what to read."""

    key: Float[Array, " dim"]
    value: Float[Array, " dim"]

    def __call__(self, tokens: Tokens) -> Float[Array, ""]:
        return (tokens @ self.value)[jnp.argmax(tokens @ self.key)]


def sum_of_maxima(
    *,
    length: int = 16,
    intrinsic_dim: IntrinsicDim = 4,
    dim: Dim = 4,
    directions: Directions = "random",
    task_seed: TaskSeed = 0,
    distribution: DistributionOf = "gaussian",
    windows: WindowsOf = None,
) -> Retrieval:
    """Sum over i of max_t a_i . x(t): the first paper's synthetic task (Tables 2 to 5)."""
    require_count("intrinsic_dim", intrinsic_dim)
    require_count("dim", dim)
    require_choice("directions", directions, DIRECTIONS)
    message = f"intrinsic_dim {intrinsic_dim} needs more than the {dim} basis directions; use directions random."
    require(directions != "basis" or intrinsic_dim <= dim, message, what="intrinsic_dim")
    return Retrieval(
        Ridges(DIRECTIONS[directions](task_seed, intrinsic_dim, dim)),
        _minus_sum,
        length=length,
        dim=dim,
        distribution=distribution,
        windows=windows,
        name="sum-of-maxima",
        options={"intrinsic_dim": intrinsic_dim, "directions": directions, "task_seed": task_seed},
    )


def max_plus_min(*, length: int = 16, windows: WindowsOf = None) -> Retrieval:
    """max_t x(t) + min_t x(t) of scalars: the first paper's smallest example (D = 2)."""
    return Retrieval(
        ScalarEnds(),
        largest_plus_smallest,
        length=length,
        dim=1,
        distribution="cube",
        windows=windows,
        name="max-plus-min",
        options={},
    )


def quadratic_basins(
    *,
    length: int = 16,
    intrinsic_dim: IntrinsicDim = 3,
    dim: Dim = 2,
    task_seed: TaskSeed = 0,
    windows: WindowsOf = None,
) -> Retrieval:
    """Sum over i of min_t |x(t) - c_i|^2 / d on the cube: meets every clause of Assumption 2."""
    require_count("intrinsic_dim", intrinsic_dim)
    require_count("dim", dim)
    # Centres keep away from the faces, so that each minimiser is interior and clause 2.3 is about its Hessian.
    centres = named_generator(task_seed, "centres").uniform(0.1, 0.9, (intrinsic_dim, dim))
    return Retrieval(
        Basins(on_device(centres, np.float32)),
        jnp.sum,
        length=length,
        dim=dim,
        distribution="cube",
        windows=windows,
        name="quadratic-basins",
        options={"intrinsic_dim": intrinsic_dim, "task_seed": task_seed},
    )


def average(
    *, length: int = 16, dim: Dim = 4, task_seed: TaskSeed = 0, distribution: DistributionOf = "gaussian"
) -> FunctionTask:
    """The mean over tokens of a . x(t): one head with equal weights is enough."""
    require_count("dim", dim)
    normal = named_generator(task_seed, "direction").standard_normal(dim)
    mean = LinearMean(on_device(normal / np.linalg.norm(normal), np.float32))
    return FunctionTask(
        function=mean,
        length=length,
        dim=dim,
        distribution=distribution,
        name="average",
        options={"task_seed": task_seed},
        intrinsic_dim=1,
    )


def value_at_maximum(*, length: int = 16, dim: Dim = 4, task_seed: TaskSeed = 0) -> FunctionTask:
    """v . x(t) of the token with the largest k . x(t), k and v orthonormal: one head looks at k and reads v."""
    require_count("dim", dim, least=2)
    normal = named_generator(task_seed, "key and value").standard_normal((dim, 2))
    key, value = np.linalg.qr(normal)[0].T
    return FunctionTask(
        function=ValueAtMaximum(on_device(key, np.float32), on_device(value, np.float32)),
        length=length,
        dim=dim,
        name="value-at-maximum",
        options={"task_seed": task_seed},
    )


def nearest_neighbour(*, length: int | None = None, dim: Dim = 8, points: PointsOf = "uniform") -> NearestNeighbour:
    """Of length - 1 points on the sphere, the one nearest to the last token: the second paper's target."""
    if length is None:
        length = 17 if points != "orthogonal" else min(16, dim) + 1
    return NearestNeighbour(length=length, dim=dim, points=points)


def farthest_point(*, length: int | None = None, dim: Dim = 8, points: PointsOf = "uniform") -> FarthestPoint:
    """For each point on the sphere, the one farthest from it: the second paper's target for self-attention."""
    if length is None:
        length = 16 if points != "orthogonal" else 2
    return FarthestPoint(length=length, dim=dim, points=points)


def biased_nearest_neighbour(*, dim: Dim = 8, terms: Terms = 3) -> BiasedNearestNeighbour:
    """An alternating sum of biased nearest neighbours of two points: our reading of the second paper's Theorem 3."""
    return BiasedNearestNeighbour(dim=dim, terms=terms)


def in_context_regression(*, length: int = 17, inputs: Inputs = 8, noise: Noise = 0.0) -> InContextRegression:
    """The best prediction of w . x for the last token, from pairs (x_i, y_i) of the same unknown w."""
    return InContextRegression(length=length, inputs=inputs, noise=noise)


def _spread_directions(seed: int, count: int, dim: int) -> Float[Array, "D dim"]:
    """Draw unit vectors: of 64 draws, the one whose nearest two are farthest apart.

    Two nearly parallel directions have nearly the same maximum, and the task would need fewer than D heads.
    """
    normal = named_generator(seed, "directions").standard_normal((64, count, dim))
    unit = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    cosines = unit @ unit.swapaxes(1, 2) - 2 * np.eye(count)
    return on_device(unit[np.argmin(np.max(cosines, axis=(1, 2)))], np.float32)


def _gaussian_directions(seed: int, count: int, dim: int) -> Float[Array, "D dim"]:
    """Draw a_i ~ N(0, I), so that some directions have more weight than others."""
    return on_device(named_generator(seed, "gaussian directions").standard_normal((count, dim)), np.float32)


def _basis_directions(_seed: int, count: int, dim: int) -> Float[Array, "D dim"]:
    return jnp.eye(count, dim)


DIRECTIONS = {"random": _spread_directions, "gaussian": _gaussian_directions, "basis": _basis_directions}
"""How a_1 .. a_D are chosen: unit vectors well apart, normal draws, or the coordinate axes."""


def _minus_sum(z: Float[Array, " D"]) -> Float[Array, ""]:
    return -jnp.sum(z)


def largest_plus_smallest(z: Float[Array, " D"]) -> Float[Array, ""]:
    return 1 - z[0] + z[1]


PRESETS = {
    "sum-of-maxima": sum_of_maxima,
    "max-plus-min": max_plus_min,
    "quadratic-basins": quadratic_basins,
    "average": average,
    "value-at-maximum": value_at_maximum,
    "nearest-neighbour": nearest_neighbour,
    "farthest-point": farthest_point,
    "biased-nearest-neighbour": biased_nearest_neighbour,
    "in-context-regression": in_context_regression,
}

PRESET_OPTIONS = merged(*map(argument_options, PRESETS.values()))
"""What can be said of any preset, with the words of the help."""

DRAWN_BYTES = 512
"""Per number of a task's centres or directions: 64 of them are drawn to choose from."""


def preset(name: str, **options) -> GeneratedTask:
    """Return the preset called `name`; raise `InputError` with the nearest known name or option for an unknown one."""
    require(name in PRESETS, f'unknown task "{name}".{did_you_mean(name, PRESETS)} Known: {", ".join(PRESETS)}.')
    known = preset_options(name)
    for option in options:
        message = f'the task "{name}" has no option "{option}".{did_you_mean(option, known)}'
        require(option in known, f"{message} It takes: {', '.join(known)}.", what=option)
    _require_sizes(name, options)
    return PRESETS[name](**options)


def _require_sizes(name: str, options: dict[str, Any]) -> None:
    """Raise `InputError` for sizes whose centres and directions alone need more memory than is allowed."""
    if "task_seed" in options:
        require_count("task_seed", options["task_seed"], least=0)
    sizes = {option: value for option, value in options.items() if isinstance(value, int) and option != "task_seed"}
    for option, value in sizes.items():
        require_size(option, value)
    drawn = math.prod(value for option, value in sizes.items() if option in ("intrinsic_dim", "dim", "terms", "inputs"))
    require_fits(f"the task {name} of these sizes", DRAWN_BYTES * drawn)


def preset_options(name: str) -> dict[str, object]:
    """Return the options of a preset with their defaults."""
    return {option: parameter.default for option, parameter in inspect.signature(PRESETS[name]).parameters.items()}


def preset_from_spec(spec: dict[str, Any]) -> AbstractTask | None:
    """Return the preset, or a study's task, whose `spec()` this is; None for a user's, or one of another version."""
    name, options = spec["task"], {option: value for option, value in spec.items() if option != "task"}
    if name == "alphabet-maxima":  # which no command names, but a stored cell of it can be trained again
        task = AlphabetMaxima(**options)
    elif name in PRESETS:
        known = preset_options(name)
        options = {option: value for option, value in options.items() if option in known}
        if options.get("windows") is not None:
            options["windows"] = [(start, stop) for start, stop in options["windows"]]  # JSON writes pairs as lists
        task = preset(name, **options)
    else:
        task = first_of(lambda each: each.task_of_spec(spec))
    return task if task is not None and json.loads(json.dumps(task.spec())) == spec else None
