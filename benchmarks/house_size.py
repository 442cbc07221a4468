"""How large the house is: lines by room, types and names by kind, and what `headcount measure` reaches.

    python benchmarks/house_size.py

A file is reached if `cli/measure.py` or `cli/app.py` imports it, directly or through others, also inside a function;
imports for types alone do not count. Lines are all lines of a file.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
ROOT = SOURCE / "headcount"
SATELLITES = ("theory", "papers", "pretrained", "cluster", "serve", "stock")
ENTRY = ("headcount.cli.measure", "headcount.cli.app")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMMON = 5
"""A one-word function name is listed when more modules than this define it."""


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported_by(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that one module imports when it runs."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*above, *([node.module] if node.module else [])])
            found |= {target, *(f"{target}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    parents = {".".join(each.split(".")[:end]) for each in found for end in range(1, each.count(".") + 1)}
    return (found | parents) & known.keys()


def reached(known: dict[str, Path]) -> set[str]:
    """All modules that the entry modules import, directly or through others."""
    seen: set[str] = set()
    waiting = [name for name in ENTRY if name in known]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imported_by(name, known[name], known)
    return seen


def room_of(path: Path) -> str:
    """The folder of `headcount` that a file lies in, or "core files" for those above the folders."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else "core files"


def line_count(path: Path) -> int:
    return len(path.read_text().splitlines())


def print_rooms(known: dict[str, Path]) -> None:
    """Files, lines, functions and classes by room, the core and all."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for path in known.values():
        nodes = list(ast.walk(ast.parse(path.read_text())))
        counts = Counter(
            files=1,
            lines=line_count(path),
            functions=sum(isinstance(node, FUNCTIONS) for node in nodes),
            classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        )
        room = room_of(path)
        for total in (room, "all", *(("core",) if room not in SATELLITES else ())):
            rooms[total] += counts
    columns = ("files", "lines", "functions", "classes")
    print("| room | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    order = sorted(set(rooms) - {"core", "all", *SATELLITES})
    for room in [*order, "core", *SATELLITES, "all"]:
        name = f"**{room}**" if room in ("core", "all") else room
        print(f"| {name} | " + " | ".join(f"{rooms[room][column]:,}" for column in columns) + " |")


def interfaces(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """The methods that a class of each name inherits from classes of this package."""
    own: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, set[str]] = defaultdict(set)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own[node.name] |= {each.name for each in node.body if isinstance(each, FUNCTIONS)}
                bases[node.name] |= {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}

    def inherited(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        above = bases.get(name, set()) - seen
        return set().union(*(own.get(base, set()) | inherited(base, seen | {name}) for base in above))

    return {name: inherited(name) for name in own}


def named_functions(tree: ast.Module, inherited: dict[str, set[str]]) -> set[str]:
    """Functions and methods that a module names itself; a method that an interface names counts where it is defined."""
    found = {node.name for node in tree.body if isinstance(node, FUNCTIONS)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = {each.name for each in node.body if isinstance(each, FUNCTIONS)}
            found |= methods - inherited[node.name]
    return found


def print_functions(known: dict[str, Path]) -> None:
    """Lengths of functions, class names used twice, one-word names of functions that many modules define."""
    trees = {module: ast.parse(path.read_text()) for module, path in known.items()}
    inherited = interfaces(trees.values())
    lengths, classes, names = [], Counter(), defaultdict(set)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            if isinstance(node, FUNCTIONS):
                lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
        for name in named_functions(tree, inherited):
            if "_" not in name.strip("_") and not name.startswith("__"):
                names[name.strip("_")].add(module)
    lengths.sort()
    print(f"\nfunctions: median {lengths[len(lengths) // 2]} lines, p90 {lengths[int(len(lengths) * 0.9)]} lines")
    sizes = sorted(map(line_count, known.values()))
    print(f"files: median {sizes[len(sizes) // 2]} lines, longest {sizes[-1]} lines")
    print("class names used more than once:", ", ".join(name for name, n in sorted(classes.items()) if n > 1) or "none")
    common = sorted(((len(where), name) for name, where in names.items() if len(where) > COMMON), reverse=True)
    print(f"one-word names in more than {COMMON} modules:", ", ".join(f"{name} {n}" for n, name in common) or "none")


def main() -> None:
    known = modules()
    print_rooms(known)
    seen = reached(known)
    lines = sum(line_count(known[name]) for name in seen)
    total = sum(map(line_count, known.values()))
    print(f"\n`headcount measure` reaches {len(seen)} of {len(known)} files, {lines:,} of {total:,} lines")
    print_functions(known)


if __name__ == "__main__":
    main()
