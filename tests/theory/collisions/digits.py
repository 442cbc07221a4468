"""Class outputs, targets and exact collisions with fifty digits, by a transformer rewritten from its raw weights."""

import mpmath
import numpy as np

from tests.theory.collisions.examples import DIM, TASKS

DIGITS = 50


def precise(array) -> np.ndarray:
    """The array's numbers with fifty digits."""
    numbers = np.asarray(array, np.float64)
    return np.array([mpmath.mpf(number) for number in numbers.ravel().tolist()], dtype=object).reshape(numbers.shape)


def attended(query, key, value, output, beta, reader: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """W_O over the heads of sum_t a(t) W_V x(t), one head after the other."""
    added = np.array([mpmath.mpf(0)] * len(output), dtype=object)
    for head in range(len(query)):
        asked = query[head].dot(reader)
        scores = [beta * key[head].dot(token).dot(asked) for token in tokens]
        most = max(scores)
        weights = [mpmath.exp(score - most) for score in scores]
        share = sum(weights)
        read = sum((weight / share) * value[head].dot(token) for weight, token in zip(weights, tokens, strict=True))
        added = added + output[:, head].dot(read)
    return added


def plain_class_output(weights, sequence: np.ndarray) -> np.ndarray:
    """The class token after attention with fifty digits, from the raw weights."""
    w1, b1 = precise(weights.encoder_in.weight), precise(weights.encoder_in.bias)
    w2, b2 = precise(weights.encoder_out.weight), precise(weights.encoder_out.bias)
    table = None if weights.position_table is None else precise(weights.position_table)
    tokens = []
    for place, token in enumerate(sequence):
        if weights.position_codes is not None:
            token = np.concatenate([token, table[place]])
        hidden = np.array([max(number, mpmath.mpf(0)) for number in w1.dot(token) + b1], dtype=object)
        embedded = w2.dot(hidden) + b2
        tokens.append(embedded + table[place] if weights.added_positions is not None else embedded)
    reader, beta = precise(weights.class_token), mpmath.mpf(weights.spec.beta)
    layers = [
        [precise(getattr(layer, part)) for part in ("query", "key", "value", "output")] for layer in weights.attention
    ]
    for layer in layers[:-1]:
        moved = [token + attended(*layer, beta, token, tokens) for token in tokens]
        reader = reader + attended(*layer, beta, reader, tokens)
        tokens = moved
    return reader + attended(*layers[-1], beta, reader, tokens)


def layer_normed(vector: np.ndarray) -> np.ndarray:
    """A layer norm without gain and shift; 1e-5, the floor, is the float64 number of that name."""
    centred = vector - sum(vector) / len(vector)
    return centred / mpmath.sqrt(sum(centred**2) / len(vector) + mpmath.mpf(1e-5))


def plain_seen(weights, sequence: np.ndarray) -> np.ndarray:
    """What the readout sees with fifty digits: the class token after attention, normed where the model has a norm."""
    output = plain_class_output(weights, sequence)
    return layer_normed(output) if weights.spec.final_norm else output


def plain_target(name: str, sequence: np.ndarray) -> mpmath.mpf:
    """The targets of both tasks with fifty digits, from their stored directions and centres."""
    if name == "maxima":
        rows = precise(TASKS[name].features.directions)  # pyright: ignore
        return sum(max(row.dot(token) for token in sequence) for row in rows)
    centres = precise(TASKS[name].features.centres)  # pyright: ignore
    return sum(min(sum((token - centre) ** 2) / DIM for token in sequence) for centre in centres)


def difference(weights, pair: np.ndarray) -> np.ndarray:
    return plain_seen(weights, pair[0]) - plain_seen(weights, pair[1])


def slopes(weights, pair: np.ndarray) -> np.ndarray:
    """dG with respect to all numbers of the pair, from differences over 1e-25."""
    width, columns = mpmath.mpf(10) ** -25, []
    here = [plain_seen(weights, sequence) for sequence in pair]
    for index in np.ndindex(pair.shape):
        moved = pair.copy()
        moved[index] = moved[index] + width
        there = plain_seen(weights, moved[index[0]])
        columns.append((there - here[index[0]]) / width * (1 if index[0] == 0 else -1))
    return np.array(columns, dtype=object).T.astype(np.float64)


def exact_pair(weights, pair: np.ndarray, steps: int = 5) -> tuple[np.ndarray, mpmath.mpf]:
    """The collision that chord steps of Newton reach from the pair, and how far from one it still is."""
    inverse = precise(np.linalg.pinv(slopes(weights, pair), rcond=1e-10))
    for _ in range(steps):
        pair = pair - inverse.dot(difference(weights, pair)).reshape(pair.shape)
    return pair, max(abs(number) for number in difference(weights, pair))
