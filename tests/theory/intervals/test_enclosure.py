"""An enclosure holds the function at every point of its box, is tight where the box is small, and refuses the rest."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._precision import in_double
from headcount.models import ClassTokenSpec, folded
from headcount.models.layers import layer_norm
from headcount.tasks import average, max_plus_min, quadratic_basins, sum_of_maxima
from headcount.theory.intervals.arithmetic import EnclosureError, ball, point
from headcount.theory.intervals.enclosure import enclose
from tests.theory.collisions.digits import DIGITS, layer_normed, precise

LENGTH, DIM = 5, 2
RADII = [0.0, 1e-12, 1e-3, 0.5]
SLACK = 1e-13
"""What the sampled values themselves may be off by, relative to 1 and to their size."""


@pytest.fixture(autouse=True)
def _in_double():
    with jax.enable_x64(True):
        yield


def sampled(centre: np.ndarray, radius: float, count: int = 40) -> np.ndarray:
    """Points of a box: corners, points on faces, and others."""
    generator = np.random.default_rng(1)
    signs = generator.uniform(-1, 1, (count, *centre.shape))
    signs[: count // 4] = np.sign(signs[: count // 4])
    signs[count // 4 : count // 2] = np.clip(3 * signs[count // 4 : count // 2], -1, 1)
    return centre + radius * signs


def assert_encloses(function, centre: np.ndarray) -> None:
    """The boxes of all radii around the centre hold the function's values in them; the small ones hold little else."""
    values_at = jax.jit(jax.vmap(function))
    for radius in RADII:
        box = enclose(function, ball(centre, radius))
        values = np.asarray(values_at(jnp.asarray(sampled(centre, radius))))
        assert box.shape == values.shape[1:]
        slack = SLACK * (1 + np.abs(values))
        assert np.all(np.isfinite(box.low) & np.isfinite(box.high))
        assert np.all(box.low <= values + slack)
        assert np.all(values <= box.high + slack)
        if radius <= 1e-12:
            assert np.max(box.high - box.low) <= 1e-9


def tokens_of(seed: int = 0, dim: int = DIM) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 0.9, (LENGTH, dim))


def random_model(positions: str = "none", layers: int = 1, seed: int = 0):
    spec = ClassTokenSpec(heads=2, head_dim=2, hidden=8, layers=layers, positions=positions, beta=2.0)  # pyright: ignore
    return in_double(spec.init(seed, length=LENGTH, dim=DIM, outputs=1))


@pytest.mark.parametrize(("positions", "layers"), [("none", 1), ("additive", 2), ("concatenated", 1)])
def test_what_a_model_reads_is_enclosed(positions, layers):
    model = random_model(positions, layers)
    assert_encloses(lambda x: folded.class_output(model, x), tokens_of())


@pytest.mark.parametrize(
    ("positions", "layers"), [("additive", 1), pytest.param("concatenated", 2, marks=pytest.mark.slow)]
)
def test_the_derivative_of_what_a_model_reads_is_enclosed_kinks_included(positions, layers):
    model = random_model(positions, layers, seed=3)
    assert_encloses(jax.jacrev(lambda x: folded.class_output(model, x)), tokens_of(2))


def test_the_derivative_at_a_kink_holds_both_sides():
    assert enclose(jax.grad(lambda x: jax.nn.relu(x[0])), ball(np.zeros(1), 1e-12)).low[0] <= 0
    assert enclose(jax.grad(lambda x: jax.nn.relu(x[0])), ball(np.zeros(1), 1e-12)).high[0] >= 1


TASKS = {
    "sum of maxima": sum_of_maxima(length=LENGTH, dim=DIM, intrinsic_dim=3),
    "sum of maxima of halves": sum_of_maxima(length=LENGTH, dim=DIM, intrinsic_dim=2, windows=[(0.0, 0.5), (0.5, 1.0)]),
    "max plus min": max_plus_min(length=LENGTH),
    "three basins": quadratic_basins(length=LENGTH),
    "average": average(length=LENGTH, dim=DIM),
}


@pytest.mark.parametrize("name", TASKS)
def test_the_target_of_every_preset_is_enclosed(name):
    task = in_double(TASKS[name])
    assert_encloses(task.target, tokens_of(3, task.dim))


WEIGHTS = np.random.default_rng(7).standard_normal((DIM, 3))
FUNCTIONS = {
    "indexing": lambda x: x[2] * x[-1, 0] + x[:, 1][::2].sum(),
    "indexing by an array": lambda x: x[np.array([3, 0, 3])],
    "a dynamic slice": lambda x: jax.lax.dynamic_slice(x, (1, 0), (2, 2)),
    "sort": lambda x: jnp.sort(x, axis=0)[1:3],
    "the median": lambda x: jnp.sort(x[:, 0])[LENGTH // 2],
    "sin": lambda x: jnp.sin(9 * x),
    "cos": lambda x: jnp.cos(9 * x),
    "tanh": jnp.tanh,
    "square": lambda x: (x - 0.5) ** 2,
    "cube": lambda x: (x - 0.5) ** 3,
    "a broken power": lambda x: (1 + x) ** 1.5,
    "a negative power": lambda x: (2 + x) ** -2,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu by tanh": jax.nn.gelu,
    "silu": jax.nn.silu,
    "softplus by hand": lambda x: jnp.log1p(jnp.exp(x)),
    "softmax": lambda x: jax.nn.softmax(3 * x, axis=0),
    "logsumexp by hand": lambda x: jnp.log(jnp.sum(jnp.exp(4 * x))),
    "where": lambda x: jnp.where(x > 0.5, 2 * x, -x),
    "where with both conditions": lambda x: jnp.where((x >= 0.3) & ~(x < 0.6) | (x <= 0.1), x, 0.0),
    "clip": lambda x: jnp.clip(x, 0.3, 0.6),
    "mean": lambda x: jnp.mean(x, axis=0),
    "variance": lambda x: jnp.var(x, axis=0),
    "einsum": lambda x: jnp.einsum("td,de,se->ts", x, WEIGHTS, x @ WEIGHTS),
    "absolute": lambda x: jnp.abs(x - 0.5),
    "root": lambda x: jnp.sqrt(1 + jnp.sum(x**2, axis=1)),
    "inverse root": lambda x: jax.lax.rsqrt(1 + x),
    "quotient": lambda x: x[:, 0] / (1 + x[:, 1]),
    "reshape and transpose": lambda x: x.T.reshape(-1)[::-1] + jnp.arange(10),
    "concatenate, split and stack": lambda x: jnp.stack(jnp.split(jnp.concatenate([x, -x], axis=1), 2, axis=1)),
    "pad": lambda x: jnp.pad(x, 1),
    "running maximum": lambda x: jax.lax.cummax(x, axis=0),
    "sign": lambda x: jnp.sign(x - 0.5) + 0 * x,
    "a count": lambda x: jnp.sum(x > 0.5, axis=0).astype(float),
    "error function": lambda x: jax.scipy.special.erf(x) + jax.scipy.special.erfc(2 * x),
    "arc tangent": lambda x: jnp.arctan(5 * x),
    "smallest and largest": lambda x: jnp.min(x, axis=0) * jnp.max(x),
    "outer product": lambda x: x[:, None, :] * x[None, :, :],
    "vmapped": lambda x: jax.vmap(lambda token: jnp.dot(token, token) * token)(x),
    "a gradient": jax.grad(lambda x: jnp.sum(jnp.sin(x @ WEIGHTS) * jnp.exp(-x[0, 0]))),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (i % 4 > 0)) for i, n in enumerate(FUNCTIONS)]
)
def test_what_users_write_is_enclosed(name):
    assert_encloses(FUNCTIONS[name], tokens_of(5))


@pytest.mark.parametrize(
    "function",
    [jnp.sort, lambda x: jax.lax.cummax(x, axis=0), lambda x: jax.lax.cummin(x, axis=0, reverse=True)],
)
def test_numbers_too_small_for_xla_are_kept_apart(function):
    """XLA takes numbers below 2.2e-308 for zero; an enclosure is about real numbers."""
    tiny = np.array([3e-310, 1e-310, 2e-310, -1e-310])
    large = np.asarray(function(jnp.asarray(1e310 * tiny)))
    box = enclose(function, point(tiny))
    assert np.array_equal(box.low, box.high)
    assert np.allclose(1e310 * box.low, large, rtol=1e-12)


def test_a_dot_product_without_axes_is_enclosed():
    """The target of a retrieval whose outer function is lambda z: w @ z."""
    box = enclose(lambda x: x @ x, ball(np.ones(3), 0.1))
    assert box.shape == ()
    assert box.low <= 3 * 0.9**2 + 1e-12
    assert box.high >= 3 * 1.1**2


@settings(max_examples=25, deadline=None)
@given(
    centre=st.lists(st.one_of(st.just(0.5), st.floats(-3, 3)), min_size=3, max_size=3),
    radius=st.sampled_from([0.0, 1e-12, 1e-4, 0.1]),
    signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3),
)
def test_a_layer_norm_holds_fifty_digits_of_it(centre, radius, signs):
    """Equal entries included, where only the floor keeps the norm from dividing by zero."""
    with jax.enable_x64(True), mpmath.workdps(DIGITS):
        box = ball(np.array(centre), radius)
        normed = enclose(layer_norm, box)
        wanted = layer_normed(precise(centre) + precise(signs) * mpmath.mpf(radius))
        assert all(low <= value <= high for low, value, high in zip(normed.low, wanted, normed.high, strict=True))
        if radius == 0:  # the norm's slope, up to 316, times the rounding of its entries
            assert np.max(normed.high - normed.low) <= 1e-11


@pytest.mark.parametrize("seed", range(2))
def test_a_box_inside_another_has_an_enclosure_no_wider(seed):
    model = random_model(seed=seed)
    outer, inner = (enclose(lambda x: folded.class_output(model, x), ball(tokens_of(seed), r)) for r in (0.1, 0.01))
    assert np.all(outer.high - outer.low >= inner.high - inner.low)
    assert np.all(inner.high - inner.low > 0)


def test_a_choice_at_a_jump_holds_both_sides():
    box = enclose(lambda x: jnp.where(x > 0.5, 10.0, -10.0), ball(np.array([0.5]), 0.0))
    assert box.low[0] == -10
    assert box.high[0] == 10


def test_several_arguments_have_a_box_each():
    box = enclose(lambda x, y: x @ y, ball(np.ones((2, 3)), 0.1), ball(np.ones((3, 1)), 0.0))
    assert np.all(box.low <= 2.7)
    assert np.all(box.high >= 3.3)
    assert np.all(box.high <= 3.31)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: jnp.fft.rfft(x[:, 0]).real, '"fft"'),
        (lambda x: jnp.cumsum(x, axis=0), '"cumsum"'),
        (lambda x: jnp.floor(x), '"floor"'),
        (lambda x: jnp.argmax(x, axis=0) * x[0], '"argmax"'),
        (lambda x: jax.lax.fori_loop(0, 3, lambda i, y: 2 * y, x), '"(scan|while)"'),
        (lambda x: jnp.linalg.inv(x[:2]), "no rule encloses"),
        (lambda x: x[(x[0] > 0.5).astype(int)], "depend on the input"),
        (lambda x: x[0] / (x[1] - x[1]), "contains zero"),
        (lambda x: jnp.log(x - 2.0), "outside its domain"),
        (lambda x: (10 * x).astype(int) * x, "float to integer"),
        (lambda x: x**x, "constant exponent"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(function, words):
    with pytest.raises(EnclosureError, match=words) as refused:
        enclose(function, ball(tokens_of(), 0.5))
    assert refused.value.operation in str(jax.make_jaxpr(function)(tokens_of()))
    assert refused.value.operation


WHOLE = {
    "a quotient": lambda x: x * jax.lax.div(jnp.arange(4), jnp.full(4, 2)),
    "bits in common": lambda x: x * (jnp.arange(4) & 2),
    "bits of either": lambda x: x * (jnp.arange(4) | 4),
    "a truth value": lambda x: jnp.where(((x > 0.5).astype(int) - (x < 0.5).astype(int)).astype(bool), 1.0, 5.0),
    "a distance as a place": lambda x: x[jnp.abs(jnp.arange(4) - 2)],
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_reckoned_as_jax_does_or_refused(name):
    tokens = np.array([0.5, 0.4, 0.6, 0.9])
    wanted = np.asarray(WHOLE[name](jnp.asarray(tokens)))
    try:
        box = enclose(WHOLE[name], ball(tokens, 1e-3))
    except EnclosureError:
        return
    assert np.all(box.low <= wanted)
    assert np.all(wanted <= box.high)


def test_what_overflows_is_unbounded_above_and_still_bounded_below():
    box = enclose(jnp.exp, point(np.array([1000.0])))
    assert 1e300 <= box.low[0] <= box.high[0] == np.inf


def test_a_logarithm_of_what_may_be_zero_is_unbounded_below():
    box = enclose(lambda x: jnp.log(jax.nn.relu(x)), ball(np.array([0.0]), 1.0))
    assert box.low[0] == -np.inf
    assert 0 <= box.high[0] <= 1e-9


BOX = ball(np.array([0.75, 0.75, 0.5]), np.array([0.25, 0.25, 0.5]))


@pytest.mark.parametrize(
    ("function", "true"),
    [
        (lambda x: jnp.where(x[0] > jnp.exp(800 * x[0]) * x[2], 1.0, 0.0), 1.0),
        (lambda x: jnp.sort(jnp.stack([jnp.exp(800 * x[0]) * x[2], jnp.asarray(3.0)]))[0], 0.0),
        (lambda x: jnp.where(jnp.isfinite(jnp.exp(1000 * x[2])), 1.0, 0.0), 1.0),
        (lambda x: jnp.exp(jnp.arange(3, dtype=jnp.float32))[1] + 0 * x[0], np.e),
        (lambda x: jax.lax.map(lambda k: jnp.exp(k * 1.0), jnp.arange(1, 5))[0] + 0 * x[0], np.e),
        (lambda x: (jnp.sum(x > 0.25) & 1) * 1.0, 0.0),
        (lambda x: (100 * jnp.sum(x > 0.25)).astype(jnp.int8) * 1.0, 100.0),
        (lambda x: jax.lax.reshape(jnp.array([[1.0, 0.5], [2.0, 1.0]]), (4,), dimensions=(1, 0))[1] + 0 * x[0], 2.0),
    ],
)
def test_what_could_be_misread_is_enclosed_or_refused(function, true):
    try:
        found = enclose(function, BOX)
    except EnclosureError:
        return
    assert found.low <= true <= found.high


def test_without_double_precision_nothing_is_enclosed():
    with jax.enable_x64(False), pytest.raises(EnclosureError, match="float64"):
        enclose(jnp.sort, point(np.array([0.1, 0.3])))
