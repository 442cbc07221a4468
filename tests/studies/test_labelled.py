"""The studies of real data: what they train, how their claims are judged, and which study a folder tells of."""

import base64
import dataclasses
import io
import re

import numpy as np
import pytest
from headcount.analysis.comparison import Claim, PublishedTable, Verdict
from headcount.studies.labelled import Accuracies, LabelledEffort, LabelledStudy, accuracies, beside, cache_folder
from headcount.studies.labelled_claims import (
    growth_claim,
    levelling_claim,
    nearness_claim,
    overfitting_claim,
    reversal_claim,
    transition_claim,
)
from PIL import Image

from headcount.analysis.signals import reversal_scores
from headcount.engine import plan_sweep
from headcount.report.render.html import page
from headcount.report.render.pictures import frames_png
from headcount.store import Cell, Outcome, Record, Store
from headcount.studies import LABELLED, STUDIES, Scale, cifar, marco
from headcount.studies.folder import sections_of, studies_in
from headcount.tasks import ImageTask

from .. import made_up
from ..datasets.texts import bert_tensors, write_bert, write_records
from ..helpers.cifar_files import batch_bytes, random_cifar, write_cifar_archive, write_cifar_folder
from ..report.laws import check_page
from ..tasks.labelled import SPECIAL, WORDS, some_images, some_passages
from .telling import show

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
every_study = pytest.mark.parametrize("study", LABELLED.values(), ids=LABELLED)
every_scale = pytest.mark.parametrize("scale", Scale)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "cache"))
    # The keys of all the others take their time.
    monkeypatch.setattr("headcount.studies.folder.STUDIES", {"table5": STUDIES["table5"]})


def graded(cell: Cell, training: float, validation: float = 0.5, fitted: float | None = None) -> Record:
    """A finished record with these accuracies."""
    errors = {"error": 1 - validation, "final_error": 1 - validation, "cross_entropy": 1.0, "train_error": 1 - training}
    errors |= {"fitted_error": 1 - (training if fitted is None else fitted), "fitted_cross_entropy": 1.0}
    if "layout" in cell.task:
        errors |= {"mrr": 0.5, "fitted_mrr": 0.75}
    return dataclasses.replace(made_up.settled(cell), metrics=errors)


def as_published(study: LabelledStudy) -> list[Record]:
    """Every cell of the paper scale that the tables have a number for, with that number."""
    module = {"cifar": cifar, "marco": marco}[study.name]
    records = []
    for cell in study.sweep(Scale.PAPER).cells:
        place = cell.model.heads, study.printed(cell.length)
        training, validation = (table.at(*place)[0] for table in (module.TRAINING, module.VALIDATION))
        if np.isfinite(training):
            unit = 100 if training > 1 or study.name == "cifar" else 1
            records.append(graded(cell, training / unit, validation / unit))
    return records


def known(study: LabelledStudy, name: str = "data", **changes) -> LabelledStudy:
    """The study as bound to data called `name`, of which there is nothing but its specs."""
    return dataclasses.replace(study, specs=tuple(spec | {"content": name, **changes} for spec in study.specs))


# What is trained


PUBLISHED = {
    "cifar": ((1, 2, 4, 8, 10, 11, 12, 13, 14, 16, 20, 24), (65, 145, 257, 577, 1025)),
    "marco": ((1, 2, 4, 6, 8, 10, 12, 14, 16), (8, 16, 32, 64)),
}


@every_study
def test_its_paper_scale_is_the_published_grid(study):
    heads, lengths = PUBLISHED[study.name]
    module = {"cifar": cifar, "marco": marco}[study.name]
    for spec in study.specs:
        own = [cell for cell in study.sweep(Scale.PAPER).cells if cell.task == spec]
        assert {(cell.model.heads, study.printed(cell.length)) for cell in own} == {
            (h, t) for h in heads for t in lengths
        }
        assert {cell.seed for cell in own} == set(range(5))
    for table in (module.TRAINING, module.VALIDATION):
        assert set(table.heads) <= set(heads)
        assert table.lengths == lengths


@every_study
@every_scale
def test_its_cells_are_what_the_effort_says(study, scale):
    cells = study.sweep(scale).cells
    assert len({cell.key for cell in cells}) == len(cells)
    for spec in study.specs:
        effort = study.effort_of(scale, spec)
        own = [cell for cell in cells if cell.task == spec]
        assert {(cell.model.heads, cell.length, cell.seed) for cell in own} == {
            (h, t, s) for h in effort.heads for t in effort.lengths for s in range(effort.seeds)
        }
        assert {cell.train for cell in own} == {effort.train}
        assert effort.train.warmup == effort.steps // 20


@every_scale
def test_models_are_the_published_ones(scale):
    for cell in LABELLED["cifar"].sweep(scale).cells:
        model = cell.model
        assert (model.layers, model.head_dim, model.width, model.dropout) == (4, 16, 16 * model.heads, 0.1)
        assert (model.positions, model.answered_at, model.masks_padding) == ("additive", "sequence", False)
    for cell in LABELLED["marco"].sweep(scale).cells:
        model = cell.model
        assert (model.layers, model.head_dim, model.width, model.dropout) == (2, 32, 32 * model.heads, 0.0)
        pairs = cell.task["layout"] == "pairs"
        assert (model.answered_at, model.masks_padding) == (("query", True) if pairs else ("tokens", False))


def test_epochs_become_steps_by_the_number_of_queries():
    effort = LabelledEffort(
        lengths=(8,), heads=(1,), seeds=1, steps=7, batch=10, train_examples=500, validation_examples=20
    )
    assert effort.of(100) is effort
    counted = dataclasses.replace(effort, epochs=3)
    assert [counted.of(count).steps for count in (100, 205, 500, 9999)] == [30, 61, 150, 150]
    assert counted.of(100).train.steps == 30
    study = LABELLED["marco"]
    for spec in study.specs:
        whole = study.effort_of(Scale.PAPER, spec)
        written = study.efforts[Scale.PAPER].pairs if spec["layout"] == "pairs" else study.efforts[Scale.PAPER]
        assert whole.steps == written.steps, "the steps that are written down are those of the published 28,000"
        fewer = study.effort_of(Scale.PAPER, spec | {"queries": 1000})
        assert fewer.steps == written.epochs * 800 // written.batch, "a fifth is set apart"
        assert study.effort_of(Scale.LAPTOP, spec | {"queries": 1000}) == study.effort_of(Scale.LAPTOP, spec)
    assert LABELLED["cifar"].efforts[Scale.PAPER].steps == 60 * 50_000 // 256


@every_study
@every_scale
def test_its_cost_is_known_without_data(study, scale):
    sweep = study.sweep(scale)
    plan = plan_sweep(sweep, sizes=study.all_sizes())
    assert sweep.tasks == ()
    assert (plan.cells, plan.settled) == (len(sweep.cells), 0)
    assert plan.seconds > 0
    assert plan.bytes > 0


# Accuracies


def test_accuracies_are_means_over_seeds_by_heads_and_printed_length():
    study = LABELLED["cifar"]
    cells = [
        c for c in study.sweep(Scale.PAPER).cells if c.model.heads in (2, 1) and c.length in (64, 144) and c.seed < 2
    ]

    def at(cell: Cell) -> Record:
        value = 0.1 * cell.model.heads + cell.length / 1000 + 0.02 * cell.seed
        return graded(cell, value, value / 2, value / 4)

    lost = cells[-1]
    records = [at(cell) for cell in reversed(cells[:-1])] + [made_up.settled(lost, Outcome.DIVERGED)]
    found = accuracies(records, study.printed)
    assert (found.heads, found.lengths, found.seeds) == ((1, 2), (65, 145), 2)
    # Of the last cell one seed is left.
    expected = np.array([[0.174, 0.254], [0.274, 0.344]])
    np.testing.assert_allclose(found.training, expected)
    np.testing.assert_allclose(found.errors, 1 - expected)
    np.testing.assert_allclose(found.validation, expected / 2)
    np.testing.assert_allclose(found.fitted, expected / 4)
    assert np.isnan(found.fitted_mrr).all(), "images have none"
    assert (lost.model.heads, study.printed(lost.length), lost.seed) == (2, 145, 1)
    assert found.training_seen == cells[0].train.steps // 20 * 256
    assert found.validation_seen == 10_000
    assert 0 < found.training_noise < found.validation_noise < 0.02


def test_a_cell_that_is_not_there_has_no_accuracy():
    cells = [c for c in LABELLED["marco"].sweep(Scale.PAPER).cells if c.task["layout"] == "pairs" and c.seed == 0]
    kept = [c for c in cells if (c.model.heads, c.length) in {(1, 8), (2, 16)}]
    found = accuracies([graded(cell, 0.5) for cell in kept])
    assert (found.heads, found.lengths, found.seeds) == ((1, 2), (8, 16), 1)
    assert np.isnan(found.training).tolist() == [[False, True], [True, False]]
    assert found.fitted_mrr[0, 0] == 0.75


def of(rows, heads=(1, 2, 4), lengths=(8, 16, 32), validation=None, seen=10_000) -> Accuracies:
    training = np.array(rows, float)
    validation = training if validation is None else np.array(validation, float)
    parts = {"heads": heads[: len(training)], "lengths": lengths[: training.shape[1]], "training": training}
    return Accuracies(
        **parts, fitted=training, validation=validation, fitted_mrr=training, seeds=2, training_seen=seen,
        validation_seen=seen,
    )  # fmt: skip


@pytest.mark.parametrize("unit", [1, 100])
def test_published_per_cent_are_shares_beside_ours(unit):
    values = np.array([[0.25, 0.5], [0.75, 1.0]]) * unit
    published = PublishedTable(
        source="a table", statistic="mean", heads=(1, 4), lengths=(8, 32), values=values, std=np.full((2, 2), np.nan)
    )
    np.testing.assert_allclose(
        beside(of(np.zeros((3, 3))), published),
        [[0.25, np.nan, 0.5], [np.nan, np.nan, np.nan], [0.75, np.nan, 1.0]],
    )


@every_study
def test_every_published_accuracy_is_a_share_beside_ours(study):
    for spec in study.specs:
        found = accuracies([r for r in as_published(study) if r.cell.task == spec], study.printed)
        module = {"cifar": cifar, "marco": marco}[study.name]
        np.testing.assert_allclose(beside(found, module.TRAINING), found.training)
        np.testing.assert_allclose(beside(found, module.VALIDATION), found.validation)
        assert np.all((found.training > 0) & (found.training <= 1))


# Claims


STEEP = [[0.6, 0.5, 0.4], [0.8, 0.75, 0.7], [0.99, 0.98, 0.97]]
LEVEL = [[0.6, 0.6, 0.6], [0.8, 0.8, 0.8], [0.99, 0.99, 0.99]]
RISING = [[0.4, 0.5, 0.6], [0.7, 0.75, 0.8], [0.97, 0.98, 0.99]]
TURNING = [[0.6, 0.5, 0.4], [0.8, 0.75, 0.7], [0.97, 0.98, 0.99]]
PEAKED = [[0.5, 0.5], [0.7, 0.6], [0.6, 0.5]]
NAN = float("nan")


def transition(found):
    return transition_claim(found, 4, 0.05)


def growth(found):
    return growth_claim(found, 4)


def levelling(found):
    return levelling_claim(found, 4)


def reversal(found):
    return reversal_claim(found, np.full(found.training.shape, 0.5), 4)


def nearness(found):
    return nearness_claim("training", found.training, np.full(found.training.shape, 0.5), whole=True)


def nearness_of_less(found):
    return nearness_claim("training", found.training, np.full(found.training.shape, 0.5), whole=False)


def surface(found):
    return marco._surface_claim(marco._surface(found))


def following(**changes) -> Accuracies:
    """Errors on a surface c T^b exp(a h / T^delta)."""
    numbers = {"a": -1.4, "b": 0.3, "c": 0.5, "delta": 0.25} | changes
    heads, lengths = np.array([2, 4, 6, 8]), np.array([8, 16, 32])
    exponent = numbers["a"] * heads[:, None] / lengths ** numbers["delta"]
    errors = numbers["c"] * lengths ** numbers["b"] * np.exp(exponent)
    return of(1 - np.minimum(errors, 1), heads=(2, 4, 6, 8))


JUDGED = {
    "transition": (transition, of(STEEP), HOLDS),
    "transition at the first length alone": (transition, of([row[:1] for row in STEEP]), HOLDS),
    "transition: fewer do": (transition, of([STEEP[0], STEEP[2], STEEP[2]]), DIFFERS),
    "transition: none do": (transition, of([STEEP[0], STEEP[0], STEEP[1]]), DIFFERS),
    "transition: one length is not fitted": (transition, of([*STEEP[:2], [0.99, 0.99, 0.94]]), DIFFERS),
    "transition: it was not tried": (transition, of(STEEP[:2]), UNDECIDED),
    "transition: no fewer were tried": (transition, of(STEEP[2:], heads=(4,)), UNDECIDED),
    "growth": (growth, of(STEEP), HOLDS),
    "growth: it grows easier": (growth, of(RISING), DIFFERS),
    "growth: one of two grows easier": (growth, of([STEEP[0], RISING[1]]), DIFFERS),
    "growth: no change": (growth, of(LEVEL), UNDECIDED),
    "growth: within the noise of few examples": (growth, of(STEEP, seen=20), UNDECIDED),
    "growth: one length": (growth, of([row[:1] for row in STEEP]), UNDECIDED),
    "growth: many heads alone": (growth, of(STEEP[2:], heads=(4,)), UNDECIDED),
    "growth: the others are known": (growth, of([[0.6, 0.5, NAN], *STEEP[1:]]), HOLDS),
    "levelling": (levelling, of(STEEP), HOLDS),
    "levelling: the toll grows": (levelling, of([*LEVEL[:2], [0.99, 0.9, 0.7]]), DIFFERS),
    "levelling: one length": (levelling, of([row[:1] for row in STEEP]), UNDECIDED),
    "levelling: one side": (levelling, of(STEEP[:2]), UNDECIDED),
    "levelling: a hole": (levelling, of([*STEEP[:2], [0.99, 0.99, NAN]]), UNDECIDED),
    "reversal": (reversal, of(TURNING), HOLDS),
    "reversal: none": (reversal, of(STEEP), DIFFERS),
    "reversal: from the start": (reversal, of(RISING), DIFFERS),
    "reversal: two lengths": (reversal, of([row[:2] for row in TURNING]), UNDECIDED),
    "reversal: few heads alone": (reversal, of(TURNING[:2]), UNDECIDED),
    "reversal: many heads alone": (reversal, of(TURNING[2:], heads=(4,)), UNDECIDED),
    "reversal: the many have a hole": (reversal, of([*TURNING[:2], [NAN, 0.98, 0.99]]), UNDECIDED),
    "reversal: the others are known": (reversal, of([[0.6, NAN, 0.4], *TURNING[1:]]), HOLDS),
    "overfitting": (overfitting_claim, of(PEAKED), HOLDS),
    "overfitting: the largest is best": (overfitting_claim, of(STEEP), DIFFERS),
    "overfitting: at one length of two": (overfitting_claim, of([*PEAKED[:2], [0.6, 0.6]]), DIFFERS),
    "overfitting: within the noise": (overfitting_claim, of(PEAKED, seen=20), UNDECIDED),
    "overfitting: two head counts": (overfitting_claim, of(PEAKED[1:]), UNDECIDED),
    "overfitting: a hole": (overfitting_claim, of([*PEAKED[:2], [0.6, NAN]]), UNDECIDED),
    "nearness": (nearness, of([[0.46, 0.54], [0.5, NAN]]), HOLDS),
    "nearness: one is off": (nearness, of([[0.44, 0.55], [0.5, 0.5]]), DIFFERS),
    "nearness: nothing printed": (nearness, of([[NAN, NAN]]), UNDECIDED),
    "nearness: of a smaller run": (nearness_of_less, of([[0.5, 0.5]]), UNDECIDED),
    "nearness: of a smaller run, far off": (nearness_of_less, of([[0.1, 0.1]]), UNDECIDED),
    "surface": (surface, following(), HOLDS),
    "surface: more heads err more": (surface, following(a=0.05, c=0.1), DIFFERS),
    "surface: longer is easier": (surface, following(b=-0.5, delta=0.0), DIFFERS),
    "surface: it scatters": (
        surface, of(1 - np.array([[0.9, 0.01, 0.9], [0.01, 0.9, 0.01], [0.9, 0.01, 0.9]]), heads=(2, 4, 6)), DIFFERS,
    ),
    "surface: too few cells": (surface, of(STEEP[:2]), UNDECIDED),
    "surface: heads that are left out": (surface, of([[0.5] * 3] * 4, heads=(1, 12, 14, 16)), UNDECIDED),
}  # fmt: skip


@pytest.mark.parametrize("kind", JUDGED)
def test_a_claim_holds_differs_or_is_undecided(kind):
    claim, found, verdict = JUDGED[kind]
    judged = claim(found)
    assert judged.verdict is verdict, judged.evidence
    assert judged.statement.endswith(".")
    assert judged.evidence
    assert "nan" not in judged.evidence


def test_every_claim_has_every_verdict():
    seen = {(claim, verdict) for claim, _, verdict in JUDGED.values() if claim is not nearness_of_less}
    assert len(seen) == 3 * len({claim for claim, _ in seen})


@pytest.mark.parametrize("kind", [kind for kind, (_, found, _) in JUDGED.items() if min(found.training.shape) > 1])
def test_no_claim_falls_over_a_cell_that_is_missing_or_has_no_errors(kind):
    claim, found, _ = JUDGED[kind]
    places = [(1, 1)] if claim is surface else np.ndindex(found.training.shape)  # a fit takes its time
    for place in places:
        for value in (NAN, 0.0, 1.0):
            holed = found.training.copy()
            holed[place] = value
            if np.isnan(holed).all(axis=0).any() or np.isnan(holed).all(axis=1).any():
                continue  # a head count or a length of which nothing has finished is none of the table's
            judged = claim(found._replace(training=holed, validation=holed))
            assert judged.verdict in Verdict
            assert "nan" not in judged.evidence, judged.evidence


def verdicts(claims: tuple[Claim, ...]) -> dict[str, Verdict]:
    return {claim.statement: claim.verdict for claim in claims}


def test_the_claims_hold_of_the_published_numbers_of_cifar():
    study = LABELLED["cifar"]
    records = as_published(study)
    assert len(records) == 12 * 5 * 5, "the tables have a number for every cell"
    section = study.section(records, Scale.PAPER)
    found = verdicts(section.claims)
    (turned,) = [statement for statement in found if "reversal" in statement]
    # Of the printed means, which are rounded, 12 and 14 heads have no reversal at all.
    assert found.pop(turned) is DIFFERS
    assert set(found.values()) == {HOLDS}
    assert len(found) == 6
    scores = reversal_scores(1 - cifar.TRAINING.values / 100)
    assert dict(zip(cifar.TRAINING.heads, scores > 0, strict=True)) == {
        heads: heads >= 10 and heads not in (12, 14) for heads in cifar.TRAINING.heads
    }
    assert "60 % of the training set wrong with 1 head" in section.headline
    assert "0.2 % with 24 heads" in section.headline


def test_the_claims_hold_of_the_published_numbers_of_marco():
    study = LABELLED["marco"]
    section = study.section(as_published(study), Scale.PAPER)
    assert set(verdicts(section.claims).values()) == {HOLDS}
    assert len(section.claims) == 2 * 6, "in both layouts"
    assert sum("12 heads are the first" in claim.statement for claim in section.claims) == 2
    assert {claim.statement.split(":")[0] for claim in section.claims} == {
        "With candidates as tokens", "With query-passage pairs",
    }  # fmt: skip


def test_the_surface_of_the_published_numbers_is_near_the_published_one():
    study = LABELLED["marco"]
    for spec in study.specs:
        found = accuracies([record for record in as_published(study) if record.cell.task == spec])
        fit = marco._surface(found)
        assert fit.cells == 16, "2, 4, 6 and 8 heads at four lengths"
        assert fit.delta == pytest.approx(marco.PUBLISHED_DELTA, abs=0.1)
        assert fit.a == pytest.approx(marco.PUBLISHED_A, abs=0.3)
        assert fit.log_error < 0.15


@every_study
@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.LAPTOP])
def test_nearness_is_judged_at_paper_scale_alone(study, scale):
    for right in (True, False):
        section = study.section([graded(cell, right, right) for cell in study.sweep(scale).cells], scale)
        near = [claim for claim in section.claims if "of the published one" in claim.statement]
        assert len(near) == 2 * len(study.specs)
        assert {claim.verdict for claim in near} == {UNDECIDED}
        assert all("cells" in claim.evidence for claim in near)


# Sections


def check_with_pictures(text: str) -> tuple[str, list[bytes]]:
    """What a page says that may hold pictures, and the pictures: nothing is asked of anybody else."""
    shown = re.findall(r'<img src="data:image/png;base64,([A-Za-z0-9+/=]+)" alt="[^"]+">', text)
    bare = re.sub(r"<img [^>]*>", "", text)
    assert text.count("<img") == len(shown)
    return check_page(bare).said, [base64.b64decode(each) for each in shown]


@every_study
@every_scale
def test_its_section_is_told_in_words_and_on_a_page(study, scale):
    def learned(cell: Cell) -> Record:
        share = min(1.0, 0.3 + 0.06 * cell.model.heads - cell.length / 8192)
        return graded(cell, share, share / 2, share)

    section = study.section([learned(cell) for cell in study.sweep(scale).cells], scale)
    said = show(section)
    assert study.asks in said
    assert any(note.startswith(f"At {scale} scale") for note in section.notes) == (scale is not Scale.PAPER)
    assert any("Not published" in note for note in section.notes)
    names = [chart.name for chart in section.charts]
    assert len(names) == len(set(names))
    cells = [cell for grid in section.grids for row in grid.rows for cell in row[1:]]
    assert any("(" in cell for cell in cells), "published numbers stand beside ours"
    assert "published" in {series.kind for chart in section.charts for series in chart.series}
    if study.name == "cifar":
        assert ("reversal" in names) == (scale is Scale.PAPER)
    else:
        assert {"candidates-surface", "pairs-surface"} & set(names) == (
            {"candidates-surface", "pairs-surface"} if scale is Scale.PAPER else set(names) & {"candidates-surface"}
        )


def test_grids_have_ours_and_the_published_number_in_parentheses():
    study = LABELLED["cifar"]
    training, validation = study.section(
        [graded(cell, 0.5, 0.25, 0.75) for cell in study.sweep(Scale.SMOKE).cells], Scale.SMOKE
    ).grids
    assert training.columns == validation.columns == ("", "T = 65", "T = 145")
    assert training.rows == (
        ("1 head", "50.0 / 75.0 (47.8)", "50.0 / 75.0 (43.7)"),
        ("4 heads", "50.0 / 75.0 (75.5)", "50.0 / 75.0 (70.3)"),
    )
    assert validation.rows == (
        ("1 head", "25.0 (50.5)", "25.0 (45.9)"),
        ("4 heads", "25.0 (68.0)", "25.0 (63.5)"),
    )


def test_heads_without_a_published_number_stand_alone():
    study = LABELLED["marco"]
    cells = [c for c in study.sweep(Scale.PAPER).cells if c.model.heads in (8, 10) and c.seed == 0]
    section = study.section([graded(cell, 0.5, 0.25) for cell in cells], Scale.PAPER)
    grids = {grid.title.split(",")[0]: {row[0]: row[1] for row in grid.rows} for grid in section.grids}
    assert len(section.grids) == 6
    for layout in ("candidates", "pairs"):
        assert grids[f"{layout}: training accuracy"] == {"8 heads": "50.0 / 50.0 (99.8)", "10 heads": "50.0 / 50.0"}
        assert grids[f"{layout}: training MRR at the end"] == {"8 heads": "75.0", "10 heads": "75.0"}
        assert grids[f"{layout}: validation accuracy"] == {"8 heads": "25.0 (50.6)", "10 heads": "25.0"}
    show(section)


@every_study
@pytest.mark.parametrize("kept", ["one cell", "a diagonal", "few heads", "one length", "all but one"])
def test_a_part_of_the_paper_scale_has_a_section(study, kept):
    heads, lengths = PUBLISHED[study.name]
    chosen = {
        "one cell": lambda h, t: (h, t) == (heads[0], lengths[0]),
        "a diagonal": lambda h, t: heads.index(h) % len(lengths) == lengths.index(t),
        "few heads": lambda h, t: h <= 2,
        "one length": lambda h, t: t == lengths[-1],
        "all but one": lambda h, t: (h, t) != (heads[-1], lengths[0]),
    }[kept]
    cells = [
        cell
        for cell in study.sweep(Scale.PAPER).cells
        if cell.seed == 0 and chosen(cell.model.heads, study.printed(cell.length))
    ]
    section = study.section([graded(cell, 0.9, 0.4) for cell in cells], Scale.PAPER)
    show(section)
    assert any("- (" in cell for grid in section.grids for row in grid.rows for cell in row) == (
        kept in ("a diagonal", "all but one")
    )


def test_one_layout_of_marco_is_enough_for_a_section():
    study = LABELLED["marco"]
    for layout in ("candidates", "pairs"):
        own = [graded(cell, 0.5) for cell in study.sweep(Scale.SMOKE).cells if cell.task["layout"] == layout]
        section = study.section(own, Scale.SMOKE)
        assert {grid.title.split(":")[0] for grid in section.grids} == {layout}
        show(section)


# Folders


@every_study
@every_scale
def test_a_folder_tells_its_study_without_the_data(tmp_path, study, scale):
    bound = known(study)
    cells = bound.sweep(scale).cells
    command = f"headcount reproduce {study.name} --data somewhere"
    done = cells[:: max(2, len(cells) // 20)]
    made_up.write(tmp_path, [graded(cell, 0.5) for cell in done], {command: cells})
    with Store.open_for_reading(tmp_path) as store:
        ((found, at),) = studies_in(store)
    assert (found.name, at) == (study.name, scale)
    assert found.keys(scale) == bound.keys(scale)
    (section,), warnings = sections_of(tmp_path)
    assert warnings == []
    assert section.name == study.name
    assert section.title == f"{study.title}, {scale} scale"
    assert (section.account.missing, section.account.commands) == (len(cells) - len(done), (command,))
    show(section)


@every_study
def test_a_part_that_was_asked_for_is_the_studys_too(tmp_path, study):
    cells = known(study).sweep(Scale.LAPTOP).cells
    made_up.write(tmp_path, [graded(cells[0], 0.5)], {"a part": cells[:1]})
    (section,), _ = sections_of(tmp_path)
    assert (section.account.cells, section.account.missing) == (1, len(cells) - 1)
    assert section.account.commands == ("a part",)


def test_both_layouts_of_a_corpus_are_one_study_and_two_corpora_are_two():
    study = LABELLED["marco"]
    one, other = known(study), known(study, corpus="another")
    records = [graded(cell, 0.5) for each in (one, other) for cell in each.sweep(Scale.SMOKE).cells]
    told = study.told_by(records)
    assert [each.keys(Scale.SMOKE) for each in told] == [one.keys(Scale.SMOKE), other.keys(Scale.SMOKE)]
    assert [sorted(spec["layout"] for spec in each.specs) for each in told] == [["candidates", "pairs"]] * 2
    assert study.told_by(made_up.finished(made_up.study_cells("table5"))) == []


@pytest.mark.parametrize("layout", ["candidates", "pairs"])
def test_a_folder_with_one_layout_so_far_misses_the_other(tmp_path, layout):
    bound = known(LABELLED["marco"])
    cells = bound.sweep(Scale.SMOKE).cells
    done = [cell for cell in cells if cell.task["layout"] == layout]
    made_up.write(tmp_path, [graded(cell, 0.5) for cell in done], {"all of it": cells})
    (section,), warnings = sections_of(tmp_path)
    assert warnings == []
    assert (section.account.missing, section.account.commands) == (len(cells) - len(done), ("all of it",))


def test_two_data_sets_of_one_study_are_two_sections(tmp_path):
    asked = {name: known(LABELLED["cifar"], name).sweep(Scale.SMOKE).cells for name in ("one", "other")}
    made_up.write(tmp_path, [graded(cell, 0.5) for cells in asked.values() for cell in cells], asked)
    sections, _ = sections_of(tmp_path)
    assert [section.account.commands for section in sections] == [("one",), ("other",)]
    said, _ = check_with_pictures(page(sections, folder="results"))
    assert "2 results" in said


def test_images_of_ones_own_are_no_cifar(tmp_path):
    task = ImageTask(some_images())
    spec = task.spec()
    assert not LABELLED["cifar"].is_own(spec)
    assert not LABELLED["cifar"].is_own(spec | {"task": "cifar10", "patch": 2})
    assert not LABELLED["marco"].is_own(spec)
    assert LABELLED["cifar"].is_own(spec | {"task": "cifar10"})
    # The same data measured with other models is an experiment of one's own.
    cells = [
        dataclasses.replace(cell, train=dataclasses.replace(cell.train, steps=7))
        for cell in known(LABELLED["cifar"]).sweep(Scale.SMOKE).cells
    ]
    made_up.write(tmp_path, [graded(cell, 0.5) for cell in cells], {"measured": cells})
    (section,), _ = sections_of(tmp_path)
    assert section.name == "experiment-1"


@pytest.mark.parametrize("name", LABELLED)
def test_no_other_study_has_cells_of_real_data(name):
    assert name not in STUDIES


# Data


def test_keys_depend_on_the_content_of_the_data(tmp_path):
    study = LABELLED["cifar"]
    same, other = random_cifar(20), random_cifar(20, seed=1)
    keys = {}
    for name in ("batches", "archive", "other"):
        folder = tmp_path / name
        folder.mkdir()
        if name == "archive":
            write_cifar_archive(folder, batch_bytes(*same))
        else:
            write_cifar_folder(folder, *(same if name == "batches" else other))
        bound = study.bound(folder)
        keys[name] = bound.keys(Scale.SMOKE)
        assert {str(cell.task) for cell in bound.sweep(Scale.SMOKE).cells} == {str(bound.tasks[0].spec())}
        assert study.tasks == (), "what is bound is another"
    assert keys["batches"] == keys["archive"]
    assert not keys["batches"] & keys["other"]
    assert not keys["batches"] & study.keys(Scale.SMOKE)


def test_keys_of_passages_depend_on_corpus_and_embeddings(tmp_path):
    study = LABELLED["marco"]
    vocabulary = SPECIAL + WORDS
    bert = [write_bert(tmp_path / f"bert{dim}", bert_tensors(dim, len(vocabulary), 64), vocabulary) for dim in (4, 6)]
    files = []
    for seed in (0, 1):
        corpus = some_passages(negatives=9, seed=seed)
        texts = corpus.passages
        files.append(
            write_records(
                tmp_path / f"texts{seed}.jsonl",
                (
                    {"query": query, "positive": texts[good[0]], "negatives": [texts[place] for place in bad]}
                    for query, good, bad in zip(corpus.queries, corpus.positives, corpus.negatives, strict=True)
                ),
            )
        )
    bound = [study.bound(file, embeddings=words) for file in files for words in bert]
    assert len({each.keys(Scale.SMOKE) for each in bound}) == 4
    for each in bound:
        assert [task.spec()["layout"] for task in each.tasks] == ["candidates", "pairs"]
        assert each.tasks[0].spec()["queries"] == 125
        (told,) = study.told_by([graded(cell, 0.5) for cell in each.sweep(Scale.SMOKE).cells])
        assert told.keys(Scale.SMOKE) == each.keys(Scale.SMOKE)
        assert told.tasks == ()
        paper = [cell for cell in each.sweep(Scale.PAPER).cells if cell.task["layout"] == "candidates"]
        assert {cell.train.steps for cell in paper} == {30 * 100 // 128}


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


def test_frames_hold_the_whole_image_and_have_the_right_sizes(images):
    rows = cifar.framed(images, cifar.SIDES)
    assert len(rows) == len(cifar.SIDES)
    for side, row in zip(cifar.SIDES, rows, strict=True):
        assert [frame.shape for frame in row] == [(side, side, 3)] * cifar.SHOWN
        for frame, image in zip(row[:2], images.images, strict=False):
            assert frame.dtype == np.uint8
            windows = np.lib.stride_tricks.sliding_window_view(frame, (32, 32, 3))[:, :, 0]
            assert np.any(np.all(windows == image, axis=(2, 3, 4))), "it is in there, whole"
    ((again, *_),) = cifar.framed(images, cifar.SIDES[1:2])
    assert np.array_equal(again, rows[1][0]), "the same place each time"


def test_a_picture_of_frames_has_the_same_bytes_each_time(images):
    sides = cifar.SIDES[:2]
    rows = cifar.framed(images, sides, count=2)
    drawn = frames_png(rows, sides)
    assert drawn == frames_png(rows, sides)
    assert drawn != frames_png([row[::-1] for row in rows], sides)
    with Image.open(io.BytesIO(drawn)) as opened:
        assert opened.format == "PNG"
        width, height = opened.size
    assert 200 < width < 1000
    assert 200 < height < 1000
    assert 1000 < len(drawn) < 200_000


def test_rows_of_unequal_length_are_drawn_too(images):
    (row,) = cifar.framed(images, (32,), count=3)
    assert frames_png([row[:1], row], (32, 32)).startswith(b"\x89PNG")


def test_a_picture_kept_in_a_folder_is_on_its_page(tmp_path, images):
    study = dataclasses.replace(known(LABELLED["cifar"]), tasks=(images,))
    assert study.pictures(tmp_path) == ()
    cells = study.sweep(Scale.SMOKE).cells
    made_up.write(tmp_path, [graded(cell, 0.5) for cell in cells], {"all": cells})
    study.keep_pictures(tmp_path)
    (picture,) = study.pictures(tmp_path)
    assert picture.png == (tmp_path / "figure6.png").read_bytes()
    with Image.open(io.BytesIO(picture.png)) as opened:
        width, height = opened.size
    assert width > height > 300, "five frames of four images"
    sections, warnings = sections_of(tmp_path)
    said, pictures = check_with_pictures(page(sections, folder="results", warnings=warnings))
    assert pictures == [picture.png]
    assert picture.title in said
    assert picture.caption in said


@every_study
def test_where_there_is_no_picture_the_page_has_none(tmp_path, study):
    assert study.pictures(tmp_path) == ()
    if study.name == "marco":
        study.keep_pictures(tmp_path)
        assert list(tmp_path.iterdir()) == []
