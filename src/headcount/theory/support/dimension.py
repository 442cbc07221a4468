"""The support dimension of a task: the largest number of tokens that its target depends on at one sequence.

    k(H) = the largest k such that on a non-empty open set of sequences H is C^1 and dH/dx(t) != 0 at k tokens t

If H = F0(z_1, .., z_D) with z_i = min over t in S_i of f_i(x(t)), all C^1, then k(H) <= D: where z_i is differentiable,
its gradient sits on at most one token. If clauses 2.1, 2.2 and 2.4 of Assumption 2 hold and T >= 4 D, then k(H) = D. So
every such representation of one function has the same D, the smallest of any representation. The proof is in
docs/support.md.

A certificate proves a lower bound, k(H) >= k: at a box around the witness, the gradients of k tokens are enclosed and
exclude zero. The upper bound is the number of components of a `Retrieval`, or the length.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ..._errors import InputError, require, require_count
from ...tasks import AbstractTask, GeneratedTask, Retrieval
from ..intervals import EnclosureError, ball, enclose
from .gradients import answers_of, require_gradient
from .pieces import decided_on
from .search import Found, most_tokens

RELATIVE = 1e-6
"""A token counts where its gradient is at least this share of the largest; gradients below are left to no search."""
RADII = (1e-6, 1e-9, 1e-12)
"""Half widths of the boxes that a certificate is tried on."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """The support dimension of a task at one length, with its witness. Made by `support_dim`."""

    task: str
    value: int
    """The most tokens with a gradient that were found."""
    length: int
    components: int | None
    """D of the representation that is given; None where the task is no `Retrieval`."""
    witness: Float[np.ndarray, "length dim"]
    """The sequence at which so many tokens have a gradient."""
    gradients: Float[np.ndarray, " length"]
    """The largest entry of the gradient at each token of the witness."""
    proved: int
    """How many of these gradients are proved to be non-zero, on a box around the witness."""
    radius: float
    """Half the width of that box; 0 where there is none."""
    unproved: str
    """Why fewer gradients are proved than found; empty where all are."""
    by_length: dict[int, int]
    """The most tokens found at other lengths, and at this one."""
    typical: float
    """The median number of tokens that matter, over sequences as the task draws them."""
    answered_at: str = "sequence"

    @property
    def at_most(self) -> int:
        """No sequence of this length has more: components, or tokens."""
        return self.length if self.components is None else min(self.components, self.length)

    @property
    def certified(self) -> bool:
        """Whether the lower bound is proved: the support dimension is at least `value`."""
        return self.proved >= self.value

    @property
    def exact(self) -> bool:
        """Whether both bounds are proved: the support dimension is `value`."""
        return self.certified and self.value == self.at_most

    @property
    def every_token(self) -> bool:
        """Whether every token matters, at every length that was tried, so that no D is the same at all lengths."""
        return self.components is None and all(count == length for length, count in self.by_length.items())

    @property
    def grows(self) -> bool:
        """Whether longer sequences have more tokens that matter, so that the target is no retrieval of one D."""
        counts = [count for _, count in sorted(self.by_length.items())]
        return self.components is None and len(counts) > 1 and counts[-1] > counts[-2]

    @property
    def long_enough(self) -> bool:
        """Whether T >= 4 D, the condition under which Assumption 2 makes the value D."""
        return self.length >= 4 * (self.components or self.value)

    @property
    def sentence(self) -> str:
        """The value with what is proved of it."""
        others = [f"{count} of {length}" for length, count in sorted(self.by_length.items()) if length != self.length]
        proof = "proved" if self.certified else f"not proved: {self.unproved}"
        most = f"{self.value} of {self.length} tokens {'matters' if self.value == 1 else 'matter'} at one sequence"
        if self.every_token and others:
            most = f"every token matters ({self.value} of {self.length}, {proof}; also {', '.join(others)})"
            return f"{most}: no retrieval of a fixed D"
        if self.grows:
            return f"{most} ({proof}), {', '.join(others)} at other lengths: no retrieval of a fixed D"
        if self.exact:
            bound = f"{self.length} tokens" if self.components is None else f"{self.components} components"
            return f"support dimension {self.value}: {most} (proved), and never more (there are {bound})"
        bound = "" if self.components is None else f", at most {self.at_most} can"
        return f"support dimension {self.value}: {most} ({proof}); no search found more{bound}"

    @property
    def consequence(self) -> str:
        """What the value means for heads; empty where it means nothing, because the target is no retrieval."""
        if self.every_token or self.grows or self.answered_at != "sequence":
            return ""
        one_fact = f"no retrieval with fewer than {self.proved} components has this target" if self.proved else ""
        heads = f"{self.value} head{'s are' if self.value > 1 else ' is'} enough for a retrieval (Theorem 2)"
        return "; ".join(filter(None, [one_fact, heads]))

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the value does not say of this task."""
        parts = []
        if self.answered_at == "query":
            parts.append("the last token asks: what it is compared with decides the answer without a gradient")
        if self.answered_at == "tokens":
            parts.append("every token has an answer of its own: the tokens that one answer depends on are counted")
        if not self.exact and not (self.every_token or self.grows):
            parts.append("the upper bound is a search's, not proved")
        if not self.certified:
            parts.append(f"the lower bound is not proved: {self.unproved}")
        if self.components is not None and not self.long_enough:
            parts.append(f"T = {self.length} is below 4 D = {4 * self.components}, which Assumption 2 needs")
        if self.components is None and not (self.every_token or self.grows):
            parts.append("whether the target is a retrieval, continuous for one, is not checked")
        return tuple(parts)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "value": self.value,
            "length": self.length,
            "components": self.components,
            "at_most": self.at_most,
            "proved": self.proved,
            "certified": self.certified,
            "exact": self.exact,
            "radius": self.radius,
            "unproved": self.unproved,
            "by_length": {str(length): count for length, count in sorted(self.by_length.items())},
            "every_token": self.every_token,
            "grows": self.grows,
            "answered_at": self.answered_at,
            "typical": self.typical,
            "sentence": self.sentence,
            "consequence": self.consequence,
            "not_covered": list(self.not_covered),
            "witness": self.witness.tolist(),
            "gradients": self.gradients.tolist(),
        }


def support_dim(
    task: AbstractTask,
    *,
    lengths: tuple[int, ...] | None = None,
    starts: int = 256,
    rounds: int = 60,
    seed: int = 0,
    relative: float = RELATIVE,
) -> Support:
    """The largest number of tokens with a non-zero gradient of the target, searched for, with a certificate.

    Args:
        task: A task with a target that JAX can differentiate.
        lengths: Further lengths to search, to see whether the value grows; where None, twice the task's own
            length of a target that depends on every token, else half of it. None of a `Retrieval`, whose components
            bound the value.
        starts: Sequences that the search starts from: sampled ones, clusters, and tokens near every component's
            minimiser.
        rounds: Changes that are tried of each of them.
        seed: Of the search.
        relative: Gradients smaller than this share of the largest do not count.

    Returns:
        A `Support`: `.value`, `.certified`, `.exact`, the `.witness`, and its `.sentence`.

    Raises:
        InputError: The target has no gradient: stored examples, integers, a function that JAX cannot trace, or one that
            is constant around every sequence tried.

    Example:
        >>> import headcount as hc
        >>> from headcount.theory import support_dim
        >>> support = support_dim(hc.find_task("max-plus-min"))
        >>> support.value, support.certified, support.exact
        (2, True, True)
    """
    require_count("starts", starts, least=8)
    require_count("rounds", rounds, least=0)
    require(0 < relative < 1, what="relative", given=relative, needed="between 0 and 1")
    task = require_gradient(task)
    options = {"starts": starts, "rounds": rounds, "seed": seed, "relative": relative}
    components = len(task.position_sets) if isinstance(task, Retrieval) else None
    most = task.length if components is None else min(components, task.length)
    best = most_tokens(task, **options, enough=most)
    require(
        best.count > 0,
        f"{task.name}: the gradient of the target is zero at all {starts} sequences tried; a target that only jumps "
        "(argmax, round, sign) has no support dimension. A target must change smoothly with the tokens.",
        what="task",
    )
    by_length = {task.length: best.count}
    for other in _other_lengths(task, best.count, lengths):
        by_length[other.length] = most_tokens(other, **options, enough=other.length).count
    proved, radius, unproved = _certify(task, best, relative)
    return Support(
        task=task.name,
        value=best.count,
        length=task.length,
        components=components,
        witness=best.sequence,
        gradients=best.sizes,
        proved=proved,
        radius=radius,
        unproved=unproved,
        by_length=by_length,
        typical=best.typical,
        answered_at=task.answered_at,
    )


def _other_lengths(task: GeneratedTask, count: int, lengths: tuple[int, ...] | None) -> list[GeneratedTask]:
    """The task at the further lengths that it has."""
    if lengths is None:
        if isinstance(task, Retrieval):
            return []
        lengths = (2 * task.length if count == task.length else task.length // 2,)
    others = []
    for length in lengths:
        try:
            if length != task.length:
                others.append(task.at(length))
        except InputError:
            continue  # a task of one length
    return others


def _certify(task: GeneratedTask, best: Found, relative: float) -> tuple[int, float, str]:
    """How many gradients at the witness are proved non-zero, on a box of which radius, and why not more."""
    counted = best.sizes > relative * best.sizes.max()
    proved, at, reason = 0, 0.0, ""
    with jax.enable_x64(True):
        answers = answers_of(task)

        def answer(tokens: jax.Array) -> jax.Array:
            return answers(tokens)[best.answer]

        for radius in RADII:
            box = ball(best.sequence, radius)
            try:
                slopes = enclose(jax.grad(decided_on(answer, box)), box)
            except EnclosureError as error:
                reason = str(error).rstrip(".")
                continue
            count = int(np.sum(np.any(slopes.mignitude > 0, axis=-1) & counted))
            if count > proved:
                proved, at = count, radius
            if proved == best.count:
                return proved, at, ""
    return proved, at, reason or f"the enclosed gradients of {best.count - proved} tokens contain zero"
