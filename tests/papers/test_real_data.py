"""The studies of real data: what they are bound to, and what their sections say of accuracies one chooses."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from headcount._cache import cache_folder
from headcount.answer import Verdict
from headcount.answer.signals import reversal_scores
from headcount.errors import InputError
from headcount.papers.base import Scale
from headcount.papers.real_data import cifar, cifar_places, marco, passages
from headcount.papers.real_data.base import margin_of, means_of
from headcount.papers.real_data.download import RemoteFile, to_be_fetched
from headcount.papers.registry import REAL_DATA
from headcount.report.render.pictures import frames_png
from headcount.store import Outcome
from headcount.tasks import ImageTask

from ..helpers import fabricated
from ..helpers.cifar_files import batch_bytes, random_cifar, write_cifar_archive, write_cifar_folder
from ..tasks.labelled import SPECIAL, WORDS, some_images, some_passages
from .data.texts import bert_tensors, write_bert, write_records

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
every_study = pytest.mark.parametrize("study", REAL_DATA.values(), ids=REAL_DATA)
TABLES = {name: REAL_DATA[name] for name in ("cifar", "marco")}
"""Studies of the published tables; the others are of what a table owes to choices."""
every_table = pytest.mark.parametrize("study", TABLES.values(), ids=TABLES)


def module_of(study):
    """Where its published tables are."""
    return cifar if isinstance(study, cifar.CifarStudy) else passages


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "cache"))


def metrics(training: float, validation: float = 0.5, fitted: float | None = None) -> dict[str, float]:
    """The metrics of a finished model with these accuracies."""
    errors = {"error": 1 - validation, "final_error": 1 - validation, "train_error": 1 - training, "baseline": 0.9}
    return errors | {"fitted_error": 1 - (training if fitted is None else fitted), "mrr": 0.5, "fitted_mrr": 0.75}


def graded(study, scale, accuracies=lambda at: (0.5,), kept=lambda at: True):
    """A study's experiment, and records of the kept cells with the accuracies of their coordinates."""
    made = fabricated.study_sweep(study, scale)
    chosen = [cell for cell, at in zip(made.cells, made.coordinates(), strict=True) if kept(at)]
    made = replace(made, cells=tuple(chosen))
    return made.experiment, fabricated.graded(made, lambda at: metrics(*accuracies(at)))


def planned(study, scale):
    """The experiment that a study plans without data, and records of its cells."""
    sweep = study.sweep(scale)
    return sweep.experiment, fabricated.graded(fabricated.Sweep(sweep.experiment, sweep.cells), lambda at: metrics(0.5))


def as_published(study):
    """The paper scale with the published accuracies, where the tables have one."""
    module = module_of(study)

    def accuracies(at):
        place = {"heads": at["heads"], "length": study.printed(at["length"])}
        return tuple(1 - table.at(**place) for table in (module.TRAINING, module.VALIDATION))

    return graded(study, Scale.PAPER, accuracies, lambda at: np.isfinite(accuracies(at)[0]))


def test_means_are_over_seeds_by_heads_and_printed_length():
    study = cifar.STUDY

    def value(at):
        return 0.1 * at["heads"] + at["length"] / 1000 + 0.02 * at["seed"]

    def some(at):
        return at["heads"] in (1, 2) and at["length"] in (64, 144) and at["seed"] < 2

    experiment, records = graded(study, Scale.PAPER, lambda at: (value(at), value(at) / 2, value(at) / 4), some)
    lost = next(r for r in records if experiment.coordinates(r.cell.key) == {"heads": 2, "length": 144, "seed": 1})
    kept = [record for record in records if record is not lost] + fabricated.lost([lost.cell], Outcome.DIVERGED)
    means = means_of(experiment, reversed(kept), printed=study.printed)
    assert means.training.axes == {"heads": (1, 2), "length": (65, 145)}
    expected = np.array([[0.174, 0.254], [0.274, 0.344]])  # of the last cell one seed is left
    np.testing.assert_allclose(1 - means.training.errors, expected)
    np.testing.assert_allclose(1 - means.validation.errors, expected / 2)
    np.testing.assert_allclose(1 - means.fitted.errors, expected / 4)
    np.testing.assert_allclose(means.fitted_mrr.errors, 0.75)
    assert means.seeds == 2
    assert means.training_margin > 0
    assert 0 < means.validation_margin < 0.05


@every_study
def test_every_published_accuracy_stands_beside_its_own(study):
    experiment, records = as_published(study)
    parts = [experiment.part(layout=[layout]) for layout in passages.LAYOUTS] if study is marco.STUDY else [experiment]
    module = module_of(study)
    for part in parts:
        means = means_of(part, records, printed=study.printed)
        np.testing.assert_allclose(module.TRAINING.aligned(means.training), means.training.errors)
        np.testing.assert_allclose(module.VALIDATION.aligned(means.training), means.validation.errors)


def test_shares_of_fewer_validation_examples_than_asked_for_are_less_sure():
    study = marco.STUDY
    made = fabricated.study_sweep(study, Scale.LAPTOP)
    asked = min(cell.train.validation_examples for cell in made.cells)
    margins = []
    for count in (asked * 4, asked // 4):
        noise = {"baseline_noise": (0.9 * 0.1 / count) ** 0.5}
        records = fabricated.graded(made, lambda at, noise=noise: metrics(0.5) | noise)
        margins.append(means_of(made.experiment, records).validation_margin)
    assert margins == pytest.approx([margin_of(asked), margin_of(asked // 4)])


def test_means_keep_the_axes_that_are_asked_for():
    study = REAL_DATA["marco-epochs"]
    experiment, records = graded(study, Scale.SMOKE, lambda at: (at["epochs"] / 8, at["epochs"] / 16))
    means = means_of(experiment, records, "epochs")
    assert tuple(means.training.axes) == ("epochs", "heads", "length")
    for epochs in study.efforts[Scale.SMOKE].axes["epochs"]:
        np.testing.assert_allclose(1 - means.training.select(epochs=epochs).errors, epochs / 8)
        np.testing.assert_allclose(1 - means.validation.select(epochs=epochs).errors, epochs / 16)


def verdicts(section) -> dict[str, Verdict]:
    return {claim.statement: claim.verdict for claim in section.claims}


def test_the_claims_hold_of_the_published_numbers_of_cifar():
    experiment, records = as_published(cifar.STUDY)
    assert len(records) == 12 * 5 * 5, "the tables have a number for every cell"
    section = cifar.STUDY.document(experiment, records, Scale.PAPER)
    judged = verdicts(section)
    (turned,) = [statement for statement in judged if "reversal" in statement]
    # Of the printed means, which are rounded, 12 and 14 heads have no reversal at all.
    assert judged.pop(turned) is DIFFERS
    assert set(judged.values()) == {HOLDS}
    assert len(judged) == 6
    heads = cifar.TRAINING.values("heads")
    positive = dict(zip(heads, reversal_scores(cifar.TRAINING.errors.round(6)) > 0, strict=True))
    assert positive == {count: count >= 10 and count not in (12, 14) for count in heads}
    assert "60 % of the training set wrong with 1 head" in section.headline
    assert "0.2 % with 24 heads" in section.headline


def test_the_claims_hold_of_the_published_numbers_of_marco():
    section = marco.STUDY.document(*as_published(marco.STUDY), Scale.PAPER)
    assert set(verdicts(section).values()) == {HOLDS}
    assert len(section.claims) == 2 * 7, "in both layouts"
    statements = {claim.statement.split(":")[0] for claim in section.claims}
    assert statements == {"With candidates as tokens", "With query-passage pairs"}


@every_table
@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.LAPTOP])
def test_nearness_is_judged_at_paper_scale_alone(study, scale):
    for right in (1.0, 0.0):
        section = study.document(*graded(study, scale, lambda at, right=right: (right, right)), scale)
        near = [claim for claim in section.claims if "of the published one" in claim.statement]
        assert len(near) == (4 if study is marco.STUDY else 2)
        assert {claim.verdict for claim in near} == {UNDECIDED}


@every_study
@pytest.mark.parametrize("scale", Scale)
def test_its_section_has_grids_charts_and_notes(study, scale):
    def learned(at):
        share = min(1.0, 0.3 + 0.06 * at["heads"] - at["length"] / 8192)
        return share, share / 2, share

    section = study.document(*graded(study, scale, learned), scale)
    assert any(note.startswith(f"At {scale} scale") for note in section.notes) == (scale is not Scale.PAPER)
    assert any("Not published" in note for note in section.notes)
    names = [chart.name for chart in section.charts]
    assert len(names) == len(set(names))
    assert any("published" in grid.columns or "(" in row[1] for grid in section.grids for row in grid.rows)
    assert "published" in {series.kind for chart in section.charts for series in chart.series}
    if study is cifar.STUDY:
        assert ("reversal" in names) == (scale is Scale.PAPER)
    elif study is marco.STUDY and scale is Scale.PAPER:
        assert {"candidates-surface", "pairs-surface"} <= set(names)


def test_grids_have_ours_and_the_published_number_in_parentheses():
    records = graded(cifar.STUDY, Scale.SMOKE, lambda at: (0.5, 0.25, 0.75))
    training, validation = cifar.STUDY.document(*records, Scale.SMOKE).grids
    assert training.columns == validation.columns == ("", "T = 65", "T = 145")
    assert training.rows == (
        ("1 head", "50.0 / 75.0 (47.8)", "50.0 / 75.0 (43.7)"),
        ("4 heads", "50.0 / 75.0 (75.5)", "50.0 / 75.0 (70.3)"),
    )
    assert validation.rows == (
        ("1 head", "25.0 (50.5)", "25.0 (45.9)"),
        ("4 heads", "25.0 (68.0)", "25.0 (63.5)"),
    )


@every_study
def test_a_section_says_what_its_models_have_in_place_of_the_scale_s_own(study):
    changed = study.changed(Scale.SMOKE, precision="bfloat16")
    records = planned(changed, Scale.SMOKE)
    section = study.document(*records, Scale.SMOKE)
    assert section.title == f"{study.title}, products in bfloat16"
    assert section.notes[0].startswith("Changed from the smoke scale")
    assert changed.document(*records, Scale.SMOKE).title == study.title


def test_other_epochs_are_said_and_counted_in_steps():
    changed = cifar.STUDY.changed(Scale.SMOKE, epochs=2)
    experiment, records = planned(changed, Scale.SMOKE)
    assert {record.cell.train.steps for record in records} == {2 * 1000 // 32}
    assert cifar.STUDY.document(experiment, records, Scale.SMOKE).title == f"{cifar.STUDY.title}, 62 steps of 32"


@pytest.mark.parametrize("study", [cifar.STUDY, cifar_places.STUDY], ids=lambda study: study.name)
def test_beside_other_patches_stand_no_published_numbers(study):
    """T = 65 of patches of 8 pixels is a frame of 64 of them, of the tables one of 32."""
    experiment, records = planned(study, Scale.PAPER)
    experiment = replace(experiment, settings={**experiment.settings, "task": {"patch": 8}})
    section = study.document(experiment, records, Scale.PAPER)
    assert section.title == f"{study.title}, patches of 8 pixels"
    assert not any("(" in text for grid in section.grids for row in (grid.title, *grid.rows) for text in row)
    assert "published" not in {series.kind for chart in section.charts for series in chart.series}
    assert not any("published" in chart.caption for chart in section.charts)
    assert not any("of the published means" in claim.evidence for claim in section.claims)


def test_heads_without_a_published_number_stand_alone():
    some = graded(marco.STUDY, Scale.PAPER, lambda at: (0.5, 0.25), lambda at: at["heads"] in (8, 10))
    section = marco.STUDY.document(*some, Scale.PAPER)
    grids = {grid.title.split(",")[0]: {row[0]: row[1] for row in grid.rows} for grid in section.grids}
    assert len(section.grids) == 6
    for layout in passages.LAYOUTS:
        assert grids[f"{layout}: training accuracy"] == {"8 heads": "50.0 / 50.0 (99.8)", "10 heads": "50.0 / 50.0"}
        assert grids[f"{layout}: training MRR at the end"] == {"8 heads": "75.0", "10 heads": "75.0"}
        assert grids[f"{layout}: validation accuracy"] == {"8 heads": "25.0 (50.6)", "10 heads": "25.0"}


PARTS = {
    "one cell": lambda at: (at["heads"], at["length"]) in {(1, 64), (1, 8)},
    "a diagonal": lambda at: (at["heads"] % 4 == 2) is (at["length"] in (8, 64)),
    "few heads": lambda at: at["heads"] <= 2,
    "one length": lambda at: at["length"] in (64, 1024),
    "one layout": lambda at: at.get("layout") != "candidates",
}


@every_study
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_paper_scale_has_a_section(study, part):
    section = study.document(*graded(study, Scale.PAPER, lambda at: (0.9, 0.4), PARTS[part]), Scale.PAPER)
    assert "nan" not in section.headline
    assert "nan" not in " ".join(claim.evidence for claim in section.claims)
    cells = [cell for grid in section.grids for row in grid.rows for cell in row[1:]]
    assert "nan" not in " ".join(cells)
    if study.name in TABLES:
        assert any(cell.startswith("- ") for cell in cells) == (part == "a diagonal")


# Data


def places(sweep) -> set[str]:
    return set(sweep.experiment.places)


def test_models_of_images_are_known_by_the_content_of_the_data(tmp_path):
    study = cifar.STUDY
    same, other = random_cifar(20), random_cifar(20, seed=1)
    keys = {}
    for name in ("batches", "archive", "other"):
        folder = tmp_path / name
        folder.mkdir()
        if name == "archive":
            write_cifar_archive(folder, batch_bytes(*same))
        else:
            write_cifar_folder(folder, *(same if name == "batches" else other))
        bound = study.with_data(folder)
        keys[name] = places(bound.sweep(Scale.SMOKE))
        assert study.tasks == (), "what is bound is another"
    assert keys["batches"] == keys["archive"]
    assert not keys["batches"] & keys["other"]
    assert not keys["batches"] & places(study.sweep(Scale.SMOKE)), "a stand-in is no data"
    drawn, fixed = cifar_places.STUDY.with_data(tmp_path / "batches").tasks
    assert (drawn.fixed_places, fixed.fixed_places) == (False, True)
    both = cifar_places.STUDY.with_data(tmp_path / "batches").sweep(Scale.SMOKE)
    assert places(both) > keys["batches"], "the models of the tables are shared"
    once = [both.experiment.coordinates(cell.key) for cell in both.cells if cell.key not in keys["batches"]]
    assert {(at["places"], at["length"]) for at in once} == {("once", 144)}, "there is one place in the smallest frame"


def test_models_of_passages_are_known_by_corpus_and_embeddings(tmp_path):
    vocabulary = SPECIAL + WORDS
    bert = [write_bert(tmp_path / f"bert{dim}", bert_tensors(dim, len(vocabulary), 64), vocabulary) for dim in (4, 6)]
    files = []
    for seed in (0, 1):
        corpus = some_passages(negatives=15, seed=seed)
        texts = corpus.passages
        rows = (
            {"query": query, "positive": texts[good[0]], "negatives": [texts[place] for place in bad]}
            for query, good, bad in zip(corpus.queries, corpus.positives, corpus.negatives, strict=True)
        )
        files.append(write_records(tmp_path / f"texts{seed}.jsonl", rows))
    bound = [marco.STUDY.with_data(file, embeddings=words) for file in files for words in bert]
    for each in bound:
        candidates, pairs = each.tasks
        assert (candidates.layout, pairs.layout) == passages.LAYOUTS
        steps = marco.effort_of(each.efforts[Scale.PAPER], candidates).steps
        assert steps == 30 * 100 // 128, "100 of 125 queries are learned from"
    first = bound[0].sweep(Scale.SMOKE)
    assert first.experiment.values("layout") == passages.LAYOUTS
    assert len({frozenset(places(each.sweep(Scale.SMOKE))) for each in bound}) == 4


@every_study
def test_a_stand_in_has_no_examples(study):
    for task in study.stand_ins():
        with pytest.raises(InputError, match="--data"):
            task.examples(10, 10)


def test_a_folder_is_filled_only_where_nothing_of_the_users_is(tmp_path):
    files = [RemoteFile("", "a.gz")]
    assert to_be_fetched(tmp_path / "new", files)
    assert to_be_fetched(tmp_path, files)
    (tmp_path / "a.gz.part").touch()
    assert to_be_fetched(tmp_path, files)
    (tmp_path / "mine.txt").touch()
    assert not to_be_fetched(tmp_path, files)


def test_mined_negatives_are_kept_where_one_says(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("HEADCOUNT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "usual"))
    assert cache_folder() == tmp_path / "usual" / "headcount"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "headcount"


# Figure 6


@pytest.fixture(scope="module")
def images():
    return ImageTask(some_images(side=32))


@pytest.fixture(scope="module")
def frames(images):
    return cifar.framed(images, cifar.SIDES[:2], count=2)


def test_frames_hold_the_whole_image_and_have_the_right_sizes(images, frames):
    for side, row in zip(cifar.SIDES[:2], frames, strict=True):
        assert [frame.shape for frame in row] == [(side, side, 3)] * 2
        for frame, image in zip(row, images.images, strict=False):
            assert frame.dtype == np.uint8
            windows = np.lib.stride_tricks.sliding_window_view(frame, (32, 32, 3))[:, :, 0]
            assert np.any(np.all(windows == image, axis=(2, 3, 4))), "it is in there, whole"
    ((again, _),) = cifar.framed(images, cifar.SIDES[1:2], count=2)
    assert np.array_equal(again, frames[1][0]), "the same place each time"


@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.PAPER])
def test_the_notes_say_whether_places_are_fixed(scale):
    for study, words in ((cifar.STUDY, "a new place each time"), (cifar_places.STUDY, "or once per image")):
        assert words in " ".join(study.choices(scale))


def test_a_picture_of_frames_has_the_same_bytes_each_time(frames):
    sides, rows = cifar.SIDES[:2], frames
    drawn = frames_png(rows, sides)
    assert drawn == frames_png(rows, sides)
    assert drawn != frames_png([row[::-1] for row in rows], sides)


def test_a_picture_is_kept_in_a_folder(tmp_path, images):
    study = replace(cifar.STUDY, tasks=(images,))
    assert study.pictures(tmp_path) == ()
    study.keep_pictures(tmp_path)
    (picture,) = study.pictures(tmp_path)
    with Image.open(io.BytesIO(picture.png)) as opened:
        width, height = opened.size
    assert width > height > 300, "five frames of four images"
    marco.STUDY.keep_pictures(tmp_path)
    assert marco.STUDY.pictures(tmp_path) == ()
    assert [path.name for path in tmp_path.iterdir()] == [cifar.FRAMES]
