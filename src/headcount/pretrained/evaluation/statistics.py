"""Moments and gradients of attention layers over the calibration examples. Needs torch.

Tokens are taken by hooks: the input of the output projection is the concatenation of all heads' outputs z, the input of
the query projection is the layer's input x. Sums are kept in float64.

The derivative by a factor before a head's output is that by a gate of value 1 that z is multiplied with, one gate per
row of the batch, so that one backward pass of the summed losses gives every example's own.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..examples.batches import Batch
from ..layers.find import AttentionLayer
from ..layers.weights import LayerStatistics
from ..losses.loss import device_of, fixed_draws

if TYPE_CHECKING:
    from .evaluate import Evaluation

ORIGINAL_BYTES = 5e8
"""Of the original's head outputs, which the targets of a changed model are made from."""


class Sums:
    """Sums over tokens of one layer, in float64."""

    def __init__(self):
        self.moments = self.cross = self.inputs = self.fisher = torch.zeros(())
        self.tokens = 0
        self.gradients: list[np.ndarray] = []

    def add_tokens(
        self,
        seen: "Taken",
        counted: Bool[Tensor, "rows tokens"] | None,
        target: Float[Tensor, "counted features"] | None,
        output: Float[Tensor, "out_width features"],
    ) -> None:
        """Add the tokens of one run; `target` has the original's features where these are of a changed model."""
        features = _with_one(_counted_rows(seen.features, counted))
        moments = features.T @ features
        self.moments = self.moments + moments
        # Without a target, it is the original output projection of these very features.
        cross = output @ moments[:-1] if target is None else (target.double() @ output.T).T @ features
        self.cross = self.cross + cross
        inputs = _with_one(_counted_rows(seen.inputs, counted))
        self.inputs = self.inputs + inputs.T @ inputs
        self.tokens += len(features)

    def add_gradients(self, seen: "Taken", counted: Bool[Tensor, "rows tokens"] | None, examples: int) -> None:
        """Add the gradients that the backward pass left, summed over the rows of an example."""
        assert seen.gate.grad is not None
        assert seen.output.grad is not None
        by_row = seen.gate.grad.double().cpu().numpy()
        self.gradients.append(by_row.reshape(-1, examples, by_row.shape[-1]).sum(0))
        slopes = _counted_rows(seen.output.grad, counted).double()
        self.fisher = self.fisher + slopes.T @ slopes

    def mean(self) -> LayerStatistics:
        count = max(1, self.tokens)
        gradients = np.concatenate(self.gradients) if self.gradients else None
        return LayerStatistics(
            moments=_array(self.moments) / count,
            cross=_array(self.cross) / count,
            inputs=_array(self.inputs) / count,
            tokens=self.tokens,
            gradients=gradients,
            fisher=None if gradients is None else _array(self.fisher) / count,
        )


class Taken:
    """Tensors of one layer in one run; the last two where it was gated."""

    features: Tensor
    inputs: Tensor
    gate: Tensor
    output: Tensor
    calls: int = 0


class Enough(BaseException):
    """Raised by a hook when later blocks need not run. Not an Exception, so that a user's loss does not catch it."""


@contextmanager
def taking(
    model: nn.Module, layers: Sequence[AttentionLayer], *, gated: bool = False, stop: bool = False
) -> Iterator[list[Taken]]:
    """Record these layers' tensors inside the `with`: `gated` for a backward pass; `stop` runs no block after them."""
    taken = [Taken() for _ in layers]
    with ExitStack() as stack:
        for layer, seen in zip(layers, taken, strict=True):
            into, out = layer.input_module(model), layer.output_module(model)
            take_features = partial(_take_features, seen, layer.heads, gated, stop and layer is layers[-1])
            stack.enter_context(into.register_forward_pre_hook(partial(_take_inputs, seen)))
            stack.enter_context(out.register_forward_pre_hook(take_features))
            if gated:
                stack.enter_context(out.register_forward_hook(partial(_take_output, seen)))
        with suppress(Enough):
            yield taken


def _take_inputs(seen: Taken, module: nn.Module, arguments: tuple) -> None:
    seen.inputs = arguments[0].detach()


def _take_features(
    seen: Taken, heads: int, gated: bool, last: bool, module: nn.Module, arguments: tuple
) -> tuple | None:
    features = arguments[0]
    seen.features = features.detach()
    seen.calls += 1
    if last:
        raise Enough
    if not gated:
        return None
    rows = features.shape[0]
    seen.gate = torch.ones(rows, heads, device=features.device, dtype=features.dtype, requires_grad=True)
    split = features.reshape(rows, -1, heads, features.shape[-1] // heads)
    return ((split * seen.gate[:, None, :, None]).reshape(features.shape), *arguments[1:])


def _take_output(seen: Taken, module: nn.Module, arguments: tuple, output: Tensor) -> None:
    output.retain_grad()
    seen.output = output


def all_statistics(evaluation: "Evaluation") -> tuple[LayerStatistics, ...]:
    """Return the statistics of every layer, with gradients where the loss can be differentiated."""
    batches, layers, model = evaluation.examples.calibration, evaluation.layers, evaluation.model
    sums, loss = [Sums() for _ in layers], evaluation.examples.loss
    gated = True
    for place, batch in enumerate(batches):
        evaluation.tick(place, len(batches), "statistics of the layers")
        targets = evaluation.originals.features_of(place, layers)
        with evaluation.changed(), fixed_draws(place), _mask_of_call(model) as mask:
            with taking(model, layers, gated=gated) as taken, torch.set_grad_enabled(gated):
                values = (loss.probes if gated else loss.example_losses)(model, batch)
            gated = gated and _differentiated(values, taken, batch)
        counted = _counted(batch, mask)
        for layer, total, seen, target in zip(layers, sums, taken, targets, strict=True):
            total.add_tokens(seen, counted, target, _output(evaluation, layer))
            if gated:
                total.add_gradients(seen, counted, batch.examples)
            else:
                total.gradients.clear()
        evaluation.forward_tokens += batch.tokens * (3 if gated else 1)
    evaluation.tick(len(batches), len(batches), "statistics of the layers")
    return tuple(total.mean() for total in sums)


def one_layers_statistics(evaluation: "Evaluation", index: int) -> LayerStatistics:
    """Return the statistics of one layer, by runs that end at it and start where the blocks' outputs are known."""
    layer, total, model = evaluation.layers[index], Sums(), evaluation.model
    batches = evaluation.examples.calibration
    targets = [evaluation.originals.features_of(place, [layer])[0] for place in range(len(batches))]
    output = _output(evaluation, layer)
    with evaluation.changed(), torch.no_grad():
        for place, (batch, target) in enumerate(zip(batches, targets, strict=True)):
            with (
                _mask_of_call(model) as mask,
                evaluation.running("calibration", place, batch, index),
                taking(model, [layer], stop=True) as taken,
            ):
                evaluation.examples.loss.example_losses(model, batch)
            total.add_tokens(taken[0], _counted(batch, mask), target, output)
    return total.mean()


class Originals:
    """The original's head outputs at the tokens that count, which a changed model's targets are made from.

    Kept where all of them fit into `ORIGINAL_BYTES`, otherwise run again whenever they are asked for.
    """

    def __init__(self, evaluation: "Evaluation"):
        self.evaluation = evaluation
        self.fits = True
        self.kept: dict[int, dict[int, Tensor]] = {}

    def features_of(self, place: int, layers: Sequence[AttentionLayer]) -> Sequence[Tensor | None]:
        """Those of one batch at these layers, in their order; None where nothing is settled.

        The model must hold its original weights.
        """
        if not self.evaluation.settled:
            return [None] * len(layers)
        seen = self.kept.get(place)
        if seen is None:
            seen = self._run_original(place, self.evaluation.layers if self.fits else layers)
            batches = self.evaluation.examples.calibration
            size = sum(features.numel() * features.element_size() for features in seen.values())
            self.fits = self.fits and size * sum(b.tokens for b in batches) < ORIGINAL_BYTES * batches[place].tokens
            if self.fits:
                self.kept[place] = seen
        return [seen[layer.index] for layer in layers]

    def _run_original(self, place: int, layers: Sequence[AttentionLayer]) -> dict[int, Tensor]:
        model, batch = self.evaluation.model, self.evaluation.examples.calibration[place]
        with (
            torch.no_grad(),
            fixed_draws(place),
            _mask_of_call(model) as mask,
            taking(model, layers, stop=True) as taken,
        ):
            self.evaluation.examples.loss.example_losses(model, batch)
        self.evaluation.forward_tokens += batch.tokens
        counted = _counted(batch, mask)
        return {layer.index: _counted_rows(seen.features, counted) for layer, seen in zip(layers, taken, strict=True)}


def _differentiated(values: Tensor, taken: Sequence[Taken], batch: Batch) -> bool:
    """Run the backward pass of these losses; False where there is none to run or its rows are not the examples."""
    if not isinstance(values, Tensor) or not values.requires_grad:
        return False
    if any(seen.calls != 1 or len(seen.gate) % batch.examples for seen in taken):
        return False
    values.sum().backward()
    return all(seen.gate.grad is not None and seen.output.grad is not None for seen in taken)


@contextmanager
def _mask_of_call(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the attention masks, of shape (rows, tokens), of the model's calls inside the `with`."""
    masks: list[Tensor] = []

    def hook(module, arguments, options):
        mask = options.get("attention_mask")
        if isinstance(mask, Tensor) and mask.ndim == 2:
            masks.append(mask)

    with model.register_forward_pre_hook(hook, with_kwargs=True):
        yield masks


@contextmanager
def counting_tokens(model: nn.Module, layer: AttentionLayer) -> Iterator[list[int]]:
    """Count the tokens, padding left out, of every call of this layer inside the `with`."""
    counts: list[int] = []
    with _mask_of_call(model) as masks:

        def hook(module, arguments):
            rows = arguments[0].shape[:-1]
            counts.append(int(masks[-1].sum()) if masks and masks[-1].shape == rows else rows.numel())

        with layer.input_module(model).register_forward_pre_hook(hook):
            yield counts


def _counted(batch: Batch, masks: list[Tensor]) -> Bool[Tensor, "rows tokens"] | None:
    if batch.counted is not None or batch.given is None:
        return batch.counted
    return masks[-1].bool() if masks else None


def _counted_rows(values: Tensor, counted: Bool[Tensor, "rows tokens"] | None) -> Float[Tensor, "counted features"]:
    if counted is not None and values.shape[:-1] == counted.shape:
        return values[counted.to(values.device)]
    return values.reshape(-1, values.shape[-1])


def _output(evaluation: "Evaluation", layer: AttentionLayer) -> Float[Tensor, "out_width features"]:
    output = evaluation.original[layer.index].output
    return torch.from_numpy(output.reshape(len(output), -1)).to(device_of(evaluation.model))


def _with_one(values: Float[Tensor, "tokens features"]) -> Float[Tensor, "tokens features_and_1"]:
    return torch.nn.functional.pad(values.double(), (0, 1), value=1.0)


def _array(values: Tensor) -> np.ndarray:
    return values.cpu().numpy()
