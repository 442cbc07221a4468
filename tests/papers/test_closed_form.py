"""Studies that train nothing: stored piece by piece, continued where they stopped, and judged like the others."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from headcount.answer import Verdict
from headcount.errors import HeadcountError, StoreError
from headcount.papers.base import ClosedFormStudy, Scale
from headcount.papers.plugin import CLOSED_FORM as NAMED
from headcount.papers.plugin import COMPLETE
from headcount.papers.rank import random_features
from headcount.papers.rank.random_features import AS_SCRIPT, DIMS, DRAWS, FIRST_DEGREE_ERROR, PUBLISHED, STUDY
from headcount.papers.registry import CLOSED_FORM, STUDIES
from headcount.report.experiment import study_document
from headcount.report.reading import documents_of
from headcount.store import FILE_NAME, Store
from headcount.theory.rank import first_degree_error, random_heads, rank_one_floor

from ..helpers import fabricated


@dataclass(frozen=True, kw_only=True)
class Squares(ClosedFormStudy):
    """Three pieces; `calls` remembers which were computed, and one of them may be interrupted."""

    name: str = "squares"
    title: str = "Squares"
    asks: str = "What are they?"
    stops_at: int | None = None
    calls: list[int] = field(default_factory=list)

    def pieces(self, scale):
        return {f"piece {i}": lambda i=i: self.compute(i) for i in (1, 2, 3)}

    def compute(self, i: int) -> list[float]:
        if i == self.stops_at:
            raise KeyboardInterrupt
        self.calls.append(i)
        return [0.1 * i, i**2]

    def expected_seconds(self, scale):
        return 1.0

    def document(self, pieces, scale):
        return study_document(name=self.name, title=self.title, question=self.asks, headline=str(pieces))


def test_pieces_are_computed_once_and_kept(tmp_path):
    study, done, root = Squares(), [], tmp_path / "new" / "folder"
    found = study.compute_missing(root, Scale.SMOKE, done.append)
    assert found == {"piece 1": [0.1, 1], "piece 2": [0.2, 4], "piece 3": [0.1 * 3, 9]}
    assert (study.calls, done) == ([1, 2, 3], [1, 1, 1])
    assert study.compute_missing(root, Scale.SMOKE, done.append) == found
    assert study.stored_pieces(root, Scale.SMOKE) == found
    assert (study.calls, done) == ([1, 2, 3], [1, 1, 1])


def test_an_interrupted_run_keeps_its_pieces_and_the_next_computes_the_others(tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    Squares().compute_missing(whole, Scale.SMOKE)
    with pytest.raises(KeyboardInterrupt):
        Squares(stops_at=2).compute_missing(stopped, Scale.SMOKE)
    again = Squares()
    assert again.stored_pieces(stopped, Scale.SMOKE) == {"piece 1": [0.1, 1]}
    assert COMPLETE not in facts_of(stopped)
    again.compute_missing(stopped, Scale.SMOKE)
    assert again.calls == [2, 3]
    assert facts_of(stopped) == facts_of(whole)


def facts_of(root):
    with Store.open_for_reading(root) as store:
        return store.facts("squares-smoke")


def test_every_scale_is_an_experiment_of_its_own(tmp_path):
    study = Squares()
    study.compute_missing(tmp_path, Scale.SMOKE)
    assert study.stored_pieces(tmp_path, Scale.LAPTOP) == {}


def test_a_piece_that_is_no_longer_asked_for_is_left_out(tmp_path):
    study = Squares()
    written(tmp_path, {"piece 2": [0.2, 4], "piece 9": []}, study=study)
    assert study.stored_pieces(tmp_path, Scale.SMOKE) == {"piece 2": [0.2, 4]}


@pytest.mark.parametrize("ask", ["stored_pieces", "compute_missing"])
def test_damaged_results_are_refused_and_left_as_they_are(tmp_path, ask):
    study, file = Squares(), tmp_path / FILE_NAME
    file.write_bytes(b"words" * 1000)
    with pytest.raises(StoreError, match=FILE_NAME):
        getattr(study, ask)(tmp_path, Scale.SMOKE)
    assert file.read_bytes() == b"words" * 1000
    assert study.calls == []


@pytest.mark.parametrize("below", [False, True])
def test_a_place_that_cannot_be_written_is_told_in_words(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(HeadcountError, match="file"):
        Squares().compute_missing(tmp_path / "file" / "below" if below else tmp_path / "file", Scale.SMOKE)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture(scope="module")
def small():
    """The random features with at most 64 heads, all pieces computed in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(random_features.MAX_HEADS, Scale.SMOKE, 64)
        yield {name: compute() for name, compute in STUDY.pieces(Scale.SMOKE).items()}


def test_a_piece_is_the_least_errors_of_one_draw_of_heads(small):
    assert len(small) == len(DIMS) * (DRAWS[Scale.SMOKE] + 1)
    for dim in DIMS:
        for draw in range(DRAWS[Scale.SMOKE]):
            least = random_heads(64, dim, draw, distribution="spread").min_errors()
            piece = small[f"d = {dim}, draw {draw}"]
            assert piece["errors"] == [least[heads - 1] for heads in (1, 2, 4, 8, 16, 32, 64)]
            assert piece["floors"] == [rank_one_floor(heads, dim) for heads in (1, 2, 4, 8, 16, 32, 64)]
    for heads in (1, 4, 32):
        drawn = random_heads(64, 16, 1, distribution="spread")
        alone = type(drawn)(drawn.queries[:heads], drawn.keys[:heads]).min_errors()[-1]
        assert small["d = 16, draw 1"]["errors"][heads.bit_length() - 1] == pytest.approx(alone, abs=1e-9)


def test_the_section_shows_every_error_beside_its_floor(small):
    section = STUDY.document(small, Scale.SMOKE)
    assert section.headline.startswith("64 rank-one heads leave an error of ")
    assert len(section.claims) == 4
    (grid,), (chart,) = section.grids, section.charts
    assert grid.columns == ("d", "H = 1", "H = 4", "H = 16", "H = 64")
    for row in grid.rows[: len(DIMS)]:
        pieces = [small[f"d = {row[0]}, draw {draw}"]["errors"] for draw in (0, 1)]
        assert [float(cell) for cell in row[1:]] == pytest.approx(np.mean(pieces, axis=0)[::2], abs=5e-4)
    for dim, row in zip(DIMS, grid.rows[len(DIMS) :], strict=True):
        assert row[0] == f"{dim}, {AS_SCRIPT}"
        scripted = small[f"d = {dim}, {AS_SCRIPT}"]["errors"]
        assert [float(cell) for cell in row[1:]] == pytest.approx(scripted[::2], abs=5e-4)
    lines = {series.name: series for series in chart.series}
    assert lines.keys() == {f"d = {dim}{more}" for dim in DIMS for more in ("", ", floor")}
    for dim in DIMS:
        mean, floor = lines[f"d = {dim}"], lines[f"d = {dim}, floor"]
        assert floor.y == tuple(rank_one_floor(heads, dim) for heads in mean.x)
        assert all(f <= low <= y <= high for f, low, y, high in zip(floor.y, mean.low, mean.y, mean.high, strict=True))
    assert any("2 draws" in note for note in section.notes)


def test_what_is_left_in_high_dimension_is_the_error_of_degree_one():
    assert pytest.approx(first_degree_error(10**6), abs=5e-5) == FIRST_DEGREE_ERROR


def test_errors_fall_and_stay_above_the_floor_and_the_published_are_elsewhere(small):
    falls, slower, bounded, near = STUDY.document(small, Scale.SMOKE).claims
    assert (falls.verdict, slower.verdict, bounded.verdict) == (Verdict.HOLDS,) * 3
    assert near.verdict is Verdict.UNDECIDED
    assert "16,384 heads only" in near.evidence


def pretended(errors: dict[int, list[float]], scale: Scale) -> dict[str, dict[str, list[float]]]:
    return {
        f"d = {dim}, draw {draw}": {
            "errors": list(line),
            "floors": [rank_one_floor(2**power, dim) for power in range(len(line))],
        }
        for dim, line in errors.items()
        for draw in range(DRAWS[scale])
    }


def published_ends(factor: float = 1.0, first: float = 0.7) -> dict[str, dict[str, list[float]]]:
    """Fifteen head counts that end at the published points, or beside them."""
    lines = {dim: np.geomspace(first, factor * end, 15) for dim, end in PUBLISHED.items()}
    return pretended(lines, Scale.PAPER)


JUDGED = {
    "as published": (published_ends(), "HHHH"),
    "within a tenth": (published_ends(1.09), "HHHH"),
    "further off": (published_ends(1.11), "HHHD"),
    "one head errs less": (published_ends(first=0.5), "DHHH"),
    "below the floor": (published_ends(0.1), "HHDD"),
    "more heads err more": (published_ends(5), "DHHD"),
    "large d falls faster": (pretended(dict(zip(DIMS, [[0.7] * 14 + [0.2 - d / 1e4] for d in DIMS], strict=True)),
                                       Scale.PAPER), "HDHD"),
    "one dimension": ({k: v for k, v in published_ends().items() if k.startswith("d = 8,")}, "HUHH"),
}  # fmt: skip


@pytest.mark.parametrize("kind", JUDGED)
def test_its_claims_are_judged_on_what_is_there(kind):
    pieces, verdicts = JUDGED[kind]
    section = STUDY.document(pieces, Scale.PAPER)
    assert "".join(claim.verdict.value[0].upper() for claim in section.claims) == verdicts


def test_the_published_ends_are_shown_at_paper_scale_alone(small):
    section = STUDY.document(published_ends(), Scale.PAPER)
    drawn = [series for series in section.charts[0].series if series.kind == "published"]
    assert {series.y for series in drawn} == {(value,) for value in PUBLISHED.values()}
    assert {series.x for series in drawn} == {(16_384,)}
    assert [row[-1] for row in section.grids[0].rows] == [f"{value:.3f} ({value:g})" for value in PUBLISHED.values()]
    smaller = STUDY.document(small, Scale.SMOKE)
    assert "(" not in "".join(cell for row in smaller.grids[0].rows for cell in row)
    assert "published" not in smaller.grids[0].title


def test_a_part_of_the_pieces_is_told(small):
    names = [name for name in small if "draw" in name]
    for kept in (names[:1], names[1:2], names[:4], names[::2], names[-1:]):
        section = STUDY.document({name: small[name] for name in kept}, Scale.SMOKE)
        assert len(section.grids[0].rows) == len({name.split(",")[0] for name in kept})


def test_the_plugin_names_every_study_in_closed_form():
    assert set(NAMED) == set(CLOSED_FORM)


@pytest.mark.parametrize("study", CLOSED_FORM.values(), ids=CLOSED_FORM)
def test_its_cost_is_known_and_its_scales_grow(study):
    for cost in (study.expected_seconds, lambda scale: len(study.pieces(scale))):
        smoke, laptop, paper = map(cost, (Scale.SMOKE, Scale.LAPTOP, Scale.PAPER))
        assert 0 < smoke < laptop < paper


def written(root, pieces, scale=Scale.SMOKE, study=STUDY):
    with Store.open_for_writing(root) as store:
        name = store.begin(study.experiment(scale)).name
        for piece, content in pieces.items():
            store.put(name, piece, content)
    return root


def test_a_folder_without_trained_models_is_a_report(small, tmp_path):
    (section,), warnings = documents_of(written(tmp_path, small))
    assert warnings == []
    assert (section.name, section.title) == (f"{STUDY.name}-smoke", f"{STUDY.title}, smoke scale")


def test_a_folder_holds_computed_and_trained_studies_side_by_side(small, tmp_path):
    made = fabricated.study_sweep(STUDIES["rank-figure-d"])
    fabricated.write(tmp_path, fabricated.finished(made), {"headcount reproduce rank-figure-d": made})
    assert len(documents_of(written(tmp_path, {}))[0]) == 1, "a study without pieces has no document"
    sections, warnings = documents_of(written(written(tmp_path, small), published_ends(), Scale.PAPER))
    assert [each.name for each in sections] == ["rank-figure-d", f"{STUDY.name}-smoke", f"{STUDY.name}-paper"]
    assert warnings == []
