"""Finding a task by reference: a preset's name, files of arrays, images or passages, or a Python object."""

import importlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .._options import Option, merged
from .._user_files import load_python_file, user_supplied
from ..data.examples import LoadedExamples, Wanted
from ..data.files import FORMATS, are_examples, ending, not_read, read_examples, require_file
from ..data.images import ENDINGS as IMAGE_ENDINGS
from ..data.images import read_image_folder, visible_entries
from ..data.objects import examples_of_object
from ..errors import InputError, did_you_mean, require
from ..registry import first_of, plugins
from ..store import FILE_NAME
from .arrays import ArrayTask, require_one_index
from .base import AbstractTask
from .image import ImageTask
from .presets import PRESETS, preset, preset_from_spec

FILE_OPTIONS = {
    "targets": Option(
        "The column of a table with the target (several: a,b); or y.npy, where the file is x.npy.", "COLUMN|FILE"
    ),
    "sequence": Option(
        "For a table of one row per token: the column that says which sequence a row belongs to.", "COLUMN"
    ),
    "tokens": Option(
        "How texts are read: words (the most frequent, see --vocabulary) or bytes (default: words, if texts have two).",
        "words|bytes",
    ),
    "labels": Option(
        "y holds class labels, learned with cross-entropy, or numbers (default: detected from y, and printed).",
        flags="--labels/--regression",
        kind=bool,
    ),
    "answered_at": Option("Where a model answers: sequence (default), query (at the last token), tokens (at each)."),
    "metric": Option(
        "What head counts are compared by where y holds labels: error, or balanced, in which every class counts alike "
        "(default: balanced where one class has more than 80 % of the labels, and printed)."
    ),
    "vocabulary": Option(
        "Tokens are ids below this number, each with a learned embedding; of texts, the most ids of words.", kind=int
    ),
    "shorter": Option("How shorter lengths are made: given, leading, trailing."),
    "validation_fraction": Option("Share of the examples kept for validation.", kind=float),
}
"""Options of a file of examples, with the words of the help."""
IMAGE_OPTIONS = {
    "patch": Option("Side of a square patch in pixels (default: 4).", kind=int),
    "side": Option("Images are cropped square and resized to this side.", kind=int),
}
DATA_OPTIONS = merged(FILE_OPTIONS, IMAGE_OPTIONS, *(each.data_options for each in plugins()))


def find_task(reference: str | os.PathLike[str], *, cache: Path | None = None, **options: Any) -> AbstractTask:
    """Return the task that `reference` names.

    Args:
        reference: One of:

            * `sum-of-maxima`, or any other preset (`headcount tasks` lists them);
            * a file of examples: `data.npz` with arrays x and y (also .pt, .safetensors, .json), `x.npy` with
              `targets="y.npy"`, a table (.csv, .tsv, .parquet, .arrow, .feather) whose target `targets` names, a
              folder that Hugging Face's `save_to_disk` wrote, or `data.jsonl` with x and y in each line;
            * a folder of images, one subfolder per class, or of CIFAR-10 as it is published;
            * a folder or a file of queries and passages, in MS MARCO's layouts or as JSON lines;
            * `mine.py:task` or `package.module:task`, a task or a function that returns one.
        cache: Folder for mined negatives; None: they are mined each time.
        options: Options of the preset, of the kind of data, or arguments of the function. A file of examples takes
            `targets`, and of one row per token `sequence`, of texts `tokens`, and of `ArrayTask` `labels`,
            `answered_at`, `metric`, `vocabulary`, `shorter` and `validation_fraction`.

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
        headcount.errors.InputError: unknown task "sum-of-maximum". Did you mean "sum-of-maxima"? ...
    """
    require(
        isinstance(reference, str | os.PathLike),
        f"a task is found by a name or a file, got {type(reference).__name__}; arrays are a task by ArrayTask(x, y).",
        what="reference",
    )
    return _found(os.fspath(reference), options, cache=cache, planned=False)


def planned_task(reference: str, **options: Any) -> AbstractTask:
    """Return the task that `reference` names, to plan with: what takes long, such as mining negatives, is left out."""
    return _found(reference, options, cache=None, planned=True)


def _found(reference: str, options: dict[str, Any], *, cache: Path | None, planned: bool) -> AbstractTask:
    if reference in PRESETS:
        return preset(reference, **options)
    path = Path(reference)
    if are_examples(path):
        return _examples(path, options)
    if ":" in reference:
        return _from_python(reference, options)
    task = first_of(lambda each: each.task_at(path, options, cache=cache, planned=planned)) if reference else None
    if task is not None:
        return task
    if reference and os.path.isdir(path):
        return _images(path, options)
    if path.name.endswith(".tar.gz"):
        require_file(path)
        raise InputError(f"{path} is not CIFAR-10's archive; unpack it, and name a file or folder inside.")
    require(path.suffix != ".py", f"name the task inside the file: {reference}:NAME.", what="task")
    if reference and os.path.exists(path):
        raise not_read(path)
    known = [*PRESETS, "FILE.npz", "FILE.csv", "FILE.py:NAME", "FILE.jsonl", "a folder of images or passages"]
    raise InputError(f'unknown task "{reference}".{did_you_mean(reference, PRESETS)} Known: {", ".join(known)}.')


def _examples(path: Path, options: dict[str, Any]) -> ArrayTask:
    """Return the task of the examples in a file; a refusal names the file."""
    require_known_options(str(path), options, FILE_OPTIONS)
    said = {name: options.get(name) for name in ("targets", "sequence", "tokens", "vocabulary")}
    loaded = read_examples(path, **said, per_token=options.get("answered_at") == "tokens")
    return _task_of_loaded(loaded, str(path), {"name": _stem_of(path)} | options)


def task_of_object(given: Any, **options: Any) -> ArrayTask:
    """Return the task of the examples in a frame, a pair, a dictionary or a dataset, as of the same table in a file.

    Args:
        given: What `examples_of_object` reads.
        options: `targets`, `sequence` and `tokens`, as of a file, and keywords of `ArrayTask`.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(200, 3))
        >>> columns = {"rain": x[:, 0], "wind": x[:, 1], "sun": x[:, 2], "price": x.max(axis=1)}
        >>> task_of_object(columns, targets="price").notes
        ('dict: a row is a sequence of 3 tokens of one number, columns rain to sun',)
    """
    if isinstance(given, tuple) and len(given) == 2:
        require_one_index(*given)
    targets = options.get("targets")
    targets = ",".join(map(str, targets)) if isinstance(targets, list | tuple) else targets
    wanted = Wanted(
        None if targets is None else str(targets),
        options.get("sequence"),
        options.get("answered_at") == "tokens",
        options.get("tokens"),
        options.get("vocabulary"),
    )
    return _task_of_loaded(examples_of_object(given, wanted), type(given).__name__, options)


def _task_of_loaded(loaded: LoadedExamples, called: str, options: dict[str, Any]) -> ArrayTask:
    """Return the task of examples that were read; a refusal says where they are from."""
    content = {name: value for name, value in vars(loaded).items() if value is not None}
    of_task = {name: value for name, value in options.items() if name not in ("targets", "sequence", "tokens")}
    for name in (each for each in ("mask", "held_out") if each in of_task):
        require(name not in content, f"{called} has its own {name}; give one of the two.", what=name)
    try:
        return ArrayTask(**(of_task | content))
    except InputError as error:
        message = str(error).removeprefix(f"{options.get('name', 'arrays')}: ")
        raise InputError(message if called in message else f"{called}: {message}", what=error.what) from error


def _stem_of(path: Path) -> str:
    """Return a file's name without its ending, and without that of what is packed in it."""
    return path.name if path.is_dir() else Path(path.name.removesuffix(".gz")).stem


def _images(path: Path, options: dict[str, Any]) -> ImageTask:
    """Return the task of the images in a folder."""
    results = f"{path} is a results folder; `headcount show {path}` shows it."
    require(not (path / FILE_NAME).exists(), results, what="task")
    _require_images(path)
    require_known_options(str(path), options, (*IMAGE_OPTIONS, "fixed_places"))
    source = read_image_folder(path, side=options.get("side"))
    return ImageTask(source, patch=options.get("patch", 4), fixed_places=options.get("fixed_places", False))


def _require_images(path: Path) -> None:
    """Raise `InputError` if a folder, and those in it, have files of data but no images."""
    inside = visible_entries(path)
    inside += [entry for folder in inside if folder.is_dir() for entry in visible_entries(folder)]
    readable = [entry for entry in inside if entry.is_file() and ending(entry) in FORMATS]
    if readable and not any(entry.suffix.lower() in IMAGE_ENDINGS for entry in inside):
        count = f"{len(readable)} files of data" if len(readable) > 1 else "a file of data"
        raise InputError(f"{path} is a folder with {count}; name one of them, such as {readable[0]}.")


def task_of_spec(
    spec: dict[str, Any],
    reference: str | None = None,
    *,
    targets: str | None = None,
    sequence: str | None = None,
    tokens: str | None = None,
    embeddings: Path | None = None,
    cache: Path | None = None,
) -> AbstractTask:
    """Return the task whose stored spec this is: a preset, or the one that `reference` names.

    Args:
        spec: The spec, as it was stored.
        reference: What `find_task` takes; None for a preset.
        targets: Of a file, as it was measured: the .npy with y, or the columns with the target.
        sequence: Of a table, as it was measured: the column of sequences.
        tokens: Of texts, as they were measured: words or bytes.
        embeddings: Folder of the model that passages are read with.
        cache: Folder for mined negatives.

    Raises:
        InputError: The reference is missing, or is not the task of the spec.
    """
    if reference is None:
        task = preset_from_spec(spec)
        if task is None:
            raise InputError(
                f'these results are of your own task "{spec["task"]}"; '
                "pass it with --task FILE, --task FILE.py:NAME or --task DIR."
            )
        return task
    options: dict[str, Any] = {}
    if are_examples(Path(reference)):
        stored = ("shorter", "validation_fraction", "answered_at", "vocabulary")
        options = {name: spec[name] for name in stored if spec.get(name) is not None}
        options |= {"labels": "labels" in spec}  # detected or said, it was decided then
        options |= {"metric": spec.get("metric", "error")} if "labels" in spec else {}
        given = {"targets": targets, "sequence": sequence, "tokens": tokens}
        options |= {name: value for name, value in given.items() if value is not None}
    elif "layout" in spec or "patch" in spec:
        options = {name: spec[name] for name in ("layout", "patch", "fixed_places") if name in spec}
        options |= {"side": spec["pixels"]} if "pixels" in spec else {}
        options |= {} if embeddings is None else {"embeddings": embeddings}
    task = find_task(reference, cache=cache, **options)
    given = json.loads(json.dumps(task.spec()))
    changed = [name for name in sorted(spec.keys() | given.keys()) if spec.get(name) != given.get(name)]
    because = "; name the measured one"
    if "code" in changed:
        because = "; the function, or something that its code reads, has changed: restore it, or measure it again"
    require(not changed, f"{reference} is not the task of these results: it differs in {', '.join(changed)}{because}.")
    return task


def require_known_options(reference: str, options: dict[str, Any], known: Iterable[str]) -> None:
    """Raise `InputError` for an option that is not among those `known`."""
    for option in options:
        message = f'{reference} takes no option "{option}"; it takes: {", ".join(known)}.'
        require(option in known, message, what=option)


def _from_python(reference: str, options: dict[str, Any]) -> AbstractTask:
    where, _, name = reference.rpartition(":")
    require(bool(where), f'"{reference}" names no Python file or module before the colon; write FILE.py:NAME.')
    module = load_python_file(Path(where)) if where.endswith(".py") else _load_module(where)
    tasks = _tasks_in(module)
    listed = ", ".join(tasks) or "no task; define one"
    require(hasattr(module, name), f'{where} has no "{name}".{did_you_mean(name, tasks)} It has: {listed}.')
    task = getattr(module, name)
    if callable(task) and not isinstance(task, AbstractTask):
        task = user_supplied(lambda make=task: make(**options), name=reference)
    else:
        message = f"{reference} is a task, which takes no options; leave out {', '.join(options)}."
        require(not options, message, what=" ".join(options))
    if not isinstance(task, AbstractTask):
        kind = type(task).__name__
        raise InputError(f"{reference} must be a headcount task or a function that returns one, got {kind}.")
    return task


def _tasks_in(module: Any) -> list[str]:
    """Return the tasks of a module, and the functions that are defined there; what it imports is neither."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (isinstance(value, AbstractTask) or (callable(value) and value.__module__ == module.__name__))
    ]


def _load_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # importing runs the module, which may raise anything
        reason = f"{type(error).__name__}: {error}"
        fix = "install it, or name a file, as in mine.py:task"
        raise InputError(f'the Python module "{name}" cannot be imported ({reason}); {fix}.') from error
