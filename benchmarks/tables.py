"""The measured numbers as tables to print."""

import statistics

from rich.table import Table


def described(results: dict) -> str:
    """The device and the versions in one line."""
    return ", ".join([results["device"], *(f"{name} {version}" for name, version in results["versions"].items())])


def speed_table(results: dict) -> Table:
    """One row a case: both programs, their ratio, and whether it reached its target."""
    table = Table(title=f"{described(results)}\nms per model and step, h = 4, N = 32, batch 256")
    for heading in ("T", "members", "headcount ms", "PyTorch ms", "ratio", "target", "met"):
        table.add_column(heading, justify="right")
    for row in results["speed"]:
        target, met = ("-", "-") if row["target"] is None else (f"{row['target']:.0f}", yes_or_no(row["met"]))
        milliseconds = (three_digits(row[name]) for name in ("headcount_ms", "torch_ms"))
        table.add_row(str(row["length"]), str(row["members"]), *milliseconds, f"{row['ratio']:.1f}", target, met)
    return table


def flatness_table(rows: list[dict], length: int) -> Table:
    """One row a member count, compared with the first."""
    table = Table(title=f"headcount alone, T = {length}")
    for heading in ("members", "ms per model and step", "against one member"):
        table.add_column(heading, justify="right")
    for row in rows:
        relative = row["headcount_ms"] / rows[0]["headcount_ms"]
        table.add_row(str(row["members"]), three_digits(row["headcount_ms"]), f"{relative:.2f}")
    return table


def memory_line(peaks: list[int], target: float) -> str:
    """The median and the largest of the peaks; the largest is what must stay under the target."""
    return (
        f"Peak memory of 32 members at T = 128 in one program, {len(peaks)} processes: median "
        f"{statistics.median(peaks) / 1e6:.0f} MB, largest {max(peaks) / 1e6:.0f} MB; "
        f"target under {target / 1e6:.0f} MB, met: {yes_or_no(max(peaks) < target)}"
    )


AXES = {"length": "T", "members": "members", "heads": "heads"}
PROGRAMS = {
    "fused": "headcount, fused",
    "reference": "headcount, reference",
    "expert": "PyTorch, folded, batched, compiled",
    "plain": "PyTorch, plain",
    "floor": "arithmetic floor",
}
"""The programs of the cost curves by their names in the stored numbers."""


def along(results: dict, axis: str) -> dict[int, dict[str, dict]]:
    """The rows of the cost curves along one axis through the centre: by its value, then by program.

    The plain program trains one model at a time: along `members` it is the same everywhere.
    """
    centre = results["centre"]
    others = [name for name in AXES if name != axis]
    chosen: dict[int, dict[str, dict]] = {}
    for row in results["rows"]:
        if all(row[name] == centre[name] for name in others):
            chosen.setdefault(row[axis], {})[row["program"]] = row
    if axis == "members":
        plain = chosen.get(centre["members"], {}).get("plain")
        if plain is not None:
            chosen = {value: {"plain": plain} | rows for value, rows in chosen.items()}
    return dict(sorted(chosen.items()))


def curves_markdown(results: dict) -> str:
    """The cost curves as Markdown tables: microseconds per model and step, ratios to `fused`, memory."""
    centre = results["centre"]
    peak = results["peak_flops"] / 1e12
    lines = [f"{described(results)}; float32 matrix product: {peak:.3g} TFLOP/s. Microseconds per model and step.", ""]
    for axis, name in AXES.items():
        fixed = ", ".join(f"{AXES[other]} = {centre[other]}" for other in AXES if other != axis)
        headings = [f"{name} ({fixed})", *PROGRAMS.values(), "reference / fused", "expert / fused", "plain / fused"]
        lines += [_row(headings), _row(["---:"] * len(headings))]
        for value, rows in along(results, axis).items():
            times = {program: rows.get(program, {}).get("us") for program in PROGRAMS}
            ratios = [_ratio(times[program], times["fused"]) for program in ("reference", "expert", "plain")]
            lines.append(_row([f"{value:,}", *map(_number, times.values()), *ratios]))
        lines.append("")
    headings = ["T: MB per model", *(PROGRAMS[program] for program in PROGRAMS if program != "floor")]
    lines += [_row(headings), _row(["---:"] * len(headings))]
    for value, rows in along(results, "length").items():
        sizes = [megabytes_per_model(rows.get(program, {})) for program in PROGRAMS if program != "floor"]
        lines.append(_row([str(value), *map(_number, sizes)]))
    failed = [row for row in results["rows"] if "failed" in row]
    lines += [
        "",
        *(
            f"* {row['program']}, T = {row['length']}, {row['members']} members, {row['heads']} heads: {row['failed']}"
            for row in failed
        ),
    ]
    return "\n".join(lines) + "\n"


def megabytes_per_model(row: dict) -> float | None:
    """Memory over the models that were trained together."""
    taken = row.get("memory_bytes")
    return None if taken is None else taken / 1e6 / (1 if row["program"] == "plain" else row["members"])


def _row(entries: list[str]) -> str:
    return "| " + " | ".join(entries) + " |"


def _number(value: float | None) -> str:
    return "-" if value is None else three_digits(value)


def _ratio(value: float | None, by: float | None) -> str:
    return "-" if value is None or by is None else three_digits(value / by)


def three_digits(value: float) -> str:
    """Rounded to three digits, and 1100 rather than 1.1e+03."""
    return f"{float(f'{value:.3g}'):g}"


def yes_or_no(met: bool) -> str:
    return "yes" if met else "no"
