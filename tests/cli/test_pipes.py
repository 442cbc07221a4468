"""A pipe in the place of a file of a results folder: every reader says so, or does without; none waits for it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headcount._cache import prune
from headcount.store import FILE_NAME, Store
from headcount.store.folders import LOCK_NAME
from headcount.store.live import LIVE_FILE

from ..helpers import fabricated
from ..store.records import bucket

SECONDS = 60
DATABASE = [FILE_NAME, f"{FILE_NAME}-journal"]
BESIDE = [LOCK_NAME, LIVE_FILE, "collisions/certificates.json", "collisions/floor-a.svg"]
COMMANDS = """
import sys
from headcount import cli
for words in (["show"], ["show", "--json"], ["status"], ["export"], ["report", "--out", sys.argv[2]]):
    arguments, sys.argv = sys.argv, ["headcount", words[0], sys.argv[1], *words[1:]]
    try:
        cli.main()
    except SystemExit as ended:
        print("ended with", ended.code, file=sys.stderr)
    sys.argv = arguments
"""
SERVER = """
import sys
from pathlib import Path
from starlette.testclient import TestClient
from headcount.serve.app import app_of
app, site = app_of(Path(sys.argv[1]).parent, "t" * 24, 8000)
with TestClient(app, base_url="http://127.0.0.1:8000/" + "t" * 24) as client:
    for page in ("", "folder/own", "certificates/own"):
        print("ended with", client.get("/" + page).status_code, file=sys.stderr)
site.close(wait=True)
"""


def a_folder(tmp_path: Path, pipe: str) -> Path:
    made = fabricated.sweep()
    folder = fabricated.write(tmp_path / "own", fabricated.finished(made), {"headcount measure own": made})
    place = folder / pipe
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    return folder


def ended(script: str, *arguments: object) -> list[int]:
    """How each command or page of the script ended; it fails where one waits."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return [int(line.split()[-1]) for line in done.stderr.splitlines() if line.startswith("ended with")]


@pytest.mark.parametrize("pipe", [*DATABASE, *BESIDE])
def test_commands(tmp_path, pipe):
    codes = ended(COMMANDS, a_folder(tmp_path, pipe), tmp_path / "page.html")
    assert codes == [0] * 5 if pipe in BESIDE else set(codes) <= {0, 1, 2} and max(codes) > 0


@pytest.mark.parametrize("pipe", [DATABASE[1], *BESIDE])
def test_the_server(tmp_path, pipe):
    pages = ended(SERVER, a_folder(tmp_path, pipe))
    assert pages == [200, 200, 404]


@pytest.mark.parametrize("pipe", DATABASE)
def test_a_folder_that_is_opened_for_writing(tmp_path, pipe):
    script = """
import sys
from headcount.errors import StoreError
from headcount.store import Store
try:
    Store.open_for_writing(sys.argv[1])
except StoreError as error:
    assert "regular file" in str(error)
    print("ended with 1", file=sys.stderr)
"""
    assert ended(script, a_folder(tmp_path, pipe)) == [1]


def test_weights(tmp_path):
    with Store.open_for_writing(tmp_path / "own") as store:
        store.commit(bucket(0), {bucket(0)[0].cell.key: {"a": np.ones(1)}})
    (pack,) = (tmp_path / "own" / "weights").iterdir()
    pack.unlink()
    os.mkfifo(pack)
    script = """
import sys
from headcount.errors import StoreError
from headcount.store import Store
from headcount.store.weights import read_weights
with Store.open_for_reading(sys.argv[1]) as store:
    for read in (lambda: store.weights(sys.argv[2]), lambda: read_weights(store.weights_path(sys.argv[2]))):
        try:
            read()
        except StoreError as error:
            assert "regular file" in str(error)
            print("ended with 1", file=sys.stderr)
"""
    assert ended(script, tmp_path / "own", bucket(0)[0].cell.key) == [1, 1]


def test_the_cache(tmp_path):
    os.mkfifo(tmp_path / "program-cache")
    prune(tmp_path, 10**9)
    assert not (tmp_path / "program-cache").exists()
    os.mkfifo(tmp_path / "negatives.npy")
    script = "import sys; from pathlib import Path; from headcount.papers.data.mining import _load_lists; "
    assert ended(script + "assert _load_lists(Path(sys.argv[1]), (1, 1)) is None", tmp_path / "negatives.npy") == []
