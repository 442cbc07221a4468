"""Stock transformers: train what PyTorch and Hugging Face ship on headcount's tasks, and choose a configuration.

    StockExamples   a task's training and validation examples, as arrays
    StockConfig     a transformer of torch.nn or of transformers, by its options
    train_stock     train one, and return its error, per validation example too

PyTorch and transformers are imported when something is trained, JAX never.
"""

from .config import StockConfig
from .examples import StockExamples
from .train import StockResult, train_stock

__all__ = ["StockConfig", "StockExamples", "StockResult", "train_stock"]
