"""The tokens that a model reads from at once: of a model that reads known ones, and what is kept of a trained one."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.answer import answer, error_table
from headcount.answer.estimates import SUPPORT, support_words
from headcount.errors import InputError
from headcount.heads_read import attach_model_facts
from headcount.models import ClassTokenSpec
from headcount.store import Cell, Outcome, Record, Store, TrainSpec
from headcount.tasks import ArrayTask
from headcount.theory.support.stored import estimate_support

from .helpers.fabricated import finished, sweep

TOKENS = np.random.default_rng(0).normal(size=(120, 5, 2))
TRAIN = TrainSpec(train_examples=90, validation_examples=30)


class Reads(eqx.Module):
    """Adds the first numbers of some tokens, and a little of all others."""

    tokens: int
    rest: float = 0.0

    def __call__(self, tokens, *, key=None):
        return jnp.sum(tokens[: self.tokens, :1], axis=0) + self.rest * jnp.sum(tokens[:, :1], axis=0)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_tokens_that_a_model_reads_are_counted(count):
    assert estimate_support(Reads(count), TOKENS).value == pytest.approx(count)
    little = estimate_support(Reads(count, rest=0.05), TOKENS)
    assert round(little.value) == count


def test_ids_flat_arrays_and_constants_are_refused():
    model = Reads(1)
    for tokens, offending in ((TOKENS[..., 0], "5"), (TOKENS.astype(int), "ids")):
        with pytest.raises(InputError, match=offending):
            estimate_support(model, tokens)
    with pytest.raises(InputError, match="zero"):
        estimate_support(Reads(0), TOKENS)


def test_an_estimate_is_kept_beside_an_experiment_on_data_and_compared(tmp_path):
    task = ArrayTask(TOKENS, TOKENS[:, :, 0].max(axis=1))
    spec = ClassTokenSpec(heads=2, head_dim=2, hidden=4, positions="none")
    model = spec.init(0, length=5, dim=2, outputs=1)
    cell = Cell(task=task.spec(), length=5, model=spec.as_dict(), train=TRAIN, seed=0)
    record = Record(cell=cell, outcome=Outcome.FINISHED, metrics={"nmse": 1.0}, curve=(), provenance={})
    experiment = replace(sweep({"heads": (2,), "seed": (0,)}).experiment, places={cell.key: (2, 0)})
    answered = answer(error_table(sweep().experiment, finished(sweep())))
    with Store.open_for_writing(tmp_path) as store:
        store.begin(experiment)
        store.commit([record], {cell.key: model.to_arrays()})
        attach_model_facts(store, experiment, [record], answered, task)
        stored = store.get(experiment.name, SUPPORT)
    assert 1 <= stored["estimate"] <= 5
    assert "tokens at once" in support_words(stored, answered)
    agreeing = {"estimate": 4.2, "words": "about 4.2 tokens"}
    assert support_words(agreeing, answered).endswith("the answer agrees")
    assert "differs" in support_words(agreeing | {"estimate": 1.1}, answered)
    assert support_words({"skipped": "no"}, answered) == support_words(None, answered) == ""
