"""The measured numbers as Markdown tables."""

import statistics

from turns import QUIET

AXES = {"length": "T", "members": "members", "heads": "heads"}
PROGRAMS = {
    "fused": "fused",
    "reference": "reference",
    "expert": "expert PyTorch",
    "plain": "plain PyTorch",
    "floor": "floor",
}
"""What is compared, by its name in the stored numbers; benchmarks/README.md says what each is."""
EXPECTED_STEPS = 3000
"""Steps of a default training."""
CHECKS = {
    "back_end_difference": "After one step the errors of the two back ends differ by at most",
    "gradient_difference": "The gradient of the compiled PyTorch program differs from headcount's by at most",
}


def described(results: dict) -> str:
    """The device and the versions in one line."""
    return ", ".join([results["device"], *(f"{name} {version}" for name, version in results["versions"].items())])


def speed_table(results: dict) -> str:
    """One row a case: all programs, the ratios, and whether the target was reached."""
    peak = f"{results['peak_flops'] / 1e12:.3g} TFLOP/s"
    lines = [
        f"**A training step.** {described(results)}; back end: {results['backend']}; float32 matrix product: {peak}. "
        "Microseconds per model and step; h = 4, N = 32, batch 256.",
        "",
    ]
    headings = [
        "T",
        "members",
        *PROGRAMS.values(),
        "plain / ours",
        "expert / ours",
        "reference / fused",
        "target",
        "met",
    ]
    lines += [_row(headings), _row(["---:"] * len(headings))]
    for row in results["speed"]:
        ours = 1e-3 * row["us"]
        target = "-" if row["ratio_target"] is None else f"{row['ratio_target']:.0f} times plain"
        target = target if row["us_target"] is None else f"{row['us_target']:g} us"
        times = [None if row.get(program) is None else 1e3 * row[program] for program in PROGRAMS]
        ratios = [
            _ratio(row["plain"], ours),
            _ratio(row.get("expert"), ours),
            _ratio(row["reference"], row.get("fused")),
        ]
        counts = [str(row["length"]), f"{row['members']:,}"]
        lines.append(_row([*counts, *map(_number, times), *ratios, target, yes_or_no(row["met"])]))
    lines += ["", *_checks({name: [row.get(name) for row in results["speed"]] for name in CHECKS})]
    return "\n".join(lines) + "\n"


def sizes_table(results: dict) -> str:
    """The two back ends at more sizes."""
    headings = ["T", "members", PROGRAMS["fused"], PROGRAMS["reference"], "reference / fused"]
    lines = ["**Other sizes, before and after.** Microseconds per model and step.", ""]
    lines += [_row(headings), _row(["---:"] * len(headings))]
    for row in results["sizes"]:
        times = [None if row.get(program) is None else 1e3 * row[program] for program in ("fused", "reference")]
        ratio = _ratio(row["reference"], row.get("fused"))
        lines.append(_row([str(row["length"]), f"{row['members']:,}", *map(_number, times), ratio]))
    return "\n".join(lines) + "\n"


def slower_line(rows: list[dict]) -> str:
    """Where the fused back end is slower than the reference, if anywhere; a row has the time of both."""
    compared = [row for row in rows if row.get("fused") is not None and row.get("reference") is not None]
    if not compared:
        return "The fused back end is not available here: nothing was compared.\n"
    slower = [row for row in compared if row["fused"] > row["reference"]]
    places = "; ".join(
        f"T = {row['length']}, {row['members']:,} members, {row.get('heads', 4)} heads "
        f"({row['fused'] / row['reference']:.2f} times)"
        for row in slower
    )
    where = f"at {places}" if slower else "nowhere"
    return f"Slower than the reference: {where}, of {len(compared)} sizes.\n"


def flatness_table(rows: list[dict], length: int) -> str:
    """One row a member count, compared with the first."""
    headings = [f"members, T = {length}", "us per model and step", "against one member"]
    lines = [_row(headings), _row(["---:"] * len(headings))]
    for row in rows:
        relative = row["headcount_ms"] / rows[0]["headcount_ms"]
        lines.append(_row([str(row["members"]), three_digits(1e3 * row["headcount_ms"]), f"{relative:.2f}"]))
    return "\n".join(lines) + "\n"


def memory_line(peaks: list[int], target: float) -> str:
    """The median and the largest of the peaks; the largest is what must stay under the target."""
    return (
        f"Peak memory of 32 members at T = 128 in one program, {len(peaks)} processes: median "
        f"{statistics.median(peaks) / 1e6:.0f} MB, largest {max(peaks) / 1e6:.0f} MB; "
        f"target under {target / 1e6:.0f} MB, met: {yes_or_no(max(peaks) < target)}"
    )


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
    lines += _disturbed(results)
    for axis, name in AXES.items():
        fixed = ", ".join(f"{AXES[other]} = {centre[other]}" for other in AXES if other != axis)
        headings = [f"{name} ({fixed})", *PROGRAMS.values(), "reference / fused", "expert / fused", "plain / fused"]
        lines += [_row(headings), _row(["---:"] * len(headings))]
        for value, rows in along(results, axis).items():
            times = {program: rows.get(program, {}).get("us") for program in PROGRAMS}
            ratios = [_ratio(times[program], times["fused"]) for program in ("reference", "expert", "plain")]
            lines.append(_row([f"{value:,}", *map(_number, times.values()), *ratios]))
        lines.append("")
    headings = ["MB per model, T", *(PROGRAMS[program] for program in PROGRAMS if program != "floor")]
    lines += [_row(headings), _row(["---:"] * len(headings))]
    for value, rows in along(results, "length").items():
        sizes = [megabytes_per_model(rows.get(program, {})) for program in PROGRAMS if program != "floor"]
        lines.append(_row([str(value), *map(_number, sizes)]))
    lines += ["", slower_line(_both_back_ends(results))]
    lines += _checks({name: list(results.get(name, {}).values()) for name in CHECKS})
    failed = [
        row | {"failed": row.get("failed") or f"not in a CUDA graph: {row['problem']}"}
        for row in results["rows"]
        if row.get("failed") or row.get("problem")
    ]
    lines += [
        *(
            f"* {row['program']}, T = {row['length']}, {row['members']} members, {row['heads']} heads: {row['failed']}"
            for row in failed
        ),
    ]
    return "\n".join(lines) + "\n"


def expectation_markdown(machines: list[dict]) -> str:
    """Seconds per model for a whole training on every machine, by T, from the cost curves."""
    names = [(machine["device"].split(",")[0], machine) for machine in machines]
    names = [
        (f"one core of an {name}" if machine["kind"] == "cpu" else f"one {name}", machine) for name, machine in names
    ]
    programs = ("fused", "reference", "plain")
    headings = ["T", *(f"{name}: {PROGRAMS[program]}" for name, _ in names for program in programs)]
    lines = [
        f"Seconds per model for {EXPECTED_STEPS:,} steps of batch 256, 4 heads; "
        + "; ".join(f"{name}: {machine['centre']['members']} models in one program" for name, machine in names)
        + ".",
        "",
        _row(headings),
        _row(["---:"] * len(headings)),
    ]
    lines[2:2] = [line for machine in machines for line in _disturbed(machine)]
    curves = [along(machine, "length") for _, machine in names]
    for value in sorted({value for curve in curves for value in curve}):
        times = [curve.get(value, {}).get(program, {}).get("us") for curve in curves for program in programs]
        seconds = [None if each is None else 1e-6 * EXPECTED_STEPS * each for each in times]
        lines.append(_row([str(value), *(_number(each, digits=2) for each in seconds)]))
    return "\n".join(lines) + "\n"


def _both_back_ends(results: dict) -> list[dict]:
    """One row a case with the times of the two back ends."""
    cases: dict[tuple, dict] = {}
    for row in results["rows"]:
        case = cases.setdefault(tuple(row[axis] for axis in AXES), {axis: row[axis] for axis in AXES})
        case[row["program"]] = row.get("us")
    return list(cases.values())


def _disturbed(results: dict) -> list[str]:
    """A sentence where other processes had a part of the core."""
    shares = [row["core_share"] for row in results["rows"] if row.get("core_share") is not None]
    if not shares or min(shares) >= QUIET:
        return []
    return [f"Under load: {min(shares):.0%} to {max(shares):.0%} of the core was free. Good as ratios only.", ""]


def _checks(differences: dict[str, list[float | None]]) -> list[str]:
    """That the programs do the same work, in sentences."""
    known = {name: [value for value in values if value is not None] for name, values in differences.items()}
    return [f"{CHECKS[name]} {max(values):.0e}, relative." for name, values in known.items() if values]


def megabytes_per_model(row: dict) -> float | None:
    """Memory over the models that were trained together."""
    taken = row.get("memory_bytes")
    return None if taken is None else taken / 1e6 / (1 if row["program"] == "plain" else row["members"])


def _row(entries: list[str]) -> str:
    return "| " + " | ".join(entries) + " |"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{float(f'{value:.{digits}g}'):,.10g}"


def _ratio(value: float | None, by: float | None) -> str:
    return "-" if value is None or by is None else three_digits(value / by)


def three_digits(value: float) -> str:
    """Rounded to three digits, and 1100 rather than 1.1e+03."""
    return f"{float(f'{value:.3g}'):g}"


def yes_or_no(met: bool) -> str:
    return "yes" if met else "no"
