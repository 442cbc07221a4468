"""Kinds are registered by name, and what is no known kind is refused."""

from typing import ClassVar

import pytest

from headcount import models
from headcount._choices import require_choice
from headcount.models import KINDS, AbstractModel, AbstractSpec, ClassTokenSpec, EncoderSpec, register, spec_from_dict

from ..helpers.refusals import refused


def test_kinds_have_their_names():
    assert (KINDS["class-token"], KINDS["encoder"]) == (ClassTokenSpec, EncoderSpec)
    assert all(spec_class.kind == kind for kind, spec_class in KINDS.items())


@pytest.mark.parametrize("content", [{"heads": 2}, {"kind": "encodr", "heads": 2}, {"kind": None}])
def test_an_unknown_kind_is_refused_with_those_there_are(content):
    with refused(f'"{content.get("kind")}"', "class-token", "encoder"):
        spec_from_dict(content)


def test_a_missing_field_is_refused():
    with refused("encoder", "width"):
        spec_from_dict({"kind": "encoder", "heads": 1, "rank": 1})


def test_a_kind_belongs_to_one_class():
    class Impostor(AbstractSpec):
        kind: ClassVar[str] = "encoder"

    with refused("encoder", "EncoderSpec", "Impostor"):
        register(Impostor)
    assert register(EncoderSpec) is KINDS["encoder"] is EncoderSpec


def test_only_final_classes_are_made():
    for abstract in (AbstractSpec, AbstractModel):
        with pytest.raises(TypeError, match="abstract"):
            abstract()
    for model_class in (models.ClassTokenTransformer, models.Encoder, ClassTokenSpec, EncoderSpec):
        assert model_class.__final__


def test_a_choice_is_one_of_the_known_words():
    require_choice("norm", "unit", ("unit", "layer"))
    with refused("norm", '"unitt"', "unit, layer", 'Did you mean "unit"?'):
        require_choice("norm", "unitt", ("unit", "layer"))
    with refused("norm", '"3"', "unit, layer"):
        require_choice("norm", 3, ("unit", "layer"))
