"""Which back ends computed some models, from their provenance."""

from collections.abc import Mapping
from typing import Any


def backend_of(provenance: Mapping[str, Any]) -> str:
    """What computed a model, such as "fused 0.1.0, AVX-512"; records that do not say it are of plain JAX."""
    return provenance.get("backend", "reference")


def backend_words(counts: Mapping[str, int]) -> str:
    """The back ends in words, with the number of models of each where there are several.

    Example:
        >>> backend_words({"fused 0.1.0, AVX-512": 2, "reference": 4})
        'fused 0.1.0, AVX-512 (2 models); reference (4 models)'
    """
    if len(counts) < 2:
        return "".join(counts)
    return "; ".join(f"{name} ({count} {'model' if count == 1 else 'models'})" for name, count in counts.items())
