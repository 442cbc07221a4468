"""Examples of every kind: parts that share nothing, losses as defined, refusals in a sentence."""

import numpy as np
import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import torch
from PIL import Image
from torch.nn import functional

from headcount.errors import InputError
from headcount.pretrained.evaluation.evaluate import Evaluation
from headcount.pretrained.examples.own_loss import OwnLoss
from headcount.pretrained.examples.read import Reader, read_examples
from headcount.pretrained.examples.sizes import MOST_TOKENS, held_out_tokens
from headcount.pretrained.examples.texts import grouped_by_size
from headcount.pretrained.layers.find import attention_layers
from headcount.pretrained.loading.describing import digest_of
from headcount.pretrained.loading.load import load_model, of_module
from tests.helpers.refusals import refused
from tests.helpers.tiny_models import LENGTH, WORDS, tiny_config, tiny_folder, tiny_model, tiny_tokenizer
from tests.pretrained.judging import evaluation_of, naive_embeddings, some_images, some_texts


def masked_tokenizer():
    tokenizer = tiny_tokenizer()
    tokenizer.mask_token = WORDS[-1]
    return tokenizer


def tiny_of(kind, family="bert", **changed):
    torch.manual_seed(0)
    return kind.from_config(tiny_config(family, layers=2, **changed)).eval().requires_grad_(False)


def rows_of(batches):
    return {
        tuple(row[kept].tolist()) for b in batches for row, kept in zip(b.inputs["input_ids"], b.counted, strict=True)
    }


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_the_parts_share_nothing_and_follow_the_seed(family):
    loaded = of_module(tiny_model(family), tiny_tokenizer())
    texts = some_texts(40) + some_texts(5)
    first, again, other = (read_examples(loaded, texts, limit=12, length=8, seed=seed) for seed in (0, 0, 1))
    assert not rows_of(first.held_out) & rows_of(first.calibration)
    assert rows_of(first.held_out) == rows_of(again.held_out)
    assert rows_of(first.held_out) != rows_of(other.held_out)
    counts = first.counts()["examples"]
    assert counts["held_out"] + counts["calibration"] <= 12
    assert str(counts["held_out"]) in first.words


def test_searches_do_not_see_the_shortest_texts_only():
    counts = list(range(4, 64)) * 4
    batches = grouped_by_size(range(len(counts)), counts, 256)
    assert sorted(place for batch in batches for place in batch) == list(range(len(counts)))
    assert all(len(batch) * max(counts[place] for place in batch) <= 256 for batch in batches)
    half = [counts[place] for batch in batches[: len(batches) // 2] for place in batch]
    assert max(half) > 55
    assert min(half) < 15


def test_a_distance_is_compared_with_that_of_different_texts():
    evaluation = evaluation_of("bert")
    batches = [*evaluation.examples.held_out, *evaluation.examples.calibration]
    embeddings = naive_embeddings(evaluation.model, batches).numpy()
    cosines = (embeddings @ embeddings.T)[np.triu_indices(len(embeddings), 1)]
    assert evaluation.examples.loss.scale_of(evaluation.losses()) == pytest.approx(1 - cosines.mean(), rel=1e-3)
    assert "apart" in evaluation.examples.words


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_as_many_tokens_are_held_out_as_are_wanted(family):
    loaded = of_module(tiny_model(family), tiny_tokenizer())
    counts = read_examples(loaded, some_texts(1000), tokens=1000).counts()
    longest = 32
    assert 1000 - longest <= counts["tokens"]["held_out"] <= 1000 + longest
    assert counts["tokens"]["calibration"] >= 2 * 1000 - longest
    assert counts["examples"]["held_out"] >= 24


def test_few_tokens_to_calibrate_on_are_said_to_be_few():
    loaded = of_module(tiny_model("llama"), tiny_tokenizer())
    few, many = (read_examples(loaded, some_texts(100), limit=limit, length=8) for limit in (6, 60))
    assert str(few.counts()["tokens"]["calibration"]) in few.cannot
    assert many.cannot == ""


@pytest.mark.parametrize(
    ("family", "data", "limit"),
    [("llama", "texts", 24), ("bert", "texts", 24), ("vit", "images", 24), ("llama", None, 24)],
)
def test_a_search_scores_other_batches_than_it_fits_on(family, data, limit):
    loaded = of_module(tiny_model(family), tiny_tokenizer())
    given = {"texts": some_texts(60), "images": some_images(30), None: None}[data]
    examples = read_examples(loaded, given, limit=24, length=8)
    assert len(examples.calibration) >= 8
    assert examples.scored is not None
    assert 1 <= examples.scored < len(examples.calibration) / 2


def test_batches_are_of_the_devices_size(monkeypatch):
    loaded = of_module(tiny_model("llama"), tiny_tokenizer())
    monkeypatch.setattr("headcount.pretrained.examples.sizes.BATCH_TOKENS", 512)
    few = read_examples(loaded, some_texts(4000), tokens=2048)
    monkeypatch.setattr("headcount.pretrained.examples.sizes.BATCH_TOKENS", 128)
    many = read_examples(loaded, some_texts(4000), tokens=2048)
    assert len(many.held_out) > 2 * len(few.held_out)


def test_pairs_are_judged_by_a_line_fitted_on_the_original():
    generator = np.random.default_rng(0)
    texts = some_texts(60)
    pairs = [(texts[i % 20], texts[20 + i % 40], float(generator.random())) for i in range(60)]
    evaluation = evaluation_of("bert", data=pairs, limit=30)
    examples, model = evaluation.examples, evaluation.model

    def cosines(batches):
        with torch.no_grad():
            values = [naive_embeddings(model, [batch]).reshape(2, batch.examples, -1) for batch in batches]
        return np.concatenate([(first * second).sum(1).numpy() for first, second in values])

    def scores(batches):
        return np.concatenate([batch.extras["scores"].numpy() for batch in batches])

    slope, shift = np.polyfit(cosines(examples.calibration), scores(examples.calibration), 1)
    naive = (slope * cosines(examples.held_out) + shift - scores(examples.held_out)) ** 2
    np.testing.assert_allclose(evaluation.losses(), naive, atol=1e-4)
    assert "held-out pairs" not in examples.cannot
    changes = {1: evaluation.original[1].without([0])}
    assert not np.allclose(evaluation.losses(changes), naive)
    assert evaluation.statistics()[0].gradients.shape == (examples.counts()["examples"]["calibration"], 4)
    with pytest.raises(InputError, match="scores are 1"):
        evaluation_of("bert", data=[(first, second, 1.0) for first, second, _ in pairs])


def test_masked_tokens_are_judged_at_the_masks():
    model = tiny_of(transformers.AutoModelForMaskedLM)
    loaded = of_module(model, masked_tokenizer())
    examples = read_examples(loaded, some_texts(), limit=10)
    evaluation = Evaluation(loaded, attention_layers(model), examples)
    naive = []
    for batch in examples.held_out:
        for row, kept, places, targets in zip(
            batch.inputs["input_ids"], batch.counted, batch.extras["places"], batch.extras["targets"], strict=True
        ):
            assert (row[places] == loaded.tokenizer.mask_token_id).all()
            logits = model(input_ids=row[kept][None]).logits[0]
            naive.append(functional.cross_entropy(logits[places[kept]], targets[places]).item())
    np.testing.assert_allclose(evaluation.losses(), naive, atol=1e-5)
    with pytest.raises(InputError, match="mask token"):
        read_examples(of_module(model, tiny_tokenizer()), some_texts())


@pytest.mark.parametrize(
    ("data", "family", "kind"),
    [
        (None, "llama", None),
        (None, "bert", None),
        (None, "vit", None),
        (None, "bert", "AutoModelForMaskedLM"),
        (None, "bert", "AutoModelForSequenceClassification"),
        (None, "dinov2", "AutoModel"),
        ("images", "vit", "AutoModel"),
        ("texts", "bert", "AutoModelForSequenceClassification"),
    ],
)
def test_distances_to_the_original_are_zero_and_grow(data, family, kind):
    model = tiny_model(family) if kind is None else tiny_of(getattr(transformers, kind), family)
    loaded = of_module(model, masked_tokenizer())
    given = {"images": some_images(), "texts": some_texts(), None: None}[data]
    examples = read_examples(loaded, given, limit=9, length=8)
    evaluation = Evaluation(loaded, attention_layers(model), examples)
    base = evaluation.losses()
    if family != "llama":
        np.testing.assert_allclose(base, 0, atol=1e-6)
    changed = evaluation.losses({0: evaluation.original[0].without(range(4))})
    assert changed.mean() > base.mean()
    assert examples.cannot
    assert examples.kind == ("default" if data is None else {"images": "images", "texts": "text"}[data])
    assert np.abs(evaluation.statistics()[0].gradients).max() > 0
    assert evaluation.examples.loss.scale_of(base) > 0


def test_class_folders_are_labels_where_their_names_match(tmp_path):
    names = {0: "cat", 1: "dog", 2: "owl"}
    model = tiny_model("vit")
    model.config.id2label = names
    for number, image in enumerate(some_images(9)):
        folder = tmp_path / "data" / names[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number}.png")
    evaluation = evaluation_of("vit", model=model, data=tmp_path / "data")
    naive = []
    for batch in evaluation.examples.held_out:
        logits = model(**batch.inputs).logits
        naive += functional.cross_entropy(logits, batch.extras["labels"], reduction="none").tolist()
    np.testing.assert_allclose(evaluation.losses(), naive, atol=1e-5)
    (tmp_path / "data" / "owl").rename(tmp_path / "data" / "emu")
    assert "match" in read_examples(of_module(model), tmp_path / "data").cannot


def own_loss(model, batch):
    logits = model(input_ids=batch).logits
    return functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch[:, 1:], reduction="none").mean(1)


def test_a_users_own_loss_is_that_of_the_same_sequences(tmp_path):
    loaded = of_module(tiny_model("llama", layers=3), tiny_tokenizer())
    packed = evaluation_of("llama")
    sequences = [batch.inputs["input_ids"] for batch in [*packed.examples.held_out, *packed.examples.calibration]]
    rows = [row[None] for part in sequences for row in part]
    evaluation = evaluation_of("llama", data=(rows, own_loss))
    assert len(evaluation.losses()) == len(rows) // 3
    changes = {2: evaluation.original[2].without([1])}
    with evaluation.changed(changes), torch.no_grad():
        wanted = [own_loss(evaluation.model, batch.given).numpy() for batch in evaluation.examples.held_out]
    np.testing.assert_allclose(evaluation.losses(changes), np.concatenate(wanted), atol=1e-6)
    assert evaluation.statistics()[1].gradients is not None
    assert evaluation.examples.counts()["tokens"]["held_out"] == rows[0].numel() * (len(rows) // 3)
    file = tmp_path / "mine.py"
    file.write_text("def batches(tokenizer):\n    return [1, 2, 3]\ndef loss(model, batch):\n    return model.weird\n")
    with pytest.raises(InputError, match="weird"):
        read_examples(loaded, f"{file}:loss")
    with pytest.raises(InputError, match="lost"):
        read_examples(loaded, f"{file}:lost")


def test_another_loss_in_the_same_file_or_function_is_another_loss(tmp_path):
    loaded, file = of_module(tiny_model("llama"), tiny_tokenizer()), tmp_path / "mine.py"

    def written(factor):
        file.write_text(
            "import torch\nbatches = [torch.arange(3, 9)[None]] * 3\ndef helper():\n    return "
            f"{factor}\ndef loss(model, batch):\n    return helper() * model(input_ids=batch).logits.mean((1, 2))\n"
        )
        return digest_of(read_examples(loaded, f"{file}:loss").loss)

    assert written(1) == written(1) != written(100)
    once, twice = (eval(f"lambda model, batch: {factor} * batch") for factor in (1, 2))
    assert digest_of(OwnLoss(once, "loss")) != digest_of(OwnLoss(twice, "loss"))


def test_a_length_that_is_lowered_is_said():
    loaded = of_module(tiny_model("llama"), tiny_tokenizer())
    assert "32" in read_examples(loaded, some_texts(6), length=32).cannot
    assert "100" in read_examples(loaded, some_texts(60), length=100).cannot


@pytest.mark.parametrize("family", ["llama", "bert", "vit"])
def test_more_examples_than_fit_are_not_drawn(family):
    loaded = of_module(tiny_model(family), tiny_tokenizer())
    with refused("HEADCOUNT_MAX_GB", "1,000,000,000,000,000,000"):
        read_examples(loaded, limit=10**18)
    if family != "vit":  # a length that no table of positions has wants no more examples than the longest that one has
        longest, endless = (Reader(loaded, length, None, 0).sizes for length in (LENGTH + 2, 10**18))
        assert longest == endless


def test_pooling_is_read_where_the_model_lies(tmp_path, monkeypatch):
    folder = tiny_folder(tmp_path / "home" / "model", "bert")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    loaded = load_model("~/model")
    assert loaded.folder == folder
    examples = read_examples(loaded, some_texts(), limit=6, length=8)
    first = examples.held_out[0]
    hidden = loaded.model(**first.inputs)[0]
    np.testing.assert_allclose(
        examples.loss.embed(loaded.model, first), functional.normalize(hidden[:, 0], dim=-1), atol=1e-6
    )


@pytest.mark.parametrize("value", [torch.tensor([float("nan")]), torch.tensor(1.0), torch.ones(2, 2), 3.0])
def test_losses_of_another_form_are_refused(value):
    with pytest.raises(InputError, match="loss"):
        evaluation_of("llama", data=([1, 2, 3], lambda model, batch: value))


@pytest.mark.parametrize(
    ("family", "data", "words"),
    [
        ("bert", "images", "reads texts"),
        ("vit", "texts", "reads images"),
        ("llama", [("a", "b", 1.0)] * 4, "pairs"),
        ("llama", [], "at least one"),
        ("llama", ["word1"], "tokens"),
        ("llama", [1, 2], "int"),
        ("llama", own_loss, "batches"),
        ("llama", "gone.txt", "gone.txt"),
        ("llama", "mine.py", "mine.py:loss"),
        ("llama", 3, "3"),
    ],
)
def test_data_of_the_wrong_kind_are_refused(family, data, words):
    given = {"images": some_images(), "texts": some_texts()}.get(data, data) if isinstance(data, str) else data
    with pytest.raises(InputError, match=words):
        evaluation_of(family, data=given, model=tiny_model(family))


def test_text_needs_a_tokenizer():
    with pytest.raises(InputError, match="tokenizer"):
        read_examples(of_module(tiny_model("llama")), some_texts())


def test_a_larger_model_gets_fewer_tokens():
    sizes = [held_out_tokens(12, 12, parameters, 0) for parameters in (10**3, 10**6, 10**8, 10**10)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == MOST_TOKENS
