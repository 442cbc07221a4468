"""Every operation on intervals holds the true result, as exact rational numbers or fifty digits tell it."""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.theory.intervals import arithmetic
from headcount.theory.intervals.arithmetic import Box, EnclosureError, ball, point
from headcount.theory.intervals.rules import RULES

ENDS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1 / 3, 5e-324, -5e-324, 1e-160, -1e150, 2.0**-1022]),
    st.floats(-1e150, 1e150),
    st.floats(-2.0, 2.0),
)
SHARES = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))
"""Where between its ends a number lies: at either, or anywhere."""


def interval_of(ends: list[list[float]]) -> Box:
    return Box(*np.sort(np.array(ends, float).reshape(-1, 2), axis=1).T)


def inside(x: Box, shares: list[float]) -> np.ndarray:
    """A real number of each interval, exactly: low + share (high - low)."""
    chosen = [
        Fraction(low) + Fraction(share) * (Fraction(high) - Fraction(low))
        for low, high, share in zip(x.low.ravel().tolist(), x.high.ravel().tolist(), shares, strict=True)
    ]
    return np.array(chosen, dtype=object).reshape(x.shape)


ENTRY = st.tuples(st.one_of(st.tuples(ENDS, ENDS), ENDS.map(lambda end: (end, end))), SHARES)


def entries(count: int) -> st.SearchStrategy:
    """Ends of intervals, many of them single numbers, each with a place between them."""
    return st.lists(ENTRY, min_size=count, max_size=count)


def boxed(drawn: list, *shape: int) -> tuple[Box, np.ndarray]:
    """An array of intervals, and exact numbers inside."""
    box = interval_of([list(pair) for pair, _ in drawn]).map(lambda side: side.reshape(shape))
    return box, inside(box, [share for _, share in drawn])


def assert_holds(box: Box, exact: np.ndarray) -> None:
    assert box.shape == exact.shape
    for low, high, value in zip(box.low.ravel().tolist(), box.high.ravel().tolist(), exact.ravel(), strict=True):
        assert low == -np.inf or Fraction(low) <= value, f"{float(value)!r} lies below {low!r}"
        assert high == np.inf or value <= Fraction(high), f"{float(value)!r} lies above {high!r}"


PAIRWISE: dict[str, tuple[Callable, Callable]] = {
    "sum": (arithmetic.add, lambda x, y: x + y),
    "difference": (arithmetic.subtract, lambda x, y: x - y),
    "product": (arithmetic.multiply, lambda x, y: x * y),
}


@pytest.mark.parametrize("name", PAIRWISE)
@settings(deadline=None)
@given(one=entries(3), other=entries(3))
def test_sums_differences_and_products_hold_the_exact_ones(name, one, other):
    operation, exact = PAIRWISE[name]
    (x, in_x), (y, in_y) = boxed(one, 3), boxed(other, 3)
    assert_holds(operation(x, y), exact(in_x, in_y))


@settings(deadline=None)
@given(one=entries(1), other=entries(1))
def test_a_quotient_holds_the_exact_one_and_a_divisor_that_may_be_zero_is_refused(one, other):
    (x, in_x), (y, in_y) = boxed(one, 1), boxed(other, 1)
    if y.low[0] <= 0 <= y.high[0]:
        with pytest.raises(EnclosureError, match="contains zero"):
            arithmetic.divide(x, y)
    else:
        with np.errstate(over="ignore"):
            assert_holds(arithmetic.divide(x, y), in_x / in_y)


@settings(deadline=None)
@given(drawn=entries(1), exponent=st.integers(-3, 5))
def test_a_whole_power_holds_the_exact_one(drawn, exponent):
    box, exact = boxed(drawn, 1)
    with np.errstate(over="ignore", under="ignore"):
        if exponent < 0 and box.low[0] <= 0 <= box.high[0]:
            with pytest.raises(EnclosureError, match="contains zero"):
                arithmetic.power(box, exponent)
        elif np.abs(box.magnitude[0]) < 1e60 and (exponent >= 0 or box.mignitude[0] > 1e-60):
            assert_holds(arithmetic.power(box, exponent), exact**exponent)


@settings(deadline=None)
@given(drawn=entries(2))
def test_negative_and_absolute_are_exact(drawn):
    box, exact = boxed(drawn, 2)
    assert_holds(arithmetic.negative(box), -exact)
    assert_holds(RULES["abs"](box), np.abs(exact))
    assert np.array_equal(arithmetic.negative(arithmetic.negative(box)).low, box.low)
    ends = np.abs(np.stack([box.low, box.high]))
    assert np.array_equal(RULES["abs"](box).high, ends.max(axis=0))


@settings(deadline=None, max_examples=60)
@given(drawn=entries(12), axes=st.sampled_from([(0,), (1,), (0, 1), ()]))
def test_a_total_holds_the_exact_one(drawn, axes):
    box, exact = boxed(drawn, 4, 3)
    wanted = np.array(exact.sum(axis=axes) if axes else exact, dtype=object)
    assert_holds(arithmetic.sum_over(box, axes), wanted)


@settings(deadline=None, max_examples=60)
@given(one=entries(6), other=entries(6))
def test_a_matrix_product_holds_the_exact_one(one, other):
    (x, in_x), (y, in_y) = boxed(one, 2, 3), boxed(other, 3, 2)
    assert_holds(arithmetic.product(x, y), in_x.dot(in_y))


@pytest.mark.parametrize("terms", [1, 7, 300])
def test_sums_of_many_numbers_that_cancel_hold_the_exact_zero(terms):
    generator = np.random.default_rng(terms)
    half = generator.standard_normal(terms) * 10.0 ** generator.integers(-12, 12, terms)
    numbers = generator.permutation(np.concatenate([half, -half]))
    summed = arithmetic.sum_over(point(numbers), (0,))
    multiplied = arithmetic.product(point(numbers[None]), point(np.ones((2 * terms, 1))))
    for found in (summed.low, multiplied.low):
        assert np.all(found <= 0)
    for found in (summed.high, multiplied.high):
        assert np.all(found >= 0)


@settings(deadline=None)
@given(centre=st.floats(-1e6, 1e6), radius=st.floats(0, 1e3))
def test_a_ball_holds_its_ends(centre, radius):
    box = ball(np.array([centre]), radius)
    for side in (-1, 1):
        assert_holds(box, np.array([Fraction(centre) + side * Fraction(radius)], dtype=object))


def test_an_interval_that_leaves_the_largest_float_is_unbounded_on_that_side_and_still_holds():
    huge = Box(np.array([1e308]), np.array([1.7e308]))
    with np.errstate(over="ignore"):
        summed, multiplied = arithmetic.add(huge, huge), arithmetic.multiply(huge, huge)
    for found, true in ((summed, 2 * Fraction(1e308)), (multiplied, Fraction(1e308) ** 2)):
        assert found.high[0] == np.inf
        assert Fraction(float(found.low[0])) <= true


ELEMENTARY: dict[str, tuple[Callable, tuple[float, float]]] = {
    "exp": (mpmath.exp, (-700.0, 700.0)),
    "exp2": (lambda x: mpmath.mpf(2) ** x, (-1000.0, 1000.0)),
    "expm1": (mpmath.expm1, (-50.0, 700.0)),
    "log": (mpmath.log, (1e-300, 1e300)),
    "log1p": (mpmath.log1p, (-1 + 1e-15, 1e300)),
    "sqrt": (mpmath.sqrt, (0.0, 1e300)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), (1e-200, 1e300)),
    "tanh": (mpmath.tanh, (-30.0, 30.0)),
    "atan": (mpmath.atan, (-1e300, 1e300)),
    "erf": (mpmath.erf, (-8.0, 8.0)),
    "erfc": (mpmath.erfc, (-8.0, 8.0)),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), (-700.0, 700.0)),
    "sin": (mpmath.sin, (-1e6, 1e6)),
    "cos": (mpmath.cos, (-1e6, 1e6)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (i % 3 > 0)) for i, n in enumerate(ELEMENTARY)]
)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_an_elementary_function_holds_fifty_digits_of_it(name, data):
    function, (least, most) = ELEMENTARY[name]
    near = st.floats(max(least, -3.0), min(most, 3.0))
    first = data.draw(st.one_of(near, st.floats(least, most)))
    width = data.draw(st.one_of(st.just(0.0), st.floats(1e-16, 1e-3), st.floats(0.0, 20.0)))
    second = min(first + width, most)
    exact = inside(interval_of([[first, second]]), [data.draw(SHARES)])[0]
    with mpmath.workdps(50):
        true = function(mpmath.mpf(exact.numerator) / exact.denominator)
        found = RULES[name](Box(np.array([first]), np.array([second])))
        assert mpmath.mpf(float(found.low[0])) <= true <= mpmath.mpf(float(found.high[0]))


@pytest.mark.parametrize("name", ELEMENTARY)
def test_an_elementary_function_of_one_number_is_known_to_thirteen_digits(name):
    _, (least, most) = ELEMENTARY[name]
    numbers = np.linspace(max(least, -3.0), min(most, 3.0), 41)
    numbers = numbers[numbers > (0 if name == "rsqrt" else -np.inf)]
    found = RULES[name](point(numbers))
    assert np.all(found.high - found.low <= 5e-14 * (1 + found.magnitude))


@settings(deadline=None, max_examples=60)
@given(base=st.floats(0, 1e6), width=st.one_of(st.just(0.0), st.floats(0, 10)), exponent=st.floats(0, 6), share=SHARES)
def test_a_broken_power_holds_fifty_digits_of_it(base, width, exponent, share):
    box = Box(np.array([base]), np.array([base + width]))
    exact = inside(box, [share])[0]
    found = RULES["pow"](box, point(np.array([exponent])))
    with mpmath.workdps(50):
        number = mpmath.mpf(exact.numerator) / exact.denominator
        true = mpmath.mpf(1) if exponent == 0 else number ** mpmath.mpf(exponent)
        assert mpmath.mpf(float(found.low[0])) <= true <= mpmath.mpf(float(found.high[0]))


@pytest.mark.parametrize(("name", "numbers"), [("log", [-1.0, 2.0]), ("sqrt", [-1e-9, 1.0]), ("log1p", [-2.0, 0.0])])
def test_a_function_that_leaves_its_domain_is_refused(name, numbers):
    low, high = numbers
    with pytest.raises(EnclosureError, match="outside its domain"):
        RULES[name](Box(np.array([low]), np.array([high])))


@pytest.mark.parametrize(("base", "exponent"), [([-1.0, 1.0], [0.5, 0.5]), ([1.0, 2.0], [0.5, 0.6])])
def test_a_power_without_a_bound_is_refused(base, exponent):
    one, other = (Box(np.array(ends[:1]), np.array(ends[1:])) for ends in (base, exponent))
    with pytest.raises(EnclosureError, match="constant exponent"):
        RULES["pow"](one, other)


COMPARISONS: dict[str, tuple[Callable, Callable]] = {
    "greater": (RULES["gt"], lambda x, y: x > y),
    "at least": (RULES["ge"], lambda x, y: x >= y),
    "equal": (arithmetic.equals, lambda x, y: x == y),
}
SMALL = st.integers(-3, 3).map(float)


@pytest.mark.parametrize("name", COMPARISONS)
@given(x=st.lists(SMALL, min_size=2, max_size=2), y=st.lists(SMALL, min_size=2, max_size=2))
def test_a_comparison_is_certain_where_all_numbers_agree_and_possible_where_one_does(name, x, y):
    compare, exact = COMPARISONS[name]
    found = compare(interval_of([x]), interval_of([y]))
    # On small whole ends a comparison that holds for some real numbers does so for some multiples of a half.
    one, other = (np.arange(min(ends), max(ends) + 0.25, 0.5) for ends in (x, y))
    answers = exact(one[:, None], other[None])
    assert bool(found.low[0]) == bool(answers.all())
    assert bool(found.high[0]) == bool(answers.any())


@given(
    chosen=st.lists(SMALL, min_size=2, max_size=2),
    otherwise=st.lists(SMALL, min_size=2, max_size=2),
    known=st.sampled_from([(True, True), (False, False), (False, True)]),
)
def test_a_choice_holds_what_may_be_chosen_and_no_more(chosen, otherwise, known):
    which = Box(np.array([known[0]]), np.array([known[1]]))
    found = arithmetic.choose(which, interval_of([otherwise]), interval_of([chosen]))
    open_cases = ([chosen] if known[1] else []) + ([] if known[0] else [otherwise])
    assert found.low[0] == min(min(case) for case in open_cases)
    assert found.high[0] == max(max(case) for case in open_cases)


def test_whole_numbers_and_truth_values_stay_exact():
    whole = point(np.arange(4))
    assert np.array_equal(arithmetic.add(whole, whole).low, 2 * np.arange(4))
    assert np.array_equal(arithmetic.sum_over(whole, (0,)).high, 6)
    assert arithmetic.outward(point(np.array([True]))).low.dtype == bool


AXES = st.fixed_dictionaries({kind: st.lists(st.integers(0, 2), max_size=2) for kind in ("batch", "summed", "x", "y")})
"""Sizes of the axes that both factors keep, that are summed over, and that one factor has alone; often none."""


@settings(deadline=None)
@given(axes=AXES, drawn=st.data())
def test_products_over_any_axes_hold_the_exact_ones(axes, drawn):
    letters = iter("abcdefgh")
    names = {kind: [(next(letters), size) for size in sizes] for kind, sizes in axes.items()}
    factors, exacts, orders = [], [], []
    for kind in ("x", "y"):
        order = drawn.draw(st.permutations(names["batch"] + names["summed"] + names[kind]))
        shape = [size for _, size in order]
        box, exact = boxed(drawn.draw(entries(int(np.prod(shape, dtype=int)))), *shape)
        factors, exacts, orders = [*factors, box], [*exacts, exact], [*orders, [name for name, _ in order]]
    places = {
        kind: tuple(tuple(order.index(name) for name, _ in names[kind]) for order in orders)
        for kind in ("summed", "batch")
    }
    found = RULES["dot_general"](*factors, dimension_numbers=(places["summed"], places["batch"]))
    # The order of a factor's own axes is that of its array.
    free = [name for order in orders for name in order if name in dict(names["x"] + names["y"])]
    result = "".join([name for name, _ in names["batch"]] + free)
    wanted = np.einsum(f"{''.join(orders[0])},{''.join(orders[1])}->{result}", *exacts)
    assert_holds(found, np.asarray(wanted, dtype=object))


SORTED: dict[str, tuple[dict, Callable]] = {
    "sort": ({"dimension": 0}, sorted),
    "cummax": ({"axis": 0, "reverse": False}, lambda x: [max(x[: i + 1]) for i in range(len(x))]),
    "cummin": ({"axis": 0, "reverse": True}, lambda x: [min(x[i:]) for i in range(len(x))]),
}


@pytest.mark.parametrize("name", SORTED)
@given(drawn=entries(3))
def test_sorted_numbers_and_running_extremes_hold_the_exact_ones(name, drawn):
    params, exact = SORTED[name]
    box, values = boxed(drawn, 3)
    assert_holds(RULES[name](box, **params), np.array(exact(list(values)), dtype=object))
