"""A claim beyond the papers: Theorem 2(1) where all heads share one set of keys and values."""

from collections.abc import Callable

import equinox as eqx
import numpy as np

from ...answer.claim import Claim, Finding, as_claim, promise_verdict
from ...models import ClassTokenTransformer
from ...tasks import Retrieval, max_plus_min, quadratic_basins
from ..constructions.adversary import largest_error
from ..constructions.shared_keys import construct_shared

EPS = 0.03


def _largest(tasks: dict[str, Retrieval], change: Callable[[ClassTokenTransformer], ClassTokenTransformer]) -> Finding:
    """The largest error found of changed constructions, beside what the constructions promise."""
    parts, holds = [], True
    for name, task in tasks.items():
        built = construct_shared(task, EPS)
        error, _ = largest_error(change(built.model), task, starts=16, steps=60)
        holds &= built.proved and error <= built.promised <= EPS
        parts.append(f"{name}: {error:.1e} of {built.promised:.1e}")
    return f"found of promised: {'; '.join(parts)}", promise_verdict(holds)


def _turned(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """Every head asks for the component of the next one."""
    return eqx.tree_at(lambda m: m.attention[0].query, model, replace_fn=lambda query: np.roll(query, 1, axis=0))


def _narrowed(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """Keys of D - 1 numbers: the last one is cut off."""
    last = len(model.attention[0].query) - 1
    keep = (np.arange(model.attention[0].key.shape[1]) < last)[:, None]
    return eqx.tree_at(lambda m: m.attention[0].key, model, replace_fn=lambda key: key * keep)


def _broken() -> Finding:
    # Not max + min, whose value does not change where its two components are exchanged.
    basins = {"basins": quadratic_basins(length=8)}
    results = {"queries turned": _largest(basins, _turned), "keys of D - 1 numbers": _largest(basins, _narrowed)}
    words = "; ".join(f"{name}, {seen}" for name, (seen, _) in results.items())
    return words, next(
        (verdict for _, verdict in results.values() if verdict is promise_verdict(True)), promise_verdict(False)
    )


@as_claim(
    "h = D heads that share one set of keys and values of head_dim >= D numbers have error at most eps",
    source="Theorem 2(1), one key head; ours",
    program="theory.construct_shared, theory.largest_error",
    control=Claim(statement="queries that ask for another component, or keys too narrow", check=_broken),
)
def shared_keys() -> Finding:
    tasks = {"max + min, head_dim 2": max_plus_min(length=8), "basins D = 3, head_dim 3": quadratic_basins(length=8)}
    words, verdict = _largest(tasks, lambda model: model)
    return f"T = 8, eps = {EPS:g}, {words}", verdict
