"""`measure --for` chooses a stock model, stores it, shows it, writes it, and does not train it again."""

import json
import runpy
import subprocess
import sys

import numpy as np
import pytest

import headcount as hc
from headcount.cli.app import app
from headcount.errors import InputError
from headcount.stock import StockConfig, StockResult, train_stock
from headcount.stock.config import StockShape

SMALL = {"heads": [1, 2], "seeds": 2, "steps": 4, "progress": False}


@pytest.fixture
def runs(monkeypatch):
    """Training that takes no time, and needs no torch."""
    runs = []

    def train(config, examples, *, steps, heard, **_):
        runs.append(config)
        heard(steps)
        error = 0.1 + 1 / config.width
        losses = np.full(len(examples.validation), error)
        return StockResult(config, error, losses, config.parameters(examples.shape), 0.5, steps, ((steps, error),))

    monkeypatch.setattr("headcount.stock.measured.train_stock", train)
    monkeypatch.setattr("headcount.stock.measured.need_library", lambda library: None)
    return runs


@pytest.fixture
def data(tmp_path):
    x = np.random.default_rng(0).normal(size=(150, 4, 2)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x=x, y=x[:, 0, 0] + x[:, 1, 1])
    return tmp_path / "mine.npz"


@pytest.mark.parametrize("library", ["torch", "hf"])
def test_it_is_stored_written_and_not_trained_again(library, runs, data, tmp_path):
    out = tmp_path / "out"
    chosen = hc.measure(data, library=library, out=out, **SMALL).facts["stock_models"][library]
    assert chosen["config"]["width"] == 64
    assert chosen["rows"][chosen["marked"]][-1] == "use"
    assert json.loads((out / f"stock-{library}.json").read_text())["error"] == chosen["error"]
    compile((out / f"train_stock_{library}.py").read_text(), "script", "exec")
    with np.load(out / "stock-data.npz") as stored:
        assert stored["x"].shape == (120, 4, 2)
        assert stored["y_validation"].shape == (30, 1)
    trained = len(runs)
    assert trained > 3
    again = hc.measure(data, library=library, out=out, **SMALL)
    assert len(runs) == trained
    assert chosen["sentence"] in str(again.document.blocks)
    (out / f"stock-{library}.json").unlink()
    hc.measure(data, library=library, out=out, **SMALL)
    assert len(runs) > trained


def test_the_command_prints_it_and_show_too(runs, data, tmp_path, capsys):
    out = str(tmp_path / "out")
    small = ["--heads", "1,2", "--seeds", "2", "--steps", "4"]
    printed = command(capsys, "measure", str(data), "--for", "torch", "--out", out, *small)
    assert "Stock models of torch" in printed
    shown = command(capsys, "show", out)
    assert "torch: 1 layer, width 64" in " ".join(shown.split())
    found = json.loads(command(capsys, "show", out, "--json"))
    assert found[0]["stock_models"]["torch"]["parameters"] > 0


def command(capsys, *words):
    app(list(words), standalone_mode=False)
    captured = capsys.readouterr()
    return captured.out if "--json" in words else captured.out + captured.err


def test_what_cannot_be_is_refused_before_anything_is_trained(runs, data, tmp_path):
    with pytest.raises(InputError, match="torch or hf"):
        hc.measure(data, library="jax", out=tmp_path / "out", **SMALL)
    assert not (tmp_path / "out").exists()


def test_without_it_nothing_is_added(runs, data, tmp_path):
    measurement = hc.measure(data, out=tmp_path / "out", **SMALL)
    assert "stock_models" not in measurement.facts
    assert "stock_models" not in measurement.document.as_dict()
    assert not runs


SHAPES = {
    "labels": StockShape(length=4, dim=2, outputs=3, classes=3),
    "numbers": StockShape(length=4, dim=2, outputs=2, uses_positions=False),
    "ids": StockShape(length=4, dim=1, outputs=1, vocabulary=5),
    "query": StockShape(length=4, dim=2, outputs=1, answered_at="query"),
    "tokens": StockShape(length=4, dim=2, outputs=3, classes=3, answered_at="tokens"),
}


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("library", ["torch", "hf"])
def test_the_script_builds_that_model_and_reaches_about_its_error(library, shape, padded, tmp_path, capsys):
    pytest.importorskip("torch")
    if library == "hf":
        pytest.importorskip("transformers")
    from headcount.stock.script import script_of, write_data

    examples = drawn_examples(shape, padded)
    config = StockConfig(library=library, layers=1, width=16, heads=2)
    trained = train_stock(config, examples, steps=60)
    (tmp_path / "train.py").write_text(script_of(trained, examples, 60, "error"))
    (tmp_path / "stock-data.npz").write_bytes(write_data(examples))
    made = runpy.run_path(str(tmp_path / "train.py"))
    assert sum(each.numel() for each in made["model"].parameters()) == trained.parameters
    assert float(capsys.readouterr().out.split()[-1]) == pytest.approx(trained.error, rel=0.3, abs=0.1)
    assert sum(map(bool, (tmp_path / "train.py").read_text().splitlines())) < 55


def test_the_script_needs_no_headcount(tmp_path):
    pytest.importorskip("torch")
    from headcount.stock.script import script_of, write_data

    examples = drawn_examples(SHAPES["numbers"], padded=False)
    trained = train_stock(StockConfig(library="torch", layers=1, width=16, heads=2), examples, steps=20)
    (tmp_path / "train.py").write_text(script_of(trained, examples, 20, "NMSE"))
    (tmp_path / "stock-data.npz").write_bytes(write_data(examples))
    command = [sys.executable, "-I", tmp_path / "train.py"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert out.stdout.startswith("validation NMSE ")
    assert "headcount" not in (tmp_path / "train.py").read_text().replace("that headcount chose", "")


def drawn_examples(shape, padded):
    """Return examples of a shape whose target is the first token that is there, or is each token's."""
    from headcount.stock.examples import StockExamples, StockPart

    def part(count, seed):
        drawn = np.random.default_rng(seed)
        x = drawn.normal(size=(count, shape.length, shape.dim)).astype(np.float32)
        tokens = drawn.integers(0, shape.vocabulary, (count, shape.length)) if shape.vocabulary else x
        mask = np.arange(shape.length) >= drawn.integers(0, 3, count)[:, None] if padded else None
        y = x[..., :1] * np.arange(1, 1 + shape.outputs) if shape.outputs > 1 else x[..., :1]
        y = y if shape.answered_at == "tokens" else y[:, -2]
        y = np.digitize(y[..., 0], [-0.5, 0.5]) if shape.classes else y
        return StockPart(tokens, y.astype(np.int64 if shape.classes else np.float32), mask)

    return StockExamples("drawn", shape, part(300, 0), part(100, 1))
