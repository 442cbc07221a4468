"""Models and tokenizers in llama2.c's format are read as what they are."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

WIDTH, HIDDEN, LAYERS, HEADS, KEY_HEADS, VOCABULARY, LENGTH = SHAPE = (8, 6, 2, 2, 1, 11, 5)
HEAD_DIM = WIDTH // HEADS
KEY_WIDTH = KEY_HEADS * HEAD_DIM
TOKENIZER_PIECES = ["\n<s>\n", "\n</s>\n", " ", "a", "b", "ab", " ab", "ba", "é"]


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks" / "pretrained")


def neighbouring_pairs(rows, heads):
    """Rows of a projection of transformers in llama2.c's order: (0, d/2), (1, d/2 + 1), ... become neighbours."""
    by_head = rows.reshape(heads, HEAD_DIM, WIDTH)
    half = HEAD_DIM // 2
    order = [row for pair in range(half) for row in (pair, pair + half)]
    return by_head[:, order].reshape(rows.shape)


def model_file(weights, *, tied):
    """The bytes that llama2.c writes for weights under transformers' names."""

    def of_layers(name):
        return [weights[f"model.layers.{layer}.{name}.weight"] for layer in range(LAYERS)]

    blocks = [
        weights["model.embed_tokens.weight"],
        *of_layers("input_layernorm"),
        *[neighbouring_pairs(rows, HEADS) for rows in of_layers("self_attn.q_proj")],
        *[neighbouring_pairs(rows, KEY_HEADS) for rows in of_layers("self_attn.k_proj")],
        *of_layers("self_attn.v_proj"),
        *of_layers("self_attn.o_proj"),
        *of_layers("post_attention_layernorm"),
        *of_layers("mlp.gate_proj"),
        *of_layers("mlp.down_proj"),
        *of_layers("mlp.up_proj"),
        weights["model.norm.weight"],
        np.zeros((2, LENGTH, HEAD_DIM // 2)),
    ]
    if not tied:
        blocks.append(weights["lm_head.weight"])
    vocabulary = VOCABULARY if tied else -VOCABULARY
    return struct.pack("<7i", *SHAPE[:5], vocabulary, LENGTH) + b"".join(
        block.astype("<f4").tobytes() for block in blocks
    )


def random_weights(*, tied):
    shapes = {
        "input_layernorm": (WIDTH,),
        "self_attn.q_proj": (WIDTH, WIDTH),
        "self_attn.k_proj": (KEY_WIDTH, WIDTH),
        "self_attn.v_proj": (KEY_WIDTH, WIDTH),
        "self_attn.o_proj": (WIDTH, WIDTH),
        "post_attention_layernorm": (WIDTH,),
        "mlp.gate_proj": (HIDDEN, WIDTH),
        "mlp.down_proj": (WIDTH, HIDDEN),
        "mlp.up_proj": (HIDDEN, WIDTH),
    }
    shapes = {f"model.layers.{layer}.{name}.weight": shape for layer in range(LAYERS) for name, shape in shapes.items()}
    shapes |= {"model.embed_tokens.weight": (VOCABULARY, WIDTH), "model.norm.weight": (WIDTH,)}
    shapes["lm_head.weight"] = (VOCABULARY, WIDTH)
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return weights | ({"lm_head.weight": weights["model.embed_tokens.weight"]} if tied else {})


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_file_holds_the_weights_it_was_written_from(tied):
    import llama2c

    weights = random_weights(tied=tied)
    header, read = llama2c.state_dict(model_file(weights, tied=tied))
    assert (header.width, header.key_heads, header.vocabulary, header.tied) == (WIDTH, KEY_HEADS, VOCABULARY, tied)
    assert read.keys() == weights.keys()
    for name, block in weights.items():
        np.testing.assert_array_equal(read[name], block, err_msg=name)


def test_scores_do_not_change_when_rotary_pairs_are_put_half_a_head_apart():
    import llama2c

    rng = np.random.default_rng(0)
    query, key = rng.normal(size=(2, HEAD_DIM, WIDTH)).astype(np.float32)
    asking, asked = rng.normal(size=(2, WIDTH))
    angles = np.exp(1j * 3 / 10_000 ** (np.arange(0, HEAD_DIM, 2) / HEAD_DIM))  # The two tokens are 3 positions apart.

    def score(query, key, pairs):
        return np.real(np.sum(pairs(query @ asking) * angles * np.conj(pairs(key @ asked))))

    in_llama2c = score(query, key, lambda head: head[0::2] + 1j * head[1::2])
    reordered = (llama2c.half_pairs(rows, 1) for rows in (query, key))
    in_transformers = score(*reordered, lambda head: head[: HEAD_DIM // 2] + 1j * head[HEAD_DIM // 2 :])
    assert in_transformers == pytest.approx(in_llama2c, rel=1e-6)


def test_a_truncated_model_file_is_refused_with_its_size():
    import llama2c

    content = model_file(random_weights(tied=True), tied=True)
    with pytest.raises(ValueError, match=f"{len(content) - 4:,}"):
        llama2c.state_dict(content[:-4])
    with pytest.raises(ValueError, match="20"):
        llama2c.state_dict(content[:20])
    with pytest.raises(ValueError, match="-1"):
        llama2c.state_dict(struct.pack("<7i", WIDTH, -1, *SHAPE[2:]))


def test_the_model_answers_as_the_llama_it_was_written_from():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    import llama2c

    sizes = {"hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS, "vocab_size": VOCABULARY}
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS, "max_position_embeddings": LENGTH}
    config = transformers.LlamaConfig(**sizes, **heads, rms_norm_eps=1e-5, tie_word_embeddings=False)
    llama = transformers.LlamaForCausalLM(config).eval()
    weights = random_weights(tied=False)
    llama.load_state_dict({name: torch.tensor(block) for name, block in weights.items()})
    tokens = torch.arange(LENGTH)[None]
    with torch.no_grad():
        read = llama2c.model(model_file(weights, tied=False))(tokens).logits
        torch.testing.assert_close(read, llama(tokens).logits)


def tokenizer_file():
    """Special pieces, the 256 bytes and a few pieces, with the later ones joined later."""
    single_bytes = [chr(value) for value in range(256)]
    texts = ["<unk>", *TOKENIZER_PIECES[:2], *single_bytes, *TOKENIZER_PIECES[2:]]
    packed = [struct.pack("<fi", -float(place), len(text.encode())) + text.encode() for place, text in enumerate(texts)]
    return struct.pack("<i", 7) + b"".join(packed), len(texts)


def test_pieces_of_the_highest_score_are_joined_first():
    import llama2c_tokenizer

    names, scores = llama2c_tokenizer.pieces(*tokenizer_file())
    assert names[:4] == ["<unk>", "<s>", "</s>", "<0x00>"]
    assert llama2c_tokenizer.merges(names, scores) == [("a", "b"), ("▁", "ab"), ("b", "a")]


def test_a_tokenizer_file_of_another_vocabulary_is_refused():
    import llama2c_tokenizer

    content, vocabulary = tokenizer_file()
    for other in (vocabulary - 1, vocabulary + 1):
        with pytest.raises(ValueError, match=str(other)):
            llama2c_tokenizer.pieces(content, other)


def test_text_survives_encoding_and_decoding():
    pytest.importorskip("tokenizers")
    import llama2c_tokenizer

    encoder = llama2c_tokenizer.encoder(*tokenizer_file())
    assert encoder.encode("abba ab").tokens == ["<s>", "▁ab", "ba", "▁ab"]

    @given(st.text(st.sampled_from("ab é\n日😀")).filter(bool))
    def survives(text):
        assert encoder.decode(encoder.encode(text).ids) == text

    survives()
