"""How many tokens a trained model is judged on, by arithmetic from its size.

An inspection evaluates a layer about heads (leave one out) + heads (one removed after another) + 8 (ranks) times. An
evaluation runs half of the blocks on average and all of the head that makes logits:

    operations per token = layers (2 heads + 8) x 2 (block parameters / 2 + parameters of the head)

The held-out tokens are `OPERATIONS` divided by that, at most `ENOUGH_TOKENS`; a small model gets more, as many as
`FEW_OPERATIONS` allow. At 90 GFLOP/s, two cores of 2024, the first are 9 minutes and the second 1.5:

    SmolLM2-135M   30 x 26 x 2 (106 M / 2 + 28 M)  = 127 GFLOP per token     394 tokens, 9 minutes
    stories15M      6 x 20 x 2 (6.0 M / 2 + 9.2 M) = 2.9 GFLOP per token   4,096 tokens, 2 minutes
    MiniLM-L6       6 x 32 x 2 (10.6 M / 2)        = 2.0 GFLOP per token   4,096 tokens, 1.5 minutes

Statistics see every calibration token once, forward and backward, so there are more of them: twice as many as are held
out, and `TOKENS_PER_FEATURE` times the unknowns of a layer's least squares, its features.
"""

from dataclasses import dataclass
from typing import Any

from torch import nn

from ..._limits import MAX_COUNT

OPERATIONS = 5e13
FEWEST_TOKENS = 384
FEW_OPERATIONS = 8e12
ENOUGH_TOKENS = 4096
MOST_TOKENS = 16384
TOKENS_PER_FEATURE = 6
BATCH_TOKENS = 384
"""A batch holds about this many: few enough for the memory of a backward pass, enough for the processor."""
GPU_BATCH_TOKENS = 4096
"""The same on a GPU, which has less to do than it takes to start it on smaller ones."""
FEWEST_EXAMPLES = 24
"""Intervals resample examples, so sequences are made shorter before there are fewer of them than this."""
LONGEST_SEQUENCE = 256
SHORTEST_SEQUENCE = 48
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert")
"""Model types whose table of positions begins with two that no token has."""


@dataclass(frozen=True)
class Sizes:
    """Tokens per example (at most), tokens of each part, and about how many of them a batch holds."""

    length: int
    held_out: int
    calibration: int
    batch: int = BATCH_TOKENS


def wanted_examples(sizes: Sizes, per_example: int, limit: int | None, fewest: int = 1) -> tuple[int, int]:
    """Count the examples to hold out and to calibrate on: a third and the rest of `limit`, where it is given.

    Otherwise as many of `per_example` tokens as have those of `sizes`, and at least `fewest` of each part.
    """
    if limit is not None:
        return max(1, limit // 3), limit - max(1, limit // 3)
    return max(fewest, sizes.held_out // per_example), max(fewest, sizes.calibration // per_example)


def default_sizes(model: nn.Module, length: int | None = None, tokens: int | None = None) -> Sizes:
    """The sizes for this model; `length` fixes the longest example, `tokens` the held-out tokens."""
    config = text_config(model)
    layers = getattr(config, "num_hidden_layers", None) or 12
    heads = getattr(config, "num_attention_heads", None) or 12
    width = getattr(config, "hidden_size", None) or 256
    held_out = held_out_tokens(layers, heads, *block_and_head_parameters(model)) if tokens is None else tokens
    if length is None:
        length = min(max(SHORTEST_SEQUENCE, held_out // FEWEST_EXAMPLES // 16 * 16), LONGEST_SEQUENCE)
    length = min(length, _positions(config))
    device = next((parameter.device.type for parameter in model.parameters()), "cpu")
    batch = BATCH_TOKENS if device == "cpu" else GPU_BATCH_TOKENS
    return Sizes(length, max(held_out, length), max(2 * held_out, TOKENS_PER_FEATURE * width), batch)


def text_config(model: Any) -> Any:
    """The config of a model, of its text part where it has several; None of a module without one."""
    config = getattr(model, "config", None)
    return None if config is None else config.get_text_config()


def _positions(config: Any) -> int:
    """The tokens of the longest sequence that the model's table of positions has room for."""
    longest = getattr(config, "max_position_embeddings", None) or MAX_COUNT
    return longest - 2 if getattr(config, "model_type", "") in OFFSET_POSITIONS else longest


def held_out_tokens(layers: int, heads: int, block_parameters: int, head_parameters: int) -> int:
    """Apply the rule above."""
    operations = layers * (2 * heads + 8) * 2 * (block_parameters / 2 + head_parameters)
    affordable = max(min(ENOUGH_TOKENS, OPERATIONS / max(operations, 1)), FEW_OPERATIONS / max(operations, 1))
    return int(min(MOST_TOKENS, max(FEWEST_TOKENS, affordable)))


def block_and_head_parameters(model: Any) -> tuple[int, int]:
    """Count the parameters without tables of embeddings, and those of the head that makes logits."""
    tables = {
        id(module.weight): module.weight.numel() for module in model.modules() if isinstance(module, nn.Embedding)
    }
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    head_parameters = 0 if head is None else sum(weight.numel() for weight in head.parameters())
    tied = head is not None and id(getattr(head, "weight", None)) in tables
    everything = sum(weight.numel() for weight in model.parameters())
    return max(0, everything - sum(tables.values()) - (0 if tied else head_parameters)), head_parameters
