"""A model in llama2.c's format, read into stock transformers.

A llama2.c model file is a header of seven int32 (width, hidden width, layers, heads, key heads, vocabulary, length;
a negative vocabulary says that the output layer is a matrix of its own) followed by float32 blocks without names. Its
rotary embedding turns the neighbouring pairs (0, 1), (2, 3), ... of a head; transformers turns (0, d/2), (1, d/2 + 1),
..., so that the rows of the query and key matrices are reordered.

Source of the format: https://github.com/karpathy/llama2.c, `export.py` (version 0), MIT.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEADER = struct.Struct("<7i")


@dataclass(frozen=True, kw_only=True)
class Header:
    """The seven numbers a llama2.c model file begins with."""

    width: int
    hidden: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int
    length: int
    tied: bool

    @classmethod
    def parse(cls, content: bytes) -> "Header":
        """Read the header; raises ValueError where the numbers describe no Llama."""
        if len(content) < HEADER.size:
            raise ValueError(f"a llama2.c model begins with {HEADER.size} bytes of header, this one has {len(content)}")
        width, hidden, layers, heads, key_heads, vocabulary, length = HEADER.unpack_from(content)
        smallest = min(width, hidden, layers, heads, key_heads, abs(vocabulary), length)
        if smallest < 1 or width % heads or heads % key_heads:
            raise ValueError(f"no llama2.c model: its header reads {HEADER.unpack_from(content)}")
        return cls(
            width=width,
            hidden=hidden,
            layers=layers,
            heads=heads,
            key_heads=key_heads,
            vocabulary=abs(vocabulary),
            length=length,
            tied=vocabulary > 0,
        )

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.width // self.heads

    def blocks(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every float32 block, in the order of the file."""
        key_width = self.key_heads * self.head_dim
        shapes = {
            "embedding": (self.vocabulary, self.width),
            "attention_norm": (self.layers, self.width),
            "query": (self.layers, self.width, self.width),
            "key": (self.layers, key_width, self.width),
            "value": (self.layers, key_width, self.width),
            "output": (self.layers, self.width, self.width),
            "mlp_norm": (self.layers, self.width),
            "gate": (self.layers, self.hidden, self.width),
            "down": (self.layers, self.width, self.hidden),
            "up": (self.layers, self.hidden, self.width),
            "last_norm": (self.width,),
            "cosines": (
                self.length,
                self.head_dim // 2,
            ),  # Rotary tables, which transformers computes.
            "sines": (self.length, self.head_dim // 2),
        }
        return shapes if self.tied else shapes | {"classifier": (self.vocabulary, self.width)}

    def model_bytes(self) -> int:
        """Size of the whole file."""
        return HEADER.size + 4 * sum(int(np.prod(shape)) for shape in self.blocks().values())


def half_pairs(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Reorder a projection's rows from neighbouring rotary pairs to pairs half a head apart, head by head."""
    by_pair = rows.reshape(heads, -1, 2, rows.shape[-1])
    return by_pair.swapaxes(1, 2).reshape(rows.shape)


def state_dict(content: bytes) -> tuple[Header, dict[str, NDArray[np.float32]]]:
    """Read a model file's content into the names of transformers' LlamaForCausalLM.

    Raises ValueError where the header describes no Llama or the content is not exactly as long as the header says.
    """
    header = Header.parse(content)
    if len(content) != header.model_bytes():
        raise ValueError(f"the header asks for {header.model_bytes():,} bytes, the model has {len(content):,}")
    offset, blocks = HEADER.size, {}
    for name, shape in header.blocks().items():
        size = int(np.prod(shape))
        blocks[name] = np.frombuffer(content, "<f4", size, offset).reshape(shape)
        offset += 4 * size
    weights = {
        "model.embed_tokens.weight": blocks["embedding"],
        "model.norm.weight": blocks["last_norm"],
        "lm_head.weight": blocks["embedding" if header.tied else "classifier"],
    }
    for layer in range(header.layers):
        of_layer = {
            "input_layernorm": blocks["attention_norm"][layer],
            "self_attn.q_proj": half_pairs(blocks["query"][layer], header.heads),
            "self_attn.k_proj": half_pairs(blocks["key"][layer], header.key_heads),
            "self_attn.v_proj": blocks["value"][layer],
            "self_attn.o_proj": blocks["output"][layer],
            "post_attention_layernorm": blocks["mlp_norm"][layer],
            "mlp.gate_proj": blocks["gate"][layer],
            "mlp.down_proj": blocks["down"][layer],
            "mlp.up_proj": blocks["up"][layer],
        }
        weights |= {f"model.layers.{layer}.{name}.weight": block for name, block in of_layer.items()}
    return header, weights


def model(content: bytes) -> Any:
    """Return the `LlamaForCausalLM` a llama2.c model file holds, in float32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    header, weights = state_dict(content)
    config = LlamaConfig(
        vocab_size=header.vocabulary,
        hidden_size=header.width,
        intermediate_size=header.hidden,
        num_hidden_layers=header.layers,
        num_attention_heads=header.heads,
        num_key_value_heads=header.key_heads,
        max_position_embeddings=header.length,
        rms_norm_eps=1e-5,
        tie_word_embeddings=header.tied,
        bos_token_id=1,
        eos_token_id=2,
    )
    llama = LlamaForCausalLM(config).float().eval()
    llama.load_state_dict({name: torch.tensor(block) for name, block in weights.items()})
    return llama
