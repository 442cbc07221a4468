"""`headcount bounds`, `headcount prove`, `headcount tasks` and `headcount doctor`."""

import pytest

from headcount._version import __version__
from headcount.answer.claim import Claim, Verdict
from headcount.cli.app import command
from headcount.cli.verbs import VERBS
from headcount.tasks import PRESETS
from headcount.theory.claims import NOT_RUN

from ..helpers.commands import a_sentence, headcount, strict_json

SETTING = ["--heads", 2, "--intrinsic-dim", 4, "--length", 128, "--head-dim", 8, "--eps", 1e-2]
RANK = ["--heads", 8, "--rank", 8, "--dim", 64, "--length", 2, "--eps", 0.1]


def test_the_bounds_are_told_with_their_sources_and_conditions():
    shown = headcount("bounds", *SETTING)
    assert shown.code == 0
    assert "too few heads: exponent k: 0.4211" in " ".join(shown.out.split())
    for words in ("Theorem 1", "Theorem 2(1)", "Theorem 2(2)", "Theorem 2(3)", "Lemma 9", "Corollary 1", "conjecture"):
        assert words in " ".join(shown.out.split())
    bounds = {bound["name"]: bound for bound in strict_json(headcount("bounds", *SETTING, "--json").out)}
    assert bounds["too few heads: exponent k"]["applies"]
    assert not bounds["enough heads: exponent"]["applies"]
    assert bounds["depth: minimum heads per layer"]["kind"] == "conjecture"


def test_a_vacuous_bound_says_nothing_and_from_which_length_it_would():
    shown = headcount("bounds", *SETTING[:4], "--length", 8, "--head-dim", 8)
    assert shown.code == 0
    assert "says nothing" in shown.out
    assert "length 100" in " ".join(shown.out.split())


def test_with_enough_heads_no_length_helps():
    shown = headcount("bounds", "--heads", 5, "--intrinsic-dim", 4, "--length", 64)
    assert shown.code == 0
    assert "no length helps" in " ".join(shown.out.split())
    assert "it takes length" not in " ".join(shown.out.split())


def test_with_a_rank_the_second_papers_bounds_are_told():
    shown = headcount("bounds", *RANK)
    assert shown.code == 0
    assert "low rank: minimum error: 0.178" in shown.out
    for words in ("full rank", "Theorem 2", "Theorem 3", "majority vote", "conjecture"):
        assert words in shown.out
    assert "2510.06662" not in shown.out
    bounds = {bound["name"]: bound for bound in strict_json(headcount("bounds", *RANK, "--json").out)}
    assert bounds["low rank: heads needed"]["value"] == 12955
    assert bounds["low rank, high accuracy: heads"]["value"] is None
    assert not bounds["full rank: heads enough"]["applies"]


@pytest.mark.parametrize(
    "numbers",
    [
        "--heads 1 --intrinsic-dim 1 --length 96",
        "--heads 1 --intrinsic-dim 4 --length 96",
        "--heads 8 --rank 1 --dim 64 --length 2",
        "--heads 8 --rank 8 --dim 24 --length 2",
        "--heads 8 --rank 64 --dim 64 --length 2",
        "--heads 8 --rank 200 --dim 256 --length 2",
        "--heads 8 --rank 8 --dim 24 --length 16",
        "--heads 4 --rank 2 --dim 8 --length 16",
    ],
)
def test_a_bound_is_drawn_for_any_setting(tmp_path, numbers):
    assert headcount("bounds", *numbers.split(), "--plot", tmp_path / "bound.svg").code == 0
    assert "<svg" in (tmp_path / "bound.svg").read_text()


def test_two_points_are_drawn_where_the_dimension_has_no_more(tmp_path):
    drawn = headcount("bounds", *RANK, "--length", 65, "--plot", tmp_path / "bound.svg")
    assert "R^64 has no 65 orthogonal points" in drawn.err
    assert "The nearest of two orthogonal points" in (tmp_path / "bound.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--heads", 8, "--length", 2], ("--intrinsic-dim", "--rank")),
        ([*RANK, "--intrinsic-dim", 4], ("--intrinsic-dim", "--rank")),
        ([*RANK, "--rank", 65], ("--rank", "64", "65")),
        ([*RANK, "--heads", 0], ("--heads", "0")),
        ([*RANK, "--length", 1], ("--length", "1")),
        ([*RANK, "--terms", 2], ("--terms", "2")),
        (["--heads", 8, "--length", 2, "--rank", 1], ("--rank", "--dim")),
        ([*SETTING, "--eps", 2], ("--eps", "2.0")),
        ([*SETTING, "--heads", 0], ("--heads", "0")),
        ([*SETTING, "--plot", "k.bmp"], ("k.bmp",)),
        ([*SETTING, "--plot", "k.svg", "--intrinsic-dim", 10**18], ("--intrinsic-dim", str(10**18))),
        ([*SETTING, "--gamma", -1], ("--gamma", "-1")),
        (["--class", "soft", "--heads", 1, "--length", 8], ("--class", "soft", "hard")),
        ([*SETTING, "--terms", 5], ("--terms", "--rank")),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_a_sentence(arguments, words):
    a_sentence(headcount("bounds", *arguments), 2, *words)


HARD = ["--class", "hard", "--heads", 2, "--length", 4, "--intrinsic-dim", 3, "--alphabet", 4]
BOUNDED = ["--class", "bounded", "--heads", 1, "--length", 128, "--intrinsic-dim", 2, "--head-dim", 2]


def test_the_floors_of_a_class_are_told_and_drawn(tmp_path):
    for arguments in (HARD, BOUNDED):
        shown = headcount("bounds", *arguments, "--plot", tmp_path / "class.svg")
        assert shown.code == 0
        assert "<svg" in (tmp_path / "class.svg").read_text()
    hard = strict_json(headcount("bounds", *HARD, "--json").out)
    assert [bound["value"] for bound in hard[:2]] == sorted((bound["value"] for bound in hard[:2]), reverse=True)
    bounded = {bound["name"]: bound for bound in strict_json(headcount("bounds", *BOUNDED, "--json").out)}
    assert bounded["bounded heads: least error"]["value"] > 0.01
    needed, enough = (bounded[f"{name}"]["value"] for name in (
        "bounded heads: decades of slope needed", "one head: decades of slope enough"
    ))  # fmt: skip
    assert needed < enough
    silent = headcount("bounds", *BOUNDED[:2], "--heads", 2, *BOUNDED[4:])
    assert "says nothing" in silent.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--class", "soft", *HARD[2:]], ("--class", "soft", "hard")),
        ([*HARD[:-1], 30], ("--alphabet", "30", "8")),
        ([*HARD[:-1], 10**18], ("--alphabet", str(10**18), "8")),
        ([*HARD, "--heads", 10**18], ("--heads", str(10**18))),
        ([*HARD, "--length", 10**18], ("--length", str(10**18))),
        ([*HARD, "--intrinsic-dim", 10**18], ("--intrinsic-dim", str(10**18))),
        ([*HARD, "--rise", 1], ("--rise", "bounded")),
        ([*BOUNDED, "--alphabet", 4], ("--alphabet", "hard")),
        ([*BOUNDED, "--slope", -1], ("--slope", "-1")),
        ([*BOUNDED, "--values", 0], ("--values", "0")),
        ([*BOUNDED, "--eps", 0], ("--eps", "0")),
        ([*BOUNDED, "--outer-slope", 0], ("--outer-slope", "0")),
        ([*HARD, "--eps", 0], ("--eps", "0")),
        ([*BOUNDED[:6], "--length", 8], ("--intrinsic-dim",)),
        ([*BOUNDED, "--rank", 2], ("--class", "--rank")),
        ([*SETTING, "--slope", 10], ("--slope", "--class")),
        ([*BOUNDED, "--head-dim", 1, "--plot", "phase.svg"], ("--head-dim", "1")),
    ],
)
def test_a_class_that_cannot_be_is_refused_in_a_sentence(arguments, words):
    a_sentence(headcount("bounds", *arguments), 2, *words)


@pytest.fixture
def claims(monkeypatch):
    """Claims with these verdicts; the true ones are run in tests/theory/claims."""

    def use(*verdicts):
        def claim(verdict):
            return Claim(statement="a claim", source="Lemma 0", check=lambda: ("seen 1 of [2]", verdict))

        quick = tuple(claim(verdict) for verdict in verdicts)
        monkeypatch.setattr("headcount.theory.cli.prove.CLAIMS", quick)

    return use


def test_the_ledger_is_told_and_written(claims, tmp_path):
    claims(Verdict.HOLDS, Verdict.ESTIMATED, Verdict.UNDECIDED)
    shown = headcount("prove", "--write", tmp_path / "claims.md")
    assert shown.code == 0
    assert "3 claims: 1 holds, 1 estimated, 1 undecided" in shown.out
    assert "seen 1 of [2]" in shown.out
    assert (tmp_path / "claims.md").read_text().count("**holds**") == 1
    told = strict_json(headcount("prove", "--json").out)
    assert [entry["verdict"] for entry in told["claims"]] == ["holds", "estimated", "undecided"]
    assert [each["source"] for each in told["not_run"]] == [each.source for each in NOT_RUN]
    for each in NOT_RUN:
        assert each.source in shown.out
        assert each.statement in (tmp_path / "claims.md").read_text()


def test_a_claim_that_fails_ends_in_1(claims):
    claims(Verdict.HOLDS, Verdict.FAILS)
    shown = headcount("prove")
    assert shown.code == 1
    assert "1 fails" in shown.out


def test_every_task_is_listed_with_its_options():
    listed = strict_json(headcount("tasks", "--json").out)
    assert listed.keys() == PRESETS.keys()
    assert listed["max-plus-min"]["options"] == {"length": 16, "windows": None}
    shown = headcount("tasks").out
    assert all(name in shown for name in PRESETS)


def test_the_assumptions_are_tested_on_a_task():
    tested = strict_json(headcount("tasks", "quadratic-basins", "--json").out)
    assert all(clause["holds"] for clause in tested["clauses"])
    assert tested["support"] | {"value": 3, "exact": True} == tested["support"]
    assert "Assumption 2" in headcount("tasks", "max-plus-min").out
    a_sentence(headcount("tasks", "max-plus-mins"), 2, '"max-plus-min"')


def test_the_support_dimension_of_a_task_is_told_with_its_certificate(files):
    shown = " ".join(headcount("tasks", "max-plus-min").out.split())
    assert "support dimension 2: 2 of 16 tokens matter" in shown
    assert "2 enclosed gradients exclude 0" in shown
    of_mine = strict_json(headcount("tasks", f"{files / 'mine.py'}:task", "--json").out)
    assert "clauses" not in of_mine
    assert of_mine["support"] | {"value": 1, "certified": True, "components": None} == of_mine["support"]
    a_sentence(headcount("tasks", files / "good.npz"), 2, "gradient")


@pytest.mark.slow
def test_the_doctor_trains_a_model():
    result = headcount("doctor", "--json")
    checks = {each["check"]: each for each in strict_json(result.out)}
    assert checks.keys() == {"versions", "device", "back end", "cluster", "disk", "training"}
    assert result.code == (0 if all(each["fine"] for each in checks.values()) else 1)
    assert checks["training"]["fine"], checks["training"]["found"]


def test_the_doctor_says_what_is_wrong(monkeypatch):
    def no_luck(*_, **__):
        raise RuntimeError("no luck [/b]")

    monkeypatch.setattr("headcount.doctor.run_sweep", no_luck)
    result = headcount("doctor")
    assert result.code == 1
    assert "no luck [/b]" in result.out


def test_a_back_end_that_cannot_be_is_refused_by_the_name_it_was_given_by(monkeypatch, tmp_path):
    """Before any work, also that of saying the support dimension."""
    monkeypatch.setattr("headcount.api.task_facts", lambda *_: pytest.fail("work"))
    measure = ("measure", "sum-of-maxima", "--out", tmp_path / "out")
    a_sentence(headcount(*measure, "--backend", "fusd"), 2, "--backend", "fusd", "fused")
    monkeypatch.setenv("HEADCOUNT_KERNELS_LIBRARY", "/none.so")
    a_sentence(headcount(*measure, "--backend", "fused"), 2, "--backend", "/none.so")
    for given, offending in (("nonsense", "nonsense"), ("fused", "/none.so")):
        monkeypatch.setenv("HEADCOUNT_BACKEND", given)
        refused = headcount(*measure)
        a_sentence(refused, 2, "HEADCOUNT_BACKEND", offending)
        assert "--backend" not in refused.err
    examined = {each["check"]: each for each in strict_json(headcount("doctor", "--json").out)}
    assert {name for name, each in examined.items() if not each["fine"]} == {"back end", "training"}
    assert "Error" not in str(examined)
    assert not (tmp_path / "out").exists()


def test_the_version_and_every_verb_are_told():
    assert headcount("--version").out == f"headcount {__version__}\n"
    listed = headcount("--help").out
    for verb in VERBS:
        assert f" {verb} " in listed
        assert headcount(verb, "--help").code == 0


def test_options_of_tasks_are_spelt_as_measure_takes_them():
    shown = headcount("tasks").out.split()
    flags = {word for word in shown if word.startswith("--")}
    assert {"--intrinsic-dim", "--windows", "--noise"} <= flags
    assert flags <= {flag for option in command("measure").params for flag in option.opts}
    assert not [word for word in shown if "_dim" in word]


def test_a_bound_whose_condition_fails_shows_the_condition_and_no_value():
    arguments = ("bounds", "--heads", 2, "--length", 16, "--intrinsic-dim", 4)
    failing = [bound for bound in strict_json(headcount(*arguments, "--json").out) if not bound["applies"]]
    failing = [bound for bound in failing if bound["value"] is not None]
    assert failing
    text = " ".join(headcount(*arguments).out.split())
    for bound in failing:
        assert f"{bound['name']}: does not apply" in text
        assert f"{bound['name']}: {bound['value']:.4g}" not in text
