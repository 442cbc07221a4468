"""What an error is: the name it is stored under, the words for it, and what the best constant answer scores."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..store import Record


@dataclass(frozen=True)
class Metric:
    """One of the numbers in `Record.metrics`.

    `name` is its key there. `label` is how an axis says it, `short` the same for a place with little room. `baseline`
    is the score of the best constant answer where the metric fixes it, None where the data do. `lost` says what an
    error is a share of.
    """

    name: str
    label: str
    short: str
    baseline: float | None
    lost: str
    less_is_better: bool = True


_VARIANCE = "of the target's variance stays unexplained"
_WRONG = "of the answers stay wrong"

NMSE = Metric("nmse", "validation error (NMSE)", "NMSE", 1.0, _VARIANCE)
TRAIN_NMSE = Metric("train_nmse", "training error (NMSE)", "NMSE", 1.0, _VARIANCE)
ERROR_RATE = Metric("error", "validation error (share of wrong answers)", "error rate", None, _WRONG)
FINAL_ERROR = Metric("final_error", "validation error at the end (share of wrong answers)", "error rate", None, _WRONG)
TRAIN_ERROR = Metric("train_error", "training error (share of wrong answers)", "error rate", None, _WRONG)
FITTED_ERROR = Metric("fitted_error", "training error at the end (share of wrong answers)", "error rate", None, _WRONG)
MRR = Metric("mrr", "validation mean reciprocal rank", "MRR", None, "of the reciprocal rank is lost", False)
FITTED_MRR = Metric(
    "fitted_mrr", "training mean reciprocal rank at the end", "MRR", None, "of the reciprocal rank is lost", False
)

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (NMSE, TRAIN_NMSE, ERROR_RATE, FINAL_ERROR, TRAIN_ERROR, FITTED_ERROR, MRR, FITTED_MRR)
}


def metric_of(records: Iterable[Record]) -> Metric:
    """Return what head counts are compared by: the error rate where these records have one, otherwise the NMSE."""
    return ERROR_RATE if any("error" in record.metrics for record in records) else NMSE
