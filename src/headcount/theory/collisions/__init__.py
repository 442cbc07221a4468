"""Pairs of sequences that a model cannot tell apart: the search, its proof, and the pair of Theorem 2(2)."""

from .certificates import Certificate, certify
from .domain import Domain, domain_of
from .pigeonhole import Pigeonhole, find_pigeonhole
from .search import Collision, find_collisions
from .uniqueness import Agreement, Comparison, compare_representations

__all__ = [
    "Agreement",
    "Certificate",
    "Collision",
    "Comparison",
    "Domain",
    "Pigeonhole",
    "certify",
    "compare_representations",
    "domain_of",
    "find_collisions",
    "find_pigeonhole",
]
