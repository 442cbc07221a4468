"""What an error is: the name it is stored under, the words for it, and what the best constant answer scores."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..store.cell import ERRORS, Record


@dataclass(frozen=True)
class Metric:
    """One of the numbers in `Record.metrics`.

    `name` is its key there. `label` is how an axis says it, `short` the same for a place with little room. `baseline`
    is the score of the best constant answer where the metric fixes it, None where the data do. `lost` says what an
    error is a share of, `noun` what a sentence calls it, and `unit` explains it.
    """

    name: str
    label: str
    short: str
    baseline: float | None
    lost: str
    less_is_better: bool = True
    noun: str = "the share of wrong answers"
    unit: str = "Errors are shares of wrong answers"


_VARIANCE = "of the target's variance stays unexplained"
_WRONG = "of the answers stay wrong"

_OF_NUMBERS = (
    "NMSE is the mean squared error over the target's variance: 1 is as good as predicting the mean, 0 is exact"
)

NMSE = Metric("nmse", "validation error (NMSE)", "NMSE", 1.0, _VARIANCE, noun="the error", unit=_OF_NUMBERS)
TRAIN_NMSE = replace(NMSE, name="train_nmse", label="training error (NMSE)")
ERROR_RATE = Metric("error", "validation error (share of wrong answers)", "error rate", None, _WRONG)
BALANCED_ERROR = Metric(
    "balanced_error",
    "validation balanced error (mean over classes of the share of wrong answers)",
    "balanced error",
    None,
    "balanced error stays",
    noun="the balanced error",
    unit="The balanced error is the mean over classes of the share of wrong answers: every class counts alike",
)
FINAL_ERROR = Metric("final_error", "validation error at the end (share of wrong answers)", "error rate", None, _WRONG)
TRAIN_ERROR = Metric("train_error", "training error (share of wrong answers)", "error rate", None, _WRONG)
FITTED_ERROR = Metric("fitted_error", "training error at the end (share of wrong answers)", "error rate", None, _WRONG)
MRR = Metric("mrr", "validation mean reciprocal rank", "MRR", None, "of the reciprocal rank is lost", False)
FITTED_MRR = Metric(
    "fitted_mrr", "training mean reciprocal rank at the end", "MRR", None, "of the reciprocal rank is lost", False
)

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *(NMSE, TRAIN_NMSE, ERROR_RATE, BALANCED_ERROR),
        *(FINAL_ERROR, TRAIN_ERROR, FITTED_ERROR, MRR, FITTED_MRR),
    )
}


def metric_of(records: Iterable[Record]) -> Metric:
    """Return what head counts are compared by: the first of `ERRORS` that these records have, otherwise the NMSE."""
    there = {name for record in records for name in record.metrics}
    return METRICS[next((name for name in ERRORS if name in there), "nmse")]
