"""What a model's class answers: tokens, classes or embeddings."""

from typing import Any, Literal

Task = Literal["next token", "masked token", "text classes", "image classes", "text embedding", "image embedding"]
ENDINGS: dict[str, Task] = {
    "ForCausalLM": "next token",
    "LMHeadModel": "next token",
    "ForMaskedLM": "masked token",
    "ForPreTraining": "masked token",
    "ForSequenceClassification": "text classes",
    "ForImageClassification": "image classes",
    "ForImageClassificationWithTeacher": "image classes",
}


def task_of(model: Any) -> Task | None:
    """The task of a transformers model, by its class's name; None of a module that is not one."""
    if getattr(model, "config", None) is None or not hasattr(model, "main_input_name"):
        return None
    name = type(model).__name__
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    if ending is not None:
        return ENDINGS[ending]
    return "image embedding" if model.main_input_name == "pixel_values" else "text embedding"


def reads_images(task: Task) -> bool:
    return task.startswith("image")
