"""The packages of the extra `hf`, which only this part of headcount needs."""

import importlib.metadata
import importlib.util
import re

from ..errors import InputError, require

OLDEST_TRANSFORMERS = (5, 9)
"""The first that stores another head count of vision transformers."""


def need(*packages: str) -> None:
    """Raise InputError, with the line to type, where a package is missing or too old.

    Args:
        packages: Names to import, such as "gguf"; torch, transformers and safetensors are always asked for.
    """
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
