"""From what a person types to a task: a preset's name, their arrays, images or passages, or a task of their own."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from .._errors import InputError, did_you_mean, require
from ..datasets.cifar import is_cifar10, read_cifar10
from ..datasets.embeddings import find_embeddings, load_embeddings
from ..datasets.images import read_image_folder
from ..datasets.passages import is_passages, read_passages
from .arrays import load_arrays
from .base import AbstractTask, user_supplied
from .image import ImageTask
from .labelled import LabelledTask
from .presets import PRESETS, preset, preset_from_spec
from .ranking import LAYOUTS, ranking

LABELLED_ENDINGS = (".jsonl", ".jsonl.gz", ".tar.gz")
IMAGE_OPTIONS = ("patch", "side")
PASSAGE_OPTIONS = ("embeddings", "layout", "split")
ARRAY_OPTIONS = ("targets", "shorter", "validation_fraction")


def find_task(reference: str, *, cache: Path | None = None, **options: Any) -> AbstractTask:
    """The task meant by `reference`; what is mined for it is kept in the folder `cache`:

    * `sum-of-maxima`, or any other name in `PRESETS`, with the preset's options;
    * `data.npz` with arrays x and y, or `x.npy` with `targets="y.npy"`;
    * a folder of images, one subfolder a class, or of CIFAR-10 as it is published;
    * a folder or a file of queries and passages, in MS MARCO's layouts or as JSON lines;
    * `mine.py:task` or `package.module:task`, a task or a function that makes one from its options.
    """
    suffix = Path(reference).suffix
    if suffix in (".npz", ".npy"):
        _refuse_others(reference, options, ARRAY_OPTIONS)
        return load_arrays(Path(reference), **options)
    if ":" in reference:
        return _from_python(reference, options)
    path = Path(reference)
    if reference not in PRESETS and reference and (path.is_dir() or path.name.endswith(LABELLED_ENDINGS)):
        return _labelled(path, cache, options)
    known = [*PRESETS, "FILE.npz", "FILE.py:NAME", "FILE.jsonl", "a folder of images or passages"]
    require(
        reference in PRESETS,
        f'unknown task "{reference}".{did_you_mean(reference, PRESETS)} Known: {", ".join(known)}.',
    )
    return preset(reference, **options)


def _labelled(path: Path, cache: Path | None, options: dict[str, Any]) -> LabelledTask:
    """Images or passages, as what lies there tells."""
    if not is_cifar10(path) and is_passages(path):
        _refuse_others(str(path), options, PASSAGE_OPTIONS)
        layout = options.get("layout", "candidates")
        require(layout in LAYOUTS, f'layout must be one of {", ".join(LAYOUTS)}, got "{layout}".')
        words = load_embeddings(find_embeddings(options.get("embeddings")))
        corpus = read_passages(path, split=options.get("split"))
        return ranking(corpus, words, layout=layout, cache=cache)
    require(path.is_dir() or is_cifar10(path), f"there is no file {path}.")
    _refuse_others(str(path), options, IMAGE_OPTIONS)
    side, patch = options.get("side"), options.get("patch", 4)
    if not is_cifar10(path):
        return ImageTask(read_image_folder(path, side=side), patch=patch)
    source = read_cifar10(path)
    own = source.images.shape[1]
    require(
        side in (None, own),
        f"the images of CIFAR-10 are not resized, they have {own} pixels a side, got side {side}; "
        "longer sequences come from larger frames: --lengths 64,144.",
    )
    return ImageTask(source, patch=patch)


def task_of_spec(
    spec: dict[str, Any],
    reference: str | None = None,
    targets: Path | None = None,
    embeddings: Path | None = None,
    cache: Path | None = None,
) -> AbstractTask:
    """The task whose stored spec this is: a preset made again, or the user's own named by `reference`."""
    if reference is None:
        found = preset_from_spec(spec)
        if found is None:
            raise InputError(
                f'"{spec["task"]}" is not a task this headcount can make from its name alone; '
                "say where it is with --task FILE.py:NAME, --task FILE.npz or --task DIR."
            )
        return found
    options: dict[str, Any] = {}
    if Path(reference).suffix in (".npz", ".npy"):
        options = {name: spec[name] for name in ("shorter", "validation_fraction") if spec.get(name) is not None}
        options |= {} if targets is None else {"targets": targets}
    elif "layout" in spec or "patch" in spec:
        options = {name: spec[name] for name in ("layout", "patch") if name in spec}
        options |= {"side": spec["pixels"]} if "pixels" in spec else {}
        options |= {} if embeddings is None else {"embeddings": embeddings}
    found = find_task(reference, cache=cache, **options)
    given = json.loads(json.dumps(found.spec()))
    changed = [name for name in sorted(spec.keys() | given.keys()) if spec.get(name) != given.get(name)]
    require(not changed, f"{reference} is not the task these results are of: it differs in {', '.join(changed)}.")
    return found


def _refuse_others(reference: str, options: dict[str, Any], known: tuple[str, ...]) -> None:
    for option in options:
        require(option in known, f'{reference} takes no option "{option}"; it takes: {", ".join(known)}.')


def _from_python(reference: str, options: dict[str, Any]) -> AbstractTask:
    where, _, name = reference.rpartition(":")
    require(bool(where), f'"{reference}" names no Python file or module before its colon.')
    module = _load_file(Path(where)) if where.endswith(".py") else _load_module(where)
    require(
        hasattr(module, name),
        f'{where} has no "{name}".{did_you_mean(name, [n for n in vars(module) if not n.startswith("_")])}',
    )
    found = getattr(module, name)
    if callable(found) and not isinstance(found, AbstractTask):
        found = user_supplied(lambda make=found: make(**options), name=reference)
    else:
        require(not options, f"{reference} is a task already, so it takes no options; got {', '.join(options)}.")
    if not isinstance(found, AbstractTask):
        kind = type(found).__name__
        raise InputError(f"{reference} must be a headcount task or a function that returns one, got {kind}.")
    return found


def _load_file(path: Path):
    require(path.is_file(), f"there is no file {path}.")
    name = f"headcount_user_{path.stem}"  # a file called headcount.py must not hide this package
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"{path} could not be run: {type(error).__name__}: {error}.") from error
    return module


def _load_module(name: str):
    try:
        return importlib.import_module(name)
    except Exception as error:  # a module runs when it is imported, and may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f'the Python module "{name}" cannot be imported ({reason}).') from error
