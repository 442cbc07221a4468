"""The tasks of what lies at a path, where it is CIFAR-10 as it is published, or queries with passages."""

from pathlib import Path
from typing import Any

from ..._choices import require_choice
from ...data.files import require_file
from ...errors import require
from ...tasks import AbstractTask, ImageTask
from ...tasks.find import IMAGE_OPTIONS, require_known_options
from ..data.cifar import is_cifar10, read_cifar10
from ..data.embeddings import find_embeddings, load_embeddings
from ..data.passages import is_passages, read_passages
from ..plugin import PASSAGE_OPTIONS
from .ranking import LAYOUTS, PAIR_TOKENS, most_candidates, ranking
from .stand_in import StandIn


def task_at(path: Path, options: dict[str, Any], *, cache: Path | None, planned: bool) -> AbstractTask | None:
    """Return the task at a path, None where it is of neither kind.

    `planned`: to plan with, so that of passages it has only the sizes, without mining negatives.
    """
    if is_cifar10(path):
        return _image_task(path, options)
    return _passage_task(path, options, cache, planned) if is_passages(path) else None


def _image_task(path: Path, options: dict[str, Any]) -> ImageTask:
    if not path.is_dir():
        require_file(path)
    require_known_options(str(path), options, (*IMAGE_OPTIONS, "fixed_places"))
    source = read_cifar10(path)
    side, pixels = options.get("side"), source.images.shape[1]
    require(
        side in (None, pixels),
        f"side must be {pixels} for CIFAR-10, whose images are not resized, got {side}; "
        "longer sequences come from larger frames: --lengths 64,144.",
        what="side",
        given=side,
        needed=str(pixels),
    )
    return ImageTask(source, patch=options.get("patch", 4), fixed_places=options.get("fixed_places", False))


def _passage_task(path: Path, options: dict[str, Any], cache: Path | None, planned: bool) -> AbstractTask:
    require_known_options(str(path), options, PASSAGE_OPTIONS)
    layout = options.get("layout", "candidates")
    require_choice("layout", layout, LAYOUTS)
    words = load_embeddings(find_embeddings(options.get("embeddings")))
    corpus = read_passages(path, split=options.get("split"))
    if not planned:
        return ranking(corpus, words, layout=layout, cache=cache)
    longest, pair_tokens = most_candidates(corpus), PAIR_TOKENS if layout == "pairs" else 0
    sizes = {"dim": words.dim, "count": len(corpus.queries), "pair_tokens": pair_tokens, "longest": longest}
    return StandIn(corpus.name, length=min(8, longest), **sizes)  # pyright: ignore[reportArgumentType, reportCallIssue]
