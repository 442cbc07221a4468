"""The library refuses arrays whose shapes do not belong together: it never reads beyond one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

POOL = {"tokens": (2, 3, 2), "weight": (4, 2), "bias": (1, 4), "direction": (1, 4), "offset": (3, 1)}
POOL_RESULTS = [(2, 1, 4), (2, 3, 1)]
MODEL = {"length": 3, "dim": 2, "code": 0, "hidden": 4, "heads": 1, "groups": 1, "rank": 1, "head_dim": 1, "outputs": 1}
MODEL |= {"positions": 0, "objective": 0, "masks": 0}
TRAINING = {"beta": 1.0, "clip": 1.0, "second_moment_decay": 0.99, "weight_decay": 0.0}
MOVING = {"weights": (2, 35), "mean": (2, 35), "square": (2, 35)}
ADVANCE = MOVING | {"step": (2,), "heads": (2,), "count": (), "rates": (2, 5), "chosen": (2, 5, 3)}
ADVANCE |= {"tokens": (7, 3, 2), "targets": (7, 1)}
ADVANCE_RESULTS = [*MOVING.values(), (2,)]
WHOLE = ("step", "heads", "count", "chosen")


def called(operation, results, shapes, **attributes):
    call = jax.ffi.ffi_call(operation, [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in results])
    arrays = [np.zeros(shape, np.int32 if name in WHOLE else np.float32) for name, shape in shapes.items()]
    return jax.block_until_ready(call(*arrays, **attributes))


def pooled(shapes):
    return called("headcount_pool", POOL_RESULTS, shapes, masks=np.int64(0))


def advanced(shapes, **others):
    whole = {name: np.int64(number) for name, number in (MODEL | others).items()}
    real = {name: np.float32(number) for name, number in TRAINING.items()}
    return called("headcount_advance", ADVANCE_RESULTS, shapes, **whole, **real)


def test_shapes_that_belong_together_are_taken(fused):
    assert not np.any(advanced(ADVANCE)[-1])  # empty slots
    assert np.all(np.isclose(pooled(POOL)[1], 1 / 3))


@pytest.mark.parametrize(("call", "shapes"), [(pooled, POOL), (advanced, ADVANCE)])
def test_every_array_of_another_shape_is_refused(call, shapes, fused):
    for name, shape in shapes.items():
        for wrong in ((*shape, 1), (*shape[:-1], shape[-1] + 1) if shape else (1, 1)):
            if (name, wrong) == ("chosen", (2, 5, 4)):  # any batch will do
                continue
            with pytest.raises(jax.errors.JaxRuntimeError, match=r"headcount kernels: \w+ has shape \("):
                call(shapes | {name: wrong})


@pytest.mark.parametrize(("name", "number"), [("hidden", 0), ("heads", 1 << 40), ("positions", 3), ("code", 1)])
def test_numbers_that_no_model_has_are_refused(name, number, fused):
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"{name} is {number}"):
        advanced(ADVANCE, **{name: number})
