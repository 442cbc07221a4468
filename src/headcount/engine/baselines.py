"""What models without attention reach on the validation examples of a task, in the metric of its table.

    constant    the best constant answer
    linear      ridge regression on all tokens, every position with weights of its own
    pooled      mean, largest, smallest and spread of every token coordinate, then a small net
    neighbours  the mean, or the vote, of the k nearest training examples

All are fitted on at most `MAX_EXAMPLES` training examples, each in about a second, and give the same numbers every
time. Absent tokens (NaN) are left out of pools and are zeros elsewhere; token ids are counted.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ..store import Store, TrainSpec
from ..tasks import AbstractTask, Classification, Regression
from . import baseline_fits as fits

MAX_EXAMPLES = 8000
"""Training examples that baselines are fitted on, at most."""
MAX_NUMBERS, MAX_FITTED_NUMBERS = 6_000_000, 2_000_000
"""Numbers that are read, and that one baseline is fitted on, at most: of wide examples there are fewer."""
MAX_FEATURES, MAX_OUTPUTS = 20_000, 512
"""Numbers per example, and per answer; a baseline with more is skipped."""
ONE_HOT_FEATURES = 2048
"""Token ids keep their positions while length x vocabulary is at most this; otherwise they are counted."""
LABELS = {
    "constant": "the best constant answer",
    "linear": "a linear model",
    "pooled": "a pooled model",
    "neighbours": "a nearest-neighbour model",
}
FITS = {"linear": fits.linear, "pooled": fits.net, "neighbours": fits.neighbours}


class Features(NamedTuple):
    """Numbers per example: `whole` has every position apart, `pooled` none."""

    whole: Float[np.ndarray, "examples features"]
    pooled: Float[np.ndarray, "examples pools"]


def baselines(task: AbstractTask, train: TrainSpec) -> list[dict[str, Any]]:
    """The baselines of a task at its length, from the training and validation examples that its models have.

    Returns:
        An entry per baseline: `length`, `data_seed`, `validation_examples`, `name`, `label`, `error` (None where it was
        skipped) and `note` (why it was skipped, or that it saw only some training examples).
    """
    split = task.examples(train.train_examples or MAX_EXAMPLES, train.validation_examples, train.data_seed)
    known, asked = (np.asarray(part.targets) for part in split)
    at = {"length": task.length, "data_seed": train.data_seed, "validation_examples": len(asked)}

    def entry(name: str, error: float | None, note: str = "") -> dict[str, Any]:
        return at | {"name": name, "label": LABELS[name], "error": error, "note": note}

    entries = [entry("constant", task.objective.baseline(asked)[0])]
    refused = _refused(task, split.train.content, known)
    if refused:
        return entries + [entry(name, None, refused) for name in FITS]
    content = np.asarray(split.train.content)
    count = max(1, min(MAX_EXAMPLES, len(known), MAX_NUMBERS // max(1, content[0].size)))
    labels = isinstance(task.objective, Classification)
    targets, answers = (_targets(each, task.outputs, labels) for each in (known[:count], asked))
    middle, scale = (np.zeros(1), np.ones(1)) if labels else _middle_and_scale(targets)
    seen, new = (_features(task, part) for part in (content[:count], np.asarray(split.validation.content)))
    for name, fit in FITS.items():
        x, z = (each.pooled if name == "pooled" else each.whole for each in (seen, new))
        if x.shape[1] > MAX_FEATURES:
            entries.append(entry(name, None, f"{x.shape[1]:,} numbers per example are too many"))
            continue
        kept = min(count, MAX_FITTED_NUMBERS // x.shape[1])
        note = f"fitted on {kept:,} of {len(known):,} training examples" if kept < len(known) else ""
        x, z = _standardised(x[:kept], z)
        fitted = fit(x, ((targets - middle) / scale)[:kept], z, labels=labels) * scale + middle
        entries.append(entry(name, _error(fitted, answers, labels), note))
    return entries


def _refused(task: AbstractTask, content: Any, targets: np.ndarray) -> str:
    """Why none of them can be fitted; empty where they can."""
    if not isinstance(task.objective, Regression | Classification):
        return "the answer is chosen among candidates"
    if not hasattr(content, "shape"):
        return "an example is more than one array"
    if isinstance(task.objective, Classification) and targets.ndim > 1:
        return "there is a label per token"
    outputs = task.outputs if targets.ndim == 1 else int(np.prod(targets.shape[1:]))
    return f"{outputs:,} numbers per answer are too many" if outputs > MAX_OUTPUTS else ""


def _targets(values: np.ndarray, outputs: int, labels: bool) -> Float[np.ndarray, "examples outputs"]:
    """Numbers in a row per example; labels one-hot."""
    return np.eye(outputs)[values] if labels else values.reshape(len(values), -1).astype(np.float64)


def _error(answers: np.ndarray, targets: np.ndarray, labels: bool) -> float:
    """The metric of the table: the share of wrong labels, or the error over the variance of the targets."""
    if labels:
        return float(np.mean(answers.argmax(axis=1) != targets.argmax(axis=1)))
    return float(np.mean((answers - targets) ** 2) / np.mean((targets - targets.mean(axis=0)) ** 2))


def _features(task: AbstractTask, content: np.ndarray) -> Features:
    vocabulary = getattr(task, "vocabulary", 0) or 0
    if vocabulary:
        return _counted(content.reshape(len(content), -1), vocabulary)
    content = content.astype(np.float32)
    if content.ndim == 4:  # images, (height, width, channels): a pixel is a token
        content = content.reshape(len(content), -1, content.shape[-1])
    there = np.asarray(~np.isnan(content).any(axis=2))
    filled = np.where(there[..., None], content, 0.0)
    whole = filled.reshape(len(filled), -1)
    pooled = _pooled(content, there)
    if task.padded:
        whole, pooled = np.hstack([whole, there]), np.hstack([pooled, there.sum(axis=1, keepdims=True)])
    if task.answered_at == "query":  # the last token asks
        pooled = np.hstack([pooled, filled[:, -1]])
    if task.answered_at == "tokens":
        pooled = np.hstack([pooled, whole])
    return Features(whole, pooled)


def _pooled(tokens: np.ndarray, there: Bool[np.ndarray, "examples length"]) -> np.ndarray:
    """Mean, largest, smallest and spread over the tokens that are there; zeros where none is."""
    kept, some = there[..., None], there.any(axis=1, keepdims=True)
    count = np.maximum(kept.sum(axis=1), 1)
    filled = np.where(kept, tokens, 0.0)
    mean = filled.sum(axis=1) / count
    spread = np.sqrt(np.where(kept, (filled - mean[:, None]) ** 2, 0.0).sum(axis=1) / count)
    largest, smallest = np.where(kept, tokens, -np.inf).max(axis=1), np.where(kept, tokens, np.inf).min(axis=1)
    return np.hstack([mean, np.where(some, largest, 0.0), np.where(some, smallest, 0.0), spread])


def _counted(ids: np.ndarray, vocabulary: int) -> Features:
    """How often each id occurs; `whole` says where too while that is not too much. Ids outside are absent tokens."""
    ids = np.where(np.isfinite(ids), ids, -1).astype(np.int64)
    there = (ids >= 0) & (ids < vocabulary)
    rows, places = np.nonzero(there)
    counts = np.zeros((len(ids), vocabulary), np.float32)
    np.add.at(counts, (rows, ids[there]), 1.0)
    if ids.shape[1] * vocabulary > ONE_HOT_FEATURES:
        return Features(counts, counts)
    whole = np.zeros((*ids.shape, vocabulary), np.float32)
    whole[rows, places, ids[there]] = 1.0
    return Features(whole.reshape(len(ids), -1), counts)


def _standardised(known: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle, scale = _middle_and_scale(known)
    return (known - middle) / scale, (new - middle) / scale


def _middle_and_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    deviation = values.std(axis=0)
    return values.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def attach_baselines(store: Store, name: str, task: AbstractTask, lengths: Iterable[int], train: TrainSpec) -> None:
    """Keep the baselines of a task with an experiment of the store, at the lengths that it does not have yet."""
    stored = store.attachments(name).get("baselines", [])
    known = {entry["length"] for entry in stored}
    new = [entry for length in lengths if length not in known for entry in baselines(task.at(length), train)]
    if new:
        store.attach(name, "baselines", stored + new)


def attach_notes(store: Store, name: str, task: AbstractTask) -> None:
    """Keep how the data of a task were read with an experiment of the store."""
    if task.notes:
        store.attach(name, "notes", list(task.notes))
