"""Passages are read from every layout alike, and a file that is wrong is refused with its name and line."""

import gc
import json
from pathlib import Path

import pytest

from headcount.datasets import hub
from headcount.datasets.passages import PassageSet, is_passages, read_passages

from ..tasks.laws import refused
from .texts import write, write_beir, write_official, write_records

MARCO = Path(__file__).parents[3] / "shared" / "data" / "msmarco"
LINES = [
    {"query_id": 4, "query": "who flies", "positive": "a heron", "negatives": ["a stone", "a lamp"]},
    {"query": "what burns", "positives": ["a lamp", "a fire"], "negatives": ["a heron", "a stone"]},
]


@pytest.fixture(autouse=True, scope="module")
def _collect():
    """A file left open would be a warning, and so an error, at the collection."""
    yield
    gc.collect()


def by_text(corpus: PassageSet) -> list[tuple[str, str, list[str]]]:
    """Ids, queries and the texts of their positives."""
    rows = zip(corpus.query_ids, corpus.queries, corpus.positives, strict=True)
    return [(name, query, [corpus.passages[place] for place in places]) for name, query, places in rows]


class TestOfficialFiles:
    @pytest.mark.parametrize("end", ["", ".gz"])
    def test_answered_queries_and_their_positives(self, tmp_path, end):
        folder = write_official(tmp_path / "marco", end=end)
        corpus = read_passages(folder)
        assert is_passages(folder)
        assert corpus.name == "marco.dev.small"
        assert by_text(corpus) == [
            ("7", "first of dev.small", ["passage number 12"]),
            ("8", "second, with é", ["passage number 13", "passage number 10"]),
        ]
        assert len(corpus.passages) == 5
        assert corpus.negatives is None
        assert corpus.left_out == 1

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
        with refused("dev.small, train", 'split="train"'):
            read_passages(folder)
        with refused('"trian"', "dev.small, train", 'Did you mean "train"'):
            read_passages(folder, split="trian")
        (folder / "qrels.train.tsv").unlink()
        assert read_passages(folder).queries[0] == "first of dev.small"

    def test_whitespace_separates_judgements_too(self, tmp_path):
        folder = write_official(tmp_path)
        write(folder / "qrels.dev.small.tsv", "7 Q0 12 2\n8  0  13  1\n")
        assert [places for _, _, places in by_text(read_passages(folder))] == [
            ["passage number 12"],
            ["passage number 13"],
        ]

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("qrels.dev.small.tsv", "7\t0\t12\t1\n5\t0\t12\t1\n", ["qrels.dev.small.tsv, line 2", "no query 5"]),
            ("qrels.dev.small.tsv", "7\t0\t99\t1\n", ["qrels.dev.small.tsv, line 1", "no passage 99", "collection"]),
            ("qrels.dev.small.tsv", "7\t12\n", ["qrels.dev.small.tsv, line 1", "grade"]),
            ("qrels.dev.small.tsv", "7\t0\t12\t1\t1\n", ["qrels.dev.small.tsv, line 1", "grade"]),
            ("qrels.dev.small.tsv", "\n7\t0\t12\tyes\n", ["qrels.dev.small.tsv, line 2", "grade"]),
            ("qrels.dev.small.tsv", "7\t0\t12\t0\n", ["no passage answers any of the 3 queries"]),
            ("queries.dev.small.tsv", "7\tone\n7\ttwo\n8\tthree\n", ["line 2", "query id 7", "second time"]),
            ("queries.dev.small.tsv", "7 one\n", ["line 1", "no tab"]),
            ("queries.dev.small.tsv", "7\t \n", ["line 1", "text is empty"]),
            ("queries.dev.small.tsv", b"7\tone\n8\t\xff\xfe\n", ["line 2", "not UTF-8", "byte 3"]),
            ("collection.tsv", "10\ta\n10\tb\n12\tc\n13\td\n", ["collection.tsv, line 2", "passage id 10"]),
        ],
    )
    def test_bad_files(self, tmp_path, name, content, words):
        write(write_official(tmp_path) / name, content)
        with refused(*words):
            read_passages(tmp_path)

    @pytest.mark.parametrize("kind", ["queries", "qrels"])
    def test_missing_files(self, tmp_path, kind):
        write_official(tmp_path)
        (tmp_path / f"{kind}.dev.small.tsv").unlink()
        with refused("collection.tsv", f"no {kind}.tsv"):
            read_passages(tmp_path)

    def test_files_of_different_splits(self, tmp_path):
        write_official(tmp_path, ("train", "dev"))
        (tmp_path / "qrels.train.tsv").unlink()
        (tmp_path / "queries.dev.tsv").unlink()
        write(tmp_path / "qrels.eval.tsv", "7\t0\t12\t1\n")
        with refused("queries for train", "qrels for dev, eval", "no split has both"):
            read_passages(tmp_path)

    def test_a_gzipped_file_cut_short(self, tmp_path):
        path = write_official(tmp_path, end=".gz") / "collection.tsv.gz"
        path.write_bytes(path.read_bytes()[:-12])
        with refused("collection.tsv.gz", "cannot be read"):
            read_passages(tmp_path)
        path.write_bytes(b"no gzip at all")
        with refused("collection.tsv.gz", "cannot be read"):
            read_passages(tmp_path)


class TestDrawing:
    @pytest.fixture
    def folder(self, tmp_path):
        write(tmp_path / "collection.tsv", "".join(f"{pid}\tpassage {pid}\n" for pid in range(400)))
        write(tmp_path / "queries.tsv", "".join(f"{qid}\tquery {qid}\n" for qid in range(50)))
        write(tmp_path / "qrels.tsv", "".join(f"{qid} 0 {7 * qid + part} 1\n" for qid in range(50) for part in (1, 0)))
        return tmp_path

    def test_as_many_as_asked_for_with_all_positives(self, folder):
        corpus = read_passages(folder, max_queries=10, max_passages=60, seed=1)
        assert len(corpus.queries) == 10
        assert len(set(corpus.passages)) == 60
        for name, _, positives in by_text(corpus):
            assert positives == [f"passage {7 * int(name) + 1}", f"passage {7 * int(name)}"]

    def test_same_seed_same_corpus(self, folder):
        first, again, other = (read_passages(folder, max_queries=10, max_passages=60, seed=seed) for seed in (1, 1, 2))
        assert first.fingerprint == again.fingerprint != other.fingerprint

    def test_every_passage_has_the_same_chance(self, folder):
        drawn = [0] * 400
        for seed in range(80):
            for text in read_passages(folder, max_queries=1, max_passages=42, seed=seed).passages:
                drawn[int(text.split()[1])] += 1
        tenths = [sum(drawn[start : start + 40]) for start in range(0, 400, 40)]
        assert sum(drawn) == 80 * 42
        assert all(abs(tenth - 336) < 5 * 336**0.5 for tenth in tenths)

    def test_more_than_there_are_is_all(self, folder):
        everything = read_passages(folder)
        assert len(everything.passages) == 400
        drawn = read_passages(folder, max_queries=1000, max_passages=1000)
        assert drawn.fingerprint == everything.fingerprint

    def test_too_few_passages_for_the_queries(self, folder):
        with refused("10 queries need 20 passages", "max_passages 15", "max_queries"):
            read_passages(folder, max_queries=10, max_passages=15)
        assert len(read_passages(folder, max_queries=10, max_passages=20).passages) == 20

    @pytest.mark.parametrize("option", ["max_queries", "max_passages"])
    def test_counts(self, folder, option):
        with refused(option, "at least 1", "0"):
            read_passages(folder, **{option: 0})

    def test_given_negatives_are_kept(self, tmp_path):
        lines = [{"query": f"q{n}", "positive": f"p{n}", "negatives": [f"n{n}", f"m{n}"]} for n in range(9)]
        corpus = read_passages(write_records(tmp_path / "own.jsonl", lines), max_queries=2, max_passages=7)
        assert len(corpus.passages) == 7
        assert corpus.negatives is not None
        for query, places in zip(corpus.queries, corpus.negatives, strict=True):
            assert [corpus.passages[place] for place in places] == [query.replace("q", "n"), query.replace("q", "m")]


class TestBeir:
    @pytest.mark.parametrize("qrels", ["qrels", "."])
    @pytest.mark.parametrize("end", ["", ".gz"])
    def test_the_same_as_the_official_files(self, tmp_path, qrels, end):
        folder = write_beir(tmp_path / "marco", end, qrels)
        corpus = read_passages(folder)
        assert is_passages(folder)
        assert corpus.name == "marco.dev"
        assert by_text(corpus) == [
            ("7", "first of dev", ["passage number 12"]),
            ("8", "second, with é", ["passage number 13", "passage number 10"]),
        ]
        assert corpus.passages[-1] == "Fourteen passage number 14"
        assert corpus.left_out == 1

    def test_several_splits(self, tmp_path):
        folder = write_beir(tmp_path)
        write(folder / "qrels" / "train.tsv", "query-id\tcorpus-id\tscore\n9\t11\t1\n")
        assert read_passages(folder, split="train").query_ids == ("9",)
        with refused("dev, train"):
            read_passages(folder)

    def test_missing_files(self, tmp_path):
        folder = write_beir(tmp_path)
        (folder / "qrels" / "dev.tsv").unlink()
        with refused("corpus.jsonl.gz", "no qrels"):
            read_passages(folder)
        (folder / "queries.jsonl.gz").unlink()
        with refused("corpus.jsonl.gz", "no queries.jsonl"):
            read_passages(folder)

    def test_a_record_without_an_id(self, tmp_path):
        folder = write_beir(tmp_path, "")
        write_records(folder / "corpus.jsonl", [{"id": "1", "text": "one"}])
        with refused("corpus.jsonl, line 1", "_id is missing", "id, text"):
            read_passages(folder)

    def test_what_the_hub_sends_can_be_read(self, tmp_path, monkeypatch):
        sent, kept = write_beir(tmp_path / "sent"), tmp_path / "kept"
        for split in ("train", "test"):
            write(sent / "qrels" / f"{split}.tsv", "query-id\tcorpus-id\tscore\n9\t11\t1\n")
        addresses = []

        def fetch(source, folder, *, on_bytes):
            addresses.append(source.url)
            on_bytes(1, None)
            write(folder / source.file_name, "")
            (folder / source.file_name).write_bytes(next(sent.rglob(source.file_name)).read_bytes())
            return folder / source.file_name

        heard = []
        monkeypatch.setattr(hub, "fetch", fetch)
        assert hub.fetch_marco(kept, lambda done, total: heard.append(done)) == kept
        assert len(heard) == 5
        assert "https://huggingface.co/datasets/BeIR/msmarco/resolve/main/corpus.jsonl.gz" in addresses
        assert "https://huggingface.co/datasets/BeIR/msmarco-qrels/resolve/main/dev.tsv" in addresses
        assert by_text(read_passages(kept, split="dev")) == by_text(read_passages(sent, split="dev"))

    def test_addresses_of_bert(self, tmp_path, monkeypatch):
        sources = []
        monkeypatch.setattr(hub, "fetch", lambda source, folder, on_bytes: sources.append(source))
        assert hub.fetch_bert(tmp_path, lambda done, total: None) == tmp_path
        start = "https://huggingface.co/google-bert/bert-base-uncased/resolve/main/"
        assert all(source.url == start + source.file_name for source in sources)
        assert {source.file_name for source in sources} >= {"model.safetensors", "vocab.txt", "tokenizer.json"}


class TestPool:
    @pytest.fixture
    def folder(self, tmp_path):
        passages = [{"id": place, "pid": f"{70 + place}", "text": f"passage {place}"} for place in range(3)]
        passages.append({"id": 3, "pid": None, "text": "passage 3"})
        write_records(tmp_path / "tiny_passages.jsonl.gz", passages)
        queries = [
            {"query_id": "5", "query": "one", "positive": 3, "qrels_pids": ["1000", "71"], "bm25_negatives": [0]},
            {"query_id": "6", "query": "two", "positive": 0, "qrels_pids": ["70"], "bm25_negatives": [1]},
        ]
        write_records(tmp_path / "tiny_queries.jsonl", queries)
        return tmp_path

    def test_positives_in_the_pool_and_no_negatives(self, folder):
        corpus = read_passages(folder)
        assert is_passages(folder)
        assert corpus.name == "tiny"
        assert by_text(corpus) == [("5", "one", ["passage 3", "passage 1"]), ("6", "two", ["passage 0"])]
        assert corpus.negatives is None

    @pytest.mark.parametrize("positive", [9, None, "", [1], True])
    def test_a_positive_outside_the_pool(self, folder, positive):
        write_records(
            folder / "tiny_queries.jsonl", [{"query_id": "5", "query": "one", "positive": positive, "qrels_pids": []}]
        )
        with refused("tiny_queries.jsonl, line 1"):
            read_passages(folder)


class TestLines:
    @pytest.mark.parametrize("name", ["own.jsonl", "own.jsonl.gz"])
    def test_equal_texts_are_one_passage(self, tmp_path, name):
        path = write_records(tmp_path / name, LINES)
        corpus = read_passages(path)
        assert is_passages(path)
        assert corpus.name == "own"
        assert corpus.passages == ("a heron", "a stone", "a lamp", "a fire")
        assert corpus.query_ids == ("4", "2")
        assert corpus.positives == ((0,), (2, 3))
        assert corpus.negatives == ((1, 2), (0, 1))

    def test_negatives_of_some_queries_are_none(self, tmp_path):
        lines = [LINES[0], {"query": "what burns", "positive": "a fire"}]
        assert read_passages(write_records(tmp_path / "own.jsonl", lines)).negatives is None

    def test_queries_without_a_positive_are_left_out(self, tmp_path):
        lines = [*LINES, {"query": "why", "positives": [], "negatives": ["a cloud"]}]
        corpus = read_passages(write_records(tmp_path / "own.jsonl", lines))
        assert corpus.left_out == 1
        assert len(corpus.queries) == 2
        assert corpus.negatives is not None

    def test_lines_of_tevatron(self, tmp_path):
        line = {
            "query_id": "12",
            "query": "who flies",
            "positive_passages": [{"docid": "3", "title": "Birds", "text": "a heron"}],
            "negative_passages": [{"docid": "4", "text": "a stone"}, {"docid": "5", "title": "", "text": "a lamp"}],
        }
        corpus = read_passages(write_records(tmp_path / "own.jsonl", [line]))
        assert corpus.passages == ("Birds a heron", "a stone", "a lamp")
        assert corpus.negatives == ((1, 2),)

    def test_blank_lines_and_a_mark_of_byte_order(self, tmp_path):
        content = "\ufeff" + "\r\n\r\n".join(json.dumps(line) for line in LINES)
        assert len(read_passages(write(tmp_path / "own.jsonl", content)).queries) == 2

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("{", ["not JSON"]),
            ("[" * 100_000, ["not JSON"]),
            ("[1]", ["JSON object", "list"]),
            ('{"positive": "a"}', ["query must be a text", "nothing"]),
            ('{"query": 3, "positive": "a"}', ["query must be a text", "int"]),
            ('{"query": "  ", "positive": "a"}', ["query is empty"]),
            ('{"query": "q", "answer": "a"}', ["positive", "missing", "query, answer"]),
            ('{"query": "q", "positive": ""}', ["positive is empty"]),
            ('{"query": "q", "positive": ["a"]}', ["positive must be a text", "list"]),
            ('{"query": "q", "positives": "a"}', ["positives must be a list", "str"]),
            ('{"query": "q", "positives": [null]}', ["positives must be a text", "nothing"]),
            ('{"query": "q", "positive": "a", "negatives": [""]}', ["negatives is empty"]),
            ('{"query": "q", "positive": "a", "negatives": {}}', ["negatives must be a list", "dict"]),
            ('{"query": "q", "positive_passages": ["a"]}', ["positive_passages", '"text"']),
            ('{"query": "q", "positive_passages": [{"docid": 1}]}', ["text must be a text", "nothing"]),
            ('{"query": "q", "positive": "a", "query_id": 1.5}', ["query_id must be a text", "float"]),
            ('{"query": "q", "positive": "a", "query_id": 4}', ["query id 4", "second time"]),
            ('{"query": "q", "positive": "\\ud800"}', ["positive", "surrogate"]),
            (b'{"query": "\xe9", "positive": "a"}', ["not UTF-8"]),
        ],
    )
    def test_bad_lines(self, tmp_path, line, words):
        raw = line if isinstance(line, bytes) else line.encode()
        path = write(tmp_path / "own.jsonl", json.dumps(LINES[0]).encode() + b"\n" + raw + b"\n")
        with refused("own.jsonl, line 2", *words):
            read_passages(path)

    def test_a_file_without_queries(self, tmp_path):
        with refused("own.jsonl", "0 queries"):
            read_passages(write(tmp_path / "own.jsonl", "\n"))

    def test_a_split_has_no_use(self, tmp_path):
        with refused("own.jsonl", 'split="dev"'):
            read_passages(write_records(tmp_path / "own.jsonl", LINES), split="dev")


def test_what_holds_no_passages(tmp_path):
    other = write(tmp_path / "other.csv", "a,b\n")
    assert not is_passages(other)
    assert not is_passages(tmp_path)
    assert not is_passages(tmp_path / "none.jsonl")
    with refused("other.csv", ".jsonl"):
        read_passages(other)
    with refused(str(tmp_path), "no passages", "collection.tsv"):
        read_passages(tmp_path)
    with refused("none.jsonl", "no file"):
        read_passages(tmp_path / "none.jsonl")


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
    ("changes", "words"),
    [
        ({"queries": (), "query_ids": (), "positives": ()}, ["no queries"]),
        ({"query_ids": ("1",)}, ["1 query_ids for 2 queries"]),
        ({"query_ids": ("1", "1")}, ["same id"]),
        ({"positives": ((0,),)}, ["1 positives for 2 queries"]),
        ({"positives": ((0,), ())}, ["needs a positive"]),
        ({"positives": ((0,), (3,))}, ["query 2", "[3] of 3"]),
        ({"positives": ((0,), (1, 1))}, ["query 2", "twice"]),
        ({"negatives": ((0,),)}, ["1 lists of negatives"]),
        ({"negatives": ((0,), (-1,))}, ["query 2", "negative [-1]"]),
        ({"passages": ("a", " ", "c")}, ["passage 1 is empty"]),
    ],
)
def test_a_set_is_checked_at_birth(changes, words):
    with refused(*words):
        a_set(**changes)


def test_the_fingerprint_covers_the_content_and_not_the_name():
    whole = a_set()
    assert whole.fingerprint == a_set(name="other", left_out=3).fingerprint
    changed = [
        {"query_ids": ("1", "3")},
        {"queries": ("one", "to")},
        {"passages": ("a", "b", "d")},
        {"positives": ((0,), (2, 1))},
        {"negatives": None},
    ]
    assert len({whole.fingerprint, *(a_set(**change).fingerprint for change in changed)}) == 6


@pytest.mark.skipif(not MARCO.is_dir(), reason="the MS MARCO dev-small files are not at hand")
def test_the_queries_of_dev_small():
    corpus = read_passages(MARCO, max_queries=300, max_passages=1000)
    assert (len(corpus.queries), len(corpus.passages), corpus.left_out) == (300, 1000, 0)
    assert corpus.name == "dev_small"
