"""A stock transformer by its options, and how many parameters it has."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from .._choices import AnsweredAt, require_choice
from ..errors import require, require_count

Library = Literal["torch", "hf"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
FEED_FORWARD = 4
"""Hidden units of a feed-forward net per number of the width, unless given."""


class StockShape(NamedTuple):
    """Sizes of a task that a model has to know.

    `vocabulary` is 0 where tokens are numbers, `classes` where answers are.
    """

    length: int
    dim: int
    outputs: int
    vocabulary: int = 0
    classes: int = 0
    answered_at: AnsweredAt = "sequence"
    uses_positions: bool = True

    @property
    def places(self) -> int:
        """Tokens that a model reads: one more than a sequence has where a class token answers."""
        return self.length + (self.answered_at == "sequence")


@dataclass(frozen=True, kw_only=True)
class StockConfig:
    """A transformer as its library ships it.

        torch   torch.nn.TransformerEncoder: heads share the width; the class token comes first
        hf      transformers' MistralModel, a Llama with its own head_dim and key heads: causal, so the class token
                comes last; of a task that is answered at all tokens, every token sees all others

    Args:
        library: "torch" or "hf".
        layers: Encoder or decoder layers.
        width: Numbers per token inside the model.
        heads: Attention heads per layer.
        head_dim: Numbers per head; None: width / heads.
        key_heads: Heads of keys and values; None: as many as heads.
        feed_forward: Hidden units of the feed-forward nets; None: 4 x width.
        dropout: Of attention weights and, in torch, of what each part of a layer adds.
        norm_first: Whether norms come before attention and net (torch only; Llamas always do so).

    Raises:
        InputError: The library has no such model.

    Example:
        >>> config = StockConfig(library="torch", layers=2, width=32, heads=4)
        >>> config.head_dim, config.key_heads, config.feed_forward
        (8, 4, 128)
        >>> StockConfig(library="torch", layers=1, width=32, heads=3)
        Traceback (most recent call last):
        headcount.errors.InputError: heads of torch.nn.TransformerEncoder share its width: 3 heads do not divide ...
    """

    library: Library
    layers: int
    width: int
    heads: int
    head_dim: int = None  # pyright: ignore[reportAssignmentType]  # never None after __post_init__
    key_heads: int = None  # pyright: ignore[reportAssignmentType]
    feed_forward: int = None  # pyright: ignore[reportAssignmentType]
    dropout: float = 0.0
    norm_first: bool = True

    def __post_init__(self):
        require_choice("library", self.library, LIBRARIES)
        for name in ("layers", "width", "heads"):
            require_count(name, getattr(self, name))
        usual = {
            "head_dim": max(1, self.width // self.heads),
            "key_heads": self.heads,
            "feed_forward": FEED_FORWARD * self.width,
        }
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
            require_count(name, getattr(self, name))
        require(0 <= self.dropout < 1, what="dropout", given=self.dropout, needed="a share from 0 to below 1")
        (self._check_torch if self.library == "torch" else self._check_hf)()

    def _check_torch(self) -> None:
        shared = "heads of torch.nn.TransformerEncoder share its width"
        nearest = max(each for each in range(1, self.heads + 1) if self.width % each == 0)
        divides = f"{shared}: {self.heads} heads do not divide {self.width}; give {nearest}, or another width."
        require(self.width % self.heads == 0, divides, what="heads", given=self.heads)
        message = f"{shared}: head_dim is {self.width // self.heads} of {self.heads} heads, not {self.head_dim}."
        require(self.heads * self.head_dim == self.width, message, what="head_dim", given=self.head_dim)
        own = f"torch.nn.TransformerEncoder has keys for every head: key_heads is {self.heads}, not {self.key_heads}."
        require(self.key_heads == self.heads, own, what="key_heads", given=self.key_heads)

    def _check_hf(self) -> None:
        even = f"rotary positions turn pairs of numbers: head_dim must be even, got {self.head_dim}."
        require(self.head_dim % 2 == 0, even, what="head_dim", given=self.head_dim)
        divides = f"{self.key_heads} key heads do not divide {self.heads} heads."
        require(self.heads % self.key_heads == 0, divides, what="key_heads", given=self.key_heads)
        always = "transformers' Llamas have their norms first; leave norm_first out."
        require(self.norm_first, always, what="norm_first", given=self.norm_first)

    def parameters(self, shape: StockShape) -> int:
        """Return how many numbers are trained, with the maps to and from the task's tokens and answers."""
        width, net = self.width, self.feed_forward
        inner, keys = self.heads * self.head_dim, self.key_heads * self.head_dim
        ends = (0 if shape.vocabulary else (shape.dim + 1) * width) + (width + 1) * shape.outputs
        asks = shape.answered_at == "sequence"
        if self.library == "hf":
            layer = width * (2 * inner + 2 * keys) + 3 * width * net + 2 * width
            return self.layers * layer + width + max(1, shape.vocabulary + asks) * width + ends
        layer = 4 * width * (width + 1) + 2 * width * net + net + width + 4 * width
        norms = 2 * width if self.norm_first else 0
        positions = shape.places * width if shape.uses_positions else 0
        return self.layers * layer + norms + positions + (shape.vocabulary + asks) * width + ends

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the options in words.

        Example:
            >>> print(StockConfig(library="hf", layers=1, width=32, heads=6, head_dim=8, key_heads=2))
            hf: 1 layer, width 32, 6 heads of 8, 2 key heads
        """
        shared = "" if self.key_heads == self.heads else f", {_counted(self.key_heads, 'key head')}"
        heads = f"{_counted(self.heads, 'head')} of {self.head_dim}{shared}"
        return f"{self.library}: {_counted(self.layers, 'layer')}, width {self.width}, {heads}"


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"
