"""The architectures of transformers that headcount knows: where their projections are, and what their class can store.

One table, `FAMILIES`, by the `model_type` of the config. The host rules were checked by building each class with
another head count; tests/pretrained/test_architectures.py does it again for the transformers that is installed.
"""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Layout:
    """The paths of one attention layer's projections, below the module that holds them all.

    Either `query`, `key` and `value` are three modules, or `packed` is one whose output is all queries, then all keys,
    then all values; `by_head`: the first head's query, key and value, then the second's. `core` is the path of the
    module that computes the attention, "" where it is the holder itself. `heads`: their number, where it is stated.
    """

    output: str
    query: str = ""
    key: str = ""
    value: str = ""
    packed: str = ""
    by_head: bool = False
    core: str = ""
    heads: int | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The paths of the modules that read the attention's input."""
        return (self.packed,) if self.packed else (self.query, self.key, self.value)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all projections."""
        return (*self.inputs, self.output)

    def packed_order(self, heads: int, features: int) -> tuple[int, ...] | None:
        """The columns of the packed projection in the order queries, keys, values; None where they are in order."""
        if not self.by_head:
            return None
        size = features // heads // 3
        return tuple(h * 3 * size + part * size + i for part in range(3) for h in range(heads) for i in range(size))


SEPARATE = Layout(query="q_proj", key="k_proj", value="v_proj", output="o_proj")
SEPARATE_OUT = Layout(query="q_proj", key="k_proj", value="v_proj", output="out_proj")
BERT = Layout(query="self.query", key="self.key", value="self.value", output="output.dense", core="self")
DISTILBERT = Layout(query="q_lin", key="k_lin", value="v_lin", output="out_lin")
GPT2 = Layout(packed="c_attn", output="c_proj")
PACKED = Layout(packed="qkv_proj", output="o_proj")
MODERNBERT = Layout(packed="Wqkv", output="Wo")
GPT_NEOX = Layout(packed="query_key_value", output="dense", by_head=True)
MULTIHEAD = Layout(packed="in_proj", output="out_proj")
"""torch's own attention, which holds the packed projection as its parameters in_proj_weight and in_proj_bias."""

NAMES = {
    "separate": "{}_proj to_{} w{} {}_lin W_{} w_{} W{} {}_linear linear_{} proj_{} fc_{} {}",
    "packed": "qkv qkv_proj to_qkv Wqkv W_qkv in_proj c_attn query_key_value qkv_linear",
    "output": "o_proj out_proj proj to_out to_out.0 wo Wo W_o W_O w_o c_proj dense out_lin out_linear "
    "o_linear linear_o "
    "linear_out proj_out proj_o fc_o fc_out o out output",
}
"""What people call the projections in modules of their own; {} is q, k or v."""

LAYOUTS = (
    SEPARATE,
    SEPARATE_OUT,
    Layout(query="q_proj", key="k_proj", value="v_proj", output="dense"),
    Layout(query="q", key="k", value="v", output="o"),
    BERT,
    DISTILBERT,
    GPT2,
)
"""What is looked for in a model whose `model_type` is not in the table. Packed projections of unknown order are not."""

SEPARATE_NAMES = (
    *([pattern.format(x) for x in letters] for pattern in NAMES["separate"].split() for letters in ("qkv", "QKV")),
    ("query", "key", "value"),
    ("queries", "keys", "values"),
)
OWN_LAYOUTS = (
    MULTIHEAD,
    BERT,
    *(
        Layout(query=name[0], key=name[1], value=name[2], output=output)
        for name in SEPARATE_NAMES
        for output in NAMES["output"].split()
    ),
    *(Layout(packed=name, output=output) for name in NAMES["packed"].split() for output in NAMES["output"].split()),
)
"""What is looked for in modules outside transformers. How columns are packed is read from what the module computes."""

UNREADABLE = {
    "albert": "uses one layer's weights at every depth",
    "big_bird": "does not compute the full softmax",
    "convbert": "mixes tokens by convolution in half of its heads",
    "diffllama": "subtracts the attention of one half of the heads from the other's",
    "gpt_bigcode": "packs its projections in two different orders",
    "longformer": "has second projections for global tokens",
    "mra": "does not compute the full softmax",
    "nystromformer": "does not compute the full softmax",
    "yoso": "does not compute the full softmax",
}
"""Architectures whose modules look like attention layers but compute something else, and what."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """One architecture.

    Attributes:
        model_type: As in config.json.
        layout: Where the projections are.
        rotary: Queries and keys are rotated by position.
        normed: Queries and keys are normalised per head after the projection.
        key_heads: The config has a field `num_key_value_heads`; otherwise every head has its own keys.
        head_dim: Whether the config has a field `head_dim` ("field"), has none but the class reads an extra key of that
            name ("extra"), or the class always takes width / heads ("none": no other head count can be stored).
        needs_divisor: The class refuses a head count that does not divide the width.
        other_host: The architecture that computes the same and takes any head count, where no projection has a bias.
        oldest: The oldest transformers known to load a smaller head count of this class.
    """

    model_type: str
    layout: Layout = SEPARATE
    rotary: bool = False
    normed: bool = False
    key_heads: bool = False
    head_dim: Literal["field", "extra", "none"] = "none"
    needs_divisor: bool = False
    other_host: str | None = None
    oldest: str | None = None

    def refuses(self, heads: int, width: int) -> bool:
        """Whether the class takes no such head count at this width."""
        return self.needs_divisor and width % heads != 0


def _decoder(model_type: str, **rules: Any) -> Family:
    usual = {"rotary": True, "key_heads": True, "head_dim": "field", "oldest": "4.57.6"}
    return Family(model_type=model_type, **(usual | rules))


FAMILIES = {
    family.model_type: family
    for family in (
        Family(model_type="bert", layout=BERT, needs_divisor=True),
        Family(model_type="roberta", layout=BERT, needs_divisor=True),
        Family(model_type="xlm-roberta", layout=BERT, needs_divisor=True),
        Family(model_type="distilbert", layout=DISTILBERT, needs_divisor=True),
        Family(model_type="modernbert", layout=MODERNBERT, rotary=True, needs_divisor=True),
        Family(model_type="gpt_neox", layout=GPT_NEOX, rotary=True, needs_divisor=True),
        Family(model_type="gpt2", layout=GPT2, needs_divisor=True),
        Family(model_type="vit", head_dim="extra", oldest="5.9.0"),
        Family(model_type="deit", head_dim="extra", oldest="5.9.0"),
        Family(model_type="dinov2", head_dim="extra", oldest="5.18.0"),
        _decoder("llama", needs_divisor=True, other_host="mistral"),
        _decoder("mistral"),
        _decoder("qwen2", head_dim="extra"),
        _decoder("qwen3", normed=True),
        _decoder("gemma"),
        _decoder("gemma2", needs_divisor=True, oldest=None),
        _decoder("gemma3_text", needs_divisor=True, normed=True, oldest=None),
        _decoder("smollm3", head_dim="extra"),
        _decoder("phi3", layout=PACKED, head_dim="extra", oldest=None),
    )
}
"""Every architecture whose host rules are known, by model_type."""
