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


def three_digits(value: float) -> str:
    """Rounded to three digits, and 1100 rather than 1.1e+03."""
    return f"{float(f'{value:.3g}'):g}"


def yes_or_no(met: bool) -> str:
    return "yes" if met else "no"
