"""Time per model and step against tokens, members and heads, and memory: four programs and the floor in one run.

python benchmarks/cost_curves.py [--device cpu|cuda] [--quick] [--json FILE]          measure
python benchmarks/cost_curves.py --draw FILE [FILE] --figure docs/speed.svg --paste   draw what was measured

The programs are headcount's two back ends, the expert's PyTorch and plain PyTorch (`programs.py`); those of one case
take turns, and every figure is a median. FILE is written again after every case, so a run that is stopped keeps what
it has; a program that fails (out of memory, ...) is recorded with its message, and the rest continues. On a GPU the
programs are compiled side by side first; the whole run is planned for less than four minutes.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TimedOut
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from machine import device_jax_sees, environment, hold_to_one_core, require_torch, share_the_card
from rich.console import Console
from tables import curves_markdown, described, expectation_markdown
from turns import take_turns

BEGAN = time.monotonic()
talk = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
paper = Console(highlight=False, markup=False, soft_wrap=True)

LENGTHS, HEADS = (8, 32, 128, 512), (1, 2, 4, 8, 16)
CENTRE = {"length": 32, "heads": 4}
VALIDATION_EXAMPLES = 256
"""As many as a batch: headcount's validation pass per turn is then a third of one step."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured on a device, and how long it may take."""

    members: tuple[int, ...]
    centre_members: int
    expert: tuple[dict[str, int], ...]
    """The cases of the compiled PyTorch program, the most important first: compiling one takes 10 to 40 seconds."""
    turns: int
    turn_seconds: float
    workers: int
    build_seconds: float
    seconds: float
    patience: float = 60
    """Seconds per case spent on waiting for turns that no other process disturbs."""
    lengths: tuple[int, ...] = LENGTHS
    heads: tuple[int, ...] = HEADS


def _expert(**axes: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    return tuple({name: value} for name, values in axes.items() for value in values)


PLANS = {
    "cuda": Plan(
        members=(1, 4, 16, 64, 256, 1024, 4096),
        centre_members=256,
        expert=_expert(length=(32, 8, 128), members=(4096, 1), heads=(16,))
        + _expert(length=(512,), heads=(1,), members=(16, 1024)),
        turns=3,
        turn_seconds=0.25,
        workers=8,
        build_seconds=130,
        seconds=225,
    ),
    "cpu": Plan(
        members=(1, 8, 32),
        centre_members=8,
        expert=_expert(length=(32, 8, 128, 512), members=(1, 32), heads=(16, 1)),
        turns=5,
        turn_seconds=0.4,
        workers=1,
        build_seconds=3600,
        seconds=3600,
    ),
}
QUICK = {
    "cuda": {"lengths": (8, 32), "members": (1, 256), "heads": (4,), "expert": _expert(length=(32,)), "turns": 2},
    "cpu": {"lengths": (8, 32), "members": (1, 8), "heads": (4,), "expert": _expert(length=(32,)), "turns": 2}
    | {"turn_seconds": 0.1, "patience": 1},
}


@dataclass
class Results:
    """What was measured so far, on disk after every case."""

    path: Path | None
    content: dict[str, Any] = field(default_factory=dict)

    def save(self) -> None:
        self.content["seconds"] = time.monotonic() - BEGAN
        if self.path is not None:
            unfinished = self.path.with_suffix(".part")
            unfinished.write_text(json.dumps(self.content, indent=1) + "\n")
            unfinished.replace(self.path)

    def add(self, case: Any, program: str, **measured: Any) -> None:
        self.content["rows"].append(asdict(case) | {"program": program} | measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where JAX sees a GPU, else cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here, after every case")
    parser.add_argument("--quick", action="store_true", help="few cases and short turns, to try the script")
    parser.add_argument("--patience", type=float, metavar="SECONDS", help="per case, to wait for a quiet core")
    parser.add_argument("--draw", type=Path, nargs="+", metavar="FILE", help="draw these numbers, measure nothing")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="the drawing: svg, pdf or png")
    parser.add_argument("--paste", action="store_true", help="put the tables into the pages that show them")
    arguments = parser.parse_args()
    if arguments.draw is None:
        require_torch()
        device = arguments.device or device_jax_sees()
        plan = PLANS[device]
        plan = replace(plan, **QUICK[device]) if arguments.quick else plan
        plan = plan if arguments.patience is None else replace(plan, patience=arguments.patience)
        everything = [measure(device, plan, Results(arguments.json))]
    else:
        everything = [json.loads(path.read_text()) for path in arguments.draw]
    curves, expected = "\n".join(map(curves_markdown, everything)), expectation_markdown(everything)
    paper.print(curves)
    paper.print(expected)
    if arguments.paste:
        from paste import paste

        talk.print(f"pasted into {paste('curves', curves)} and {paste('expect', expected)}")
    if arguments.figure is not None:
        from curves_figure import draw

        draw(everything, arguments.figure)


def measure(device: str, plan: Plan, results: Results) -> dict[str, Any]:
    """All cases of a plan."""
    if device == "cpu":
        hold_to_one_core()
    else:
        share_the_card()
    results.content |= environment(device) | {"kind": device, "centre": CENTRE | {"members": plan.centre_members}}
    results.content |= {"rows": [], "gradient_difference": {}, "back_end_difference": {}}
    talk.print(described(results.content))
    from floor import peak_flops
    from programs import free_memory

    results.content["peak_flops"] = peak_flops(device)
    results.save()
    cases = cases_of(plan)
    built = built_ahead(cases, device, plan, results) if device == "cuda" else {}
    for case in cases:
        if _elapsed() > plan.seconds:
            results.add(case, "all", failed="not measured: out of time")
            continue
        talk.print(f"{_elapsed():4.0f} s  {case}")
        programs = built.pop(case) if case in built else build(case, device, plan, results)
        measure_case(case, programs, device, plan, results)
        results.save()
        programs.clear()
        free_memory(device)
    results.save()
    return results.content


def cases_of(plan: Plan) -> list[Any]:
    """Along three axes through the centre, every case once."""
    from programs import Case

    centre = CENTRE | {"members": plan.centre_members}
    axes = {"length": plan.lengths, "members": plan.members, "heads": plan.heads}
    return list(dict.fromkeys(Case(**(centre | {name: value})) for name in axes for value in axes[name]))


def expert_cases(plan: Plan) -> list[Any]:
    """The cases of the compiled PyTorch program, the most important first."""
    from programs import Case

    centre = CENTRE | {"members": plan.centre_members}
    return list(dict.fromkeys(Case(**(centre | change)) for change in plan.expert))


def built_ahead(cases: list[Any], device: str, plan: Plan, results: Results) -> dict[Any, dict[str, Any]]:
    """All programs, compiled before anything is timed: headcount's in threads, the expert's meanwhile in this one."""
    experts = [case for case in expert_cases(plan) if case in cases]
    with ThreadPoolExecutor(plan.workers) as pool:
        pending: dict[tuple[Any, str], Future] = {
            (case, backend): pool.submit(_attempt, lambda case=case, backend=backend: _headcount(case, device, backend))
            for case in [*experts, *(case for case in cases if case not in experts)]
            for backend in ("reference", "fused")
        }
        compiled: dict[Any, Any] = {}
        for case in experts:
            left = plan.build_seconds - _elapsed()
            if left < 0:
                break
            engine = _attempt(lambda case=case, left=left: pending[case, "reference"].result(left))
            compiled[case] = engine if isinstance(engine, Exception) else _expert_program(case, device, engine, results)
            talk.print(f"{_elapsed():4.0f} s  compiled PyTorch, {case}")
        built: dict[Any, dict[str, Any]] = {case: {} for case in cases}
        for (case, backend), future in pending.items():
            left = max(0.0, plan.build_seconds - _elapsed())
            built[case][backend] = _attempt(lambda future=future, left=left: future.result(left))
        pool.shutdown(cancel_futures=True)
    talk.print(f"{_elapsed():4.0f} s  {sum(map(len, built.values()))} headcount programs built")
    for case in cases:
        built[case] = built[case] | _torch_programs(case, device, plan, built[case]["reference"], compiled.get(case))
    return built


def build(case: Any, device: str, plan: Plan, results: Results) -> dict[str, Any]:
    """The programs of one case, one after another."""
    programs: dict[str, Any] = {
        backend: _attempt(lambda backend=backend: _headcount(case, device, backend))
        for backend in ("reference", "fused")
    }
    reference, expert = programs["reference"], None
    if case in expert_cases(plan) and not isinstance(reference, Exception):
        expert = _expert_program(case, device, reference, results)
    return programs | _torch_programs(case, device, plan, reference, expert)


def _headcount(case: Any, device: str, backend: str) -> Any:
    from own_engine import BATCH
    from programs import Headcount

    from headcount import TrainSpec

    return Headcount(case, device, backend, TrainSpec(batch=BATCH, validation_examples=VALIDATION_EXAMPLES))


def _expert_program(case: Any, device: str, reference: Any, results: Results) -> Any:
    """The expert's program, in the form that was the faster one in the first case."""
    from programs import fastest_expert, gradient_difference

    model = f"T = {case.length}, {case.heads} heads"  # the members do not matter to a gradient
    if model not in results.content["gradient_difference"]:
        difference = _attempt(lambda: gradient_difference(reference.engine, device))
        if isinstance(difference, Exception):
            return difference
        results.content["gradient_difference"][model] = difference
    forms = results.content.get("expert_form")
    expert = _attempt(lambda: fastest_expert(case, device, reference.engine, forms))
    if not isinstance(expert, Exception):
        results.content["expert_form"] = [expert.form]
    return expert


def _torch_programs(case: Any, device: str, plan: Plan, reference: Any, expert: Any) -> dict[str, Any]:
    from programs import Plain

    programs = {} if expert is None else {"expert": expert}
    if isinstance(reference, Exception) or case.members != plan.centre_members:
        return programs  # the plain program trains one model at a time: it is measured at the centre
    return programs | {"plain": _attempt(lambda: Plain(case, device, reference.engine, warmup=1))}


def measure_case(case: Any, programs: dict[str, Any], device: str, plan: Plan, results: Results) -> None:
    """Memory and time of all programs of a case; those that fail are recorded and left out."""
    from programs import back_end_difference

    flops = next((program.engine.flops for program in programs.values() if hasattr(program, "engine")), None)
    if flops is not None:
        results.add(case, "floor", us=1e6 * flops / results.content["peak_flops"])
    if not any(isinstance(programs[backend], Exception) for backend in ("fused", "reference")):
        engines = (programs["fused"].engine, programs["reference"].engine)
        difference = _attempt(lambda: back_end_difference(*engines))
        if isinstance(difference, Exception):
            programs["fused"] = difference
        else:
            results.content["back_end_difference"][str(case)] = difference
    ready: dict[str, Any] = {}
    for name, program in programs.items():
        outcome = program if isinstance(program, Exception) else _attempt(lambda p=program: _pilot(p, case, plan))
        if isinstance(outcome, Exception):
            message = " ".join(str(outcome).split())[:300]
            talk.print(f"        {name} failed: {type(outcome).__name__}: {message}")
            results.add(case, name, failed=f"{type(outcome).__name__}: {message}")
        else:
            ready[name] = outcome
    steps = {name: outcome["steps"] for name, outcome in ready.items()}
    wall, busy = time.perf_counter(), time.process_time()
    runs = {name: lambda name=name: programs[name].seconds(steps[name]) for name in ready}
    turns = _attempt(lambda: take_turns(runs, watch_core=device == "cpu", count=plan.turns, patience=plan.patience))
    share = (time.process_time() - busy) / (time.perf_counter() - wall)
    for name, outcome in ready.items():
        if isinstance(turns, Exception):
            results.add(case, name, failed=f"{type(turns).__name__}: {turns}")
            continue
        microseconds = [1e3 * milliseconds for milliseconds in turns[name]]
        described_share = {"core_share": share} if device == "cpu" else {}
        results.add(case, name, us=statistics.median(microseconds), turns_us=microseconds, **outcome, **described_share)


def _pilot(program: Any, case: Any, plan: Plan) -> dict[str, Any]:
    """The memory that a program takes, and the steps that fill a turn."""
    from programs import Plain

    alone = isinstance(program, Plain)
    seconds_per_step = program.seconds(1 if alone else 5) * (1 if alone else case.members)
    return {
        "problem": getattr(program, "problem", None),
        "memory_bytes": program.memory_bytes(),  # after the first steps, which may set up libraries
        "steps": int(min(500, max(1 if alone else 10, plan.turn_seconds / seconds_per_step))),
    }


def _attempt(work: Callable[[], Any]) -> Any:
    """What the work gives, or the exception that it ended in."""
    try:
        return work()
    except TimedOut:
        return TimeoutError("not built in time")
    except Exception as problem:  # whatever one program does must not stop the others
        return problem


def _elapsed() -> float:
    return time.monotonic() - BEGAN


if __name__ == "__main__":
    main()
