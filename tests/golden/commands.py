"""The commands that are photographed, by name; `{name}` stands for a folder of `folders.write_folders`."""

from headcount.papers.registry import REAL_DATA, STUDIES

from .folders import ANSWERS

RESULTS = ("sharp", "part", "failed", "diverged", "descent", "ranks", "keys", "two", "gradual", *ANSWERS)
INSPECTED = ("inspected", "killed", "few-examples")
STUDY_FOLDERS = tuple(f"studies/{name}" for name, study in (STUDIES | REAL_DATA).items() if study.trained_by == name)

COMMANDS: dict[str, str] = (
    {f"show {name}": f"show {{{name}}}" for name in (*RESULTS, *INSPECTED, *STUDY_FOLDERS)}
    | {f"status {name}": f"status {{{name}}}" for name in ("sharp", "part", "failed", "descent", "two", *INSPECTED)}
    | {f"export {name}": f"export {{{name}}}" for name in ("failed", "descent", *INSPECTED)}
    | {f"export summary {name}": f"export {{{name}}} --summary" for name in ("sharp", "descent", "ranks", "keys")}
    | {f"report {name}": f"report {{{name}}}" for name in ("sharp", "part", "ranks", "keys", "inspected")}
    | {f"report {name}": f"report {{{name}}}" for name in ("studies/table2", "studies/depth", "studies/shared-keys")}
    | {
        "compare answers": "compare {sharp} {floor} {descent}",
        "compare maps": "compare {ranks} {sharp}",
        "compare inspections": "compare {inspected} {few-examples}",
        "status all": "status {studies/..}",
        "bounds": "bounds --heads 2 --length 128 --intrinsic-dim 4",
        "bounds layers": "bounds --heads 1 --length 128 --intrinsic-dim 4 --layers 2 --head-dim 64 --eps 0.001",
        "bounds rank": "bounds --heads 8 --rank 8 --dim 64",
        "bounds hard": "bounds --class hard --alphabet 5 --intrinsic-dim 3 --heads 2 --length 8",
        "bounds bounded": "bounds --class bounded --slope 1e3 --heads 1 --head-dim 2 --intrinsic-dim 2 --length 128",
        "tasks": "tasks",
        "tasks max-plus-min": "tasks max-plus-min",
        "tasks average": "tasks average",
        "plan": "measure sum-of-maxima --seeds 2 --dry-run",
        "plan map": "measure max-plus-min --heads 1,2 --ranks 1,2 --seeds 2 --dry-run",
        "plan question": "measure max-plus-min --dry-run",
        "wrong task": "measure sum-of-maxim",
        "wrong heads": "measure sum-of-maxima --heads 0",
        "wrong folder": "show {nowhere}",
        "wrong study": "reproduce tabel2",
    }
)
