"""D without training: the number of tokens that a target depends on at once. The proof is in docs/support.md."""

from collections.abc import Iterable

import jax.numpy as jnp

from ...answer.claim import Claim, Finding, as_claim, promise_verdict
from ...tasks import Retrieval, average, max_plus_min, quadratic_basins, sum_of_maxima
from ..support import support_dim


def _proved(tasks: Iterable[tuple[str, Retrieval]]) -> Finding:
    """Whether on each task as many gradients are proved non-zero as it has components."""
    supports = [(name, support_dim(task, starts=64)) for name, task in tasks]
    words = ", ".join(f"{name}: {each.proved} of {each.components}" for name, each in supports)
    return f"gradients proved non-zero of components: {words}", promise_verdict(all(each.exact for _, each in supports))


def _idle() -> Finding:
    """Two maxima and a component that the outer map leaves out, which clause 2.4 forbids."""
    maxima = sum_of_maxima(intrinsic_dim=3, length=12)
    idle = Retrieval(maxima.features, lambda z: jnp.sum(z[:2]), length=12, dim=4, name="idle")
    return _proved([("3 components, one left out", idle)])


@as_claim(
    "with clauses 2.1, 2.2, 2.4 and T >= 4 D, D is the largest number of tokens with a non-zero gradient",
    source="ours, sharpens Corollary 1",
    program="theory.support_dim",
    repair="Corollary 1 needs every clause and T >= 50 (D1^2 + D2^2); neither the Hessian nor that length is needed",
    control=Claim(statement="one component left out of the outer map", check=_idle),
)
def support() -> Finding:
    tasks = [(f"sum of {count} maxima", sum_of_maxima(intrinsic_dim=count, length=4 * count)) for count in (3, 7)]
    tasks += [("max + min", max_plus_min(length=8)), ("basins", quadratic_basins(length=12))]
    words, verdict = _proved(tasks)
    every = support_dim(average(length=8), starts=64)
    return f"{words}; of an average {every.value} of {every.length} tokens", verdict
