"""The support dimension: how many tokens a target depends on at once, which is D without training."""

from .dimension import Support, support_dim

__all__ = ["Support", "support_dim"]
