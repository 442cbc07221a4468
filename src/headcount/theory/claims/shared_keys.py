"""A claim beyond the papers: Theorem 2(1) where all heads share one set of keys and values."""

from collections.abc import Callable

import equinox as eqx
import numpy as np

from ...models import ClassTokenTransformer
from ...tasks import Retrieval, max_plus_min, quadratic_basins
from ..constructions.adversary import largest_error
from ..constructions.shared_keys import construct_shared
from .claim import Control, Result, claim, verdict_of

EPS = 0.03


def _tasks() -> dict[str, Retrieval]:
    return {"max + min": max_plus_min(length=8), "basins D = 3, d = 2": quadratic_basins(length=8)}


def _largest(change: Callable[[ClassTokenTransformer], ClassTokenTransformer]) -> Result:
    """The largest error found of a changed construction, beside what the construction promises."""
    parts, holds = [], True
    for name, task in _tasks().items():
        built = construct_shared(task, EPS)
        model = change(built.model)
        error, _ = largest_error(model, task, starts=16, steps=60)
        holds &= built.proved and error <= built.promised <= EPS
        groups, head_dim, _ = model.attention[0].key.shape
        parts.append(f"{name}: {error:.1e} of {built.promised:.1e} with {groups} key head of {head_dim} numbers")
    return f"T = 8, eps = {EPS:g}, found of promised: {'; '.join(parts)}", verdict_of(holds)


def _turned(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """Every head asks for the component of the next one."""
    return eqx.tree_at(lambda m: m.attention[0].query, model, replace_fn=lambda query: np.roll(query, 1, axis=0))


def _narrowed(model: ClassTokenTransformer) -> ClassTokenTransformer:
    """Keys of D - 1 numbers: the last one is cut off."""
    last = len(model.attention[0].query) - 1
    keep = (np.arange(model.attention[0].key.shape[1]) < last)[:, None]
    return eqx.tree_at(lambda m: m.attention[0].key, model, replace_fn=lambda key: key * keep)


def _broken() -> Result:
    results = {"queries turned": _largest(_turned), "keys of D - 1 numbers": _largest(_narrowed)}
    words = "; ".join(f"{name}, {seen}" for name, (seen, _) in results.items())
    return words, next((verdict for _, verdict in results.values() if verdict is verdict_of(True)), verdict_of(False))


@claim(
    "h = D heads that share one set of keys and values of head_dim >= D numbers have error at most eps",
    source="Theorem 2(1), one key head; ours",
    program="theory.construct_shared, theory.largest_error",
    control=Control(breaks="queries that ask for another component, or keys too narrow", check=_broken),
)
def shared_keys() -> Result:
    return _largest(lambda model: model)
