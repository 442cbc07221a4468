"""Corollary 1 as a check: do two representations, with D1 and D2 components, give one function, and may they?

A task's D is unique among representations that meet Assumption 2 when D1^2 + D2^2 <= T / 50. Two representations that
agree everywhere with D1 != D2 must therefore fail a clause, or be too short. Whether they agree is searched for, not
proved: a difference that is found is a witness, and none found is support only, as with the clauses.
Source: Yu et al. (arXiv 2510.06662), Corollary 1.
"""

from dataclasses import dataclass
from enum import StrEnum

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._errors import require, require_count
from .._keys import named_generator
from .._precision import in_double
from .._shapes import Tokens
from ..tasks import Retrieval
from ..tasks.assumptions import AssumptionReport, check_assumptions
from .bounds import Bound, unique_dim
from .pigeonhole import NEEDED


class Verdict(StrEnum):
    DIFFERENT = "different functions"
    ONE_DIM = "one function, one D"
    CLAUSE_FAILS = "one function, two D: a clause fails"
    TOO_SHORT = "one function, two D: the corollary does not speak (T is too short)"
    CONTRADICTION = "contradicts the corollary"
    """Never a finding on its own: a search has missed a difference, or a clause that does not hold."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two representations side by side."""

    verdict: Verdict
    dims: tuple[int, int]
    length: Bound
    """Corollary 1; `length.applies` says whether T is long enough."""
    failing: tuple[tuple[str, ...], tuple[str, ...]]
    """The clauses of Assumption 2 that each of them fails, of those the corollary rests on."""
    difference: float
    """The largest difference of the targets that was found."""
    where: Float[np.ndarray, "length dim"]
    """The sequence that has it."""

    @property
    def sentence(self) -> str:
        """The verdict with its evidence."""
        first, second = self.dims
        if self.verdict is Verdict.DIFFERENT:
            return f"{self.verdict}: the targets differ by {self.difference:.3g} at a sequence found"
        if self.verdict is Verdict.ONE_DIM:
            return f"{self.verdict} = {first}: no sequence found differs by more than {self.difference:.3g}"
        if self.verdict is not Verdict.CLAUSE_FAILS:
            return f"{self.verdict}: D = {first} and {second}, and it takes length {self.length.value:g}"
        parts = [
            f"clause {', '.join(clauses)} fails for the {which} (D = {dim})"
            for which, dim, clauses in zip(("first", "second"), self.dims, self.failing, strict=True)
            if clauses
        ]
        short = "" if self.length.applies else f"; T is too short as well, it takes {self.length.value:g}"
        return "one function, two D: " + " and ".join(parts) + short


def compare_representations(
    first: Retrieval,
    second: Retrieval,
    *,
    starts: int = 64,
    steps: int = 200,
    seed: int = 0,
    tolerance: float = 1e-6,
) -> Comparison:
    """Whether two retrievals are one function on the cube and what Corollary 1 says of their D.

    Targets that nowhere found differ by more than `tolerance`, relative to targets larger than 1, count as equal.
    """
    for name, count in (("starts", starts), ("steps", steps)):
        require_count(name, count)
    require(0 < tolerance < np.inf, f"tolerance must be positive and finite, got {tolerance!r}.")
    _check(first, second)
    reports = check_assumptions(first), check_assumptions(second)
    clauses = tuple(tuple(name for name in report.failing if name in NEEDED) for report in reports)
    dims = len(first.position_sets), len(second.position_sets)
    length = unique_dim(*dims, first.length)
    begun = _starts(first, reports, starts, seed)
    difference, size, where = _largest_difference(first, second, begun, steps)
    if difference > tolerance * max(1.0, size):
        verdict = Verdict.DIFFERENT
    elif dims[0] == dims[1]:
        verdict = Verdict.ONE_DIM
    elif any(clauses):  # before the length: more tokens would not help
        verdict = Verdict.CLAUSE_FAILS
    else:
        verdict = Verdict.CONTRADICTION if length.applies else Verdict.TOO_SHORT
    return Comparison(
        verdict=verdict,
        dims=dims,
        length=length,
        failing=(clauses[0], clauses[1]),
        difference=difference,
        where=where,
    )


def _check(first: Retrieval, second: Retrieval) -> None:
    for name in ("length", "dim", "distribution"):
        one, other = getattr(first, name), getattr(second, name)
        require(one == other, f"two representations need one {name}, got {one} ({first.name}) and {other}.")
    require(
        first.distribution == "cube",
        f'Corollary 1 is about tokens in the cube, got "{first.distribution}"; give distribution="cube".',
    )
    tokens = jax.ShapeDtypeStruct((first.length, first.dim), jnp.float32)
    one, other = (jax.eval_shape(task.target, tokens).shape[0] for task in (first, second))
    require(one == other, f"two representations need as many targets, got {one} ({first.name}) and {other}.")


def _starts(
    task: Retrieval, reports: tuple[AssumptionReport, ...], starts: int, seed: int
) -> Float[np.ndarray, "starts length dim"]:
    """Sequences to begin from: uniform tokens, corners, tokens that lie together, minimisers among those.

    A long uniform sequence has nearly all minima at their lowest, whatever they are of: what tells two tasks apart is
    what its tokens keep away from.
    """
    generator = named_generator(seed, "starts of a comparison")
    shape = (starts, task.length, task.dim)
    tokens = generator.random(shape)
    tokens[1::4] = tokens[1::4].round()
    width = np.exp(generator.uniform(np.log(0.003), 0.0, (starts, 1, 1)))
    centres = generator.random((starts, 1, task.dim))
    # Every second cluster lies in a corner, each corner in turn: there bowls and planes differ most.
    centres[2::8, 0] = (np.arange(len(centres[2::8]))[:, None] >> np.arange(task.dim)) & 1
    together = np.clip(centres + width * (generator.random(shape) - 0.5), 0, 1)
    together[2::8] = centres[2::8]
    tokens[2::4], tokens[3::4] = together[2::4], together[3::4]
    minimisers = np.concatenate([report.minimisers for report in reports])
    for sequence in tokens[3::4]:
        count = int(generator.integers(1, min(len(minimisers), task.length) + 1))
        places = generator.choice(task.length, count, replace=False)
        sequence[places] = minimisers[generator.choice(len(minimisers), count, replace=False)]
    return tokens


def _largest_difference(
    first: Retrieval, second: Retrieval, begun: Float[np.ndarray, "starts length dim"], steps: int
) -> tuple[float, float, Float[np.ndarray, "length dim"]]:
    """The largest difference of a target number met on ascents from all starts at once, how large targets are there,
    and where it is; all in float64."""
    with jax.enable_x64(True):
        one, other = in_double((first, second))

        def difference(tokens: Tokens) -> Array:
            return jnp.max(jnp.abs(one.target(tokens) - other.target(tokens)))

        def climb(tokens: Array) -> tuple[Array, Array]:
            def step(i: Array, carried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
                tokens, best, where = carried
                value, slope = jax.value_and_grad(difference)(tokens)
                better = value > best
                moved = jnp.clip(tokens + 0.1 * 0.97**i * jnp.sign(slope), 0.0, 1.0)
                return moved, jnp.where(better, value, best), jnp.where(better, tokens, where)

            _, best, where = jax.lax.fori_loop(0, steps, step, (tokens, jnp.asarray(-jnp.inf), tokens))
            return best, where

        best, where = jax.jit(jax.vmap(climb))(jnp.asarray(begun))
        require(
            bool(jnp.isfinite(best).any()),
            f"{first.name} and {second.name}: no finite target was met; are their values finite?",
        )
        worst = int(jnp.nanargmax(best))
        return float(best[worst]), float(jnp.max(jnp.abs(one.target(where[worst])))), np.asarray(where[worst])
