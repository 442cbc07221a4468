"""What an expert would write instead: the same models in PyTorch, folded by hand, batched and compiled.

Symbols: m members, b batch, t tokens, d dim, h heads, n head_dim, e total_dim = h n, u hidden.

* All members are trained together: every weight has a leading axis of members, every product is one batched product.
* Attention is folded (`headcount.models.class_token.folded` derives it): one score direction per head and batch, hidden
  vectors are pooled before anything is projected, nothing of width e is formed per token.
* Forward and backward are compiled by `torch.compile`; clipping, schedule and Adam are a second compiled function. On a
  GPU whole steps are captured in a CUDA graph, so that launching costs nothing.
* float32, TF32 off, one class token, no biases in attention: the function and the work of headcount's own step.

`gradient_difference` compares its gradient with headcount's on the same weights and batch.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from machine import clock
from torch import Tensor

Weights = dict[str, Tensor]
Form = Literal["products", "sums"]
FIRST_MOMENT_DECAY, EPSILON = 0.9, 1e-8
STEPS_PER_GRAPH = 5
"""Training steps that one CUDA graph holds."""
WEIGHTS = (
    ("encoder_in.weight", "mud"),
    ("encoder_in.bias", "mu"),
    ("encoder_out.weight", "meu"),
    ("encoder_out.bias", "me"),
    ("class_token", "me"),
    ("attention.query", "mhre"),
    ("attention.key", "mhre"),
    ("attention.value", "mhne"),
    ("attention.output", "mehn"),
    ("readout_in.weight", "mue"),
    ("readout_in.bias", "mu"),
    ("readout_out.weight", "mou"),
    ("readout_out.bias", "mo"),
)
"""Every weight with its axes, in the order of headcount's leaves."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How headcount trains: the fields of `headcount.TrainSpec` that a step needs."""

    batch: int
    steps: int
    learning_rate: float
    warmup: int
    clip: float
    second_moment_decay: float


def weights_of(stacked_model: Any, device: str) -> Weights:
    """The weights of headcount models of one layer, stacked along a leading axis of members, as tensors."""

    def leaf(name: str) -> Any:
        at = stacked_model
        for part in name.split("."):
            at = at.attention[0] if part == "attention" else getattr(at, part)
        return at

    return {name: torch.tensor(np.asarray(leaf(name)), device=device) for name, _ in WEIGHTS}


def predict(weights: Mapping[str, Tensor], tokens: Tensor, form: Form = "products") -> Tensor:
    """The answers of all members, each for its own batch: m b t d -> m b o.

    The two forms compute the same: with "products" all work per token is batched matrix products, with "sums" it is
    elementwise products and sums, which the compiler can fuse. The faster one depends on the machine.
    """
    members, batch, length, dim = tokens.shape
    query, key, value, output = (weights[f"attention.{name}"] for name in ("query", "key", "value", "output"))
    encoder_out, class_token = weights["encoder_out.weight"], weights["class_token"]
    heads, units = query.shape[1], encoder_out.shape[2]

    # Once per batch: directions of the scores (m h u), values of a hidden vector (m h n u).
    asked = torch.einsum("mhre,me->mhr", query, class_token)
    direction = torch.einsum("mhr,mhre->mhe", asked, key) @ encoder_out
    value_of_hidden = torch.einsum("mhne,meu->mhnu", value, encoder_out)
    value_bias = torch.einsum("mhne,me->mhn", value, weights["encoder_out.bias"])

    if form == "products":
        flat = tokens.reshape(members, batch * length, dim)
        hidden = torch.baddbmm(weights["encoder_in.bias"][:, None], flat, weights["encoder_in.weight"].mT).relu()
        scores = torch.bmm(hidden, direction.mT).view(members, batch, length, heads)
        shares = torch.softmax(scores, dim=2).reshape(members * batch, length, heads)
        pooled = torch.bmm(shares.mT, hidden.view(members * batch, length, units))
        pooled = pooled.view(members, batch, heads, units)
    else:
        hidden = weights["encoder_in.bias"][:, None, None]
        for place in range(dim):
            column = weights["encoder_in.weight"][:, None, None, :, place]
            hidden = hidden + tokens[..., place, None] * column
        hidden = hidden.relu()
        scores = (hidden[:, :, :, None] * direction[:, None, None]).sum(dim=-1)
        shares = torch.softmax(scores, dim=2)
        pooled = (shares[..., None] * hidden[:, :, :, None]).sum(dim=2)

    values = torch.einsum("mbhu,mhnu->mbhn", pooled, value_of_hidden) + value_bias[:, None]
    read = class_token[:, None] + torch.einsum("mbhn,mehn->mbe", values, output)
    inner = torch.baddbmm(weights["readout_in.bias"][:, None], read, weights["readout_in.weight"].mT)
    active = torch.nn.functional.gelu(inner)
    return torch.baddbmm(weights["readout_out.bias"][:, None], active, weights["readout_out.weight"].mT)


def losses(weights: Mapping[str, Tensor], tokens: Tensor, targets: Tensor, form: Form = "products") -> Tensor:
    """The mean squared error of every member on its batch."""
    return (predict(weights, tokens, form) - targets).square().mean(dim=(1, 2))


def update(
    weights: Weights, gradients: Weights, means: Weights, squares: Weights, step: Tensor, recipe: Recipe
) -> None:
    """Clip the gradient of every member by its norm, then one step of Adam on the schedule; in place."""
    norm = torch.stack([part.flatten(1).square().sum(dim=1) for part in gradients.values()]).sum(dim=0).sqrt()
    factor = torch.where(norm < recipe.clip, torch.ones_like(norm), recipe.clip / norm)
    count = step + 1
    rate = recipe.learning_rate * schedule(step, recipe)
    mean_correction = 1 - torch.pow(FIRST_MOMENT_DECAY, count)
    square_correction = 1 - torch.pow(recipe.second_moment_decay, count)
    for name, gradient in gradients.items():
        clipped = gradient * factor.view(-1, *[1] * (gradient.ndim - 1))
        means[name].lerp_(clipped, 1 - FIRST_MOMENT_DECAY)
        squares[name].mul_(recipe.second_moment_decay).add_((1 - recipe.second_moment_decay) * clipped.square())
        scale = (squares[name] / square_correction).sqrt() + EPSILON
        weights[name].sub_(rate * (means[name] / mean_correction) / scale)
    step.add_(1)


def schedule(step: Tensor, recipe: Recipe) -> Tensor:
    """The share of the peak learning rate: a linear warm-up, then a cosine to zero."""
    rise = min(recipe.warmup, recipe.steps // 10)
    falling = 0.5 * (1 + torch.cos(math.pi * (step - rise) / max(recipe.steps - rise, 1)))
    return torch.where(step < rise, (step + 1) / max(rise, 1), falling)


def gradient(weights: Weights, tokens: Tensor, targets: Tensor, compute: Callable[..., Tensor] = losses) -> Weights:
    """Of every member's loss by its own weights: members do not meet, so the gradient of the sum holds all of them."""
    leaves = {name: part.detach().requires_grad_() for name, part in weights.items()}
    gradients = torch.autograd.grad(compute(leaves, tokens, targets).sum(), list(leaves.values()))
    return dict(zip(leaves, gradients, strict=True))


class Expert:
    """`members` models with their data on the device; `seconds_per_model_step` trains them and takes the time."""

    def __init__(
        self,
        weights: Weights,
        tokens: np.ndarray,
        targets: np.ndarray,
        recipe: Recipe,
        *,
        form: Form = "products",
        compiled: bool = True,
    ):
        torch.set_float32_matmul_precision("highest")
        torch._dynamo.config.recompile_limit = 64  # one program per case
        self.weights, self.recipe = weights, recipe
        first = next(iter(weights.values()))
        self.members, self.device = len(first), first.device
        self.means = {name: torch.zeros_like(part) for name, part in weights.items()}
        self.squares = {name: torch.zeros_like(part) for name, part in weights.items()}
        self.tokens, self.targets = (torch.tensor(part, device=self.device) for part in (tokens, targets))
        self.step = torch.zeros((), device=self.device)
        formed = functools.partial(losses, form=form)
        self._losses = torch.compile(formed, dynamic=False) if compiled else formed
        self._update = torch.compile(update, dynamic=False) if compiled else update
        self._graph: torch.cuda.CUDAGraph | None = None

    @property
    def held_bytes(self) -> int:
        """Weights, Adam's moments and the examples."""
        held = [self.tokens, self.targets]
        for parts in (self.weights, self.means, self.squares):
            held += parts.values()
        return sum(part.nbytes for part in held)

    def train_step(self) -> None:
        """Draw a batch for every member, and one step of Adam."""
        shape = (self.members, self.recipe.batch)
        chosen = torch.randint(0, len(self.tokens), shape, device=self.device)
        gradients = gradient(self.weights, self.tokens[chosen], self.targets[chosen], self._losses)
        self._update(self.weights, gradients, self.means, self.squares, self.step, self.recipe)

    def compile(self) -> None:
        """Compile by taking some steps."""
        for _ in range(3):
            self.train_step()
        self._synchronise()

    def capture(self) -> None:
        """On a GPU: some steps as one CUDA graph. Nothing else may use the GPU meanwhile."""
        if self.device.type != "cuda" or self._graph is not None:
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.train_step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(STEPS_PER_GRAPH):
                self.train_step()
        self._graph = graph

    def seconds_per_model_step(self, steps: int) -> float:
        """The time of `steps` steps, shared among members and steps."""
        began = clock()
        if self._graph is None:
            for _ in range(steps):
                self.train_step()
        else:
            steps = STEPS_PER_GRAPH * max(1, round(steps / STEPS_PER_GRAPH))
            for _ in range(steps // STEPS_PER_GRAPH):
                self._graph.replay()
        self._synchronise()
        return (clock() - began) / (steps * self.members)

    def require_finite(self) -> None:
        if not all(torch.isfinite(part).all() for part in self.weights.values()):
            raise FloatingPointError("the weights diverged: this is not the time of training")

    def _synchronise(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def gradient_difference(
    weights: Weights, tokens: np.ndarray, targets: np.ndarray, expected: Weights, form: Form = "products"
) -> float:
    """The largest difference to the gradients expected on the same batch, relative to the largest number of each.

    `expected` has the gradient of every weight, members leading; every member sees the same `tokens` and `targets`.
    """
    device = next(iter(weights.values())).device
    members = len(next(iter(weights.values())))
    x, y = (torch.tensor(part, device=device).expand(members, *part.shape) for part in (tokens, targets))
    computed = gradient(weights, x, y, functools.partial(losses, form=form))
    return max(((computed[name] - expected[name]).abs().max() / expected[name].abs().max()).item() for name in expected)
