"""Errors of models without attention on the validation examples of a task, in the metric of its table.

    linear      ridge regression on all tokens, every position with weights of its own
    pooled      mean, largest, smallest and spread of every token coordinate, then a small net
    neighbours  the mean, or the vote, of the k nearest training examples

All are fitted on at most `MAX_EXAMPLES` training examples, each in about a second, and give the same numbers every
time. Absent tokens (NaN) are left out of pools and are zeros elsewhere; token ids are counted. With a label per token
an example is a token: its numbers, those of the tokens next to it, and where it is.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .._precision import wide
from ..keys import named_generator
from ..store import Store, TrainSpec
from ..tasks import AbstractTask, Balanced, Classification, Examples, Regression
from . import baseline_fits as fits
from .data import mean_and_scale, target_units

MAX_EXAMPLES, MAX_VALIDATION = 8000, 2000
"""Training examples that baselines are fitted on, and validation examples that they answer, at most."""
MAX_NUMBERS, MAX_FITTED_NUMBERS = 10_000_000, 1_500_000
"""Numbers that are read, and that one baseline is fitted on, at most: of wide examples there are fewer."""
MAX_FEATURES, MAX_OUTPUTS = 4_000, 512
"""Numbers per example, and per answer; a baseline with more is skipped."""
MIN_EXAMPLES, MIN_SHARE = 1000, 0.2
"""A baseline that could be fitted only on fewer examples, which are less than this share of them, is skipped."""
ONE_HOT_FEATURES = 2048
"""Token ids keep their positions while length x vocabulary is at most this; otherwise they are counted."""
LABELS = {"linear": "a linear model", "pooled": "a pooled model", "neighbours": "a nearest-neighbour model"}
FITS = {"linear": fits.linear, "pooled": fits.net, "neighbours": fits.neighbours}


class FittedPart(NamedTuple):
    """Content and targets in numbers of the examples that are looked at; with labels per token, which token it is."""

    content: np.ndarray
    targets: Float[np.ndarray, "examples outputs"]
    places: Int[np.ndarray, " examples"] | None = None

    def first(self, count: int) -> "FittedPart":
        """Return the first examples."""
        return FittedPart(
            self.content[:count], self.targets[:count], None if self.places is None else self.places[:count]
        )


def baselines(task: AbstractTask, train: TrainSpec, *, standardised: bool = False) -> list[dict[str, Any]]:
    """The baselines of a task at its length, from the training and validation examples that its models have.

    Arguments: `standardised` says whether the models are trained on standardised targets; errors are then over these,
    as the models' are.

    Returns:
        An entry per baseline: `length`, `data_seed`, `validation_examples`, `name`, `label`, `error` (None where it was
        skipped) and `note` (why it was skipped, or that it saw only some training examples).
    """
    asked_for = train.train_examples or MAX_EXAMPLES
    # Stored examples are there anyway; of others no more are drawn than are looked at.
    drawn = min(asked_for, MAX_EXAMPLES, _most(task.length * task.dim)) if task.endless else asked_for
    split = task.examples(drawn, train.validation_examples, train.data_seed)
    known, asked = (np.asarray(part.targets) for part in split)
    at = {"length": task.length, "data_seed": train.data_seed, "validation_examples": len(asked)}
    refused = _refused(task, split.train.content, known)
    if refused:
        return [at | _entry(name, None, refused) for name in FITS]
    labels = isinstance(task.objective, Classification)
    if labels and known.ndim > 1:
        limits, total = (MAX_EXAMPLES, MAX_VALIDATION), int(np.sum(known >= 0))
        looked_at, asked_of = (_by_token(part, task.outputs, most) for part, most in zip(split, limits, strict=True))
        return [at | _entry(name, *_fitted(task, name, looked_at, asked_of, total)) for name in FITS]
    total = train.train_examples if task.endless else len(known)
    scale = np.ones(1)
    if standardised and not labels:
        scale = np.broadcast_to(target_units(task, known)[1], known.shape[1:]).reshape(-1)
    content, new = (np.asarray(part.content) for part in split)
    count, few = (min(most, _most(int(np.prod(content.shape[1:])))) for most in (MAX_EXAMPLES, MAX_VALIDATION))
    looked_at = FittedPart(content[:count], _targets(known[:count], task.outputs, labels) / scale)
    asked_of = FittedPart(new[:few], _targets(asked[:few], task.outputs, labels) / scale)
    return [at | _entry(name, *_fitted(task, name, looked_at, asked_of, total)) for name in FITS]


def _by_token(part: Examples, outputs: int, most: int) -> FittedPart:
    """Return tokens that have a label, drawn at random, each with its whole sequence."""
    content, labels = (np.asarray(values) for values in part)
    rows, places = np.nonzero(labels >= 0)
    most = min(most, _most(int(np.prod(content.shape[1:]))))
    chosen = named_generator(0, "baseline tokens").permutation(len(rows))[:most]
    rows, places = rows[chosen], places[chosen]
    return FittedPart(content[rows], np.eye(outputs)[labels[rows, places]], places)


def _most(numbers: int) -> int:
    """Return the most examples of this many numbers each that are read."""
    return max(1, MAX_NUMBERS // max(1, numbers))


def _entry(name: str, error: float | None, note: str) -> dict[str, Any]:
    return {"name": name, "label": LABELS[name], "error": error, "note": note}


def _fitted(task: AbstractTask, name: str, known: FittedPart, new: FittedPart, total: int) -> tuple[float | None, str]:
    """The error of one baseline, or None; and what there is to say about it. `total` is 0 for fresh examples."""
    pooled, labels = name == "pooled", isinstance(task.objective, Classification)
    unit = "examples" if known.places is None else "tokens"
    width = _features(task, known.first(1), pooled).shape[1]
    if width > MAX_FEATURES:
        return None, f"{width:,} numbers per {unit.removesuffix('s')} are too many"
    kept = min(len(known.content), MAX_FITTED_NUMBERS // width)
    note = "" if kept == total else f"fitted on {kept:,}{f' of {total:,}' if total else ' fresh'} training {unit}"
    if kept < MIN_EXAMPLES and kept < MIN_SHARE * (total or MAX_EXAMPLES):
        return None, f"{width:,} numbers per {unit.removesuffix('s')}: it could only be {note}"
    targets = known.targets[:kept]
    middle, scale = (np.zeros(1), np.ones(1)) if labels else mean_and_scale(wide(targets))
    # By the share of wrong answers every number of neighbours is as good where one class is frequent.
    votes = labels and not (name == "neighbours" and isinstance(task.objective, Balanced))
    try:
        x, z = (_features(task, part, pooled) for part in (known.first(kept), new))
        center, spread = mean_and_scale(wide(x))
        x, z = (x - center) / spread, (z - center) / spread
        answers = FITS[name](x, (targets - middle) / scale, z, labels=votes) * scale + middle
    except (MemoryError, np.linalg.LinAlgError) as error:  # what it is compared with is trained, and stays
        return None, f"{type(error).__name__}: {error}"
    if isinstance(task.objective, Balanced):
        answers = (fits.softmax(answers) if pooled else answers) / np.array(task.objective.shares)
    error = _error(task, answers, new.targets)
    return (error, note) if np.isfinite(error) else (None, "its answers are not finite")


def _refused(task: AbstractTask, content: Any, targets: np.ndarray) -> str:
    """Why none of them can be fitted; empty where they can."""
    if not isinstance(task.objective, Regression | Classification):
        return "the answer is chosen among candidates"
    if not hasattr(content, "shape"):
        return "an example is more than one array"
    outputs = task.outputs if isinstance(task.objective, Classification) else int(np.prod(targets.shape[1:]))
    return f"{outputs:,} numbers per answer are too many" if outputs > MAX_OUTPUTS else ""


def _targets(values: np.ndarray, outputs: int, labels: bool) -> Float[np.ndarray, "examples outputs"]:
    """Numbers in a row per example; labels one-hot."""
    return np.eye(outputs)[values] if labels else values.reshape(len(values), -1).astype(np.float64)


def _error(task: AbstractTask, answers: np.ndarray, targets: np.ndarray) -> float:
    """The metric of the table: the share of wrong labels, or the error over the variance of the targets."""
    if not isinstance(task.objective, Classification):
        return float(np.mean((answers - targets) ** 2) / np.mean((targets - targets.mean(axis=0)) ** 2))
    wrong = answers.argmax(axis=1) != targets.argmax(axis=1)
    if isinstance(task.objective, Balanced):
        return float(np.mean([np.average(wrong, weights=of_class) for of_class in targets.T if of_class.any()]))
    return float(np.mean(wrong))


def _features(task: AbstractTask, part: FittedPart, pooled: bool) -> Float[np.ndarray, "examples features"]:
    """Numbers per example: of every position apart, or `pooled` over positions; with labels per token of the token."""
    if part.places is not None:
        own = _around(task, part.content, part.places)
        return np.hstack([own, _features(task, FittedPart(part.content, part.targets), pooled)]) if pooled else own
    content = part.content
    if task.vocabulary:
        return _counted(content.reshape(len(content), -1), task, pooled)
    content = content.astype(np.float32)
    if content.ndim == 4:  # images, (height, width, channels): a pixel is a token
        content = content.reshape(len(content), -1, content.shape[-1])
    there = np.asarray(~np.isnan(content).any(axis=2))
    filled = np.where(there[..., None], content, 0.0)
    whole = filled.reshape(len(filled), -1)
    if task.padded:
        whole = np.hstack([whole, there])
    if not pooled:
        return whole
    parts = [_pooled(content, there)]
    if task.padded:
        parts.append(there.sum(axis=1, keepdims=True))
    if task.answered_at == "query":  # the last token asks
        parts.append(filled[:, -1])
    if task.answered_at == "tokens" and not isinstance(task.objective, Classification):
        parts.append(whole)
    return np.hstack(parts)


def _around(
    task: AbstractTask, content: Float[np.ndarray, "examples length dim"], places: Int[np.ndarray, " examples"]
) -> Float[np.ndarray, "examples features"]:
    """Return the numbers of a token and of those next to it, and where it is; of many ids the token's alone."""
    reach = int(3 * (task.vocabulary or 1) <= ONE_HOT_FEATURES)
    padded = np.pad(content, ((0, 0), (reach, reach), (0, 0)), constant_values=np.nan)
    near = np.take_along_axis(padded, (places[:, None] + np.arange(2 * reach + 1))[..., None], axis=1)
    if task.vocabulary:
        numbers = _counted(near[..., 0], task, pooled=False)
    else:
        there = np.asarray(~np.isnan(near).any(axis=2))
        numbers = np.hstack([np.where(there[..., None], near, 0.0).reshape(len(near), -1), there])
    return np.hstack([numbers, places[:, None] / content.shape[1]])


def _pooled(tokens: np.ndarray, there: Bool[np.ndarray, "examples length"]) -> np.ndarray:
    """Mean, largest, smallest and spread over the tokens that are there; zeros where none is."""
    kept, some = there[..., None], there.any(axis=1, keepdims=True)
    count = np.maximum(kept.sum(axis=1), 1)
    filled = np.where(kept, tokens, 0.0)
    mean = filled.sum(axis=1) / count
    spread = np.sqrt(np.where(kept, (filled - mean[:, None]) ** 2, 0.0).sum(axis=1) / count)
    largest, smallest = np.where(kept, tokens, -np.inf).max(axis=1), np.where(kept, tokens, np.inf).min(axis=1)
    return np.hstack([mean, np.where(some, largest, 0.0), np.where(some, smallest, 0.0), spread])


def _counted(ids: np.ndarray, task: AbstractTask, pooled: bool) -> np.ndarray:
    """Count each id, per position without `pooled` where that is not too much. Ids outside are absent."""
    ids = np.where(np.isfinite(ids), ids, -1).astype(np.int64)
    there = (ids >= 0) & (ids < task.vocabulary)
    rows, places = np.nonzero(there)
    if not pooled and ids.shape[1] * task.vocabulary <= ONE_HOT_FEATURES:
        whole = np.zeros((*ids.shape, task.vocabulary), np.float32)
        whole[rows, places, ids[there]] = 1.0
        return whole.reshape(len(ids), -1)
    counts = np.zeros((len(ids), task.vocabulary), np.float32)
    np.add.at(counts, (rows, ids[there]), 1.0)
    return counts


def attach_baselines(
    store: Store, name: str, task: AbstractTask, lengths: Iterable[int], train: TrainSpec, *, standardised: bool
) -> None:
    """Keep the baselines of a task with an experiment of the store, at the lengths that it does not have yet."""
    stored = store.get(name, "baselines", [])
    known = {entry["length"] for entry in stored}
    new = [
        entry
        for length in lengths
        if length not in known
        for entry in baselines(task.at(length), train, standardised=standardised)
    ]
    if new:
        store.put(name, "baselines", stored + new)
