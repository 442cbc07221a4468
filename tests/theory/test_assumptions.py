"""The assumption test supports tasks that meet every clause, and refutes exactly the clause that a task violates."""

import jax.numpy as jnp
import numpy as np
import pytest

from headcount.tasks import Retrieval, average, max_plus_min, quadratic_basins
from headcount.tasks.presets import Basins
from headcount.theory.assumptions import check_assumptions

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused

CLAUSES = ("range", "2.1", "2.2", "2.3", "2.4", "sets")
CENTRES = np.array([[0.3, 0.6], [0.7, 0.2]], np.float32)


def with_components(features, outer=jnp.sum):
    return Retrieval(features, outer, length=8, dim=2, distribution="cube")


def bowls(token):
    return jnp.mean((token - CENTRES) ** 2, axis=1)


def clause(report, name):
    (found,) = [clause for clause in report.clauses if clause.name == name]
    return found


@pytest.mark.parametrize(
    ("intrinsic_dim", "dim"),
    [(3, 2), *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in [(1, 1), (1, 2), (2, 4)])],
)
def test_quadratic_basins_meet_every_clause(intrinsic_dim, dim):
    task = quadratic_basins(intrinsic_dim=intrinsic_dim, dim=dim, length=8)
    report = check_assumptions(task)
    assert report.failing == ()
    assert report.holds
    assert tuple(found.name for found in report.clauses) == CLAUSES
    assert isinstance(task.features, Basins)
    assert np.max(np.abs(report.minimisers - np.asarray(task.features.centres))) < 1e-4
    assert np.max(np.abs(report.minima)) < 1e-8
    assert report.hessian_floor == pytest.approx(np.full(intrinsic_dim, 2 / dim), abs=1e-9)
    assert report.outer_gradient == pytest.approx(np.ones((1, intrinsic_dim)))


def two_wells(token):
    """A product of bowls, so that both their centres are at its bottom, and a bowl elsewhere."""
    return jnp.stack([jnp.prod(bowls(token)), jnp.mean((token - 0.9) ** 2)])


def one_centre_twice(token):
    return jnp.stack([bowls(token)[0], 0.5 * bowls(token)[0]])


def a_flat_floor(token):
    """The second bowl is squared: |x - c|^4, whose Hessian vanishes at its centre."""
    return jnp.stack([bowls(token)[0], bowls(token)[1] ** 2])


VIOLATIONS = {
    "two global minima": (with_components(two_wells), "2.1", "f_1 reaches its minimum"),
    "one centre twice": (with_components(one_centre_twice), "2.2", "x^(1) and x^(2) are"),
    "a flat minimum": (with_components(a_flat_floor), "2.3", "Hessian of f_2"),
    "an outer map that ignores z_2": (with_components(bowls, lambda z: 3 * z[0]), "2.4", "dF0/dz_2 is 0"),
    "a vector that ignores z_1": (with_components(bowls, lambda z: jnp.stack([z[1], -z[1]])), "2.4", "dF0/dz_1 is 0"),
    "an outer map flat at the minima": (with_components(bowls, lambda z: z[0] ** 2 + z[1]), "2.4", "dF0/dz_1 is"),
    "values above 1": (with_components(lambda token: 3 * bowls(token)), "range", "f_1 takes values in [0"),
    "values below 0": (with_components(lambda token: bowls(token) - 0.25), "range", "[-0.25,"),
}


@pytest.mark.parametrize(
    ("task", "violated", "witness"),
    [
        pytest.param(*case, id=name, marks=() if i < 2 else pytest.mark.slow)
        for i, (name, case) in enumerate(VIOLATIONS.items())
    ],
)
def test_exactly_the_violated_clause_is_refuted(task, violated, witness):
    report = check_assumptions(task)
    assert report.failing == (violated,)
    assert not report.holds
    assert witness in clause(report, violated).evidence


def test_the_bowls_themselves_meet_every_clause():
    report = check_assumptions(Retrieval(bowls, length=8, dim=2, position_sets=[[0, 1], [0, 1, 2, 3, 4]]))
    assert report.holds
    assert "2 of 8" in clause(report, "sets").evidence
    assert "0.5657 apart" in clause(report, "2.2").evidence  # (0.3, 0.6) and (0.7, 0.2)


def test_the_published_toy_example_lacks_curvature():
    report = check_assumptions(max_plus_min(length=8))
    assert report.failing == ("2.3",)
    assert report.minimisers == pytest.approx(np.array([[1.0], [0.0]]))


def test_evidence_of_the_numbers():
    task = with_components(
        lambda token: jnp.stack([0.25 + 0.5 * jnp.sum(jnp.array([0.25, 0.5]) * (token - CENTRES[0]) ** 2), token[1]]),
        lambda z: jnp.stack([2 * z[0], z[0] * z[1] - z[1]]),
    )
    report = check_assumptions(task)
    assert report.minimisers[0] == pytest.approx(CENTRES[0], abs=1e-4)
    assert report.minimisers[1, 1] == pytest.approx(0, abs=1e-6)
    assert report.minima == pytest.approx([0.25, 0.0], abs=1e-6)
    assert report.hessian_floor == pytest.approx([0.25, 0.0], abs=1e-6)
    assert report.outer_gradient == pytest.approx(np.array([[2, 0], [0, -0.75]]), abs=1e-6)
    assert clause(report, "2.4").holds  # each z_i moves one of the outputs
    assert "f_2" in clause(report, "2.1").evidence  # a whole edge of the square is minimal


def test_a_task_that_is_no_retrieval_is_refused():
    with refused("task", "average"):
        check_assumptions(average())
