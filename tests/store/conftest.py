"""A results folder to be spoiled."""

from pathlib import Path

import pytest

from headcount.store import Store

from .records import bucket


@pytest.fixture
def root(tmp_path) -> Path:
    """A folder with seeds 0 to 19, large enough to fill several pages."""
    with Store.open_for_writing(tmp_path / "results") as store:
        store.commit(bucket(*range(20), padding=500))
    return tmp_path / "results"
