"""The ledger: every claim of both papers with a check that runs it at small size."""

from .claim import Claim, Entry, Verdict
from .ledger import CLAIMS, prove

__all__ = ["CLAIMS", "Claim", "Entry", "Verdict", "prove"]
