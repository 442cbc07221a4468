"""Evaluations of tiny random models, and the same losses computed naively. Needs torch."""

import numpy as np
import torch
from torch.nn import functional

from headcount.pretrained.evaluation.evaluate import Evaluation
from headcount.pretrained.examples.read import read_examples
from headcount.pretrained.layers.find import attention_layers
from headcount.pretrained.loading.load import of_module
from tests.helpers.tiny_models import VISION, WORDS, tiny_model, tiny_tokenizer


def some_texts(count=24, seed=0):
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=generator.integers(3, 12))) for _ in range(count)]


def some_images(count=12, seed=0):
    return list(np.random.default_rng(seed).integers(0, 256, (count, 8, 8, 3), dtype=np.uint8))


def evaluation_of(family, *, layers=3, data="given", limit=8, length=8, model=None, **options):
    """A tiny model on texts or images."""
    model = tiny_model(family, layers=layers) if model is None else model
    loaded = of_module(model, tiny_tokenizer())
    given = some_images() if family in VISION else some_texts()
    examples = read_examples(loaded, given if data == "given" else data, limit=limit, length=length)
    return Evaluation(loaded, attention_layers(loaded.model), examples, **options)


def changed_heads(weights, seed=0):
    """Other weights of the same shapes, far from the original's."""
    generator = np.random.default_rng(seed)
    return weights.with_output(weights.output + 0.3 * generator.normal(size=weights.output.shape))


def naive_next_token(model, batches):
    """Loss of each sequence, from the logits of a plain run."""
    losses = []
    for batch in batches:
        for row in batch.inputs["input_ids"]:
            logits = model(input_ids=row[None]).logits[0].double()
            losses.append(functional.cross_entropy(logits[:-1], row[1:]).item())
    return np.array(losses)


def naive_embeddings(model, batches):
    """Mean over the real tokens of every row, each row run alone without padding; of length 1."""
    embeddings = []
    for batch in batches:
        for row, counted in zip(batch.inputs["input_ids"], batch.counted, strict=True):
            hidden = model(input_ids=row[counted][None]).last_hidden_state[0].double()
            embeddings.append(functional.normalize(hidden.mean(0), dim=0))
    return torch.stack(embeddings)


def naive_answers(model, batches):
    return torch.cat([functional.log_softmax(model(**batch.inputs).logits.double(), -1) for batch in batches])
