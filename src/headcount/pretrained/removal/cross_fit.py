"""Two parts of the calibration examples: one to fit layers on, the other to score what was fitted. Needs torch."""

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from ..evaluation.evaluate import CACHE_BYTES, Evaluation

if TYPE_CHECKING:
    from ..loading.load import Loaded


def fitting_part(evaluation: Evaluation) -> Evaluation | None:
    """The same model on the calibration examples that `evaluation` does not score; None where fewer than half remain.

    A refit lowers the loss of the examples it saw more than that of others. A search that scores the examples it fits
    on takes heads for cheaper than they are (stories15M, 11 of 36 removed, 2,000 tokens: .06 there, .30 held out).
    """
    examples = evaluation.examples
    batches = list(examples.calibration)
    rest = batches[examples.scored :] if examples.scored else []
    if 2 * sum(batch.tokens for batch in rest) < sum(batch.tokens for batch in batches):
        return None
    loaded: Loaded = SimpleNamespace(model=evaluation.model)  # type: ignore[assignment]
    return Evaluation(
        loaded, evaluation.layers, replace(examples, calibration=rest, scored=None), cache_bytes=CACHE_BYTES / 2
    )
