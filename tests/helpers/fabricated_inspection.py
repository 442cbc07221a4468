"""Facts of an inspection that nothing was measured for: a model with heads, ranks and costs one chooses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headcount.store import Experiment, Store

COMMAND = "headcount inspect /models/tiny --data texts.txt --out results/tiny"


def facts(
    *,
    layers: int = 6,
    heads: int = 6,
    key_heads: int | None = None,
    head_dim: int = 48,
    examples: int = 40,
    seed: int = 0,
    spare: float = 0.5,
    stored: str = "small",
) -> dict[str, Any]:
    """The attachments of a complete inspection; about a share `spare` of every layer's heads costs next to nothing."""
    draw = np.random.default_rng([seed, layers, heads])
    base = 2.0 + 0.3 * draw.standard_normal(examples)
    total, key_heads = layers * heads, key_heads or heads

    def losses(increase: float) -> list[float]:
        return (base + increase * (1 + 0.2 * draw.standard_normal(examples))).tolist()

    needed = np.clip(np.round(heads * (1 - spare) * (1.4 - 0.8 * np.arange(layers) / layers)), 0, heads).astype(int)
    made: dict[str, Any] = {
        "model": {
            "name": "/models/tiny",
            "family": "llama",
            "architecture": "LlamaForCausalLM",
            "layers": layers,
            "heads": heads,
            "key_heads": key_heads,
            "head_dim": head_dim,
            "width": heads * head_dim,
            "parameters": 15_200_000,
            "attention_parameters": 4 * layers * (heads * head_dim) ** 2,
            "cache_bytes_per_token": 8 * layers * key_heads * head_dim,
            "rotary": True,
            "fingerprint": "0123456789abcdef0123",
            "torch": "2.13.0",
            "transformers": "5.22.2",
            "device": "cpu",
        },
        "data": {
            "kind": "text",
            "words": f"{2 * examples} texts of texts.txt: {examples} held out.",
            "cannot": "Texts of another kind may use other heads.",
            "loss": "cross-entropy (nats per token)",
            "scale": float(base.mean()),
            "examples": {"calibration": examples, "held_out": examples},
            "tokens": {"calibration": 160 * examples, "held_out": 160 * examples},
        },
        "base": {"losses": base.tolist()},
    }
    importances = []
    for layer in range(layers):
        rank = draw.permutation(heads)
        importance = 2e-4 * 200.0 ** (rank / heads) * np.where(rank >= heads - needed[layer], 20.0, 1.0)
        importances.append(importance)
        noise = [np.exp(0.4 * draw.standard_normal(heads)) for _ in range(4)]
        made[f"importance/{layer}"] = {
            "leave_one_out": importance.tolist(),
            "leave_one_out_error": (0.1 * importance).tolist(),
            **{
                name: (importance**power * each).tolist()
                for name, power, each in zip(
                    ("gradient", "fisher", "magnitude", "output_norm"), (0.5, 1.0, 0.05, 0.1), noise, strict=True
                )
            },
        }
        kept = list(range(heads, -1, -1))
        costs = [0.0 if k == heads else 2e-3 if k >= needed[layer] else 0.9 * 0.45**k for k in kept]
        made[f"curve/{layer}"] = {
            "order": np.argsort(importance).tolist(),
            "kept": kept,
            "losses": [losses(cost) for cost in costs],
        }
        ranks = [head_dim, 3 * head_dim // 4, head_dim // 4, head_dim // 8]
        made[f"rank/{layer}"] = {
            kind: {"ranks": ranks, "losses": [losses(scale * (head_dim / r - 1) ** 2) for r in ranks]}
            for kind, scale in (("scores", 1e-3), ("values", 1e-2))
        }
        alike = np.clip(np.eye(heads) + 0.5 + 0.2 * draw.standard_normal((heads, heads)), 0, 1)
        if heads > 1:
            alike[0, 1] = alike[1, 0] = 0.95
        apart = 1 - np.eye(key_heads)
        made[f"redundancy/{layer}"] = {
            "reading": alike.tolist(),
            "keys": (0.7 * apart).tolist(),
        }
    order = sorted(
        ((float(value), layer, head) for layer, row in enumerate(importances) for head, value in enumerate(row))
    )
    count = max(1, total // 2)
    kept = list(range(total, total - count - 1, -1))
    made["descent"] = {
        "removed": [[layer, head] for _, layer, head in order[:count]],
        "kept": kept,
        "losses": [losses(0.3 * ((total - k) / total) ** 3 * 10) for k in kept],
        "with_refit": True,
    }
    few = sorted({max(0, round(total * (1 - share))) for share in (0.1, 0.2, 0.3, 0.5)}, reverse=True)
    made["peers"] = {
        f"{name}{', refit' if refit else ''}": {
            "kept": few,
            "losses": [losses(factor * (0.6 if refit else 1.0) * ((total - k) / total) ** 2 * 4) for k in few],
            "refit": refit,
        }
        for name, factor in (("random", 1.6), ("gradient", 1.0), ("fisher", 0.9), ("magnitude", 2.5))
        for refit in (False, True)
    }
    original = {name: made["model"][name] for name in ("heads", "key_heads", "head_dim", "parameters")}
    original |= {"name": "original", "kind": "original", "losses": base.tolist(), "seconds": 0.8, "stored": "small"}
    original |= {"cache_bytes_per_token": made["model"]["cache_bytes_per_token"], "command": ""}
    made["configurations"] = [original] + [
        {
            "name": name,
            "kind": kind,
            "heads": count,
            "key_heads": count,
            "head_dim": head_dim,
            "losses": losses(cost),
            "parameters": int(15_200_000 * share),
            "cache_bytes_per_token": int(made["model"]["cache_bytes_per_token"] * share),
            "seconds": 0.8 * share,
            "stored": "zeroed" if kind == "zeroed" else stored,
            "command": f"headcount prune /models/tiny --keep {count} --out smaller",
        }
        for name, kind, count, cost, share in (
            (f"{heads - 1} heads", "prune", heads - 1, 0.004, 0.97),
            (f"{max(1, heads // 2)} heads", "prune", max(1, heads // 2), 0.2, 0.85),
            (f"{heads - 1} heads, zeroed", "zeroed", heads, 0.003, 1.0),
        )
    ]
    made["cost"] = {"seconds": 93.0, "peak_bytes": 900_000_000, "forward_tokens": 1_200_000}
    return made


def killed_after(made: Mapping[str, Any], *, layers: int) -> dict[str, Any]:
    """What a run that was killed has left: importances of all layers, curves and ranks of the first ones."""
    started = {name: made[name] for name in ("model", "data", "base")}
    started |= {name: value for name, value in made.items() if name.startswith("importance/")}
    first = [f"{fact}/{layer}" for layer in range(layers) for fact in ("curve", "rank", "redundancy")]
    return started | {name: made[name] for name in first}


def write_inspection(root: Path, made: Mapping[str, Any], *, name: str = "tiny", command: str = COMMAND) -> Path:
    """A results folder with this inspection."""
    experiment = Experiment(
        name=name,
        question="Which attention heads does this model use, and what can go?",
        task=str(made.get("model", {}).get("name", name)),
        axes=(),
        places={},
        settings={"fingerprint": name, "seed": 0},
        study="inspect",
    )
    with Store.open_for_writing(root) as store:
        experiment = store.begin(experiment, command)
        for fact, content in made.items():
            store.put(experiment.name, fact, content)
    return root
