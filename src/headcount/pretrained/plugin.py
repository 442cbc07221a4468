"""Trained models as a plugin: their verbs, the reader of inspections, the check of a written model."""

import importlib.metadata
import importlib.util
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, require
from ..registry import Plugin, StoredExperiment, StudyReader, Verb

if TYPE_CHECKING:
    from ..report.document import Document

STUDY = "inspect"
"""The study of every experiment that is an inspection."""
RECORD = "headcount.json"
"""The file next to the weights of a written model that says what was done and measured."""

OLDEST_TRANSFORMERS = (5, 9)
"""The first that stores another head count of vision transformers."""

VERBS: dict[str, Verb] = {
    "inspect": Verb(
        summary="Say which heads of a trained model are needed, of which rank, and what can go.",
        group="Trained models",
        home="headcount.pretrained.cli.inspect",
        examples=(
            ("headcount inspect all-MiniLM-L6-v2/ --data sentences.txt", "which heads it needs, and a page"),
            ("headcount inspect SmolLM2-135M/", "without data: sequences of the model itself"),
            ("headcount inspect vit/ --data photos/", "a vision transformer on a folder of images"),
        ),
    ),
    "prune": Verb(
        summary="Remove heads of a trained model; the result loads in stock transformers.",
        group="Trained models",
        home="headcount.pretrained.cli.change",
        examples=(
            ("headcount prune SmolLM2-135M/ --keep 6 --data text.txt --out smaller", "6 of 9 heads per layer"),
            (
                "headcount prune ViT/ --remove 25% --data photos/ --out smaller --recover 300",
                "then train the output projections a little",
            ),
            ("headcount prune BERT/ --keep 8 --zeroed --out masked", "where no class stores fewer heads"),
            ("headcount prune SmolLM2-135M/ --keep 6 --dry-run", "whether it can be stored, and what it saves"),
        ),
    ),
    "group": Verb(
        summary="Let heads of a trained model share keys and values; the result loads in stock transformers.",
        group="Trained models",
        home="headcount.pretrained.cli.change",
        examples=(
            (
                "headcount group Llama/ --key-heads 3 --data text.txt --out grouped",
                "3 key heads for all heads of a layer",
            ),
            ("headcount group Llama/ --key-heads 3 --dry-run", "whether it can be stored, and what it saves"),
        ),
    ),
    "shrink": Verb(
        summary="Lower the rank of a trained model's heads; the result loads in stock transformers.",
        group="Trained models",
        home="headcount.pretrained.cli.change",
        examples=(
            ("headcount shrink Llama/ --head-dim 32 --data text.txt --out narrow", "32 numbers per head"),
            ("headcount shrink ViT/ --head-dim 32 --dry-run", "whether it can be stored, and what it saves"),
        ),
    ),
}


def need(*packages: str) -> None:
    """Raise InputError, with the line to type, where torch, transformers, safetensors or one of these is missing."""
    for package in ("torch", "transformers", "safetensors", *packages):
        if importlib.util.find_spec(package) is None:
            extra = "'headcount[hf]'" if package in ("torch", "transformers", "safetensors") else package
            raise InputError(f"trained models need {package}, which is not installed: pip install {extra}.")
    version = importlib.metadata.version("transformers")
    oldest = ".".join(map(str, OLDEST_TRANSFORMERS))
    require(
        tuple(int(number) for number in re.findall(r"\d+", version)[:2]) >= OLDEST_TRANSFORMERS,
        f"trained models need transformers {oldest} or newer, this is {version}: pip install -U transformers.",
    )


class InspectionReader(StudyReader):
    """Reads inspections, which have facts and no cells."""

    has_cells = False
    name = "inspection"

    def documents(self, stored: StoredExperiment) -> "list[Document]":
        from .inspection.page import inspection_documents

        return inspection_documents(stored)

    def is_complete(self, facts: Iterable[str]) -> bool:
        from .inspection.facts import is_complete

        return is_complete(facts)

    def progress_words(self, task: str, attachments: Mapping[str, Any]) -> str:
        from .inspection.facts import measured_words

        return f"inspection of {task}, {measured_words(attachments)}"

    def go_on(self, command: str) -> str:
        from .inspection.page import go_on

        return go_on(command)

    def rows(self, experiment: str, attachments: Mapping[str, Any]) -> list[dict[str, Any]]:
        from .inspection.model import head_rows

        return head_rows(experiment, attachments)


class PretrainedPlugin(Plugin):
    """Trained models."""

    verbs = VERBS

    def reader(self, study: str) -> StudyReader | None:
        return InspectionReader() if study == STUDY else None

    def check_folder(self, folder: Path) -> "Document | None":
        """Check that a written model computes what was recorded; exit code 1 where it does not."""
        if not (folder / RECORD).is_file():
            require(
                not (folder / "config.json").is_file(),
                f"{folder} is a model that headcount did not write (it has no {RECORD}), so nothing is recorded to "
                "compare it with; give a folder that headcount prune, group or shrink wrote.",
            )
            return None

        need()
        from ..report.document import Document, line
        from .storing.checking import check_folder, check_words

        check = check_folder(folder)
        words = line((check_words(check), "green" if check["agrees"] else "red"))
        return Document(content=lambda: check, blocks=(words,), code=0 if check["agrees"] else 1)


PLUGIN = PretrainedPlugin()
