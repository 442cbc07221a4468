"""What the tests rely on without a word: annotations of types and of axes are checked wherever they stand."""

import dataclasses
from collections.abc import Callable, Iterator

import equinox as eqx
import jaxtyping
import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, PyTree

from headcount.theory import Domain, find_pigeonhole
from headcount.theory.collisions.domain import anchored_starts

from .shape_checks import check, checked, names_an_axis

Row = Float[np.ndarray, "size"]
decorated = checked(typechecker=check)
WRONG = (BeartypeCallHintViolation, jaxtyping.TypeCheckError)


@decorated
def typed(count: int, scale: float = 1) -> str:
    return str(count * scale) if count else None  # pyright: ignore


@decorated
def shaped(one: Row, other: list[Row]) -> Float[np.ndarray, "size size"]:
    return np.outer(one, other[0]) if one[0] else one


@decorated
def yielding(row: Row) -> Iterator[float]:
    yield from row


@decorated
def later(one: "NotYet") -> int:  # pyright: ignore
    return len(one)


@decorated
@dataclasses.dataclass
class Held:
    row: Row
    names: list[str]

    @decorated
    def with_row(self, row: Row) -> "Held":
        return dataclasses.replace(self, row=row)


@decorated
class Module(eqx.Module):
    rows: Float[np.ndarray, "count size"]
    last: Float[np.ndarray, "size"]


@decorated
class Inherited(Module):
    def second(self) -> Float[np.ndarray, "size"]:
        return self.rows[1]


def test_what_is_right_is_let_through():
    assert typed(2) == "2"
    assert shaped(np.ones(2), [np.ones(2)]).shape == (2, 2)
    assert list(yielding(np.ones(2))) == [1.0, 1.0]
    assert later("abc") == 3
    assert Held(np.ones(2), ["a"]).with_row(np.ones(5)).row.shape == (5,)  # another call, other sizes
    assert Inherited(np.ones((3, 2)), np.ones(2)).last.shape == (2,)


@pytest.mark.parametrize(
    "call",
    [
        lambda: typed("2"),
        lambda: typed(2.0),
        lambda: typed(0),
        lambda: shaped(np.ones(2), [np.ones(3)]),
        lambda: shaped(np.ones((2, 2)), [np.ones(2)]),
        lambda: shaped(np.ones(2, int), [np.ones(2)]),
        lambda: shaped(np.zeros(2), [np.ones(2)]),
        lambda: yielding(np.ones((2, 2))),
        lambda: Held(np.ones((2, 2)), []),
        lambda: Held(np.ones(2), [1]),
        lambda: Held(np.ones(2), []).with_row(np.ones(())),
        lambda: Module(np.ones((3, 2)), np.ones(3)),
        lambda: Inherited(np.ones((3, 2)), np.ones(3)),
        lambda: find_pigeonhole("no model", 3),
        lambda: anchored_starts(np.ones((2, 4)), 0, Domain(0.0, 1.0), 7, 0),
        lambda: Domain("0", "1"),
    ],
)
def test_what_is_wrong_is_not(call):
    with pytest.raises(WRONG):
        call()


def test_nothing_is_checked_where_checks_are_off():
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        assert typed("ab") == "ab"
        assert shaped(np.ones(2), [np.ones(3)]).shape == (2, 3)
        assert Module(np.ones((3, 2)), np.ones(3)).last.shape == (3,)
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@pytest.mark.parametrize(
    ("hint", "axes"),
    [
        (Row, True),
        (list[Row], True),
        (dict[str, tuple[int, Row] | None], True),
        (Callable[[int, Row], None], True),
        (Callable[[], Row], True),
        (PyTree[Row], True),
        (jaxtyping.PRNGKeyArray, True),
        (Callable[..., None], False),
        (np.ndarray, False),
        (dict[str, list[int]] | None, False),
        (Held, False),
    ],
    ids=str,
)
def test_axes_are_seen_however_deep(hint, axes):
    assert names_an_axis(hint) == axes
