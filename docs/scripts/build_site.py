"""Build the documentation into site/, from the repository's root: `python docs/scripts/build_site.py`.

Pages that repeat what the program says are written into docs/generated first. The site loads nothing from the web,
which is checked. zensical's offline search would fetch one script, which is taken out: search then works where the
site is served (`python -m http.server --directory site`), and not in pages opened as files.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from commands import commands_page
from notebooks import notebook_page

ROOT = Path(__file__).parents[2]
WORKER = re.compile(r'<script src="https://unpkg.com/iframe-worker/shim"[^>]*></script>')
LOADED = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?(?:src|href)=["']?(https?://[^"'>\s]+)""")
"""What a page loads by itself; a link that a reader may follow is none."""


def write_pages(folder: Path) -> list[Path]:
    """The pages that are made from the program and from the notebooks."""
    pages = {"commands": commands_page()}
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        pages[notebook.stem] = notebook_page(notebook)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in pages.items():
        path = folder / f"{name}.md"
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def without_worker(site: Path) -> None:
    """Take the script out that search would load from the web."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(WORKER.sub("", text), encoding="utf-8")


def loaded_from_the_web(site: Path) -> dict[str, set[str]]:
    """The addresses that pages and styles load from elsewhere, by file; none should."""
    found = {}
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        addresses = set(LOADED.findall(text)) | set(re.findall(r"""(?:url\(|@import )["']?(https?://[^"')]+)""", text))
        if addresses:
            found[str(path.relative_to(site))] = addresses
    return found


def main() -> int:
    write_pages(ROOT / "docs" / "generated")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    build = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--strict",
        "--clean",
        "--config-file",
        str(ROOT / "mkdocs.yml"),
    ]
    code = subprocess.run(build, cwd=ROOT, env=environment, check=False).returncode
    if code != 0:
        return code
    site = ROOT / "site"
    without_worker(site)
    outside = loaded_from_the_web(site)
    for page, addresses in outside.items():
        print(f"{page} loads {', '.join(sorted(addresses))}", file=sys.stderr)
    if not outside:
        print(
            f"the documentation is in {site}; to read and search it: "
            f"python3 -m http.server 8000 --directory {shlex.quote(str(site))}\nand open http://localhost:8000"
        )
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
