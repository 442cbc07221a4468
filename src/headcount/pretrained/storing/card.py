"""The model card of a written folder: what was changed, what it cost, what it does not cover. No torch."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...answer.words import as_sentence

NOT_COVERED = (
    "Losses are those of the data named above; nothing is known about other data, other languages or longer sequences.",
    "No task benchmark was run, and nothing was checked for safety, bias or calibration.",
    "Seconds are those of one machine with one thread setting; servers and other kernels differ.",
)


def model_card(record: Mapping[str, Any], source: Path | None = None) -> str:
    """README.md of a written folder, by its record; the licence in the card of the `source` folder is carried over."""
    import yaml

    name = Path(record["source"]).name or record["source"]
    measured = record["measured"]
    front = {"library_name": "transformers", **_licence(source), "tags": ["headcount", record["kind"]]}
    lines = [
        "---",
        yaml.safe_dump(front, allow_unicode=True, sort_keys=False).rstrip(),
        "---",
        "",
        f"# {_escaped(name)}, {record['words']}",
        "",
        f"Made from {_escaped(name)} (fingerprint `{record['fingerprint']}`) by headcount {__version__}.",
        record["stored_words"],
        "",
        "```python",
        f"from transformers import {record['architecture']}",
        f'model = {record["architecture"]}.from_pretrained("FOLDER")',
        "```",
        "",
        "| | original | this model |",
        "|---|---:|---:|",
        *(f"| {_escaped(label)} | {before} | {after} |" for label, before, after in table_rows(record)),
        "",
    ]
    notes = [_escaped(measured["order"])] if "order" in measured else []
    if "data" in measured:
        notes.insert(0, f"Losses are on held-out examples of: {_escaped(measured['data']).rstrip('.')}.")
    if "recovery" in measured:
        notes.append(as_sentence(measured["recovery"]["words"]))
    for note in (*notes, *map(_escaped, measured.get("cannot", ()))):
        lines += [note, ""]
    if record.get("kept"):
        lines += ["## Heads kept", "", "| layer | heads of the original |", "|---:|---|"]
        lines += [f"| {place} | {', '.join(map(str, heads))} |" for place, heads in enumerate(record["kept"])]
        lines.append("")
    if record.get("command"):
        fence = max(["``", *re.findall("`+", record["command"])], key=len) + "`"
        lines += ["## Command", "", fence, record["command"], fence, ""]
    lines += [
        "## Check",
        "",
        "`headcount verify FOLDER` runs stored inputs and compares with the outputs recorded here: "
        f"largest difference from the model that was measured {record['difference']:.1e}.",
        "",
        "## Not covered",
        "",
        *(f"* {each}" for each in NOT_COVERED),
    ]
    text = "\n".join(lines) + "\n"
    return text.encode(errors="replace").decode()  # a folder's name may have bytes that are not UTF-8


def table_rows(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Label, original, changed: shapes, losses, sizes, times; what was not measured is left out."""
    before, after, measured = record["shape"]["original"], record["shape"]["stored"], record["measured"]
    rows = [
        ("heads per layer", f"{before['heads']}", f"{after['heads']}"),
        ("key heads per layer", f"{before['key_heads']}", f"{after['key_heads']}"),
        ("head_dim", f"{before['head_dim']}", f"{after['head_dim']}"),
    ]
    for label, name in (("parameters", "parameters"), ("KV-cache bytes per token", "cache_bytes_per_token")):
        if name in record:
            rows.append((label, f"{record[name]['original']:,}", f"{record[name]['stored']:,}"))
    if "loss" in measured:
        loss = measured["loss"]
        rows.append((f"held-out {loss['name']}", f"{loss['before']:.4f}", f"{loss['after']:.4f}"))
        low, high = loss["increase_interval"]
        label = f"increase, with {100 * loss['coverage']:.0f} % interval"
        rows.append((label, "", f"{loss['increase']:+.4f} [{low:+.4f}, {high:+.4f}]"))
    if "recovery" in measured:
        rows.append(("increase before recovery", "", f"{measured['recovery']['increase_before']:+.4f}"))
    if "seconds_per_1000_tokens" in measured:
        seconds = measured["seconds_per_1000_tokens"]
        rows.append(("seconds per 1,000 tokens", f"{seconds['original']:.4f}", f"{seconds['stored']:.4f}"))
    return rows


def _licence(source: Path | None) -> dict[str, str]:
    """What the front matter of the original's card says of its licence; nothing where it cannot be read."""
    import yaml

    card = None if source is None else source / "README.md"
    if card is None or not card.is_file():
        return {}
    head = re.match(r"---\n(.*?)\n---", card.read_text(encoding="utf-8", errors="replace"), re.DOTALL)
    try:
        front = yaml.safe_load(head.group(1)) if head else {}
    except Exception:  # besides its own error, PyYAML raises others for values that are none of their kind
        return {}
    named = front.items() if isinstance(front, dict) else ()
    return {key: value for key, value in named if str(key).startswith("license") and isinstance(value, str)}


def _escaped(text: str) -> str:
    """Someone else's words on one line of Markdown, where none of their characters has a meaning."""
    return re.sub(r"([\\`*_\[\]<>|&~$])", r"\\\1", " ".join(text.split()))
