"""Reading what a trained model is judged on. Needs torch.

a model that predicts the next token     text lines, packed into sequences of one length
a masked language model                  text lines with some tokens masked
a model that embeds texts                text lines, or pairs with scores
a model that classifies texts            text lines, with labels or without
a vision transformer                     folders of images
any                                      the user's own loss and batches, or nothing: a stated default
"""

from collections.abc import Iterable, Sequence
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from ...errors import InputError, require, require_count
from ..loading.describing import Task, reads_images, task_of
from ..losses.distances import (
    AnswerDivergence,
    EmbeddingDistance,
    LabelLoss,
    SimilarityError,
    class_logits,
    image_embedding,
    read_pooling,
    text_embedding,
)
from ..losses.loss import Loss, MaskedTokenLoss, NextTokenLoss, masked_logits
from .batches import Batch, Kind, Parts, SplitExamples
from .images import image_batches, image_files, random_images
from .own_loss import OwnLoss, own_batches, read_own_loss
from .sequences import packed, sampled_sequences
from .sizes import default_sizes, text_config
from .text_files import Pair, read_text_file
from .texts import MASKED_BATCH_TOKENS, masked, pair_batches, random_texts, text_batches

if TYPE_CHECKING:
    from ..loading.load import Loaded

ENCODER_LENGTH = 64
FEW_TOKENS_PER_FEATURE = 2
"""With fewer calibration tokens it is said that they are few."""
SCORED = 0.4
"""Share of the calibration batches, at most, that a search scores; layers are fitted on the others."""
DEFAULT_MASKS = 4
"""Per text of random tokens; the original's whole answer is kept at each."""
OWN_LOSS = "give your own loss, --data mine.py:loss or data=(batches, loss)"


def read_examples(
    loaded: "Loaded",
    data: Any = None,
    *,
    length: int | None = None,
    limit: int | None = None,
    tokens: int | None = None,
    seed: int = 0,
) -> SplitExamples:
    """Read the examples that a model is judged on, in two parts: one to calibrate on, and one held out.

    Args:
        loaded: The model with its tokenizer or processor.
        data: As `hc.inspect` takes them.
        length: Most tokens per example. Default: 256 for decoders and 64 for encoders, less for a large model.
        limit: Examples in both parts together (own losses: batches), where there are as many; a third is held out.
        tokens: Held-out tokens wanted without a limit; at least twice as many calibrate. Default: by the arithmetic of
            `sizes`, from the number of parameters.
        seed: Of the split and every other draw.

    Raises InputError for data that cannot be read, are of the wrong kind for the model or too few, for a model without
    tokenizer, and for a loss that is not finite.
    """
    for name, count in (("length", length), ("limit", limit), ("tokens", tokens)):
        if count is not None:
            require_count(name, count, 2)
    reader = Reader(loaded, length, limit, seed, tokens)
    if isinstance(data, tuple) and len(data) == 2 and callable(data[1]):
        return reader.own(data[0], OwnLoss(data[1], getattr(data[1], "__name__", "loss")))
    if isinstance(data, str | Path) and str(data).rpartition(":")[0].endswith(".py"):
        return reader.own(*read_own_loss(str(data), loaded.tokenizer))
    require(
        not isinstance(data, str | Path) or Path(data).suffix != ".py",
        f"{data} is Python code; name the function in it that is the loss, such as {data}:loss.",
    )
    require(reader.task is not None, f"{loaded.family} is not a model of transformers; {OWN_LOSS}.")
    if data is None:
        return reader.default()
    if isinstance(data, str | Path):
        return reader.path(Path(data))
    return reader.read_values(data)


class Reader:
    """One model, and the settings that all kinds of data share."""

    def __init__(self, loaded: "Loaded", length: int | None, limit: int | None, seed: int, tokens: int | None = None):
        self.loaded, self.limit, self.seed = loaded, limit, seed
        self.model: Any = loaded.model
        self.task: Task = task_of(loaded.model)  # type: ignore[assignment]
        fixed = length if self.task == "next token" else length or ENCODER_LENGTH
        self.sizes = default_sizes(self.model, fixed, tokens)
        self.asked_length = length
        self.drawing = (self.sizes, self.seed, self.limit)

    @property
    def tokenizer(self) -> Any:
        """The model's, which a kind of data needs."""
        if self.loaded.tokenizer is None:
            raise InputError(
                "text needs the model's tokenizer, and its folder has none; copy tokenizer.json and "
                "tokenizer_config.json into it (in Python: or pass tokenizer=...), or leave the data out."
            )
        return self.loaded.tokenizer

    def path(self, path: Path) -> SplitExamples:
        require(path.exists(), f"{path}: no such file or folder; give text, pairs or images, or leave --data out.")
        if path.is_dir():
            files, classes = image_files(path)
            return self.images(files, classes, path.name)
        require(
            path.suffix.lower() not in Image.registered_extensions(),
            f"{path} is one image; give a folder of images.",
        )
        content = read_text_file(path)
        if isinstance(content, tuple):
            return self.texts(*content, path.name)
        return self.pairs(content, path.name)

    def read_values(self, data: Any) -> SplitExamples:
        require(
            not callable(data), "a loss alone has no data; pass data=(batches, loss), or the path of a file with both."
        )
        require(
            isinstance(data, Iterable),
            f"data must be texts, (text, text, score) triples, images, or (batches, loss); got {data!r}.",
        )
        items = list(data)
        require(len(items) > 0, "data must have at least one example, got none.", what="data", given=data)
        if all(isinstance(item, str) for item in items):
            return self.texts(items, None, "a list")
        if all(_is_pair(item) for item in items):
            return self.pairs([(first, second, float(score)) for first, second, score in items], "a list")
        if all(isinstance(item, Image.Image | np.ndarray) for item in items):
            return self.images(items, None, "a list")
        odd = next((item for item in items if not isinstance(item, type(items[0]))), items[0])
        raise InputError(
            "data must be texts, (text, text, score) triples, images, or (batches, loss); "
            f"got a list with {type(odd).__name__} in it."
        )

    def texts(self, texts: Sequence[str], labels: Sequence[str] | None, name: str) -> SplitExamples:
        require(
            not reads_images(self.task),
            f"{name} has texts, but {self._model_class} reads images; give a folder of images.",
        )
        words, cannot, given = f"{len(texts)} texts of {name}", "", (self.tokenizer, texts, *self.drawing)
        if self.task == "next token":
            parts = packed(*given)
            length = parts[0][0].inputs["input_ids"].shape[1]
            if length < self.sizes.length:
                cannot = f"Sequences have {length} tokens instead of {self.sizes.length}: the data have too few. "
            return self._split_examples("text", words, f"sequences of {length} tokens", cannot, NextTokenLoss(), parts)
        if self.task == "masked token":
            parts = masked(text_batches(*given, most=MASKED_BATCH_TOKENS), self.tokenizer, self.seed)
            return self._split_examples(
                "text", words, "texts with 15 % of their tokens masked", "", MaskedTokenLoss(), parts
            )
        numbers = None if labels is None else self._numbers(labels)
        loss, cannot = self._answer_loss(labels, numbers)
        unit = f"texts of at most {self.sizes.length} tokens"
        return self._split_examples("text", words, unit, cannot, loss, text_batches(*given, numbers))

    def pairs(self, pairs: Sequence[Pair], name: str) -> SplitExamples:
        require(
            self.task == "text embedding",
            f"{name} has pairs with scores, which need a model that embeds texts; {self._model_class} answers with "
            f"{self.task}. Give text lines instead, or {OWN_LOSS}.",
        )
        require(bool(np.isfinite([pair[2] for pair in pairs]).all()), f"{name} has a score that is not a number.")
        parts, cannot = pair_batches(self.tokenizer, pairs, *self.drawing)
        loss = SimilarityError(text_embedding(read_pooling(self.loaded.folder)), parts[1])
        unit = f"pairs of texts of at most {self.sizes.length} tokens"
        return self._split_examples("pairs", f"{len(pairs)} pairs of {name}", unit, cannot, loss, parts)

    def images(self, images: Sequence[Any], classes: Sequence[str] | None, name: str) -> SplitExamples:
        require(
            reads_images(self.task),
            f"{name} has images, but {self._model_class} reads texts; give a text file with one text per line.",
        )
        numbers = None if classes is None or self.task != "image classes" else self._numbers(classes)
        parts = image_batches(self.model, self.loaded.processor, images, *self.drawing, labels=numbers)
        loss, cannot = self._answer_loss(classes, numbers)
        return self._split_examples("images", f"{len(images)} images of {name}", "images", cannot, loss, parts)

    def own(self, batches: Any, loss: OwnLoss) -> SplitExamples:
        parts = own_batches(self.model, batches, loss, self.seed, self.limit)
        words = f"{len(parts[0]) + len(parts[1])} batches of {loss.source}"
        return self._split_examples("own", words, "examples", "", loss, parts)

    def default(self) -> SplitExamples:
        if self.task == "next token":
            parts = sampled_sequences(self.model, *self.drawing)
            words, unit = "no data: sequences sampled from the model itself", f"sequences of {self.sizes.length} tokens"
            cannot = (
                "Samples of the model say how far its own predictions move (the expected increase is the divergence "
                "from the original), not what other texts need. Pass --data with your own texts."
            )
            return self._split_examples("default", words, unit, cannot, NextTokenLoss(), parts)
        if reads_images(self.task):
            parts = random_images(self.model, *self.drawing)
            loss, _ = self._answer_loss(None, None)
            cannot = "Random smooth images say how far outputs move, not what a task needs. Pass --data FOLDER."
            return self._split_examples("default", "no data: random smooth images", "images", cannot, loss, parts)
        parts = random_texts(self.model, self.loaded.tokenizer, *self.drawing)
        cannot = "Random tokens say how far outputs move, not what real texts or a task need. Pass --data FILE."
        if self.task == "masked token":
            parts = masked(parts, self.tokenizer, self.seed, most=DEFAULT_MASKS)
            loss: Loss = AnswerDivergence(masked_logits, self.seed)
        else:
            loss, _ = self._answer_loss(None, None)
        return self._split_examples("default", "no data: texts of random tokens", "texts", cannot, loss, parts)

    def _answer_loss(self, labels: Sequence[str] | None, numbers: Sequence[int] | None) -> tuple[Loss, str]:
        """The loss of a model that embeds or classifies, and what it cannot say."""
        if self.task in ("text classes", "image classes"):
            if numbers is not None:
                return LabelLoss(), ""
            why = (
                "There are no labels" if labels is None else "The labels do not match the names of the model's classes"
            )
            return (
                AnswerDivergence(class_logits, self.seed),
                f"{why}: the loss is the divergence from the original's answers; whether those are right is not known.",
            )
        embed = image_embedding if self.task == "image embedding" else text_embedding(read_pooling(self.loaded.folder))
        return (
            EmbeddingDistance(embed, self.seed),
            "The loss is the distance to the original's embeddings: how much a task loses by that is not known.",
        )

    def _numbers(self, labels: Sequence[str]) -> list[int] | None:
        """Labels as the model numbers them, by name or number; None where one is unknown."""
        if self.task not in ("text classes", "image classes"):
            return None
        names = {str(name).lower(): int(number) for number, name in self.model.config.id2label.items()}
        # A number is a class only where no class has a name.
        names |= {number: int(number) for number in map(str, names.values()) if f"label_{number}" in names}
        numbers = [names.get(label.lower()) for label in labels]
        return None if None in numbers else numbers  # type: ignore[return-value]

    @property
    def _model_class(self) -> str:
        return type(self.model).__name__

    def _split_examples(
        self, kind: Kind, words: str, unit: str, cannot: str, loss: Loss, parts: Parts
    ) -> SplitExamples:
        held_out, calibration = parts
        loss.prepare(self.model, [*held_out, *calibration])
        counts = [sum(batch.examples for batch in part) for part in parts]
        if self.asked_length is not None and self.sizes.length < self.asked_length:
            cannot = (
                f"The length is {self.sizes.length} instead of {self.asked_length}: the model has no more positions. "
                f"{cannot}"
            )
        tokens = sum(batch.tokens for batch in calibration)
        features = getattr(text_config(self.model), "hidden_size", None) or 0  # unknowns per output of a least squares
        if tokens < FEW_TOKENS_PER_FEATURE * features:
            cannot = (
                f"{tokens} tokens to calibrate on are few for the {features} features of a layer: refits stay close "
                f"to the original, and a search may follow noise. {cannot}"
            )
        return SplitExamples(
            kind=kind,
            words=f"{words}: {counts[0]} {unit} held out, {counts[1]} to calibrate on. {loss.scale_words}".rstrip(),
            cannot=cannot.rstrip(),
            loss=loss,
            calibration=calibration,
            held_out=held_out,
            scored=_scored(held_out, calibration),
        )


def _scored(held_out: Sequence[Batch], calibration: Sequence[Batch]) -> int:
    """Count the calibration batches with about as many tokens as are held out; most are left to fit on."""
    wanted = sum(batch.tokens for batch in held_out)
    sums = np.cumsum([batch.tokens for batch in calibration])
    return min(max(1, int(SCORED * len(calibration))), int(np.searchsorted(sums, 0.95 * wanted)) + 1)


def _is_pair(item: Any) -> bool:
    return (
        isinstance(item, tuple | list)
        and len(item) == 3
        and isinstance(item[0], str)
        and isinstance(item[1], str)
        and isinstance(item[2], Real)
    )
