"""The order of a stored inspection: which heads stay, and whose inspection it is."""

import pytest

from headcount.pretrained.inspection.inspected import inspected_kept
from headcount.store import Experiment, Store
from tests.helpers.refusals import refused


@pytest.fixture
def folder(tmp_path):
    name = "inspect tiny"
    experiment = Experiment(name=name, question="", task="", axes=(), places={}, study="inspect")
    with Store.open_for_writing(tmp_path / "inspection") as store:
        name = store.begin(experiment).name
        store.attach(name, "model", {"fingerprint": "abc"})
        store.attach(name, "descent", {"removed": [[1, 4], [0, 2], [1, 5]]})
        for layer, order in enumerate(([5, 2, 1, 4, 3, 0], [3, 0, 1, 4, 2, 5])):
            store.attach(name, f"curve/{layer}", {"order": order})
    return tmp_path / "inspection"


@pytest.mark.parametrize(
    ("key_heads", "remove", "expected"),
    [
        (6, 2, [[0, 1, 2, 3, 4], [0, 1, 2, 4, 5]]),
        (6, 10, [[0], [5]]),
        (3, 6, [[0, 3, 4], [1, 2, 5]]),  # pairs 01, 23, 45 keep one head each
        (2, 4, [[0, 1, 3, 4], [1, 2, 4, 5]]),  # 012 and 345 keep two
        (2, 8, [[0, 3], [2, 5]]),
    ],
)
def test_heads_go_in_the_order_found_and_key_heads_keep_as_many(folder, key_heads, remove, expected):
    assert inspected_kept(folder, "abc", [(6, key_heads)] * 2, remove=remove, uniform=True) == expected


def test_the_whole_models_order_leaves_layers_unequal(folder):
    kept = inspected_kept(folder, "abc", [(6, 6)] * 2, remove=2, uniform=False)
    assert kept == [[0, 1, 3, 4, 5], [0, 1, 2, 3, 5]]
    with refused("3", "5"):
        inspected_kept(folder, "abc", [(6, 6)] * 2, remove=5, uniform=False)


def test_an_inspection_of_another_model_is_refused(folder):
    with refused("xyz", str(folder)):
        inspected_kept(folder, "xyz", [(6, 6)] * 2, remove=2, uniform=True)
