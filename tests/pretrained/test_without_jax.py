"""Trained models are inspected and changed in an environment that has no JAX."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="an extra, which the default tests do without")
pytest.importorskip("transformers", reason="an extra, which the default tests do without")

SCRIPT = """
import sys
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "equinox", "optax"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import headcount as hc
from headcount.cli import main
from tests.helpers.tiny_models import WORDS, tiny_folder

folder = Path(sys.argv[1])
model = tiny_folder(folder / "model", "llama")
texts = [" ".join(WORDS[(3 * i + j * (1 + i % 5)) % len(WORDS)] for j in range(12)) for i in range(12)]
print(hc.inspect(model, texts, out=folder / "inspected"))
(folder / "texts.txt").write_text("\\n".join(texts))
data = ["--data", folder / "texts.txt"]
for words in (["report", folder / "inspected"], ["prune", model, "--keep", "2", *data, "--out", folder / "smaller"]):
    sys.argv[1:] = map(str, words)
    try:
        main()
    except SystemExit as ended:
        assert ended.code in (0, None), (words, ended.code)
"""


def test_trained_models_need_no_jax(tmp_path):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "inspected" / "report.html").exists()
    assert (tmp_path / "smaller" / "model.safetensors").exists()
