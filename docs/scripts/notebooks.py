"""The notebooks as pages: their text and their code, in order."""

import json
import re
from pathlib import Path
from typing import Any

PARAMETERS = "parameters"
"""The tag of the cell whose values a reader, or a test, may change."""


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook: their `cell_type`, their `source` as one string, and their `tags`."""
    return [
        {
            "cell_type": cell["cell_type"],
            "source": "".join(cell["source"]),
            "tags": cell["metadata"].get("tags", []),
        }
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]


def notebook_page(path: Path) -> str:
    """A notebook as Markdown, with a link to the file."""
    first, *others = cells(path)
    assert first["cell_type"] == "markdown", f"{path.name} must begin with its title"
    title, _, rest = first["source"].partition("\n")
    link = f"*This page is the notebook [{path.name}](../notebooks/{path.name}): download it and run it.*"
    blocks = [title, link, rest.strip(), *map(_block, others)]
    text = "\n\n".join(block for block in blocks if block) + "\n"
    return re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", text)  # the other notebook is a page too


def _block(cell: dict[str, Any]) -> str:
    return cell["source"] if cell["cell_type"] == "markdown" else f"```python\n{cell['source']}\n```"
