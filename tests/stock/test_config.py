"""What a library cannot build is refused; what is built has the parameters that its configuration says."""

import pytest

from headcount.errors import InputError
from headcount.stock import StockConfig
from headcount.stock.config import StockShape

SHAPES = {
    "numbers": StockShape(length=5, dim=3, outputs=2),
    "sets": StockShape(length=5, dim=3, outputs=1, uses_positions=False),
    "ids": StockShape(length=5, dim=1, outputs=4, vocabulary=7, classes=4),
    "query": StockShape(length=5, dim=3, outputs=1, answered_at="query"),
    "tokens": StockShape(length=5, dim=3, outputs=1, answered_at="tokens"),
}
CONFIGS = {
    "torch": StockConfig(library="torch", layers=2, width=12, heads=3),
    "norms after": StockConfig(library="torch", layers=1, width=8, heads=2, norm_first=False),
    "hf": StockConfig(library="hf", layers=2, width=12, heads=6, head_dim=4, key_heads=2, feed_forward=20),
    "hf, heads that do not divide the width": StockConfig(library="hf", layers=1, width=8, heads=3, head_dim=4),
}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"heads": 3}, "heads"),
        ({"heads": 4, "head_dim": 16}, "head_dim"),
        ({"heads": 4, "key_heads": 2}, "key_heads"),
        ({"heads": 0}, "heads"),
        ({"layers": 0}, "layers"),
        ({"dropout": 1.0}, "dropout"),
        ({"library": "hf", "heads": 32}, "head_dim"),
        ({"library": "hf", "key_heads": 3}, "key_heads"),
        ({"library": "hf", "norm_first": False}, "norm_first"),
    ],
)
def test_a_model_that_the_library_cannot_build_is_refused(options, named):
    with pytest.raises(InputError) as refused:
        StockConfig(**({"library": "torch", "layers": 1, "width": 32, "heads": 4} | options))
    assert refused.value.what == named


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_model_has_the_parameters_that_are_said(config, shape):
    pytest.importorskip("torch")
    if config.library == "hf":
        pytest.importorskip("transformers")
    from headcount.stock.models import stock_model

    model = stock_model(config, shape)
    assert sum(each.numel() for each in model.parameters()) == config.parameters(shape)
