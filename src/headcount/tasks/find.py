"""Finding a task by reference: a preset's name, files of arrays, images or passages, or a Python object."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from .._choices import require_choice
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
ARRAY_OPTIONS = ("targets", "shorter", "validation_fraction", "labels")


def find_task(reference: str, *, cache: Path | None = None, **options: Any) -> AbstractTask:
    """The task that `reference` names.

    Args:
        reference: One of:

            * `sum-of-maxima`, or any other preset (`headcount tasks` lists them);
            * `data.npz` with arrays x and y, or `x.npy` with `targets="y.npy"`; `labels=True` where y are classes;
            * a folder of images, one subfolder per class, or of CIFAR-10 as it is published;
            * a folder or a file of queries and passages, in MS MARCO's layouts or as JSON lines;
            * `mine.py:task` or `package.module:task`, a task or a function that returns one.
        cache: Folder for mined negatives; None: they are mined each time.
        options: Options of the preset, of the kind of data, or arguments of the function.

    Returns:
        The task.

    Raises:
        InputError: Nothing has this name, a file cannot be read or run, or an option is unknown or out of range.

    Example:
        >>> import headcount as hc
        >>> task = hc.find_task("sum-of-maxima", intrinsic_dim=3, length=8)
        >>> task.length, task.intrinsic_dim
        (8, 3)
        >>> hc.find_task("sum-of-maximum")
        Traceback (most recent call last):
        headcount._errors.InputError: unknown task "sum-of-maximum". Did you mean "sum-of-maxima"? ...
    """
    suffix = Path(reference).suffix
    if suffix in (".npz", ".npy"):
        _require_known(reference, options, ARRAY_OPTIONS)
        return load_arrays(Path(reference), **options)
    if ":" in reference:
        return _from_python(reference, options)
    path = Path(reference)
    if reference not in PRESETS and reference and (path.is_dir() or path.name.endswith(LABELLED_ENDINGS)):
        return _labelled(path, cache, options)
    require(suffix != ".py", f"name the task inside the file: {reference}:NAME.", what="task", given=reference)
    known = [*PRESETS, "FILE.npz", "FILE.py:NAME", "FILE.jsonl", "a folder of images or passages"]
    require(
        reference in PRESETS,
        f'unknown task "{reference}".{did_you_mean(reference, PRESETS)} Known: {", ".join(known)}.',
    )
    return preset(reference, **options)


def _labelled(path: Path, cache: Path | None, options: dict[str, Any]) -> LabelledTask:
    """The task of the images or passages at `path`."""
    if not is_cifar10(path) and is_passages(path):
        _require_known(str(path), options, PASSAGE_OPTIONS)
        layout = options.get("layout", "candidates")
        require_choice("layout", layout, LAYOUTS)
        words = load_embeddings(find_embeddings(options.get("embeddings")))
        corpus = read_passages(path, split=options.get("split"))
        return ranking(corpus, words, layout=layout, cache=cache)
    require(path.is_dir() or is_cifar10(path), f"no file {path}.")
    _require_known(str(path), options, IMAGE_OPTIONS)
    side, patch = options.get("side"), options.get("patch", 4)
    if not is_cifar10(path):
        return ImageTask(read_image_folder(path, side=side), patch=patch)
    source = read_cifar10(path)
    pixels = source.images.shape[1]
    require(
        side in (None, pixels),
        f"side must be {pixels} for CIFAR-10, whose images are not resized, got {side}; "
        "longer sequences come from larger frames: --lengths 64,144.",
        what="side",
        given=side,
        needed=str(pixels),
    )
    return ImageTask(source, patch=patch)


def task_of_spec(
    spec: dict[str, Any],
    reference: str | None = None,
    targets: Path | None = None,
    embeddings: Path | None = None,
    cache: Path | None = None,
) -> AbstractTask:
    """The task whose stored spec this is: a preset, or the one that `reference` names."""
    if reference is None:
        task = preset_from_spec(spec)
        if task is None:
            raise InputError(
                f'these results are of your own task "{spec["task"]}"; '
                "pass it with --task FILE.npz, --task FILE.py:NAME or --task DIR."
            )
        return task
    options: dict[str, Any] = {}
    if Path(reference).suffix in (".npz", ".npy"):
        options = {name: spec[name] for name in ("shorter", "validation_fraction") if spec.get(name) is not None}
        options |= {} if targets is None else {"targets": targets}
        options["labels"] = "labels" in spec  # nothing is to be detected
    elif "layout" in spec or "patch" in spec:
        options = {name: spec[name] for name in ("layout", "patch") if name in spec}
        options |= {"side": spec["pixels"]} if "pixels" in spec else {}
        options |= {} if embeddings is None else {"embeddings": embeddings}
    task = find_task(reference, cache=cache, **options)
    given = json.loads(json.dumps(task.spec()))
    changed = [name for name in sorted(spec.keys() | given.keys()) if spec.get(name) != given.get(name)]
    require(not changed, f"{reference} is not the task of these results: it differs in {', '.join(changed)}.")
    return task


def _require_known(reference: str, options: dict[str, Any], known: tuple[str, ...]) -> None:
    for option in options:
        message = f'{reference} takes no option "{option}"; it takes: {", ".join(known)}.'
        require(option in known, message, what=option, given=options[option])


def _from_python(reference: str, options: dict[str, Any]) -> AbstractTask:
    where, _, name = reference.rpartition(":")
    require(bool(where), f'"{reference}" names no Python file or module before the colon.')
    module = _load_file(Path(where)) if where.endswith(".py") else _load_module(where)
    require(
        hasattr(module, name),
        f'{where} has no "{name}".{did_you_mean(name, [n for n in vars(module) if not n.startswith("_")])}',
    )
    task = getattr(module, name)
    if callable(task) and not isinstance(task, AbstractTask):
        task = user_supplied(lambda make=task: make(**options), name=reference)
    else:
        message = f"{reference} is a task, which takes no options; got {', '.join(options)}."
        require(not options, message, what=" ".join(options))
    if not isinstance(task, AbstractTask):
        kind = type(task).__name__
        raise InputError(f"{reference} must be a headcount task or a function that returns one, got {kind}.")
    return task


def _load_file(path: Path):
    require(path.is_file(), f"no file {path}.")
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
    except Exception as error:  # importing runs the module, which may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f'the Python module "{name}" cannot be imported ({reason}).') from error
