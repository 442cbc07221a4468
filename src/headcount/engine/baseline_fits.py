"""Models without attention, fitted in NumPy: ridge regression, a small net, nearest neighbours.

Each takes training features and targets and the features of new examples, and returns the answers to these: numbers, or
with `labels` one score per class, for targets that are one-hot. All are deterministic, and every choice (penalty,
stopping, k) is made on part of the training examples.
"""

import numpy as np
from jaxtyping import Float

from ..keys import named_generator

Known = Float[np.ndarray, "known features"]
Targets = Float[np.ndarray, "known outputs"]
New = Float[np.ndarray, "new features"]
Answers = Float[np.ndarray, "new outputs"]

HELD_OUT = 0.2
"""Share of the training examples on which choices are made."""
PENALTIES = tuple(10.0**power for power in range(-8, 3, 2))
"""Of ridge regression, as shares of the largest eigenvalue."""
HIDDEN, EPOCHS, MIN_STEPS, BATCH, RATE, CHECKS = 64, 25, 300, 256, 1e-2, 20
"""Of the small net: its width, how it is trained, and how often the held-out loss is looked at."""
NEIGHBOURS = (1, 2, 4, 8, 16, 32)
CHOOSING = 1000
"""Examples on which the number of neighbours is chosen, at most."""


def linear(known: Known, targets: Targets, new: New, *, labels: bool) -> Answers:
    """Ridge regression; classes are numbers 0 and 1 to be predicted, by squared error too when choosing the penalty.

    By the share of wrong classes a penalty may look good that leaves the decision to rounding.
    """
    fitting, choosing = _split(len(known))
    scores = _ridge(known[fitting], targets[fitting], known[choosing])
    losses = [_loss(answers, targets[choosing], labels=False) for answers in scores]
    return _ridge(known, targets, new, (PENALTIES[int(np.argmin(losses))],))[0]


def _ridge(known: Known, targets: Targets, new: New, penalties: tuple[float, ...] = PENALTIES) -> list[Answers]:
    """The answers per penalty, from one eigendecomposition, of the smaller Gram matrix."""
    middle, offset = known.mean(axis=0), targets.mean(axis=0)
    x, y, z = (known - middle).astype(np.float64), targets - offset, (new - middle).astype(np.float64)
    primal = x.shape[1] <= len(x)
    values, vectors = np.linalg.eigh(x.T @ x if primal else x @ x.T)
    values = np.maximum(values, 0.0)
    moments = vectors.T @ (x.T @ y if primal else y)
    rows = (z if primal else z @ x.T) @ vectors
    largest = max(float(values[-1]), np.finfo(float).tiny)
    return [offset + rows @ (moments / (values + penalty * largest)[:, None]) for penalty in penalties]


def net(known: Known, targets: Targets, new: New, *, labels: bool) -> Answers:
    """A net with one hidden layer next to a linear map, stopped where the held-out loss is smallest.

    For numbers the linear map is ridge regression's, and the net learns what that leaves.
    """
    base_known, base_new = np.zeros_like(targets), np.zeros((len(new), targets.shape[1]))
    if not labels:
        both = linear(known, targets, np.concatenate([known, new]), labels=labels)
        base_known, base_new = both[: len(known)], both[len(known) :]
    left = targets - base_known
    scale = 1.0 if labels else max(float(left.std()), 1e-12)
    generator = named_generator(0, "baseline net")
    fitting, choosing = _split(len(known))
    weights = _initial(generator, known.shape[1], targets.shape[1])
    moments, squares = ([np.zeros_like(each) for each in weights] for _ in range(2))
    x, y = known.astype(np.float32), (left / scale).astype(np.float32)
    best, stopped = np.inf, weights
    steps = max(MIN_STEPS, EPOCHS * len(known) // BATCH)
    for step in range(steps + 1):
        if step % (steps // CHECKS) == 0:
            loss = _loss(_forward(weights, x[choosing])[0], y[choosing], labels, smooth=True)
            if loss < best:
                best, stopped = loss, weights
        chosen = generator.choice(fitting, min(BATCH, len(fitting)))
        gradients = _gradients(weights, x[chosen], y[chosen], labels)
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
        moments = [0.9 * m + 0.1 * g for m, g in zip(moments, gradients, strict=True)]
        squares = [0.99 * s + 0.01 * g * g for s, g in zip(squares, gradients, strict=True)]
        first, second = 1 - 0.9 ** (step + 1), 1 - 0.99 ** (step + 1)
        weights = [
            w - np.float32(rate / first) * m / (np.sqrt(s / second) + 1e-8)
            for w, m, s in zip(weights, moments, squares, strict=True)
        ]
    nothing = _loss(np.zeros_like(y[choosing]), y[choosing], labels, smooth=True)
    correction = scale * _forward(stopped, new.astype(np.float32))[0] if best < nothing else 0.0
    return base_new + correction


def _initial(generator: np.random.Generator, features: int, outputs: int) -> list[np.ndarray]:
    """Weights and biases of the hidden layer, of the output, and the linear map next to them."""
    into = generator.normal(size=(features, HIDDEN)) / np.sqrt(features)
    shapes = [into, np.zeros(HIDDEN), np.zeros((HIDDEN, outputs)), np.zeros(outputs), np.zeros((features, outputs))]
    return [each.astype(np.float32) for each in shapes]


def _forward(weights: list[np.ndarray], x: New) -> tuple[Answers, np.ndarray]:
    into, bias, out, offset, direct = weights
    hidden = np.tanh(x @ into + bias)
    return hidden @ out + offset + x @ direct, hidden


def _gradients(weights: list[np.ndarray], x: New, y: Answers, labels: bool) -> list[np.ndarray]:
    answers, hidden = _forward(weights, x)
    wrong = ((softmax(answers) if labels else answers) - y) / len(x)
    back = (wrong @ weights[2].T) * (1 - hidden**2)
    return [x.T @ back, back.sum(axis=0), hidden.T @ wrong, wrong.sum(axis=0), x.T @ wrong]


def softmax(scores: Answers) -> Answers:
    """Return the chances of classes by their scores."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def neighbours(known: Known, targets: Targets, new: New, *, labels: bool) -> Answers:
    """The mean over the k nearest training examples: a vote where targets are one-hot."""
    fitting, choosing = _split(len(known))
    choosing = choosing[:CHOOSING]
    means = _neighbour_means(known[fitting], targets[fitting], known[choosing])
    losses = [_loss(answers, targets[choosing], labels) for answers in means]
    return _neighbour_means(known, targets, new)[int(np.argmin(losses))]


def _neighbour_means(known: Known, targets: Targets, new: New) -> list[Answers]:
    """The mean targets per number of neighbours that there are."""
    known, new = known.astype(np.float32), new.astype(np.float32)
    distances = (known**2).sum(axis=1) - 2 * new @ known.T
    most = min(NEIGHBOURS[-1], len(known))
    nearest = np.argpartition(distances, most - 1, axis=1)[:, :most]
    order = np.argsort(np.take_along_axis(distances, nearest, axis=1), axis=1, kind="stable")
    ordered = np.take_along_axis(nearest, order, axis=1)
    total, means = np.zeros((len(new), targets.shape[1])), []
    for place in range(most):  # one at a time: the targets of all neighbours at once would be many numbers
        total = total + targets[ordered[:, place]]
        if place + 1 in NEIGHBOURS:
            means.append(total / (place + 1))
    return means


def _split(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Places to fit on, and places to choose on; each at least one."""
    order = named_generator(0, "baseline split").permutation(count)
    held_out = min(count - 1, max(1, round(HELD_OUT * count)))
    return order[held_out:], order[:held_out]


def _loss(answers: Answers, targets: Answers, labels: bool, *, smooth: bool = False) -> float:
    """The mean squared error, or the share of wrong classes; `smooth`: the cross-entropy instead of that share."""
    if not labels:
        return float(np.mean((answers - targets) ** 2))
    if smooth:
        return float(-np.mean(np.log(np.maximum((softmax(answers) * targets).sum(axis=1), 1e-12))))
    return float(np.mean(answers.argmax(axis=1) != targets.argmax(axis=1)))
