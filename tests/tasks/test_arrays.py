"""A user's own arrays are a task: split once and for all, shortened by the rule that was chosen."""

import numpy as np
import pytest

from headcount.tasks import ArrayTask, Balanced, Classification

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_trees_equal
from .laws import Construction, TaskLaws

X = np.random.default_rng(0).normal(size=(120, 6, 2)).astype(np.float32)
Y = X[:, :, 0].max(axis=1)
STORED = (96, 24)
TWO = np.stack([Y, X[:, 0, 1]], axis=1)
LABELS = np.digitize(Y, [0.5, 1.5])


COUNTS = 2 + np.arange(120) % 5
RAGGED = [sequence[:count] for sequence, count in zip(X, COUNTS, strict=True)]
IDS = np.random.default_rng(2).integers(0, 4, (120, 6))
WORDS = [[f"tag {tag}" for tag in tags[:count]] for tags, count in zip(IDS, COUNTS, strict=True)]
RARE = np.arange(120) % 8 == 0
MASK = np.random.default_rng(3).random((120, 6)) < 0.7
MASK[:, 1] = MASK[:, 4] = True


class TestArrayTask(TaskLaws):
    constructions = {  # noqa: RUF012
        "given": Construction(lambda: ArrayTask(X, Y), other_length=None, stored=STORED),
        "leading": Construction(lambda: ArrayTask(X, Y, shorter="leading"), other_length=4, stored=STORED),
        "trailing": Construction(
            lambda: ArrayTask(X, TWO, shorter="trailing", name="two"), outputs=2, other_length=1, stored=STORED
        ),
        "labels": Construction(
            lambda: ArrayTask(X, LABELS, shorter="leading", labels=True),
            outputs=3,
            other_length=4,
            stored=STORED,
            labels=True,
        ),
        "unequal lengths": Construction(lambda: ArrayTask(RAGGED, Y, shorter="leading"), other_length=3, stored=STORED),
        "masked, at the query": Construction(
            lambda: ArrayTask(X, Y, mask=MASK, shorter="trailing", answered_at="query"),
            other_length=3,
            stored=STORED,
            answered_at="query",
        ),
        "token ids": Construction(
            lambda: ArrayTask(np.concatenate([IDS, np.arange(120)[:, None]], axis=1), Y, shorter="trailing"),
            other_length=3,
            stored=STORED,
        ),
        "at tokens": Construction(
            lambda: ArrayTask(X, X, shorter="leading", answered_at="tokens"),
            outputs=2,
            other_length=4,
            stored=STORED,
            answered_at="tokens",
        ),
        "labels at tokens": Construction(
            lambda: ArrayTask(X, IDS, shorter="trailing", answered_at="tokens"),
            outputs=4,
            other_length=3,
            stored=STORED,
            answered_at="tokens",
            labels=True,
        ),
        "words at the tokens of unequal lengths": Construction(
            lambda: ArrayTask(RAGGED, WORDS, shorter="leading"),
            outputs=4,
            other_length=3,
            stored=STORED,
            answered_at="tokens",
            labels=True,
        ),
        "a rare class": Construction(
            lambda: ArrayTask(X, RARE),
            outputs=2,
            other_length=None,
            stored=STORED,
            labels=True,
        ),
        "rare classes at tokens": Construction(
            lambda: ArrayTask(X, np.where(MASK, 0, IDS), answered_at="tokens", metric="balanced", mask=X[..., 0] < 2),
            outputs=4,
            other_length=None,
            stored=STORED,
            answered_at="tokens",
            labels=True,
        ),
    }

    @staticmethod
    def numbers(task):
        return task.examples(30, 20, 3)

    def test_examples_have_the_promised_shapes(self, task, other, construction):
        for one in (task, other):
            for part in one.examples(16, 16, 1):
                assert part.content.shape == (16, one.length, one.dim)
                assert part.targets.shape == (16, *construction.target_shape(one.length))
                assert part.content.dtype == np.float32


def rows(tokens) -> set[bytes]:
    return {np.asarray(sequence).tobytes() for sequence in tokens}


def test_split_is_disjoint_and_leaves_nothing_out():
    data = ArrayTask(X, Y, validation_fraction=0.25).examples(10_000, 10_000)
    train, validation = rows(data.train.content), rows(data.validation.content)
    assert (len(train), len(validation)) == (90, 30)
    assert not train & validation
    assert train | validation == rows(X)


def test_split_is_the_same_at_every_length():
    whole = ArrayTask(X, Y, shorter="leading")
    for length in (5, 3):
        short = whole.at(length).examples(50, 20, 3)
        long = whole.examples(50, 20, 3)
        assert_trees_equal(short.train.content, long.train.content[:, :length])
        assert_trees_equal(short.validation.content, long.validation.content[:, :length])
        assert_trees_equal(short.train.targets, long.train.targets)


def test_fewer_examples_are_the_first_of_the_same_split():
    few, many = ArrayTask(X, Y).examples(10, 5), ArrayTask(X, Y).examples(1000, 1000)
    assert_trees_equal(few.train.content, many.train.content[:10])
    assert_trees_equal(few.validation.content, many.validation.content[:5])


@pytest.mark.parametrize(("shorter", "kept"), [("leading", slice(0, 2)), ("trailing", slice(4, 6))])
def test_shorter_lengths_follow_the_rule(shorter, kept):
    short = ArrayTask(X, Y, shorter=shorter).at(2)
    assert rows(short.examples(1000, 1000).train.content) <= rows(X[:, kept])
    target_of = {tokens.tobytes(): target for tokens, target in zip(X[:, kept], Y, strict=True)}
    for part in short.examples(1000, 1000, 2):
        assert [target_of[tokens.tobytes()] for tokens in part.content] == part.targets[:, 0].tolist()


def test_a_shorter_task_can_grow_back():
    task = ArrayTask(X, Y, shorter="trailing")
    assert_trees_equal(task.at(2).at(6).examples(20, 20), task.examples(20, 20))


def test_spec_tells_data_apart():
    changed = X.copy()
    changed[5, 3, 1] += 1
    tasks = [
        ArrayTask(X, Y),
        ArrayTask(changed, Y),
        ArrayTask(X, -Y),
        ArrayTask(X, TWO),
        ArrayTask(X[:-1], Y[:-1]),
        ArrayTask(X, Y, shorter="leading"),
        ArrayTask(X, Y, shorter="trailing"),
        ArrayTask(X, Y, validation_fraction=0.3),
        ArrayTask(X, Y, name="other"),
        ArrayTask(X, LABELS, labels=False),
        ArrayTask(X, LABELS, labels=True),
        ArrayTask(X, Y, answered_at="query"),
        ArrayTask(X, Y, mask=MASK),
        ArrayTask(IDS, Y),
        ArrayTask(IDS, Y, vocabulary=9),
        ArrayTask(IDS.astype(float), Y),
        ArrayTask(X, LABELS[::-1], labels=True),
        ArrayTask(X, IDS[:, 0], metric="balanced"),
        ArrayTask(X, IDS[:, 0]),
        ArrayTask(X, IDS, answered_at="tokens"),
        ArrayTask(X, IDS, answered_at="tokens", labels=False),
        ArrayTask(X, IDS, answered_at="tokens", metric="balanced"),
    ]
    assert len({str(task.spec()) for task in tasks}) == len(tasks)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (LABELS * 10 - 7, (-7, 3, 13)),
        (LABELS.astype(np.uint8), (0, 1, 2)),
        (LABELS * 1.0, (0, 1, 2)),
        (LABELS > 0, (False, True)),
        (np.array(["low", "mid", "upper"])[LABELS], ("low", "mid", "upper")),
        (np.array(["low", "mid", "upper"], object)[LABELS], ("low", "mid", "upper")),
        (np.array(["z", "a"])[1 * (LABELS > 0)].tolist(), ("a", "z")),
    ],
)
def test_labels_are_places_among_the_sorted_classes(labels, classes):
    task = ArrayTask(X, labels, labels=True, shorter="leading")
    for one in (task, task.at(3)):
        assert (one.classes, one.outputs, one.spec()["labels"]) == (classes, len(classes), len(classes))
        assert list(map(type, one.classes)) == list(map(type, classes)), "plain Python values"
        assert [one.classes[place] for place in one.y] == np.asarray(labels).tolist()


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (LABELS, 3),
        (LABELS > 0, 2),
        (LABELS[:, None], 3),
        (np.array(["low", "mid", "upper"])[LABELS], 3),
        (LABELS * 1.0, None),
        (np.arange(120) // 4, None),  # 30 classes of 4 examples
        (np.arange(120) // 9, None),  # 14 classes of 9 examples
        (np.arange(120) // 10, 12),
        (IDS[:, :2], None),
    ],
    ids=str,
)
def test_labels_are_detected_where_nobody_says_so(y, classes):
    task = ArrayTask(X, y)
    assert (None if task.classes is None else len(task.classes)) == classes
    assert ("labels" in task.spec()) == (classes is not None)
    said = " ".join(task.notes)
    assert ("cross-entropy" in said) == (classes is not None)
    if np.asarray(y).dtype.kind in "iub":
        assert ArrayTask(X, y, labels=False).classes is None
    if np.ndim(y) == 1:
        assert ("labels" in said) or np.asarray(y).dtype.kind == "U", "how to have it otherwise"


def test_whole_numbers_of_several_axes_are_numbers():
    whole = np.random.default_rng(1).integers(0, 9, (100, 3, 1))
    task = ArrayTask(whole, whole[:, 0, 0] > 4, labels=False)
    assert task.vocabulary == 0
    assert_trees_equal(task.examples(9, 9), ArrayTask(whole.astype(float), 1.0 * (whole[:, 0] > 4)).examples(9, 9))


# Sequences of unequal length, token ids, and where the answer is read.


def test_unequal_lengths_are_absent_tokens_at_the_end():
    task = ArrayTask(RAGGED, Y)
    assert (task.padded, task.length, task.dim) == (True, 6, 2)
    for place, sequence in enumerate(RAGGED):
        assert np.array_equal(task.x[place, : len(sequence)], sequence)
        assert np.all(np.isnan(task.x[place, len(sequence) :]))
    masked = ArrayTask(X, Y, mask=np.arange(6) < COUNTS[:, None])
    assert_trees_equal(masked.x, task.x)
    assert masked.spec() == task.spec()
    assert not ArrayTask(X, Y, mask=np.ones((120, 6))).padded
    assert any("2 to 6 tokens" in note for note in task.notes)


@pytest.mark.parametrize("answered_at", ["sequence", "query"])
@pytest.mark.parametrize("shorter", ["leading", "trailing"])
def test_shortened_sequences_keep_tokens_that_are_there(answered_at, shorter):
    task = ArrayTask(X, Y, mask=MASK, shorter=shorter, answered_at=answered_at)
    split = task.at(3).examples(200, 200)
    short = np.concatenate([split.train.content, split.validation.content])
    whole = task.examples(200, 200)
    whole = np.concatenate([whole.train.content, whole.validation.content])
    for got, tokens in zip(short, whole, strict=True):
        there = tokens[~np.isnan(tokens).all(-1)]
        kept = there[:3] if shorter == "leading" else there[-3:]
        if answered_at == "query":
            assert np.array_equal(tokens[-1], there[-1]), "the query is the last token"
            kept = kept if shorter == "trailing" or len(there) < 3 else there[[0, 1, -1]]
        kept_places = slice(3 - len(kept), None) if answered_at == "query" else slice(len(kept))
        assert np.array_equal(got[kept_places], kept)
        assert np.sum(~np.isnan(got).all(-1)) == len(kept) >= 2


@pytest.mark.parametrize("shorter", ["leading", "trailing"])
def test_a_query_stays_where_sequences_are_shortened(shorter):
    short = ArrayTask(X, Y, shorter=shorter, answered_at="query").at(3).examples(200, 200).train.content
    assert rows(short[:, -1]) <= rows(X[:, 5])
    assert rows(short[:, 0]) <= rows(X[:, 0 if shorter == "leading" else 3])


def test_ids_are_numbers_of_a_table():
    task = ArrayTask(IDS, Y)
    assert (task.vocabulary, task.dim, task.spec()["vocabulary"]) == (4, 1, 4)
    assert np.array_equal(task.x[..., 0], IDS)
    assert ArrayTask(IDS, Y, vocabulary=50).vocabulary == 50
    assert ArrayTask(IDS.astype(float), Y).vocabulary == 0
    assert_trees_equal(ArrayTask(IDS.astype(float), Y, vocabulary=4).x, task.x)
    marked = np.where(MASK, IDS, -100)
    assert_trees_equal(ArrayTask(marked, Y, mask=MASK).x[MASK], task.x[MASK])
    assert any("token ids from 0 to 3" in note for note in task.notes)
    of_lists = ArrayTask([ids[:count].tolist() for ids, count in zip(IDS, COUNTS, strict=True)], Y)
    assert (of_lists.vocabulary, of_lists.padded) == (4, True)


def test_one_number_per_token():
    assert_trees_equal(ArrayTask(X[..., 0], Y).x, X[..., :1])
    assert ArrayTask([sequence[:, 0] for sequence in RAGGED], Y).dim == 1


def test_what_other_libraries_have_is_read():
    torch, pandas = pytest.importorskip("torch"), pytest.importorskip("pandas")
    want = ArrayTask(X, Y)
    tensor = torch.from_numpy(X).requires_grad_()
    for x in (X.tolist(), list(X), tensor, list(tensor), list(X.astype(object)), X.astype(object)):
        assert_trees_equal(ArrayTask(x, Y).x, want.x)
    for y in (Y.tolist(), torch.from_numpy(Y), pandas.Series(Y), pandas.DataFrame({"y": Y}), Y.astype(object)):
        assert_trees_equal(ArrayTask(X, y).y, want.y)
    frame = pandas.DataFrame(X[..., 0])
    assert_trees_equal(ArrayTask(frame, pandas.Series(LABELS).astype("category")).x, X[..., :1])
    words = pandas.Series(np.array(["low", "mid", "upper"])[LABELS], dtype="string")
    assert ArrayTask(frame, words).classes == ("low", "mid", "upper")
    unequal = ArrayTask(RAGGED, Y).x
    nested = np.empty(120, object)
    nested[:] = [sequence.tolist() for sequence in RAGGED]
    for x in (nested, [torch.from_numpy(each) for each in RAGGED], [each.tolist() for each in RAGGED]):
        assert_trees_equal(ArrayTask(x, Y).x, unequal)
    assert_trees_equal(ArrayTask(pandas.Series([each[:, 0].tolist() for each in RAGGED]), Y).x, unequal[..., :1])
    assert_trees_equal(ArrayTask(X, Y, mask=torch.from_numpy(MASK).int()).x, ArrayTask(X, Y, mask=MASK).x)


def test_notes_of_the_reader_come_first():
    assert ArrayTask(X, LABELS, notes=("read from b.csv",)).notes[0] == "read from b.csv"


def test_labels_of_tokens_are_detected_and_padding_has_none():
    whole = ArrayTask(X, IDS, answered_at="tokens")
    assert whole.classes == (0, 1, 2, 3)
    assert np.array_equal(whole.y, IDS)
    padded = [IDS[place, :count] for place, count in enumerate(COUNTS)]
    for task in (
        ArrayTask(RAGGED, padded),
        ArrayTask(
            X,
            np.where(np.arange(6) < COUNTS[:, None], IDS, 99),
            mask=np.arange(6) < COUNTS[:, None],
            answered_at="tokens",
        ),
        ArrayTask(RAGGED, WORDS),
    ):
        assert np.array_equal(task.y, np.where(np.arange(6) < COUNTS[:, None], IDS, -1))
    skipped = ArrayTask(X, np.where(MASK, IDS, -100), answered_at="tokens")
    assert np.array_equal(skipped.y, np.where(MASK, IDS, -1))
    assert not skipped.padded, "a token without a label is read all the same"
    for said in ({"labels": False}, {"labels": None}):
        numbers = ArrayTask(X, IDS * (1.0 if said["labels"] is None else 1), answered_at="tokens", **said)
        assert numbers.classes is None


@pytest.mark.parametrize("shorter", ["leading", "trailing"])
def test_labels_of_tokens_follow_them_where_sequences_are_shortened(shorter):
    ids = ArrayTask(IDS, IDS, mask=MASK, shorter=shorter, answered_at="tokens")
    for part in ids.at(3).examples(200, 200):
        tokens, there = part.content[..., 0], ~np.isnan(part.content[..., 0])
        assert np.array_equal(np.where(there, tokens, -1), part.targets)
        assert there.any(axis=1).all()


def test_every_class_counts_alike_where_one_is_frequent():
    assert isinstance(ArrayTask(X, RARE).objective, Balanced)
    assert any(
        "87.5 % of the labels are False" in note and "--metric error" in note for note in ArrayTask(X, RARE).notes
    )
    assert type(ArrayTask(X, RARE, metric="error").objective) is Classification
    assert ArrayTask(X, RARE, metric="error").spec().keys() == ArrayTask(X, LABELS).spec().keys(), "keys of before"
    assert type(ArrayTask(X, LABELS).objective) is Classification
    few = ArrayTask(X, np.arange(120) % 40 == 0)
    assert type(few.objective) is Classification
    assert any("3 of 120 labels, too few" in note for note in few.notes)
