"""Stock models as a plugin: the configuration that `measure --for torch|hf` answers."""

from ..registry import Plugin


class StockPlugin(Plugin):
    """Stock transformers of PyTorch and of Hugging Face."""


PLUGIN = StockPlugin()
