"""The order of a stored inspection: which heads stay, and whose inspection it is."""

import pytest

from headcount.pretrained.inspection.facts import LAST_FACT
from headcount.pretrained.inspection.order import chosen_inspection, inspected_kept, inspections_of
from headcount.pretrained.storing.preflight import AttentionShape
from headcount.store import Experiment, Store
from tests.helpers.refusals import refused


@pytest.fixture
def folder(tmp_path):
    name = "inspect tiny"
    experiment = Experiment(name=name, question="", task="", axes=(), places={}, study="inspect")
    with Store.open_for_writing(tmp_path / "inspection") as store:
        name = store.begin(experiment).name
        store.put(name, "model", {"fingerprint": "abc"})
        store.put(name, "descent", {"removed": [[1, 4], [0, 2], [1, 5]]})
        for layer, order in enumerate(([5, 2, 1, 4, 3, 0], [3, 0, 1, 4, 2, 5])):
            store.put(name, f"curve/{layer}", {"order": order})
    return tmp_path / "inspection"


def kept(folder, fingerprint, shapes, **wanted):
    return inspected_kept(folder, chosen_inspection(folder, fingerprint), shapes, **wanted)


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
    assert kept(folder, "abc", [AttentionShape(6, key_heads, 2)] * 2, remove=remove, uniform=True) == expected


def test_the_whole_models_order_leaves_layers_unequal(folder):
    found = kept(folder, "abc", [AttentionShape(6, 6, 2)] * 2, remove=2, uniform=False)
    assert found == [[0, 1, 3, 4, 5], [0, 1, 2, 3, 5]]
    with refused("3", "5"):
        kept(folder, "abc", [AttentionShape(6, 6, 2)] * 2, remove=5, uniform=False)


def test_an_inspection_of_another_model_is_refused(folder):
    with refused("xyz", str(folder)):
        kept(folder, "xyz", [AttentionShape(6, 6, 2)] * 2, remove=2, uniform=True)


def test_the_newest_complete_inspection_of_the_model_is_taken(tmp_path):
    folder = tmp_path / "several"
    with Store.open_for_writing(folder) as store:
        for words, fingerprint, complete in (
            ("old", "abc", True),
            ("new", "abc", True),
            ("cut short", "abc", False),
            ("another", "xyz", True),
        ):
            experiment = Experiment(name=words, question=words, task="", axes=(), places={}, study="inspect")
            name = store.begin(experiment).name
            store.put(name, "model", {"fingerprint": fingerprint})
            store.put(name, "data", {"words": words})
            if complete:
                store.put(name, LAST_FACT, {})
    assert chosen_inspection(folder, "abc")["data"]["words"] == "new"


def test_a_folder_without_an_inspection_is_refused(tmp_path):
    with refused(str(tmp_path / "nowhere"), "headcount inspect"):
        inspections_of(tmp_path / "nowhere")
    with Store.open_for_writing(tmp_path / "empty"):
        pass
    with refused(str(tmp_path / "empty"), "headcount inspect"):
        inspections_of(tmp_path / "empty")
