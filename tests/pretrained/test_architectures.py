"""The host rules of the table are those of the installed transformers, seen by building each class."""

import pytest

from headcount.pretrained.layers.architectures import FAMILIES

HEADS, HEAD_DIM, WIDTH = 4, 8, 32


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("transformers")
    return pytest.importorskip("torch")


def built(torch, family, heads):
    """Rows of the first layer's queries when the class is asked for `heads` of the old head_dim."""
    import transformers

    from headcount.pretrained.layers.attention_layer import Projection
    from tests.helpers.tiny_models import tiny_config

    changed = {"head_dim": HEAD_DIM, "hidden_size": WIDTH}
    config = tiny_config(family, heads=heads, key_heads=heads, **changed)
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
    projections = FAMILIES[family].layout.inputs
    module = next(module for name, module in model.named_modules() if name.endswith(projections[0]))
    share = 3 if FAMILIES[family].layout.packed else 1
    return Projection(module).features // share


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("heads", [2, 3])
def test_a_class_stores_another_head_count_exactly_when_the_table_says_so(torch, family, heads):
    try:
        stored = built(torch, family, heads) == heads * HEAD_DIM
    except Exception as error:  # each class refuses in its own way
        stored = "head" not in str(error)
    rules = FAMILIES[family]
    assert stored == (rules.head_dim != "none" and not rules.refuses(heads, WIDTH))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_names_of_the_fields_are_those_of_the_config(torch, family):
    from tests.helpers.tiny_models import tiny_config

    rules = FAMILIES[family]
    config = tiny_config(family, heads=HEADS, key_heads=2, head_dim=HEAD_DIM)
    stored = config.to_dict()
    assert (rules.head_dim != "none") == (stored.get("head_dim") == HEAD_DIM)
    assert ("head_dim" in type(config)().to_dict()) == (rules.head_dim == "field")
    assert rules.key_heads == (stored.get("num_key_value_heads") == 2)


def test_another_host_is_in_the_table_and_takes_any_head_count():
    hosts = [FAMILIES[family.other_host] for family in FAMILIES.values() if family.other_host]
    assert hosts
    assert all(host.head_dim != "none" and not host.refuses(heads, 32) for host in hosts for heads in range(1, 9))
