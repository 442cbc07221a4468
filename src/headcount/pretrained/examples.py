"""Reading what a trained model is judged on. Needs torch."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import InputError
from .batches import Batch, Examples
from .losses import NextTokenLoss
from .sizes import default_sizes
from .text_files import read_text_file
from .texts import need_tokenizer, packed

if TYPE_CHECKING:
    from .load import Loaded

__all__ = ["Batch", "Examples", "read_examples"]


def read_examples(
    loaded: "Loaded",
    data: str | Path | Sequence[Any] | Callable | None = None,
    *,
    length: int | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Examples:
    sizes = default_sizes(loaded.model, length)
    need_tokenizer(loaded.tokenizer)
    texts, labels = read_text_file(Path(data))
    held_out, calibration = packed(loaded.tokenizer, texts, sizes, seed, limit)
    loss = NextTokenLoss()
    words = f"{len(texts)} texts"
    return Examples("text", words, "", loss, calibration, held_out)
