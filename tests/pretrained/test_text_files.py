"""Text files: what is read, and what is refused in a sentence. Needs no torch."""

import pytest

from headcount.errors import InputError
from headcount.pretrained.examples.text_files import read_text_file


@pytest.mark.parametrize(
    ("name", "content", "read"),
    [
        ("a.txt", "one\n\n two \r\n", (["one", "two"], None)),
        ("a.jsonl", '{"text": "one"}\n{"text": "two", "label": 1}\n', (["one", "two"], None)),
        ("a.jsonl", '{"text": "one", "label": "x"}\n', (["one"], ["x"])),
        ("a.jsonl", '{"a": "one", "b": "two", "score": 0.5}\n', [("one", "two", 0.5)]),
        ("a.tsv", "one\ttwo\t1\nthree\tfour\t0\n", [("one", "two", 1.0), ("three", "four", 0.0)]),
        ("a.csv", 'first,second,score\n"one, with comma",two,2\n', [("one, with comma", "two", 2.0)]),
    ],
)
def test_texts_and_pairs_are_read(tmp_path, name, content, read):
    (tmp_path / name).write_text(content)
    assert read_text_file(tmp_path / name) == read


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", b"", "empty"),
        ("a.txt", b"\n \n", "blank"),
        ("a.txt", b"\x00\x01", "binary"),
        ("a.txt", b"caf\xe9", "UTF-8"),
        ("a.jsonl", b"{", "line 1"),
        ("a.jsonl", b"[1]", "line 1"),
        ("a.jsonl", b'{"a": "one"}', "text"),
        ("a.jsonl", b'{"text": "one"}\n{"text": 2}', "line 2"),
        ("a.jsonl", b'\n{"text": "one"}\n\n{"text": 2}', "line 4"),
        ("a.tsv", b"one\ttwo\t1\nthree\tfour\n", "line 2"),
        ("a.csv", b"first,second,score\none,two,1\n\nthree,four\n", "line 4"),
        ("a.csv", b"one,two,three\n", "no pairs"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        read_text_file(tmp_path / name)
    assert name in str(error.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="gone"):
        read_text_file(tmp_path / "gone.txt")
