"""Folders and tasks for commands, and training that takes no time."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headcount.papers.base import Scale
from headcount.papers.registry import STUDIES
from headcount.registry import task_facts

from ..papers.data.texts import write_records
from ..tasks.labelled import some_images
from . import fabricated
from .cifar_files import random_cifar, write_cifar_folder
from .pretended import Pretended
from .real_data import lines, tiny_bert


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """No command touches the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("HEADCOUNT_CACHE", str(folder))
        yield folder


@pytest.fixture
def support_search(monkeypatch):
    """Asked for by tests of the support dimension, which others do without."""
    monkeypatch.setattr("headcount.api.task_facts", task_facts)


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr("headcount.engine.trainer.program", lambda *_: pytest.fail("trained"))


@pytest.fixture
def broken_training(monkeypatch):
    def fail(*_):
        raise ValueError("no luck")

    monkeypatch.setattr("headcount.engine.trainer.program", fail)


@pytest.fixture
def pretended(monkeypatch) -> Pretended:
    pretended = Pretended()
    for module in ("headcount.api", "headcount.search.run"):
        monkeypatch.setattr(f"{module}.run_sweep", pretended.run_sweep)
        monkeypatch.setattr(f"{module}.attach_baselines", lambda *_, **__: None)
    monkeypatch.setattr("headcount.search.run._elimination", pretended.elimination)
    return pretended


@pytest.fixture
def own(tmp_path) -> Path:
    """A user's own experiment, one cell of which is missing."""
    made = fabricated.sweep()
    return fabricated.write(tmp_path / "results", fabricated.finished(made)[:-1], {"headcount measure own": made})


@pytest.fixture
def table5(tmp_path) -> Path:
    """A study, five of whose ten cells are there."""
    made = STUDIES["table5"].sweep(Scale.SMOKE)
    command = "headcount reproduce table5 --scale smoke"
    return fabricated.write(tmp_path / "table5", fabricated.finished(made)[:5], {command: made})


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """Data of all kinds, most of them bad, and a Python file of tasks."""
    where, generator = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    x, y = generator.normal(size=(120, 8, 2)), generator.normal(size=120)
    ragged = np.array([np.zeros((1 + i % 3, 2)) for i in range(120)], dtype=object)
    kinds = {
        "good": (x, y),
        "nan": (x, np.where(np.arange(120) == 7, np.nan, y)),
        "constant": (x, np.ones(120)),
        "few": (x[:9], y[:9]),
        "objects": (x.astype(object), y),
        "ragged": (ragged, y),
    }
    for name, (tokens, targets) in kinds.items():
        np.savez(where / f"{name}.npz", x=tokens, y=targets)
    (where / "table.csv").write_text("a,b,price\n" + "1,2,3\n" * 120)
    (where / "mine.py").write_text(
        "import jax.numpy as jnp\nimport headcount as hc\n"
        "def task_of(function):\n    return hc.FunctionTask(function=function, length=8, dim=1, name='mine')\n"
        "def broken(tokens):\n    raise KeyError('my mistake')\n"
        "task, other = task_of(lambda tokens: jnp.max(tokens)), task_of(lambda tokens: jnp.min(tokens))\n"
        "constant = task_of(lambda tokens: jnp.ones(()))\n"
        "def mistaken():\n    return task_of(broken)\n"
    )
    return where


@pytest.fixture(scope="session")
def cifar(tmp_path_factory) -> Path:
    """100 training images and 20 validation images, in the official binary layout."""
    folder = tmp_path_factory.mktemp("data") / "images"
    folder.mkdir()
    write_cifar_folder(folder, *random_cifar(20))
    return folder


@pytest.fixture(scope="session")
def bert(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert") / "tiny")


@pytest.fixture(scope="session")
def mine(tmp_path_factory) -> Path:
    return write_records(tmp_path_factory.mktemp("mine") / "mine.jsonl", lines())


@pytest.fixture(scope="session")
def images(tmp_path_factory) -> Path:
    """126 small images of two colours, a folder per class."""
    folder, source = tmp_path_factory.mktemp("own") / "colours", some_images(126, held_out=None)
    for place, (image, label) in enumerate(zip(source.images, source.labels, strict=True)):
        path = folder / source.classes[label] / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return folder
