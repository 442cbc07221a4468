"""Measure the gallery's tasks and write docs/gallery.md and its pictures: `python docs/scripts/gallery.py`.

Trained models are kept in results/gallery, so that a second run trains nothing and only answers again. Give names of
tasks (functions of gallery_tasks.py) to measure those alone; the page is written from whatever has a result.
"""

import inspect
import json
import sys
import textwrap
import time
from pathlib import Path

import matplotlib
from gallery_tasks import GROUPS, Entry

import headcount as hc

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "gallery"
PICTURES = ROOT / "docs" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
OPTIONS = {"effort": "quick", "steps": 2000}
"""The least effort, for a page that two cores make in minutes; single lengths, so that the slope says nothing."""
HEADER = """\
# Gallery

{tasks} tasks and what headcount says of them, right or wrong. Written by `make gallery`, which measures each with

```python
import jax.numpy as jnp
import numpy as np
import headcount as hc

options = {options}
```

and `hc.measure(task, lengths=[task.length], **options)`: the least effort, one length; {minutes:.0f} minutes in all on
{machine}, which other programs used too. *Right* compares the answer with the head count that is known. Where it is
"none", no head count should be called needed. *Not answered*: there is a known head count, and none was given. Where
nobody knows the head count, an answer cannot be called right or wrong.

"""


def measure(entry: Entry) -> dict:
    """The result of a task: its sentence, seconds and machine; its picture is drawn."""
    name = entry.make.__name__
    folder, result = KEPT / name, KEPT / name / "gallery.json"
    before = json.loads(result.read_text()) if result.exists() else {"seconds": 0.0}
    task, began = entry.make(), time.monotonic()
    measurement = hc.measure(task, lengths=[task.length], out=folder, **(OPTIONS | entry.options))
    trained = measurement.run is not None and sum(measurement.run.outcomes.values()) > 0
    answer = measurement.answer()
    stored = {
        "sentence": answer.sentence,
        "heads": answer.heads if answer.kind == "needs" else None,  # a floor is no need
        "seconds": before["seconds"] + (time.monotonic() - began if trained else 0.0),
        "machine": measurement.records[0].provenance.get("device", "unknown"),
    }
    result.write_text(json.dumps(stored))
    draw(measurement, PICTURES / f"{name}.svg")
    return stored


def draw(measurement: hc.Measurement, path: Path) -> None:
    """The measurement's figure, small: its text stays text, and equal results give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "headcount"}):
        measurement.plot().savefig(path, metadata={"Date": None})


def code_of(entry: Entry) -> str:
    """The body of the function that makes the task, as statements that define `task`."""
    lines = inspect.getsource(entry.make).splitlines()
    end = next(place for place, line in enumerate(lines) if line.rstrip().endswith('"""'))
    return textwrap.dedent("\n".join(lines[end + 1 :])).replace("return ", "task = ", 1)


def verdict(entry: Entry, heads: int | None) -> str:
    """Whether the answer is the one that is known."""
    if entry.expected is None:
        return "not known"
    if heads == (entry.expected or None):
        return "right"
    return "wrong" if heads is not None else "not answered"


def expected(entry: Entry) -> str:
    return {None: "not known", 0: "none"}.get(entry.expected, str(entry.expected))


def page(results: dict[str, dict]) -> str:
    """The page: a table of all tasks, then each with its code and picture."""
    minutes = sum(result["seconds"] for result in results.values()) / 60
    machine = next(iter(results.values()))["machine"]
    text = HEADER.format(tasks=len(results), options=json.dumps(OPTIONS), minutes=minutes, machine=machine)
    text += "| task | heads it needs | answer | right? | seconds |\n|---|---|---|---|---:|\n"
    listed = [entry for group in GROUPS.values() for entry in group if entry.make.__name__ in results]
    for entry in listed:
        result = results[entry.make.__name__]
        row = (
            f"[{entry.title}](#{anchor(entry)})",
            expected(entry),
            result["sentence"],
            verdict(entry, result["heads"]),
        )
        text += f"| {' | '.join(row)} | {result['seconds']:.0f} |\n"
    for group, entries in GROUPS.items():
        shown = [entry for entry in entries if entry.make.__name__ in results]
        text += f"\n## {group}\n" if shown else ""
        for entry in shown:
            text += section(entry, results[entry.make.__name__])
    return text


def section(entry: Entry, result: dict) -> str:
    """One task: what it asks, the code, the answer, the picture."""
    options = "".join(f" With `{name}={value}`." for name, value in entry.options.items())
    return f"""
### {entry.title}

{inspect.getdoc(entry.make)}{options}

```python
{code_of(entry)}
```

**{result["sentence"]}** ({verdict(entry, result["heads"])}; {expected(entry)} expected: {entry.why}).

![Validation error against heads for the task "{entry.title}"](gallery/{entry.make.__name__}.svg)
"""


def anchor(entry: Entry) -> str:
    """The heading's id, as Markdown makes it."""
    return "".join(letter for letter in entry.title.lower() if letter.isalnum() or letter in " -").replace(" ", "-")


def main(names: list[str]) -> None:
    entries = {entry.make.__name__: entry for group in GROUPS.values() for entry in group}
    unknown = [name for name in names if name not in entries]
    if unknown:
        sys.exit(f"no task {', '.join(unknown)}; the tasks: {', '.join(entries)}")
    for name in names or entries:
        result = measure(entries[name])
        print(
            f"{name}: {result['sentence']} ({verdict(entries[name], result['heads'])}, {result['seconds']:.0f} s)",
            flush=True,
        )
    stored = {name: KEPT / name / "gallery.json" for name in entries}
    results = {name: json.loads(path.read_text()) for name, path in stored.items() if path.exists()}
    PAGE.write_text(page(results), encoding="utf-8")
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main(sys.argv[1:])
