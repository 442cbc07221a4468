"""A model as plain named arrays and back: what the store keeps."""

import jax
import numpy as np

from .._errors import require
from .spec import ModelSpec
from .transformer import ClassTokenTransformer, init


def to_arrays(model: ClassTokenTransformer) -> dict[str, np.ndarray]:
    """Every array of the model under its path, e.g. `attention.0.query`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(model)
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


def from_arrays(spec: ModelSpec, arrays: dict[str, np.ndarray]) -> ClassTokenTransformer:
    """The model of that spec with these arrays; `from_arrays(spec, to_arrays(model))` is `model`."""
    for name in ("readout_out.bias", "encoder_in.weight"):
        require(name in arrays, f"the arrays of a model must hold {name}, got {', '.join(sorted(arrays))}.")
    outputs, dim = arrays["readout_out.bias"].shape[0], arrays["encoder_in.weight"].shape[1]
    table = arrays.get("position_table")
    length = 1 if table is None else table.shape[0]
    if spec.positions == "concatenated":
        require(table is not None, "a model with concatenated positions needs a position_table.")
        dim -= table.shape[1]  # type: ignore[union-attr]
    skeleton = init(spec, 0, length=length, dim=dim, outputs=outputs)

    wanted = set(to_arrays(skeleton))
    missing, surplus = sorted(wanted - arrays.keys()), sorted(arrays.keys() - wanted)
    require(not missing, f"the spec {spec} needs arrays that are not there: {', '.join(missing)}.")
    require(not surplus, f"the spec {spec} has no place for the arrays {', '.join(surplus)}.")

    def fill(path, leaf):
        found = arrays[_name(path)]
        require(found.shape == leaf.shape, f"{_name(path)} has shape {found.shape}; the spec says {leaf.shape}.")
        return found

    return jax.tree_util.tree_map_with_path(fill, skeleton)


def _name(path) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
