"""Two representations, with D1 and D2 components: are they the same function, and may they be?

The support dimension decides (docs/support.md). Two representations of one function that meet clauses 2.1, 2.2 and 2.4
have D1 = D2 where T >= 4 D; Corollary 1 of the paper (Yu et al., arXiv 2510.06662) says so under more conditions. Where
more tokens provably matter to one than the other has components, they are different functions. Else agreement is
searched for, not proved.
"""

from dataclasses import dataclass
from enum import StrEnum

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._precision import in_double
from ..._shapes import Tokens
from ...errors import require
from ...keys import named_generator
from ...tasks import Retrieval
from ..assumptions import AssumptionReport, check_assumptions
from ..constructions.adversary import STEP, highest_of_ascents
from ..doors import require_counts, require_positive
from ..support import Support, support_dim

NEEDED = ("2.1", "2.2", "2.4")
"""The clauses of Assumption 2 under which D is the support dimension."""


class RepresentationVerdict(StrEnum):
    """The result of comparing two representations."""

    DIFFERENT = "different functions"
    ONE_DIM = "one function, one D"
    CLAUSE_FAILS = "one function, two D: a clause fails"
    TOO_SHORT = "one function, two D: T is below 4 max(D1, D2)"
    CONTRADICTION = "one function, two D, though every condition holds"
    """Points to a search that missed a difference, or a clause that does not hold."""


@dataclass(frozen=True, kw_only=True)
class RepresentationComparison:
    """Two representations side by side."""

    verdict: RepresentationVerdict
    dims: tuple[int, int]
    supports: tuple[Support, Support] | None
    """Their support dimensions; None where nothing depends on them."""
    failing: tuple[tuple[str, ...], tuple[str, ...]]
    """The clauses 2.1, 2.2 and 2.4 of Assumption 2 that each of them fails."""
    difference: float
    """The largest difference of the targets found."""
    where: Float[np.ndarray, "length dim"]
    outnumbered: str
    """How more tokens provably matter to one than the other has components; empty where not."""

    @property
    def least_length(self) -> int:
        """4 max(D1, D2): with it, clauses 2.1, 2.2 and 2.4 leave one D."""
        return 4 * max(self.dims)

    @property
    def sentence(self) -> str:
        first, second = self.dims
        if self.verdict is RepresentationVerdict.DIFFERENT:
            return (
                f"{self.verdict}: {self.outnumbered or f'the targets differ by {self.difference:.3g} at one sequence'}"
            )
        if self.supports is None:
            return f"{self.verdict} = {first}: no sequence found differs by more than {self.difference:.3g}"
        proved = max(support.proved for support in self.supports)
        least = "" if any(support.exact for support in self.supports) else "at least "
        parts = [
            f"clause {', '.join(clauses)} fails for the {which} (D = {dim})"
            for which, dim, clauses in zip(("first", "second"), self.dims, self.failing, strict=True)
            if clauses
        ]
        words = [f"one function, D = {first} and {second}, support dimension {least}{proved}", " and ".join(parts)]
        if self.verdict is RepresentationVerdict.TOO_SHORT:
            words.append(f"length {self.least_length} or more is needed for one D")
        if self.verdict is RepresentationVerdict.CONTRADICTION:
            words.append("every condition holds: a difference was missed, or a clause does not hold")
        return "; ".join(filter(None, words))


def compare_representations(
    first: Retrieval, second: Retrieval, *, starts: int = 64, steps: int = 200, seed: int = 0, tolerance: float = 1e-6
) -> RepresentationComparison:
    """Compare two retrieval tasks on the cube, and say what their support dimension implies for their D.

    The tasks have one length and dim and equally many targets. These count as equal where `starts` ascents of their
    difference find none above `tolerance`, relative to targets larger than 1, and where no more tokens provably matter
    to one than the other has components.
    """
    require_counts(starts=starts, steps=steps)
    require_positive(tolerance=tolerance)
    for name in ("length", "dim", "distribution"):
        one, other = getattr(first, name), getattr(second, name)
        require(one == other, f"two representations need the same {name}, got {one} ({first.name}) and {other}.")
    given = first.distribution
    require(given == "cube", f'a comparison needs tokens in the cube, got "{given}"; set distribution="cube".')
    tokens = jax.ShapeDtypeStruct((first.length, first.dim), jnp.float32)
    one, other = (jax.eval_shape(task.target, tokens).shape[0] for task in (first, second))
    require(one == other, f"two representations need equally many targets, got {one} ({first.name}) and {other}.")
    reports = check_assumptions(first), check_assumptions(second)
    clauses = tuple(tuple(name for name in report.failing if name in NEEDED) for report in reports)
    dims = len(first.position_sets), len(second.position_sets)
    tokens = _starts(first, reports, starts, seed)
    difference, size, where = _largest_difference(first, second, tokens, steps)
    differ = difference > tolerance * max(1.0, size)
    supports = None if differ or dims[0] == dims[1] else (support_dim(first), support_dim(second))
    outnumbered = ""
    for (one, other), dim in zip((supports, supports[::-1]) if supports else (), dims[::-1], strict=False):
        if one.proved > dim:
            outnumbered = (
                f"{one.proved} tokens matter to {one.task} at one sequence, and {other.task} has {dim} components"
            )
    if differ or outnumbered:
        verdict = RepresentationVerdict.DIFFERENT
    elif supports is None:
        verdict = RepresentationVerdict.ONE_DIM
    elif any(clauses):  # before the length: more tokens would not help
        verdict = RepresentationVerdict.CLAUSE_FAILS
    else:
        long_enough = first.length >= 4 * max(dims)
        verdict = RepresentationVerdict.CONTRADICTION if long_enough else RepresentationVerdict.TOO_SHORT
    return RepresentationComparison(
        verdict=verdict,
        dims=dims,
        supports=supports,
        failing=(clauses[0], clauses[1]),
        difference=difference,
        where=where,
        outnumbered=outnumbered,
    )


def _starts(
    task: Retrieval, reports: tuple[AssumptionReport, ...], starts: int, seed: int
) -> Float[np.ndarray, "starts length dim"]:
    """Return starts of the ascents: uniform tokens, corners, clusters, and clusters with minimisers among them.

    In a long uniform sequence nearly all minima are at their lowest, whatever the components. Two tasks differ at
    sequences whose tokens stay away from minimisers.
    """
    generator = named_generator(seed, "starts of a comparison")
    shape = (starts, task.length, task.dim)
    tokens = generator.random(shape)
    tokens[1::4] = tokens[1::4].round()
    width = np.exp(generator.uniform(np.log(0.003), 0.0, (starts, 1, 1)))
    centres = generator.random((starts, 1, task.dim))
    # Every second cluster is in a corner, corners in turn: bowls and planes differ most there.
    centres[2::8, 0] = (np.arange(len(centres[2::8]))[:, None] >> np.arange(task.dim)) & 1
    clustered = np.clip(centres + width * (generator.random(shape) - 0.5), 0, 1)
    clustered[2::8] = centres[2::8]
    tokens[2::4], tokens[3::4] = clustered[2::4], clustered[3::4]
    minimisers = np.concatenate([report.minimisers for report in reports])
    for sequence in tokens[3::4]:
        count = int(generator.integers(1, min(len(minimisers), task.length) + 1))
        places = generator.choice(task.length, count, replace=False)
        sequence[places] = minimisers[generator.choice(len(minimisers), count, replace=False)]
    return tokens


def _largest_difference(
    first: Retrieval, second: Retrieval, starts: Float[np.ndarray, "starts length dim"], steps: int
) -> tuple[float, float, Float[np.ndarray, "length dim"]]:
    """Return the largest difference of a target number met on the ascents, the size of targets there, and the place."""
    with jax.enable_x64(True):
        one, other = in_double((first, second))

        def difference(tokens: Tokens) -> Array:
            return jnp.max(jnp.abs(one.target(tokens) - other.target(tokens)))

        largest, where = highest_of_ascents(difference, starts, np.full(len(starts), STEP), steps)
        met = f"{first.name} and {second.name}: no finite target was met; are their values finite?"
        require(largest > -np.inf, met)
        return largest, float(jnp.max(jnp.abs(one.target(jnp.asarray(where))))), where
