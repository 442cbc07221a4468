"""What happens inside an encoder whose norms come after each sum, while it learns the farthest point.

    python benchmarks/norm_places.py --dim 16 --hidden 128 --warmup 150
    python benchmarks/norm_places.py --dim 64 --hidden 2048 --batch 32 --rate 0.0003 --steps 100000 --stop 1000

Prints as it trains: the error on 512 held-out sequences (1: a constant answer); the learned length of the last norm;
how far the tokens of 128 sequences point one way after every layer (the length of their mean direction, 1: all the
same); and the norms of the gradients of every layer's queries and of its net. Changes to the training are options.
"""

import argparse
import functools
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from headcount.engine.steps import schedule
from headcount.models import EncoderSpec
from headcount.models.encoder.layer import apply_layer
from headcount.tasks import FarthestPoint

HELD_OUT, WATCHED = 512, 128


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {
        "dim": 16,
        "points": 16,
        "layers": 3,
        "hidden": 128,
        "heads": 1,
        "steps": 3000,
        "batch": 64,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--norms", choices=("after", "first"), default="after")
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--warmup", type=int, default=150, help="steps over which the rate rises; up to all of them")
    parser.add_argument("--stop", type=int, help="stop after this many of the steps that the schedule is made for")
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--beta2", type=float, default=0.95)
    parser.add_argument("--epsilon", type=float, default=1e-8)
    parser.add_argument("--clip", type=float, default=1e9)
    parser.add_argument("--factor", type=float, default=1.0, help="of the squared distance; the engine has 1 / dim")
    parser.add_argument("--length", type=float, default=1.0, help="initial length of all norms")
    parser.add_argument("--fixed-length", action="store_true", help="the length of the last norm is not learned")
    parser.add_argument("--zero", action="store_true", help="what attention and nets add is 0 at the start")
    parser.add_argument("--copies", action="store_true", help="layers start as copies of the first, as in PyTorch")
    return parser.parse_args()


def drawn(options: argparse.Namespace) -> Any:
    """The encoder as it starts."""
    spec = EncoderSpec.with_total_dim(
        options.dim,
        heads=options.heads,
        width=options.dim,
        layers=options.layers,
        hidden=options.hidden,
        norm_first=options.norms == "first",
    )
    model = spec.init(options.seed, length=options.points, dim=options.dim, outputs=options.dim)
    layers = [model.layers[0]] * options.layers if options.copies else model.layers
    length = np.full((), options.length, np.float32)
    lengths = [
        eqx.tree_at(lambda layer: (layer.attention_scale, layer.feed_scale), each, (length, length)) for each in layers
    ]
    return jax.tree.map(jnp.asarray, eqx.tree_at(lambda model: model.layers, model, tuple(lengths)))


def sequences(task: FarthestPoint, key: Any, count: int) -> tuple[Any, Any]:
    tokens = jax.vmap(task.sample)(jr.split(key, count))
    return tokens, jax.vmap(task.target)(tokens)


@eqx.filter_jit
def error_of(model: Any, tokens: Any, targets: Any) -> Any:
    """The mean squared distance; targets have length 1."""
    return jnp.mean(jnp.sum((jax.vmap(model)(tokens) - targets) ** 2, axis=-1))


def shared(model: Any, tokens: Any) -> list[float]:
    """After every layer, the length of the mean direction of all tokens of all sequences."""
    lengths, stream = [], tokens
    for layer in model.layers:
        stream = jax.vmap(functools.partial(_through, model, layer))(stream)
        directions = stream / (jnp.linalg.norm(stream, axis=-1, keepdims=True) + 1e-12)
        lengths.append(float(jnp.linalg.norm(directions.reshape(-1, stream.shape[-1]).mean(axis=0))))
    return lengths


def _through(model: Any, layer: Any, stream: Any) -> Any:
    return apply_layer(layer, model.spec, stream, stream, None, None)


def main() -> None:
    options = arguments()
    task, model = FarthestPoint(length=options.points, dim=options.dim), drawn(options)
    optimiser = optax.chain(
        optax.clip_by_global_norm(options.clip), optax.scale_by_adam(b2=options.beta2, eps=options.epsilon)
    )
    learns = jax.tree.map(lambda _: 1.0, model)
    if options.fixed_length:
        learns = eqx.tree_at(lambda model: model.layers[-1].feed_scale, learns, 0.0)
    batches = jr.key(options.seed + 1)

    @jax.jit
    def train(model: Any, moments: Any, first: Any, count: Any) -> tuple[Any, Any]:
        def step(place: Any, carried: tuple[Any, Any]) -> tuple[Any, Any]:
            model, moments = carried
            batch = sequences(task, jr.fold_in(batches, place), options.batch)
            gradient = jax.grad(lambda model: options.factor * error_of(model, *batch))(model)
            update, moments = optimiser.update(gradient, moments)
            rate = options.rate * schedule(place, options.steps, options.warmup, 0.999)
            return jax.tree.map(lambda w, change, own: w - own * rate * change, model, update, learns), moments

        return jax.lax.fori_loop(first, first + count, step, (model, moments))

    held_out = sequences(task, jr.key(999), HELD_OUT)
    watched = tuple(part[:WATCHED] for part in held_out)
    moments, done, stop, began = optimiser.init(model), 0, options.stop or options.steps, time.monotonic()
    print("step   error  length  one way after layers     gradient of queries         of nets")
    while True:
        slopes = eqx.filter_jit(jax.grad(error_of))(model, *watched).layers
        queries, nets = ([float(jnp.linalg.norm(part(layer))) for layer in slopes] for part in (_query, _net))
        columns = (" ".join(f"{number:{form}}" for number in numbers) for form, numbers in
                   ((".3f", shared(model, watched[0])), (".1e", queries), (".1e", nets)))  # fmt: skip
        length = float(model.layers[-1].feed_scale)
        print(f"{done:5d} {float(error_of(model, *held_out)):7.3f} {length:7.3f}  {'  |  '.join(columns)}", flush=True)
        if done >= stop:
            break
        count = min(options.every, stop - done)
        model, moments = train(model, moments, done, count)
        done += count
    print(f"{time.monotonic() - began:.0f} s")


def _query(layer: Any) -> Any:
    return layer.heads.query.ravel()


def _net(layer: Any) -> Any:
    return layer.feed_out.weight.ravel()


if __name__ == "__main__":
    main()
