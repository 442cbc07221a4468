"""The ledger: every theorem of both papers that can be run, with a check at small size and a control of the check."""

from .claim import Claim, Control, Entry, NotRun, Verdict
from .ledger import CLAIMS, NOT_RUN, prove

__all__ = ["CLAIMS", "NOT_RUN", "Claim", "Control", "Entry", "NotRun", "Verdict", "prove"]
