"""The ledger: every theorem of both papers that can be run, with a check at small size and a control of the check."""

from .ledger import CLAIMS, NOT_RUN, NotRun

__all__ = ["CLAIMS", "NOT_RUN", "NotRun"]
