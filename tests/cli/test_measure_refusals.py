"""Requests that cannot be right: exit code 2, one line that names the flag and the value, and nothing is written."""

import pytest

from ..helpers.commands import a_sentence, contents, headcount, unchecked
from .test_measure import TINY

BAD = {
    "max-plus-min --heads 0": ("--heads", "0"),
    "max-plus-min --heads x": ("--heads", '"x"'),
    "max-plus-min --heads 1:2:3:4": ("--heads", "1:2:3:4"),
    "max-plus-min --heads 6:1": ("--heads", "6:1"),
    "max-plus-min --heads 2,1:3": ("--heads", "2,1:3"),
    "max-plus-min --head-dim 4 --total-dim 8": ("--head-dim", "--total-dim"),
    "max-plus-min --head-dim 0": ("--head-dim", "0"),
    "max-plus-min --seeds 0": ("--seeds", "0"),
    "max-plus-min --effort thorou": ("--effort", "thorou", '"thorough"'),
    "max-plus-min --effort quick --seeds 2": ("--effort", "--seeds"),
    "max-plus-min --minutes 1 --ranks 1,2": ("--minutes", "--ranks"),
    "max-plus-min --minutes 0": ("--minutes", "0"),
    "max-plus-min --minutes nan": ("--minutes", "nan"),
    "max-plus-min --steps 0": ("--steps", "0"),
    "max-plus-min --learning-rates fast": ("--learning-rates", "fast"),
    "max-plus-min --learning-rates nan": ("--learning-rates", "nan"),
    "max-plus-min --learning-rates 0.1,0.1": ("--learning-rates", "0.1"),
    "max-plus-min --validation-examples 5": ("--validation-examples", "20", "5"),
    "max-plus-min --positions additiv": ("--positions", "additiv", '"additive"'),
    "max-plus-min --precision bfloat16": ("--precision", "bfloat16"),
    "max-plus-min --windows half": ("--windows", "half"),
    "max-plus-min --windows 0:1,0.7:0.2": ("--windows", "0.7", "0.2"),
    "max-plus-min --windows 0:1,0:0.1": ("--windows", "2 of 16"),
    "max-plus-min --windows 0:1": ("--windows", "2", "1"),
    "max-plus-min --dim 3": ("--dim", "max-plus-min"),
    "max-plus-min --multiplier 2": ("--multiplier", "max-plus-min"),
    "max-plus-min --figure picture.gif": ("picture.gif", ".svg"),
    "max-plus-mins": ("max-plus-mins", '"max-plus-min"'),
    "sum-of-maxima --intrinsic-dim 0": ("--intrinsic-dim", "0"),
    "sum-of-maxima --directions sideways": ("--directions", "sideways"),
    "sum-of-maxima --ranks 1,9 --heads 1": ("--ranks", "9"),
    "sum-of-maxima --noise 1": ("--noise", "sum-of-maxima"),
    "sum-of-maxima --head-dim 1000000000000000000": ("--head-dim", "1000000000000000000", "2,147,483,647"),
    "sum-of-maxima --layers 1000000000000": ("--layers", "1000000000000", "2,147,483,647"),
    "farthest-point --dim 4 --hidden 1000000000000": ("--hidden", "1000000000000", "2,147,483,647"),
    "farthest-point --dim 4 --ranks 5": ("--ranks", "4", "5"),
    "farthest-point --dim 4 --ranks 0": ("--ranks", "0"),
    "farthest-point --dim 4 --ranks 2,2": ("--ranks", "2,2"),
    "farthest-point --dim 4 --ranks 1,2 --total-dim 4": ("--ranks", "--total-dim"),
    "farthest-point --dim 4 --total-dim 4 --heads 3": ("--total-dim", "3", "4"),
    "farthest-point --dim 4 --lengths 1": ("1",),
    "farthest-point --dim 4 --beta 2": ("--beta", "farthest-point"),
    "farthest-point --dim 4 --multiplier 0": ("--multiplier", "0"),
    "farthest-point --dim 4 --train-examples -1": ("--train-examples", "-1"),
    "farthest-point --dim 4 --hidden -1": ("--hidden", "-1"),
    "farthest-point --dim 4 --head-dim 5": ("--head-dim", "4", "5"),
    "farthest-point --dim 1": ("--dim", "1"),
    "farthest-point --dim 4 --points unifrom": ("--points", "unifrom", '"uniform"'),
    "farthest-point --dim 4 --points doubled": ("doubled",),
    "farthest-point --dim 4 --points orthogonal --lengths 3": ("orthogonal", "2"),
    "nearest-neighbour --dim 4 --lengths 2": ("2",),
    "nearest-neighbour --dim 4 --lengths 6 --points orthogonal": ("5", "orthogonal"),
    "nearest-neighbour --dim 4 --lengths 4 --points doubled": ("doubled", "3"),
    "biased-nearest-neighbour --dim 4 --terms 2": ("--terms", "2"),
    "biased-nearest-neighbour --dim 4 --lengths 4": ("3",),
    "in-context-regression --inputs 2 --noise -1": ("--noise", "-1"),
    "in-context-regression --inputs 0": ("--inputs", "0"),
    "farthest-pint --dim 4": ("farthest-pint", '"farthest-point"'),
    "{files}/good.npz --intrinsic-dim 3": ("--intrinsic-dim", "good.npz"),
    "{files}/good.npz --lengths 4": ("4",),
    "{files}/good.npz --lengths 9 --shorter leading": ("9",),
    "{files}/good.npz --labels": ("y",),
    "max-plus-min --labels": ("--labels",),
    "max-plus-min --answered-at query": ("--answered-at", "max-plus-min"),
    "{files}/good.npz --regression --labels --dim 3": ("--dim",),
    "{files}/good.npz --targets price": ("--targets", "price"),
    "{files}/good.npz --sequence who": ("--sequence", "who"),
    "{files}/good.npz --answered-at end": ("--answered-at", "end"),
    "{files}/good.npz --vocabulary 0": ("good.npz",),
    "{files}/table.csv --targets prise": ("--targets", '"prise"', '"price"'),
    "{files}/table.csv": ("--targets", "price"),
    "{files}/good.npz --shorter some": ("--shorter", "some"),
    "{files}/good.npz --validation-fraction 2": ("--validation-fraction", "2"),
    "{files}/good.npz --train-examples 0": ("--train-examples", "0"),
    "{files}/nan.npz": ("1", "120"),
    "{files}/constant.npz": ("1",),
    "{files}/objects.npz": ("objects.npz",),
    "{files}/ragged.npz": ("ragged.npz",),
    "{files}/few.npz": ("9",),
    "{files}/missing.npz": ("missing.npz",),
    "{files}/mine.py:mistaken": ("my mistake",),
    "{files}/mine.py:absent": ("absent", "mine.py"),
    "{files}/mine.py:task --dim 3": ("--dim",),
    "missing.jsonl": ("missing.jsonl",),
    "missing.tar.gz": ("missing.tar.gz",),
    "missing/folder": ("missing/folder",),
}


@pytest.mark.parametrize("request_", BAD)
def test_a_request_that_cannot_be_right_is_one_sentence(tmp_path, files, monkeypatch, no_training, request_):
    monkeypatch.chdir(tmp_path)
    task, *options = request_.format(files=files).split()
    with unchecked():  # as a user runs it
        result = headcount("measure", task, *options)
    a_sentence(result, 2, *BAD[request_])
    assert result.err.count("\n") == 1, "one line"
    assert contents(tmp_path) == {}


def test_a_refusal_leaves_a_folder_of_results_as_it_was(own, no_training):
    before = contents(own)
    for options in (("--heads", "0"), ("--steps", "0"), ("--lengths", "0"), ("--figure", "x.gif")):
        a_sentence(
            headcount("measure", "max-plus-min", *TINY, *options, "--out", own),
            2,
            options[0] if options[1] != "x.gif" else "x.gif",
        )
    assert contents(own) == before


def test_an_unknown_option_and_an_unknown_verb_are_named():
    for words in (("measure", "max-plus-min", "--head", "2"), ("mesure", "max-plus-min")):
        result = headcount(*words)
        assert (result.code, result.out) == (2, "")
        assert next(word for word in ("--head", "mesure") if word in words) in result.err
