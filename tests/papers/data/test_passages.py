"""Every layout of passages gives the same set; a wrong file is refused with its name and line."""

import gc
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.papers.data.passages import PassageSet, is_passages, read_passages

from ...helpers.refusals import refused
from ...helpers.shared_data import convert_marco, needs_marco
from .texts import write, write_beir, write_official, write_records

LINES = [
    {"query_id": 4, "query": "who flies", "positive": "a heron", "negatives": ["a stone", "a lamp"]},
    {"query": "what burns", "positives": ["a lamp", "a fire"], "negatives": ["a heron", "a stone"]},
]


@pytest.fixture(autouse=True, scope="module")
def _collect():
    """A file left open is a warning, and so an error, when it is collected."""
    yield
    gc.collect()


def by_text(corpus: PassageSet) -> list[tuple[str, str, list[str]]]:
    """Ids, queries and the texts of their positives."""
    rows = zip(corpus.query_ids, corpus.queries, corpus.positives, strict=True)
    return [(name, query, [corpus.passages[place] for place in places]) for name, query, places in rows]


@settings(max_examples=15, deadline=None)
@given(
    passages=st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1), min_size=2, max_size=6, unique=True),
    data=st.data(),
)
def test_official_beir_and_json_lines_agree(passages, data):
    """The same queries and positives, whatever the layout and compression; queries without positives are skipped."""
    place = st.integers(0, len(passages) - 1)
    answers = data.draw(st.lists(st.lists(place, max_size=2, unique=True), min_size=1, max_size=3).filter(any))
    end = data.draw(st.sampled_from(["", ".gz"]))
    qrels = [(query, passage) for query, places in enumerate(answers) for passage in places]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / f"one/collection.tsv{end}", "".join(f"{n}\t{text}\n" for n, text in enumerate(passages)))
        write(folder / f"one/queries.dev.tsv{end}", "".join(f"{n}\tquery {n}\n" for n in range(len(answers))))
        write(folder / f"one/qrels.dev.tsv{end}", "".join(f"{query}\t0\t{passage}\t1\n" for query, passage in qrels))
        write_records(folder / f"two/corpus.jsonl{end}", ({"_id": f"{n}", "text": t} for n, t in enumerate(passages)))
        write_records(
            folder / f"two/queries.jsonl{end}", ({"_id": f"{n}", "text": f"query {n}"} for n in range(len(answers)))
        )
        header = "query-id\tcorpus-id\tscore\n"
        write(
            folder / f"two/qrels/dev.tsv{end}", header + "".join(f"{query}\t{passage}\t1\n" for query, passage in qrels)
        )
        lines = write_records(
            folder / f"three.jsonl{end}",
            (
                {"query_id": n, "query": f"query {n}", "positives": [passages[place] for place in places]}
                for n, places in enumerate(answers)
            ),
        )
        assert all(map(is_passages, (folder / "one", folder / "two", lines)))
        official, beir, three = map(read_passages, (folder / "one", folder / "two", lines))
    assert official.fingerprint == beir.fingerprint
    assert (official.name, beir.name, three.name) == ("one.dev", "two.dev", "three")
    assert by_text(official) == by_text(three)
    assert official.negatives is None
    assert by_text(official) == [
        (f"{n}", f"query {n}", [passages[place] for place in places]) for n, places in enumerate(answers) if places
    ]


class TestOfficialFiles:
    def test_grades_of_zero_and_unanswered_queries_are_skipped(self, tmp_path):
        assert by_text(read_passages(write_official(tmp_path))) == [
            ("7", "first of dev.small", ["passage number 12"]),
            ("8", "second, with é", ["passage number 13", "passage number 10"]),
        ]

    def test_files_without_a_split(self, tmp_path):
        folder = write_official(tmp_path)
        (folder / "queries.dev.small.tsv").rename(folder / "queries.tsv")
        assert len(read_passages(folder).queries) == 2
        (folder / "qrels.dev.small.tsv").rename(folder / "qrels.tsv")
        assert len(read_passages(folder).queries) == 2

    def test_a_split_is_chosen_among_those_that_have_both_files(self, tmp_path):
        folder = write_official(tmp_path, ("train", "dev.small"))
        write(folder / "queries.eval.tsv", "1\tnot judged\n")
        assert read_passages(folder, split="train").queries[0] == "first of train"
        with refused("dev.small, train"):
            read_passages(folder)
        with refused('"trian"', "dev.small, train", '"train"'):
            read_passages(folder, split="trian")
        (folder / "qrels.train.tsv").unlink()
        assert read_passages(folder).queries[0] == "first of dev.small"
        (folder / "queries.dev.small.tsv").unlink()
        with refused("eval, train", "dev.small"):
            read_passages(folder)

    def test_judgements_separated_by_spaces(self, tmp_path):
        folder = write_official(tmp_path)
        write(folder / "qrels.dev.small.tsv", "7 Q0 12 2\n8  0  13  1\n")
        positives = [texts for _, _, texts in by_text(read_passages(folder))]
        assert positives == [["passage number 12"], ["passage number 13"]]

    @pytest.mark.parametrize(
        ("name", "content", "given"),
        [
            ("qrels.dev.small.tsv", "7\t0\t12\t1\n5\t0\t12\t1\n", ["line 2", "query 5"]),
            ("qrels.dev.small.tsv", "7\t0\t99\t1\n", ["line 1", "passage 99", "collection.tsv"]),
            ("qrels.dev.small.tsv", "7\t12\n", ["line 1"]),
            ("qrels.dev.small.tsv", "7\t0\t12\t1\t1\n", ["line 1"]),
            ("qrels.dev.small.tsv", "\n7\t0\t12\tyes\n", ["line 2", "yes"]),
            ("qrels.dev.small.tsv", "7\t0\t12\t0\n", ["3 queries"]),
            ("queries.dev.small.tsv", "7\tone\n7\ttwo\n8\tthree\n", ["line 2", "id 7"]),
            ("queries.dev.small.tsv", "7 one\n", ["line 1", "tab"]),
            ("queries.dev.small.tsv", "7\t \n", ["line 1", "text"]),
            ("queries.dev.small.tsv", b"7\tone\n8\t\xff\xfe\n", ["line 2", "UTF-8", "byte 3"]),
            ("collection.tsv", "10\ta\n10\tb\n12\tc\n13\td\n", ["line 2", "id 10"]),
        ],
    )
    def test_bad_files(self, tmp_path, name, content, given):
        write(write_official(tmp_path) / name, content)
        with refused(name, *given):
            read_passages(tmp_path)

    @pytest.mark.parametrize("kind", ["queries", "qrels"])
    def test_missing_files(self, tmp_path, kind):
        write_official(tmp_path)
        (tmp_path / f"{kind}.dev.small.tsv").unlink()
        with refused(str(tmp_path), f"{kind}.tsv"):
            read_passages(tmp_path)

    @settings(max_examples=10, deadline=None)
    @given(share=st.floats(0, 1, exclude_max=True))
    def test_a_truncated_gzip_file(self, share):
        with tempfile.TemporaryDirectory() as folder:
            path = write_official(Path(folder), end=".gz") / "collection.tsv.gz"
            content = path.read_bytes()
            path.write_bytes(content[: int(share * len(content))])
            with refused("collection.tsv.gz"):
                read_passages(Path(folder))


class TestDrawing:
    @pytest.fixture
    def folder(self, tmp_path):
        write(tmp_path / "collection.tsv", "".join(f"{pid}\tpassage {pid}\n" for pid in range(400)))
        write(tmp_path / "queries.tsv", "".join(f"{qid}\tquery {qid}\n" for qid in range(50)))
        write(tmp_path / "qrels.tsv", "".join(f"{qid} 0 {7 * qid + part} 1\n" for qid in range(50) for part in (1, 0)))
        return tmp_path

    def test_counts_positives_and_seeds(self, folder):
        first, again, other = (read_passages(folder, max_queries=10, max_passages=60, seed=seed) for seed in (1, 1, 2))
        assert len(first.queries) == 10
        assert len(set(first.passages)) == 60
        for name, _, positives in by_text(first):
            assert positives == [f"passage {7 * int(name) + 1}", f"passage {7 * int(name)}"]
        assert first.fingerprint == again.fingerprint != other.fingerprint

    def test_every_passage_has_the_same_probability(self, folder):
        drawn = [0] * 400
        for seed in range(40):
            for text in read_passages(folder, max_queries=1, max_passages=42, seed=seed).passages:
                drawn[int(text.split()[1])] += 1
        tenths = [sum(drawn[start : start + 40]) for start in range(0, 400, 40)]
        assert sum(drawn) == 40 * 42
        assert all(abs(tenth - 168) < 5 * 168**0.5 for tenth in tenths)

    def test_limits(self, folder):
        everything = read_passages(folder)
        assert len(everything.passages) == 400
        assert read_passages(folder, max_queries=1000, max_passages=1000).fingerprint == everything.fingerprint
        assert len(read_passages(folder, max_queries=10, max_passages=20).passages) == 20
        assert len(read_passages(folder, max_queries=10, max_passages=15).passages) == 20, "what the queries need"

    def test_given_negatives_are_kept(self, tmp_path):
        lines = [{"query": f"q{n}", "positive": f"p{n}", "negatives": [f"n{n}", f"m{n}"]} for n in range(9)]
        corpus = read_passages(write_records(tmp_path / "own.jsonl", lines), max_queries=2, max_passages=7)
        assert len(corpus.passages) == 7
        assert corpus.negatives is not None
        for query, places in zip(corpus.queries, corpus.negatives, strict=True):
            assert [corpus.passages[place] for place in places] == [query.replace("q", "n"), query.replace("q", "m")]


def test_beir_titles_splits_and_missing_files(tmp_path):
    folder = write_beir(tmp_path)
    assert read_passages(folder).passages[-1] == "Fourteen passage number 14"
    write(folder / "qrels" / "train.tsv", "query-id\tcorpus-id\tscore\n9\t11\t1\n")
    assert read_passages(folder, split="train").query_ids == ("9",)
    with refused("dev, train"):
        read_passages(folder)
    write_records(folder / "corpus.jsonl", [{"id": "1", "text": "one"}])
    with refused("corpus.jsonl, line 1", "_id", "id, text"):
        read_passages(folder, split="dev")
    for split in ("dev", "train"):
        (folder / "qrels" / f"{split}.tsv").unlink()
    with refused(str(folder), "qrels/*.tsv"):
        read_passages(folder)
    (folder / "queries.jsonl.gz").unlink()
    with refused(str(folder), "queries.jsonl"):
        read_passages(folder)


class TestJsonLines:
    def test_equal_texts_are_one_passage(self, tmp_path):
        corpus = read_passages(write_records(tmp_path / "own.jsonl", LINES))
        assert corpus.passages == ("a heron", "a stone", "a lamp", "a fire")
        assert corpus.query_ids == ("4", "2")
        assert corpus.positives == ((0,), (2, 3))
        assert corpus.negatives == ((1, 2), (0, 1))

    def test_negatives_must_be_given_for_every_answered_query(self, tmp_path):
        unanswered = {"query": "why", "positives": [], "negatives": ["a cloud"]}
        corpus = read_passages(write_records(tmp_path / "own.jsonl", [*LINES, unanswered]))
        assert len(corpus.queries) == 2
        assert corpus.negatives is not None
        bare = {"query": "what burns", "positive": "a fire"}
        assert read_passages(write_records(tmp_path / "own.jsonl", [LINES[0], bare])).negatives is None

    def test_tevatron(self, tmp_path):
        line = {
            "query_id": "12",
            "query": "who flies",
            "positive_passages": [{"docid": "3", "title": "Birds", "text": "a heron"}],
            "negative_passages": [{"docid": "4", "text": "a stone"}, {"docid": "5", "title": "", "text": "a lamp"}],
        }
        corpus = read_passages(write_records(tmp_path / "own.jsonl", [line]))
        assert corpus.passages == ("Birds a heron", "a stone", "a lamp")
        assert corpus.negatives == ((1, 2),)

    def test_blank_lines_and_a_byte_order_mark(self, tmp_path):
        content = "\ufeff" + "\r\n\r\n".join(json.dumps(line) for line in LINES)
        assert len(read_passages(write(tmp_path / "own.jsonl", content)).queries) == 2

    @pytest.mark.parametrize(
        ("line", "given"),
        [
            ("{", ["JSON"]),
            ("[" * 100_000, ["JSON"]),
            ("[1]", ["list"]),
            ('{"positive": "a"}', ["query", "nothing"]),
            ('{"query": 3, "positive": "a"}', ["query", "int"]),
            ('{"query": "  ", "positive": "a"}', ["query", "empty"]),
            ('{"query": "q", "answer": "a"}', ["positive", "query, answer"]),
            ('{"query": "q", "positive": ["a"]}', ["positive", "list"]),
            ('{"query": "q", "positives": "a"}', ["positives", "str"]),
            ('{"query": "q", "positives": [null]}', ["positives", "nothing"]),
            ('{"query": "q", "positive": "a", "negatives": [""]}', ["negatives", "empty"]),
            ('{"query": "q", "positive": "a", "negatives": {}}', ["negatives", "dict"]),
            ('{"query": "q", "positive_passages": ["a"]}', ["positive_passages", '"text"']),
            ('{"query": "q", "positive_passages": [{"docid": 1}]}', ["text", "nothing"]),
            ('{"query": "q", "positive": "a", "query_id": 1.5}', ["query_id", "float"]),
            ('{"query": "q", "positive": "a", "query_id": 4}', ["id 4"]),
            ('{"query": "q", "positive": "\\ud800"}', ["positive", "surrogate"]),
            (b'{"query": "\xe9", "positive": "a"}', ["UTF-8"]),
        ],
    )
    def test_bad_lines(self, tmp_path, line, given):
        raw = line if isinstance(line, bytes) else line.encode()
        path = write(tmp_path / "own.jsonl", json.dumps(LINES[0]).encode() + b"\n" + raw + b"\n")
        with refused("own.jsonl, line 2", *given):
            read_passages(path)

    def test_no_queries_or_a_split(self, tmp_path):
        with refused("own.jsonl", "0 queries"):
            read_passages(write(tmp_path / "own.jsonl", "\n"))
        with refused("own.jsonl", 'split="dev"'):
            read_passages(write_records(tmp_path / "own.jsonl", LINES), split="dev")


def test_what_has_no_passages(tmp_path):
    other = write(tmp_path / "other.csv", "a,b\n")
    for path in (other, tmp_path, tmp_path / "none.jsonl"):
        assert not is_passages(path)
        with refused(str(path)):
            read_passages(path)


def a_set(**changes) -> PassageSet:
    parts = {
        "name": "tiny",
        "query_ids": ("1", "2"),
        "queries": ("one", "two"),
        "passages": ("a", "b", "c"),
        "positives": ((0,), (1, 2)),
        "negatives": ((1,), (0,)),
    }
    return PassageSet(**(parts | changes))


@pytest.mark.parametrize(
    ("changes", "given"),
    [
        ({"query_ids": ("1",)}, ["1 query_ids", "2 queries"]),
        ({"positives": ((0,),)}, ["1 positives", "2 queries"]),
        ({"positives": ((0,), ())}, ["positive"]),
        ({"positives": ((0,), (3,))}, ["no passage 3", "only 3"]),
        ({"negatives": ((0,),)}, ["1 negatives", "2 queries"]),
        ({"negatives": ((0,), (-1,))}, ["no passage -1"]),
    ],
)
def test_a_set_is_checked(changes, given):
    with refused("tiny", *given):
        a_set(**changes)


def test_the_fingerprint_covers_the_content_and_not_the_name():
    assert a_set().fingerprint == a_set(name="other").fingerprint
    changed = [
        {"query_ids": ("1", "3")},
        {"queries": ("one", "to")},
        {"passages": ("a", "b", "d")},
        {"positives": ((0,), (2, 1))},
        {"negatives": None},
    ]
    assert len({a_set().fingerprint, *(a_set(**change).fingerprint for change in changed)}) == 6


@pytest.mark.slow
@needs_marco
def test_the_queries_of_dev_small(tmp_path):
    corpus = read_passages(convert_marco(tmp_path), max_queries=300, max_passages=1000)
    assert (len(corpus.queries), len(corpus.passages)) == (300, 1000)
