"""A script that trains a chosen model with nothing of headcount: torch, and transformers for hf."""

import io

import numpy as np

from .config import StockConfig, StockShape
from .examples import StockExamples
from .train import BATCH, CLIP, LEARNING_RATE, WEIGHT_DECAY, StockResult, warmup_of

DATA_FILE = "stock-data.npz"

SCRIPT = '''"""Train the stock model that headcount chose: {config}.

Its smallest validation {metric} was {error:.4g}. {data} has tokens x and targets y in standard units.
"""

import math
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss, pad
{imports}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
{parts}
        self.answer = nn.Linear({width}, {outputs})

    def forward(self, x{mask}):
{forward}


data = {{name: torch.from_numpy(array) for name, array in np.load(Path(__file__).with_name("{data}")).items()}}
train, validation = ([data[name + part] for name in {names}] for part in ("", "_validation"))
torch.set_num_threads(1)  # small models are faster so
torch.manual_seed(0)
model, steps, batch, best, order = Model(), {steps}, {batch}, math.inf, []
optimizer = torch.optim.AdamW(model.parameters(), lr={rate}, weight_decay={decay})
share = lambda step: min((step + 1) / {warmup}, 0.5 + 0.5 * math.cos(math.pi * step / steps))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
for step in range(1, steps + 1):
    order = order if len(order) >= batch else torch.randperm(len(train[0]))
    (x, y, *mask), order = (each[order[:batch]] for each in train), order[batch:]
    answers = model(x, *mask)
    optimizer.zero_grad()
    {loss}.backward()
    nn.utils.clip_grad_norm_(model.parameters(), {clip})
    optimizer.step()
    schedule.step()
    if step % {every} == 0 or step == steps:
        with torch.no_grad():
            x, y, *mask = validation
            answers = model(x, *mask)
            best = min(best, ({judged}).item())
print(f"validation {metric} {{best:.4g}}")
'''


def write_data(examples: StockExamples) -> bytes:
    """Return the examples as the bytes of an .npz: x, y and, where sequences have padding, mask, in two parts."""
    arrays = {}
    for suffix, part in (("", examples.train), ("_validation", examples.validation)):
        arrays |= {f"x{suffix}": part.tokens, f"y{suffix}": part.targets}
        if _is_padded(examples):
            arrays[f"mask{suffix}"] = np.ones(part.tokens.shape[:2], bool) if part.mask is None else part.mask
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def script_of(chosen: StockResult, examples: StockExamples, steps: int, metric: str) -> str:
    """Return the script, which prints a validation error about as large as that of `chosen`."""
    config, shape, padded = chosen.config, examples.shape, _is_padded(examples)
    parts, forward = (_torch_model if config.library == "torch" else _hf_model)(config, shape, padded)
    there = "[mask[0]]" if padded and shape.answered_at == "tokens" else ""
    judged = f"((answers{there} - y{there}) ** 2).mean() / ((y - y.mean(0)) ** 2).mean()"
    loss = f"mse_loss(answers{there}, y{there})"
    if shape.classes:
        judged, flat = f"(answers{there}.argmax(-1) != y{there}).double().mean()", "" if there else ".flatten(0, -2)"
        loss = f"cross_entropy(answers{there}{flat}, y{there}{'' if there else '.flatten()'})"
    every = chosen.curve[0][0]
    script = SCRIPT.format(
        config=config,
        metric=metric,
        error=chosen.error,
        data=DATA_FILE,
        imports="from transformers import MistralConfig, MistralModel\n" if config.library == "hf" else "",
        parts=_indented(parts),
        forward=_indented(forward),
        width=config.width,
        outputs=shape.outputs,
        names='("x", "y", "mask")' if padded else '("x", "y")',
        judged=judged,
        mask=", mask" if padded else "",
        loss=loss,
        steps=steps,
        batch=BATCH,
        rate=LEARNING_RATE,
        decay=WEIGHT_DECAY,
        warmup=warmup_of(steps),
        clip=CLIP,
        every=every,
    )
    return _without_unused(script)


def _torch_model(config: StockConfig, shape: StockShape, padded: bool) -> tuple[list[str], list[str]]:
    """Return the lines that make the model's parts, and those that answer."""
    width, asks = config.width, shape.answered_at == "sequence"
    vocabulary = f"nn.Embedding({shape.vocabulary}, {width})"
    parts = [f"self.embed = {vocabulary if shape.vocabulary else f'nn.Linear({shape.dim}, {width})'}"]
    forward = ["x = self.embed(x)"]
    if asks:
        parts.append(f"self.class_token = nn.Parameter(torch.zeros(1, 1, {width}))")
        forward.append("x = torch.cat([self.class_token.expand(len(x), 1, -1), x], 1)")
        forward += ["mask = pad(mask, (1, 0), value=True)"] if padded else []
    if shape.uses_positions:
        parts.append(f"self.positions = nn.Parameter(0.02 * torch.randn({shape.places}, {width}))")
        forward.append(f"x = x + self.positions{'[(mask.cumsum(1) - 1).clamp(min=0)]' if padded else ''}")
    options = f"{width}, {config.heads}, {config.feed_forward}, {config.dropout}, batch_first=True"
    norm = f", norm=nn.LayerNorm({width}), enable_nested_tensor=False" if config.norm_first else ""
    parts.append(f"layer = nn.TransformerEncoderLayer({options}, norm_first={config.norm_first})")
    parts.append(f"self.encoder = nn.TransformerEncoder(layer, {config.layers}{norm})")
    forward.append(f"x = self.encoder(x{', src_key_padding_mask=~mask' if padded else ''})")
    return parts, [*forward, f"return self.answer(x{_read_at(shape, first=True)})"]


def _hf_model(config: StockConfig, shape: StockShape, padded: bool) -> tuple[list[str], list[str]]:
    """Return the lines that make the model's parts, and those that answer."""
    asks = shape.answered_at == "sequence"
    parts = [
        "config = MistralConfig(",
        f"    vocab_size={max(1, shape.vocabulary + asks)}, hidden_size={config.width},",
        f"    intermediate_size={config.feed_forward}, num_hidden_layers={config.layers},",
        f"    num_attention_heads={config.heads}, num_key_value_heads={config.key_heads}, head_dim={config.head_dim},",
        f"    max_position_embeddings={max(8, shape.places)}, sliding_window=None, use_cache=False,",
        ")",
        "self.decoder = MistralModel(config)",
    ]
    table = "self.decoder.embed_tokens"
    if not shape.vocabulary:
        parts.append(f"self.embed = nn.Linear({shape.dim}, {config.width})")
    forward = [f"x = {table}(x)" if shape.vocabulary else "x = self.embed(x)"]
    if asks:
        forward.append(f"x = torch.cat([x, {table}.weight[-1].expand(len(x), 1, -1)], 1)  # the class token, last")
        forward += ["mask = pad(mask, (0, 1), value=True)"] if padded else []
    forward += [] if padded else ["mask = torch.ones(x.shape[:2], dtype=torch.bool)"]
    counted = "(mask.cumsum(1) - 1).clamp(min=0)" if shape.uses_positions else "torch.zeros(x.shape[:2], dtype=int)"
    every = "mask[:, None, None].expand(-1, 1, x.shape[1], -1)"  # every token reads all others
    seen = "mask" if shape.answered_at != "tokens" else every
    forward.append(f"places = {counted}")
    forward.append(f"x = self.decoder(inputs_embeds=x, attention_mask={seen}, position_ids=places)[0]")
    return parts, [*forward, f"return self.answer(x{_read_at(shape, first=False)})"]


def _read_at(shape: StockShape, *, first: bool) -> str:
    if shape.answered_at == "tokens":
        return ""
    return "[:, 0]" if first and shape.answered_at == "sequence" else "[:, -1]"


def _is_padded(examples: StockExamples) -> bool:
    return examples.train.mask is not None or examples.validation.mask is not None


def _indented(lines: list[str]) -> str:
    return "\n".join(f"{' ' * 8}{each}" for each in lines)


def _without_unused(script: str) -> str:
    """Import only the functions that the script uses."""
    listed = "cross_entropy, mse_loss, pad"
    used = [name for name in listed.split(", ") if f"{name}(" in script]
    return script.replace(listed, ", ".join(used))
