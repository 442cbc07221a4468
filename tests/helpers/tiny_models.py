"""Random models of every architecture in the table, small enough to build in milliseconds. Needs torch."""

from pathlib import Path
from typing import Any

import torch
import transformers

from headcount.pretrained.layers.architectures import FAMILIES as KNOWN

FAMILIES = tuple(KNOWN)
ENCODERS = ("bert", "roberta", "xlm-roberta", "distilbert", "modernbert")
VISION = ("vit", "deit", "dinov2")
DECODERS = tuple(family for family in FAMILIES if family not in (*ENCODERS, *VISION))
WORDS = tuple(f"word{place}" for place in range(28))
VOCABULARY = 32
LENGTH = 32
LABELS = 3

torch.set_num_threads(1)


def tiny_config(
    family: str, heads: int = 4, key_heads: int = 2, head_dim: int = 8, layers: int = 2, **changed: Any
) -> Any:
    """Width is heads * head_dim unless `hidden_size` is given; `key_heads` counts only where the class has any.

    Other decoders than those of the table can be asked for, by their model_type.
    """
    fields: dict[str, Any] = {
        "hidden_size": heads * head_dim,
        "intermediate_size": 24,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
    }
    if family in VISION:
        fields |= {"image_size": 8, "patch_size": 4, "num_labels": LABELS}
        if family == "deit":  # two classes classify: the one with a single head
            fields["architectures"] = ["DeiTForImageClassification"]
        if family == "dinov2":
            fields["mlp_ratio"] = 1
            del fields["intermediate_size"]
    else:
        fields |= {
            "vocab_size": VOCABULARY,
            "max_position_embeddings": LENGTH + 2,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        }
    if family == "distilbert":
        fields["hidden_dim"] = fields.pop("intermediate_size")
    if family not in KNOWN or KNOWN[family].key_heads:
        fields["num_key_value_heads"] = key_heads
    if family not in KNOWN or KNOWN[family].head_dim != "none":
        fields["head_dim"] = head_dim
    if family == "modernbert":
        fields |= {"cls_token_id": 1, "sep_token_id": 2, "attention_bias": True, "local_attention": 4}
    if family in ("gemma2", "gemma3_text"):
        fields |= {"query_pre_attn_scalar": head_dim, "sliding_window": 4}
    if family == "smollm3":
        fields["no_rope_layers"] = [1 - place % 2 for place in range(layers)]
    return transformers.AutoConfig.for_model(family, **fields | changed)


def tiny_model(
    family: str,
    heads: int = 4,
    key_heads: int = 2,
    head_dim: int = 8,
    layers: int = 2,
    seed: int = 0,
    **changed: Any,
) -> Any:
    """A model with random weights and biases, in eval mode and without gradients.

    Encoders have no task head, decoders predict tokens, vision models classify into three.
    """
    config = tiny_config(family, heads, key_heads, head_dim, layers, **changed)
    kind = transformers.AutoModel
    if family in VISION:
        kind = transformers.AutoModelForImageClassification
    elif family not in ENCODERS:
        kind = transformers.AutoModelForCausalLM
    model = kind.from_config(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():  # large enough that attention is far from uniform, and no bias is zero
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(0.3 * noise if parameter.dim() > 1 else parameter + 0.2 * noise)
    return model.eval().requires_grad_(False)


def tiny_input(family: str, batch: int = 2, length: int = 6, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random tokens without padding, or random images."""
    generator = torch.Generator().manual_seed(seed)
    if family in VISION:
        return {"pixel_values": torch.randn(batch, 3, 8, 8, generator=generator)}
    return {"input_ids": torch.randint(3, VOCABULARY, (batch, length), generator=generator)}


def tiny_tokenizer() -> Any:
    """A tokenizer of 28 words, `WORDS`, for the models' 32 tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    special = {"pad_token": "[PAD]", "bos_token": "[BOS]", "eos_token": "[EOS]", "unk_token": "[UNK]"}
    vocabulary = {word: place for place, word in enumerate((*special.values(), *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LENGTH, **special)


def tiny_folder(folder: Path, family: str, **shape: Any) -> Path:
    """A folder as `save_pretrained` writes it, with the tokenizer for text models."""
    tiny_model(family, **shape).save_pretrained(folder)
    if family not in VISION:
        tiny_tokenizer().save_pretrained(folder)
    return folder
