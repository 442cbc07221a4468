"""What each column of an attention's projections is, seen by running the module alone. Needs torch.

Own modules pack and order their projections in many ways. Instead of a table of ways: a copy of the module runs in
float64 with chosen numbers in place of what its projections write (`Columns`), up to the output projection.

    every token alike                      a mean over tokens changes nothing: which column is the value of which output
    derivative of the last token's output  by the values: the attention; by columns of the last token alone: queries; of
                                           other tokens too: keys
    log attention against q . k            equal up to a factor and what does not depend on q: the textbook's softmax
                                           (Q_h x . K_g x); else queries and keys are rotated, normalised, or unknown
"""

import contextlib
import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..._draws import named_generator
from ...errors import require
from .architectures import Layout
from .attention_layer import projection_at
from .weights import Rotary

TOKENS = 5
CLOSE = 1e-5
"""Below it, two numbers are equal here: many modules take their softmax in float32, whatever they are given."""
LARGE = 8.0
"""Of queries and keys along one axis: large enough to see the slowest rotation, small enough for a softmax."""


@dataclass(frozen=True)
class Roles:
    """A layer's shape, what stands between projections and products, and its columns as queries, keys, values.

    The heads of each are neighbours. `order` is None where the columns are in order.
    """

    heads: int
    key_heads: int
    head_dim: int
    order: tuple[int, ...] | None
    rotary: Rotary | None
    normed: bool


class _Reached(BaseException):
    """Raised where the output projection would run. Not an Exception, so that no module catches it."""


class Columns:
    """An attention module as a function of what its projections write, up to the concatenated outputs of its heads."""

    def __init__(self, holder: nn.Module, layout: Layout):
        self.module = copy.deepcopy(holder).double().eval().requires_grad_(False)
        projections = [projection_at(self.module, path) for path in layout.inputs]
        self.sizes = [projection.features for projection in projections]
        self.pieces: list[Tensor] = []
        self.heads: Tensor | None = None
        for place, path in enumerate(layout.inputs):
            self.module.get_submodule(path).register_forward_hook(lambda *_, place=place: self.pieces[place][None])
        self.module.get_submodule(layout.output).register_forward_pre_hook(self._reach)
        self.x = self.draw(projections[0].shape[1])
        self.count = sum(self.sizes)

    def __call__(self, written: Float[Tensor, "tokens columns"]) -> Float[Tensor, "tokens features"]:
        self.pieces, self.heads = list(written.split(self.sizes, -1)), None
        with contextlib.suppress(_Reached):
            self.module(self.x[None])
        assert self.heads is not None
        return self.heads[0]

    def draw(self, columns: int) -> Tensor:
        """Random numbers for every token."""
        return torch.from_numpy(named_generator(0, "columns", columns).normal(size=(TOKENS, columns))).to(self._device)

    @property
    def _device(self) -> torch.device:
        return next(self.module.parameters()).device

    def _reach(self, module: nn.Module, given: tuple) -> None:
        self.heads = given[0]
        raise _Reached


def read_roles(holder: nn.Module, layout: Layout, name: str) -> Roles | None:
    """The roles of a module's columns; None where the module does not run alone, on (1, tokens, width).

    Raises InputError where it runs but is not softmax attention as the textbook has it.
    """
    if any(parameter.is_meta for parameter in holder.parameters()):
        return None
    try:
        columns = Columns(holder, layout)
        written = columns.draw(columns.count)
        plain = columns(written.clone().requires_grad_())
    except Exception:  # other arguments, other shapes, no weights: each module fails in its own way
        return None
    if plain.shape[0] != TOKENS or plain.ndim != 2 or not plain.requires_grad:
        return None
    roles = _Reading(columns, written, name).roles()
    require(
        bool(layout.packed) or roles.order is None,
        f"{name}: the heads of {', '.join(layout.inputs)} are not in order; give a model whose heads are neighbours.",
    )
    return roles


class _Reading:
    """The reading of one module; `value_of` is the value column of each output of the heads."""

    def __init__(self, columns: Columns, written: Tensor, name: str):
        self.columns, self.written, self.name = columns, written, name
        marks = 1 + torch.arange(columns.count, dtype=torch.float64, device=written.device) / columns.count
        seen = columns(marks.expand(TOKENS, -1))
        self.value_of = ((seen[-1] - 1) * columns.count).round().long().clamp(0, columns.count - 1)
        self._require(
            bool(((seen - marks[self.value_of]).abs() < CLOSE).all()),
            "what its output projection reads is no mean of values with weights that sum to 1",
        )

    def roles(self) -> Roles:
        size, features = len(self._read_by(range(1))[0]), len(self.value_of)
        self._require(size > 0 and features % size == 0, f"{size} columns of queries for {features} outputs of heads")
        outputs = [range(start, start + size) for start in range(0, features, size)]
        queries, keys = zip(*map(self._read_by, outputs), strict=True)
        values = [self.value_of[list(each)].tolist() for each in outputs]
        groups = list(dict.fromkeys((tuple(key), tuple(value)) for key, value in zip(keys, values, strict=True)))
        share = len(queries) // len(groups)
        order = [
            *(column for query in queries for column in query),
            *(column for part in (0, 1) for group in groups for column in group[part]),
        ]
        self._require(
            len(queries) == share * len(groups)
            and all(groups[place // share][0] == tuple(key) for place, key in enumerate(keys))
            and all(len(each) == size for each in (*queries, *keys))
            and sorted(order) == list(range(self.columns.count)),
            "its columns are not queries, keys and values of heads of one size, of which neighbours share keys",
        )
        rotary, normed = self._between(queries, keys, outputs)
        places = None if order == sorted(order) else tuple(order)
        return Roles(len(queries), len(groups), size, places, rotary, normed)

    def _slope(self, written: Tensor, outputs: range) -> Tensor:
        """The derivative of these outputs of the last token by everything written."""
        written = written.clone().requires_grad_()
        weights = torch.linspace(1, 2, len(outputs), dtype=torch.float64, device=written.device)
        total = (self.columns(written)[-1, list(outputs)] * weights).sum()
        return torch.autograd.grad(total, written)[0]

    def _read_by(self, outputs: range) -> tuple[list[int], list[int]]:
        """The columns of the query and of the key that these outputs of one head depend on."""
        slope = self._slope(self.written, outputs)
        slope[:, self.value_of] = 0
        least = 1e-12 * slope.abs().max()
        used, others = slope.abs().amax(0) > least, slope[:-1].abs().amax(0) > least
        return (used & ~others).nonzero()[:, 0].tolist(), others.nonzero()[:, 0].tolist()

    def _attention(self, written: Tensor, outputs: range) -> Tensor:
        """The attention of the last token in the head of these outputs: the derivative of the first by its value."""
        return self._slope(written, outputs[:1])[:, self.value_of[outputs[0]]]

    def _between(self, queries: tuple, keys: tuple, outputs: list[range]) -> tuple[Rotary | None, bool]:
        """What stands between the projections and their products: a rotation by position, a norm, or nothing."""
        blank = self.written.clone()
        blank[:, [column for query in queries for column in query]] = 0  # what does not depend on the query is left

        def moved(written: Tensor, place: int) -> tuple[Tensor, Tensor]:
            parts = [self._attention(each, outputs[place]) for each in (written, blank)]
            seen = (parts[0] > 0) & (parts[1] > 0)
            self._require(int(seen.sum()) > 2, f"its last token of {TOKENS} sees fewer than 3")
            logs = parts[0][seen].log() - parts[1][seen].log()
            return logs - logs.mean(), seen

        def is_textbook(place: int) -> bool:
            logs, seen = moved(self.written, place)
            scores = (self.written[:, keys[place]] @ self.written[-1, queries[place]])[seen]
            scores = scores - scores.mean()
            return bool((logs - scores * (logs @ scores) / (scores @ scores)).abs().max() < CLOSE)

        if all(map(is_textbook, range(len(queries)))):
            return None, False
        doubled = self.written.clone()
        doubled[:, queries[0]] *= 2
        change = self._attention(doubled, outputs[0]) - self._attention(self.written, outputs[0])
        normed, half = bool(change.abs().max() < CLOSE), len(queries[0]) // 2

        def responds(query: int, key: int) -> bool:
            """Whether a query along one axis and the same key everywhere attend to some places more than to others."""
            written = blank.clone()
            written[:, keys[0]] = 0
            written[:, queries[0][query]] = written[:, keys[0][key]] = LARGE
            return bool(moved(written, 0)[0].abs().max() > CLOSE)

        partners = [place for place in range(1, half + 1) if responds(0, place)]
        self._require(
            len(partners) == 1 or (normed and not partners), "its scores are not products of queries and keys"
        )
        if not partners:
            return None, normed
        if partners == [1] and half > 1:
            return Rotary(2 * sum(responds(2 * pair, 2 * pair + 1) for pair in range(half)), interleaved=True), normed
        return Rotary(2 * partners[0]), normed

    def _require(self, holds: bool, why: str) -> None:
        require(holds, f"{self.name}: {why}; give a model of plain softmax attention.")
