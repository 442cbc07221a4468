"""How near is near: the one home of tolerances, and a comparison whose misses speak numbers."""

import jax
import numpy as np

TOLERANCE = {"float32": 2e-4, "float64": 1e-10}
"""Allowed miss by dtype, in units of the largest wanted number, or of 1 where that is larger."""


def assert_close(got, want, what: str = "result") -> None:
    """Every number of `got` is near the one of `want`; the coarser dtype of the two says how near."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what} has shape {got.shape}, wanted {want.shape}"
    assert np.all(np.isfinite(got)), f"{what} has {np.sum(~np.isfinite(got))} NaN or infinite values in {got.size}"
    if got.size == 0:
        return
    relative = max(TOLERANCE.get(str(array.dtype), TOLERANCE["float64"]) for array in (got, want))
    allowed = relative * max(1.0, float(np.max(np.abs(want))))
    miss = np.abs(got.astype(np.float64) - want.astype(np.float64))
    place = tuple(int(i) for i in np.unravel_index(np.argmax(miss), miss.shape))
    assert miss[place] <= allowed, (
        f"{what} at {place} is {got[place]:.9g}, wanted {want[place]:.9g}: "
        f"off by {miss[place]:.1e}, allowed {allowed:.0e} in {got.dtype}"
    )


def assert_trees_close(got, want) -> None:
    """The same for every array of two trees of one structure, each named by its path."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for (path, leaf), wanted in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(want), strict=True):
        assert_close(leaf, wanted, jax.tree_util.keystr(path))


def assert_trees_equal(got, want) -> None:
    """Every array of two trees of one structure is the same to the last bit."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for (path, leaf), wanted in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(want), strict=True):
        leaf, wanted = np.asarray(leaf), np.asarray(wanted)
        name = jax.tree_util.keystr(path)
        assert leaf.shape == wanted.shape, f"{name} has shape {leaf.shape}, wanted {wanted.shape}"
        assert leaf.dtype == wanted.dtype, f"{name} is {leaf.dtype}, wanted {wanted.dtype}"
        same = np.array_equal(leaf, wanted, equal_nan=leaf.dtype.kind == "f")  # absent tokens are NaN
        assert same, f"{name} differs in {np.sum(leaf != wanted)} of {leaf.size} numbers"


def in_double(tree):
    """`tree` with its arrays in float64, to be used inside `jax.enable_x64(True)`."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)
