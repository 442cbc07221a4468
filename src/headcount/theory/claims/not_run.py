"""Statements of both papers that no check of the ledger reaches, each with the reason."""

from typing import NamedTuple

from ..rank.rank_bounds import PAPER


class NotRun(NamedTuple):
    """A statement of a paper that the ledger does not run, and why."""

    statement: str
    source: str
    why: str


NOT_RUN = (
    NotRun(
        source="Theorem 1, last step",
        statement="a polynomial takes the place of the continuous function, so that the outer map is C^1",
        why="that such a polynomial exists is a theorem of analysis (Stone and Weierstrass); here the outer map is the "
        "function itself",
    ),
    NotRun(
        source="Theorems 2(1) and 2(3), any gamma",
        statement="M = C / eps^gamma with D heads, M = C / eps^(1 + gamma) with one wide head",
        why="the rates are run for gamma = 1/2 (basins); components of other smoothness are not tried, and C is not "
        "compared with the paper's, which is not given",
    ),
    NotRun(
        source="Theorem 2(2), the rate",
        statement="with s < D heads M = Omega(1 / eps^k), for every model of the class",
        why="a statement about all weights and all eps; the ledger runs the mechanism of its proof on single models, "
        "and no experiment at one size shows an exponent",
    ),
    NotRun(
        source="after Theorem 2",
        statement="with a readout of five layers the rate is still Omega(1 / eps^(k / 4))",
        why="`headcount bounds` prints the exponent; the steepness of deeper nets (Lemma 4 for five layers) is not "
        "programmed",
    ),
    NotRun(
        source="Lemmas 1 to 3 and 5 to 7",
        statement="auxiliary steps of the proofs",
        why="no check of their own; where a program uses such a step, the tests of that program cover it",
    ),
    NotRun(
        source="Conjecture 1, the rate",
        statement="with L h < D layers need log M = Omega(|log eps| a_L T^(b_L) / (n h))",
        why="a_L and b_L are not given, so there is no number to compare with",
    ),
    NotRun(
        source=f"{PAPER}, Theorem 2 for points that are not orthogonal",
        statement="heads of low rank must be many for points drawn independently",
        why="our floors are for orthonormal points and a uniform query; the paper's proof gives no constants",
    ),
    NotRun(
        source=f"{PAPER}, self-attention form",
        statement="one head of full rank outputs the farthest point from each point",
        why="the same head with the opposite sign (`theory.rank.farthest_head`), run by its tests and not here",
    ),
    NotRun(
        source=f"{PAPER}, conjecture",
        statement="no fixed network of low-rank heads, however deep, finds the nearest of any number of points",
        why="proved by nobody, and about every network: the vote of two layers is for N = 2 only, and no program here "
        "tries more points with two layers",
    ),
)
