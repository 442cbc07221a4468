"""Puts a table that a benchmark printed into a page, between the marks of its name.

python benchmarks/training_speed.py --device cpu > cpu.md && python benchmarks/paste.py cpu-steps cpu.md
"""

import sys
from pathlib import Path

PAGES = (Path(__file__).parent / "README.md", Path(__file__).parents[1] / "docs" / "speed.md")


def paste(name: str, text: str) -> Path:
    """Replace what stands between `<!-- name -->` and the next `<!-- end -->`; the page that has this mark."""
    begin, end = f"<!-- {name} -->", "<!-- end -->"
    for page in PAGES:
        content = page.read_text()
        if begin in content:
            before, rest = content.split(begin)
            page.write_text(f"{before}{begin}\n{text.strip()}\n{end}{rest.split(end, 1)[1]}")
            return page
    raise SystemExit(f"no page has the mark {begin}")


if __name__ == "__main__":
    print(paste(sys.argv[1], Path(sys.argv[2]).read_text()))
