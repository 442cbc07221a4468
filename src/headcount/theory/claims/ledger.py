"""Every theorem of both papers that we could run, in the papers' order, each with a check and a control of the check.

A check is a function of this folder that gives evidence and a verdict; a control is a check of something broken, which
must not pass. A verdict says what the check saw when it was run.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ...answer.claim import Claim, Finding
from ..rank.rank_bounds import PAPER
from . import depth, enough_heads, floors, norm, rank, too_few_heads, zonal

WRONG_RANK = "an inflated floor, H C(l + r - 2, r - 2) for H C(l + r - 1, r - 1)"


def _broken(statement: str, check: Callable[..., Finding], *given: Any, **changed: Any) -> Claim:
    return Claim(statement=statement, check=partial(check, *given, **changed))


CLAIMS: tuple[Claim, ...] = (
    Claim(
        statement="every continuous function of a sequence is within any error of a retrieval task",
        source="Theorem 1",
        program="theory.retrieval_of",
        repair="the selector's rate is ours: 0.278 q^(-1/2), attained; its last step, a polynomial in place of the "
        "function, is omitted",
        check=enough_heads.sequence_recovery,
        control=_broken("a selector with weight 1/2 on both sides", enough_heads.sequence_recovery, selector_q=1e-12),
    ),
    Claim(
        statement="a softmax head reads the minimum over S_i within (|S_i| - 1) / (e beta) + T exp(-beta (G - 1))",
        source="Theorem 2(1), head error",
        program="theory.bounds.head_error",
        repair="the published gate of depth 1 ties a token inside with Psi = 1 and one outside with Psi = 0; a depth "
        "G > 1 is needed, and the component nets overshoot [0, 1] by delta, so G - 2 delta of it is left",
        check=enough_heads.softmax_gate,
        control=_broken("the published gate of depth 1", enough_heads.softmax_gate, depth=1.0),
    ),
    Claim(
        statement="h = D heads with head_dim n = 2 have error at most eps with M = C / eps^gamma",
        source="Theorem 2(1)",
        program="theory.construct, theory.largest_error",
        repair="heads read values in [-delta, 1 + delta] while F0 is given on [0, 1]^D: a fitted outer map is "
        "preceded by a rescaling, which costs another L0 delta",
        check=enough_heads.enough_heads,
        control=_broken("gates zeroed, or output weights shuffled", enough_heads.broken_constructions),
    ),
    Claim(
        statement="the same for components of any form, by fitted nets",
        source="Theorem 2(1)",
        program="theory.construct",
        check=enough_heads.fitted_heads,
        control=_broken("gates zeroed", enough_heads.fitted_without_gates),
    ),
    Claim(
        statement="a two-layer net with weights of at most 1 that moves by B over a distance A has M >= B / (A "
        "sqrt(n))",
        source="Lemma 4",
        program="theory.bounds.steep_net_size",
        check=too_few_heads.lemma_4,
        control=_broken("the bound without its sqrt(n)", too_few_heads.lemma_4, root=False),
    ),
    Claim(
        statement="with s < D heads two sequences nearly agree after attention and their targets do not, so that M is "
        "large",
        source="Theorem 2(2), its mechanism",
        program="theory.find_pigeonhole",
        repair="most responsive points are taken over all unused places, not over S_j; targets are compared by min "
        "where the proof writes max; points that both subsequences chose are replaced by a common filler before "
        "minima are compared; a ball free of the y_j is not enough, the segment must end below f_i at every fixed "
        "token of S_i, and where dF0/dz_i still has its sign and half its size; clause 2.3 (Hessian) is replaced by a "
        "rise along the segment, or max + min and sums of maxima would not be covered",
        check=too_few_heads.too_few_heads,
        control=_broken("the same construction with its D = 2 heads", too_few_heads.pair_in_construction, 2),
    ),
    Claim(
        statement="too few heads: a random attention layer with any readout has a large error on one of two colliding "
        "sequences",
        source="Theorem 2(2), random weights",
        program="theory.find_collisions, theory.certify",
        repair="the proof's pairs are near by the pigeonhole principle; these collide exactly, by Krawczyk's test on "
        "intervals. A certificate is about the weights it was made for: random layers collide with enough heads too, "
        "so it is no evidence that heads are what is missing",
        check=too_few_heads.random_collisions,
        control=_broken("as many random heads as D", too_few_heads.random_layer, 2),
    ),
    Claim(
        statement="without one of its D heads the construction has a large error, whatever the readout; with all it "
        "has none",
        source="Theorem 2(1) against 2(2), exact",
        program="theory.construct, theory.certify",
        check=too_few_heads.collisions_of_a_construction,
        control=_broken("no head removed", too_few_heads.whole_construction),
    ),
    Claim(
        statement="nets of 2, 3 and 2 layers compose into one of 5",
        source="Lemma 8",
        program="theory.compose",
        check=enough_heads.lemma_8,
        control=_broken("the nets in reverse order", enough_heads.lemma_8, order=(2, 1, 0)),
    ),
    Claim(
        statement="three ReLU layers of width at most 2 T ceil(1 / eps) give the maximum of T numbers within eps",
        source="Lemma 9",
        program="theory.max_net",
        check=enough_heads.lemma_9,
        control=_broken("9 steps in place of ceil(1 / eps) = 10", enough_heads.lemma_9, steps=9),
    ),
    Claim(
        statement="one head with head_dim n = T d and five ReLU layers do it with M = C / eps^(1 + gamma)",
        source="Theorem 2(3)",
        program="theory.construct_wide, theory.wide_size",
        repair="Lemma 9's middle matrix has T N x 2 N entries, N of the order of 1 / eps: with its zeros counted M "
        "grows as eps^-max(2, 1 + gamma)",
        check=enough_heads.wide_head,
        control=_broken("position codes passed on by two places", enough_heads.wide_with_shifted_codes),
    ),
    Claim(
        statement="a task has one D when D1^2 + D2^2 <= T / 50",
        source="Corollary 1",
        program="theory.support_dim, theory.bounds.unique_dim",
        repair="proved by ours: with clauses 2.1, 2.2 and 2.4 every representation has as many components as tokens "
        "that matter where T >= 4 D (docs/support.md), and 50 (D1^2 + D2^2) is more; the run shows two tasks",
        check=too_few_heads.uniqueness_of_dim,
        control=_broken(
            "a component written twice, which clause 2.2 forbids", too_few_heads.uniqueness_of_dim, doubled=True
        ),
    ),
    Claim(
        statement="L layers are efficient only if L h >= D",
        source="Conjecture 1",
        program="theory.bounds.depth_conjecture, theory.construct_roles, theory.construct",
        repair="as we read it, contradicted for the class-token models of this package: residual attention layers "
        "whose tokens are updated too, the class token no key; layers that update the class token alone are not "
        "touched. For D <= h (2 L - 1), attention only, M grows with 1/eps as in Theorem 2(1), and neither width nor "
        "M depends on T; entries above 1 (Assumption 1) come from writing ReLU by GELU. With nets and labels inside "
        "two layers of one head reach any D <= T, with a head width that grows with D. Whether a bound of the form D "
        "<= c(L, h) holds for attention only is open; training solves more than h (2 L - 1) for some shapes and less "
        "for others (`headcount reproduce depth`)",
        check=depth.depth_against_conjecture,
        control=_broken("the tokens ask nothing, or two components are swapped", depth.silent_tokens, 1, 2),
    ),
    Claim(
        statement="one head of rank d outputs the nearest of any N points, exactly if it is hard",
        source=f"{PAPER}, full rank",
        program="theory.exact_head, theory.rank.soft_error",
        check=rank.full_rank,
        control=_broken("rank d - 1", rank.full_rank, rank=7),
    ),
    Claim(
        statement="two hard heads of rank one correlate by 1/2 + (2/pi^2) asin(q . q') asin(k . k'), a head and the "
        "target by a series of Gegenbauer polynomials",
        source=f"{PAPER}, closed forms",
        program="theory.RankOneHeads",
        repair="the coefficients of the series are ours, by Funk and Hecke: lambda_l^3 N(d, l) for odd l",
        check=rank.closed_forms,
        control=_broken("the keys of the formula shuffled among heads", rank.closed_forms, shift=1),
    ),
    Claim(
        statement="in the plane the correlation with the target is 1/2 + sign(pi/2 - a) (1/4 - (a' / pi)^2)",
        source=f"{PAPER}, plane",
        program="theory.rank.harmonics.plane_correlation",
        check=rank.plane_formula,
        control=_broken("the series of three dimensions", rank.plane_formula, dim=3),
    ),
    Claim(
        statement="H hard heads of rank one have error at least (1/2) (1 - the H largest lambda_l^2), for any value "
        "and output matrices",
        source=f"ours, after Theorem 2 of {PAPER}",
        program="theory.rank_one_floor",
        check=rank.rank_one_floors,
        control=_broken("a wrong exponent, lambda^4 for lambda^2", rank.rank_one_floors, rank.wrong_floor),
    ),
    Claim(
        statement="heads of rank r < d must be exp(Omega(d - r)) many for high accuracy, and poly(d / r) in high "
        "dimension",
        source=f"{PAPER}, Theorem 2",
        program="theory.heads_needed, theory.rank_floor",
        repair="the paper gives the order only; the constants are ours, for two orthogonal points, from the harmonics "
        "of r coordinates",
        check=rank.growth_orders,
        control=_broken(
            "a wrong exponent in the floor, H C(l + r - 2, r - 2) for H C(l + r - 1, r - 1)", rank.wrong_rank
        ),
    ),
    Claim(
        statement="two layers of rank-one heads find the nearer of two points by majority vote",
        source=f"{PAPER}, two layers",
        program="theory.MajorityVote, theory.rank.expected_error",
        repair="the second layer is ours: one head of rank one, with the mean output minus the mean point as its query",
        check=rank.majority_vote,
        control=_broken("the coordinates of the query shuffled", rank.majority_vote, shift=1),
    ),
    Claim(
        statement="H heads of rank r on biased nearest neighbours err by at least (1/2) sum over odd l of "
        "lambda_l(g)^2 max(0, N(d, l) - H C(l + r - 1, r - 1))",
        source=f"ours, after Theorem 3 of {PAPER}",
        program="theory.zonal_floor",
        repair="the paper gives the order only; the target is our reading: an alternating sum with biases at quantiles",
        check=zonal.biased_floor,
        control=_broken(WRONG_RANK, zonal.on_biased_targets, rank_less=1),
    ),
    Claim(
        statement="H heads of rank r on the nearest of N orthonormal points err by at least the sum over l of W_l "
        "max(0, 1 - H C(l + r - 1, r - 1) / N(d, l)), with W_0 .. W_3 in closed form and all higher degrees as degree "
        "4",
        source=f"ours, after Theorem 2 of {PAPER}",
        program="theory.many_points_floor",
        repair="the paper's Theorem 2 is about two points; orthonormal points up to d are ours",
        check=zonal.many_points,
        control=_broken(WRONG_RANK, zonal.on_many_points, rank_less=1),
    ),
    Claim(
        statement="a collision of the class token survives a layer norm before the readout; the norm adds others, and "
        "removes none",
        source="Theorem 2(2) with a norm, exact",
        program="theory.find_collisions, theory.certify",
        check=norm.norm_collisions,
        control=_broken(
            "the added pair for a readout that also sees the class token before the norm, the surviving "
            "pair for a model of another seed",
            norm.broken_norm_collisions,
        ),
    ),
    Claim(
        statement="a layer norm enlarges no distance more than 1 / sqrt(floor) times, near pairs of Theorem 2(2) "
        "included",
        source="Theorem 2(2) with a norm",
        program="theory.find_pigeonhole",
        repair="the paper has no norm. With u = c - mean(c) the slope of u / sqrt(|u|^2 / E + floor) is largest at u "
        "= 0, where it is 1 / sqrt(floor): the bound on M is divided by at most this constant, so M = Omega(1 / "
        "eps^k) keeps its exponent, which no check here runs",
        check=norm.norm_bound,
        control=_broken("a norm without its floor", norm.norm_without_floor),
    ),
    Claim(
        statement="L attention layers of h heads, nothing between them, retrieve D = h (2 L - 1) minima within any eps",
        source="ours, attention only",
        program="theory.construct_roles, theory.largest_error",
        check=depth.depth_roles,
        control=_broken("the tokens ask nothing, or two components are swapped", depth.silent_tokens, 2, 2),
    ),
    Claim(
        statement="two layers of one head, a net between them and a label per place, retrieve any D <= T minima "
        "within any eps; the width of the head grows with D",
        source="ours, with nets and labels",
        program="theory.construct_two_layers, theory.largest_error",
        check=depth.two_layers,
        control=_broken("all labels zero, or two components swapped", depth.two_layers_without_labels),
    ),
    Claim(
        statement="on random sequences of 32 tokens two attention layers of two heads have eight maxima, (h + 1)^L - "
        "1, more than h L (L + 1) / 2",
        source="ours, on average",
        program="theory.construct_by_content",
        check=depth.content_roles,
        control=_broken("all tokens in one role", depth.content_roles, without_roles=True),
    ),
    Claim(
        statement="on an alphabet no hard heads fewer than D whose scores are all different, without positions, are "
        "below an enumerated error, whatever encoder, values and readout",
        source="ours (a)",
        program="theory.alphabet_floor, theory.error_of_orders",
        check=floors.hard_heads,
        control=_broken("equal scores, ties averaged", floors.hard_heads, floors.best_with_averaged_ties),
    ),
    Claim(
        statement="with values at most V and a readout of slope at most K every model of s < D heads errs by (gap - K "
        "distance) / 2",
        source="Theorem 2(2), constants",
        program="theory.class_floor, theory.slope_needed",
        repair="constants are ours; the proof needs no Hessian and no slope of f_i, only that the sets {f_i < z_i* + "
        "r} are disjoint; without positions choices are multisets, and the slope needed then grows with T",
        check=floors.bounded_heads,
        control=_broken("denominators left out of the moments", floors.bounded_heads, denominators=False),
    ),
    Claim(
        statement="in the same class every model errs by (rise - 2 K V sqrt(n s) / (N + 1)) / 2, N = floor((T - D) / s)"
        ", at any head width; with positions N is about T (1 / s - 1 / D) / s",
        source="ours (b), any width",
        program="theory.class_floor, theory.slope_needed",
        check=floors.one_token,
        control=_broken("fillers in place of the heads' heaviest tokens", floors.one_token, heaviest=False),
    ),
    Claim(
        statement="one head of D c numbers answers every D-retrieval with f_i in [0, 1] and F0 of slope L0 within eps, "
        "with a readout of slope T L0 / sqrt(c) where c >= L0 / (2 eps), and sqrt(2 eps L0) T^(1 + L0 / (2 c eps)) / "
        "log T below",
        source="ours (b), attained",
        program="theory.construct_thermometer, theory.largest_error",
        check=floors.thermometer_head,
        control=_broken("heads made for an error of 0.2", floors.thermometer_head, answered_within=0.2),
    ),
    Claim(
        statement="one head of D numbers answers every D-retrieval with f_i in [0, 1] and F0 of slope L0 within L0 "
        "log(T) / (2 b), with a readout of slope L0 (T / |S_i|) exp(b) / b",
        source="ours (c)",
        program="theory.one_head_answer",
        check=floors.steep_head,
        control=_broken("a readout of slope 10^3", floors.steep_head, answered_within=0.583),
    ),
    Claim(
        statement="h = D heads that share one set of keys and values of head_dim >= D numbers have error at most eps",
        source="Theorem 2(1), one key head; ours",
        program="theory.construct_shared, theory.largest_error",
        check=enough_heads.shared_keys,
        control=_broken("queries that ask for another component, or keys too narrow", enough_heads.broken_shared_keys),
    ),
    Claim(
        statement="with clauses 2.1, 2.2, 2.4 and T >= 4 D, D is the largest number of tokens with a non-zero gradient",
        source="ours, sharpens Corollary 1",
        program="theory.support_dim",
        repair="Corollary 1 needs every clause and T >= 50 (D1^2 + D2^2); neither the Hessian nor that length is "
        "needed",
        check=too_few_heads.support_theorem,
        control=_broken("one component left out of the outer map", too_few_heads.idle_component),
    ),
)


class NotRun(NamedTuple):
    """A statement of a paper that the ledger does not run, and why."""

    statement: str
    source: str
    why: str


NOT_RUN = (
    NotRun(
        source="Theorem 1, last step",
        statement="a polynomial takes the place of the continuous function, so that the outer map is C^1",
        why="that such a polynomial exists is a theorem of analysis (Stone and Weierstrass); here the outer map is "
        "the function itself",
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
