"""Stock models as a plugin: `measure --for torch|hf` chooses one."""

from typing import TYPE_CHECKING

from ..registry import Plugin

if TYPE_CHECKING:
    from ..registry import Configurator
    from ..tasks import AbstractTask


class StockPlugin(Plugin):
    """Stock transformers of PyTorch and of Hugging Face."""

    def configurator(self, library: str, task: "AbstractTask") -> "Configurator | None":
        from .config import LIBRARIES, Library
        from .measured import configurator_of

        known: Library | None = next((each for each in LIBRARIES if each == library), None)
        return None if known is None else configurator_of(known, task)


PLUGIN = StockPlugin()
