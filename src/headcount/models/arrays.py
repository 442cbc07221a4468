"""A model as plain named arrays and back: what the store keeps."""

from typing import overload

import jax
import numpy as np

from .._errors import require
from .encoder import Encoder
from .encoder_spec import EncoderSpec
from .family import AnyModel, AnySpec, init_model
from .spec import ClassTokenSpec
from .transformer import ClassTokenTransformer

Arrays = dict[str, np.ndarray]


def to_arrays(model: AnyModel) -> Arrays:
    """Every array of the model under its path, e.g. `attention.0.query`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(model)
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


@overload
def from_arrays(spec: ClassTokenSpec, arrays: Arrays) -> ClassTokenTransformer: ...
@overload
def from_arrays(spec: EncoderSpec, arrays: Arrays) -> Encoder: ...
def from_arrays(spec: AnySpec, arrays: Arrays) -> AnyModel:
    """The model of that spec with these arrays; `from_arrays(spec, to_arrays(model))` is `model`."""
    sizes = _encoder_sizes(spec, arrays) if isinstance(spec, EncoderSpec) else _sizes(spec, arrays)
    skeleton = init_model(spec, 0, **sizes)
    wanted = set(to_arrays(skeleton))
    missing, surplus = sorted(wanted - arrays.keys()), sorted(arrays.keys() - wanted)
    require(not missing, f"the spec {spec} needs arrays that are not there: {', '.join(missing)}.")
    require(not surplus, f"the spec {spec} has no place for the arrays {', '.join(surplus)}.")

    def fill(path, leaf):
        found = arrays[_name(path)]
        require(found.shape == leaf.shape, f"{_name(path)} has shape {found.shape}; the spec says {leaf.shape}.")
        return found

    return jax.tree_util.tree_map_with_path(fill, skeleton)


def _sizes(spec: ClassTokenSpec, arrays: Arrays) -> dict[str, int]:
    """What the spec leaves open, read off the arrays."""
    for name in ("readout_out.bias", "encoder_in.weight"):
        require(name in arrays, f"the arrays of a model must hold {name}, got {', '.join(sorted(arrays))}.")
    outputs, dim = arrays["readout_out.bias"].shape[0], arrays["encoder_in.weight"].shape[1]
    table = arrays.get("position_table")
    length = 1 if table is None else table.shape[0]
    if spec.positions == "concatenated":
        require(table is not None, "a model with concatenated positions needs a position_table.")
        dim -= table.shape[1]  # type: ignore[union-attr]
    return {"length": length, "dim": dim, "outputs": outputs}


def _encoder_sizes(spec: EncoderSpec, arrays: Arrays) -> dict[str, int]:
    table, embed, read = (arrays.get(name) for name in ("position_table", "embed.weight", "read.weight"))
    return {
        "length": 1 if table is None else table.shape[0],
        "dim": spec.width if embed is None else embed.shape[1],
        "outputs": spec.width if read is None else read.shape[0],
    }


def _name(path) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
