"""Losses and statistics of a trained model whose layers are changed and put back. Needs torch."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float

from ...errors import InputError, require
from ..examples.batches import Batch, Part, SplitExamples, Tick
from ..layers.find import AttentionLayer, Rewritten, rewritten
from ..layers.weights import HeadWeights, LayerStatistics
from ..losses.loss import device_of, fixed_draws, no_cache
from ..sharing.shared import same_reading
from .prefix import BlockOutputs
from .statistics import Originals, all_statistics, one_layers_statistics

if TYPE_CHECKING:
    from ..loading.load import Loaded

CACHE_BYTES = 1e9
"""Of block outputs: a quarter for what is held out, the rest for the calibration part."""


class Evaluation:
    """A trained model on its examples, whose layers can be changed for the length of one call.

    Changes are whole layers' head weights, by layer index, in place of the original's. They are written into the model,
    measured and put back, also after an error. Blocks before the first changed one are not run again; their outputs
    take at most `cache_bytes`. `original` are the layers' head weights, where they were read before.

    Example:
        >>> evaluation = Evaluation(loaded, attention_layers(loaded.model), examples)  # doctest: +SKIP
        >>> base = evaluation.losses()  # doctest: +SKIP
        >>> increase = evaluation.losses({3: evaluation.original[3].without([0])}) - base  # doctest: +SKIP
    """

    def __init__(
        self,
        loaded: "Loaded",
        layers: Sequence[AttentionLayer],
        examples: SplitExamples,
        *,
        tick: Tick | None = None,
        cache_bytes: float = CACHE_BYTES,
        original: Sequence[HeadWeights] | None = None,
    ):
        self.loaded = loaded
        self.model = loaded.model
        self.layers = tuple(layers)
        self.examples = examples
        self.tick: Tick = tick or (lambda done, total, words: None)
        self.original: tuple[HeadWeights, ...] = tuple(
            (layer.read_weights(self.model) for layer in self.layers) if original is None else original
        )
        self.settled: dict[int, HeadWeights] = {}
        self._rewritten: Rewritten = WeakKeyDictionary()
        self.forward_tokens = 0.0
        names = [layer.block for layer in self.layers]
        self._outputs = {
            "held_out": BlockOutputs(self.model, names, cache_bytes / 4),
            "calibration": BlockOutputs(self.model, names, cache_bytes * 3 / 4),
        }
        self.originals = Originals(self)
        self._base: dict[Part, Float[np.ndarray, " examples"]] = {}
        self._statistics: tuple[LayerStatistics, ...] | None = None

    def losses(
        self, changes: Mapping[int, HeadWeights] = {}, *, part: Part = "held_out"
    ) -> Float[np.ndarray, " examples"]:
        """The loss of each example with these layers changed, on top of what is settled; always in the same order.

        Of the calibration part, the scored ones. Raises InputError for a loss that is not finite on the original.
        """
        changes = {
            index: weights
            for index, weights in changes.items()
            if weights is not self.settled.get(index, self.original[index])
        }
        if not changes and part in self._base:
            return self._base[part].copy()
        batches = enumerate(self.examples.judged_part(part))
        with self.changed(changes):
            values = [self._batch_losses(part, place, batch, changes) for place, batch in batches]
        losses = np.concatenate(values)
        if not changes:
            if not self.settled:
                _require_finite(losses, self.examples.loss.name)
            self._base[part] = losses
        return losses.copy()

    def settle(self, changes: Mapping[int, HeadWeights]) -> None:
        """Apply these changes of the original in all later calls; no changes restore the original."""
        differing = [
            index
            for index in {*changes, *self.settled}
            if changes.get(index, self.original[index]) is not self.settled.get(index, self.original[index])
        ]
        self.settled = {index: weights for index, weights in changes.items() if weights is not self.original[index]}
        if differing:
            for outputs in self._outputs.values():
                outputs.forget_from(min(differing))
            self._base.clear()
            self._statistics = None

    def statistics(self) -> tuple[LayerStatistics, ...]:
        """Return moments and gradients of every layer over the calibration part, of what is settled."""
        if self._statistics is None:
            self._statistics = all_statistics(self)
        return self._statistics

    def layer_statistics(self, index: int) -> LayerStatistics:
        """Return the moments of one layer of what is settled, without gradients; blocks after it are not run."""
        return one_layers_statistics(self, index)

    def unscored(self) -> "Evaluation | None":
        """The same model on the calibration examples that `losses` leaves out; None where it leaves out none.

        A refit lowers the loss of the examples it saw more than that of others. A search that scores the examples it
        fits on takes heads for cheaper than they are (stories15M, 11 of 36 removed, 2,000 tokens: .06 there, .30 held
        out), so layers are fitted on these.
        """
        rest = self.examples.calibration[self.examples.scored :] if self.examples.scored else []
        if not rest:
            return None
        examples = replace(self.examples, calibration=rest, scored=None)
        return Evaluation(self.loaded, self.layers, examples, cache_bytes=CACHE_BYTES / 2, original=self.original)

    def same_reading(self, examples: int) -> tuple[Float[np.ndarray, "heads heads"], ...] | None:
        """Similarity of the attention of heads of each layer, over the queries of the first calibration examples.

        None where the model does not hand out its attention.
        """
        sums, queries = [np.zeros((layer.heads, layer.heads)) for layer in self.layers], 0
        for maps in attention_maps(self.model, len(self.layers), self.examples.calibration, examples):
            for total, weights in zip(sums, maps, strict=True):
                total += weights.shape[1] * same_reading(weights)
            queries += maps[-1].shape[1]
        return tuple(total / queries for total in sums) if queries else None

    @contextmanager
    def changed(self, changes: Mapping[int, HeadWeights] = {}) -> Iterator[None]:
        """Write what is settled and these changes into the model inside the `with`, and put all back after it."""
        with rewritten(self.model, {**self.settled, **changes}, self.layers, self._rewritten):
            yield

    def _batch_losses(self, part: str, place: int, batch: Batch, changes: Mapping[int, HeadWeights]) -> np.ndarray:
        first = min(changes, default=len(self.layers))
        with self.running(part, place, batch, first), torch.no_grad():
            values = self.examples.loss.example_losses(self.model, batch)
        require(
            values.shape == (batch.examples,),
            f"the loss must be one number per example, of shape ({batch.examples},), got {tuple(values.shape)}.",
        )
        return values.double().cpu().numpy()

    @contextmanager
    def running(self, part: str, place: int, batch: Batch, first: int) -> Iterator[None]:
        """Run one batch inside the `with`, without the blocks before `first` whose outputs are known."""
        outputs = self._outputs[part]
        batches = self.examples.held_out if part == "held_out" else self.examples.calibration
        share = batch.tokens / sum(other.tokens for other in batches)
        before = outputs.ran
        with fixed_draws(place), outputs.run_batch(place, share, first):
            yield
        self.forward_tokens += batch.tokens * (outputs.ran - before) / len(self.layers)


def _require_finite(losses: np.ndarray, name: str) -> None:
    bad = np.flatnonzero(~np.isfinite(losses))
    if len(bad):
        raise InputError(
            f"the {name} of the unchanged model is {losses[bad[0]]} for example {bad[0]}; "
            "leave such examples out of the data, or correct the loss."
        )


def attention_maps(
    model: Any, layers: int, batches: Sequence[Batch], examples: int
) -> Iterator[list[Float[np.ndarray, "heads queries keys"]]]:
    """Each layer's attention between the real tokens of an example, for the first examples.

    Nothing where the model does not hand it out. The weights are large: one example is run at a time, nothing is kept.
    """
    implementation = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if implementation is None or any(batch.given is not None for batch in batches):
        return
    rows = ((batch, row) for batch in batches for row in range(batch.examples))
    try:
        model.set_attn_implementation("eager")
        for batch, row in itertools.islice(rows, examples):
            inputs = {name: value[row : row + 1] for name, value in batch.inputs_on(device_of(model)).items()}
            with torch.no_grad():
                answer = model(**inputs, **no_cache(model), output_attentions=True)
            attentions = getattr(answer, "attentions", None) or ()
            if len(attentions) != layers or any(item is None for item in attentions):
                return
            counted = None if batch.counted is None else batch.counted[row].cpu().numpy()
            yield [_real(weights[0].double().cpu().numpy(), counted) for weights in attentions]
    except (ValueError, TypeError, AttributeError):  # The class has no such option.
        return
    finally:
        model.set_attn_implementation(implementation)


def _real(
    weights: Float[np.ndarray, "heads queries keys"], counted: np.ndarray | None
) -> Float[np.ndarray, "heads real_queries real_keys"]:
    """Return the weights between tokens that are not padding."""
    if counted is None or len(counted) != weights.shape[1]:
        return weights
    return weights[:, counted][:, :, counted]
