"""The support dimension of a task: the largest number of tokens that its target depends on at one sequence.

    k(H) = the largest k such that on a non-empty open set of sequences H is C^1 and dH/dx(t) != 0 at k tokens t

docs/support.md proves k(H) <= D for every representation with continuous components, and k(H) = D under Assumption 2
and T >= 4 D. A certificate proves a lower bound, k(H) >= k: at a box around the witness, the gradients of k tokens are
enclosed and exclude zero. The upper bound is the number of components of a `Retrieval`, or the length.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from ...errors import InputError, require, require_count
from ...tasks import AbstractTask, GeneratedTask, Retrieval
from ..doors import require_below_one
from ..intervals import Box, EnclosureError, ball, enclose
from .pieces import decided_on
from .search import Found, answers_of, most_tokens, require_gradient

RELATIVE = 1e-6
"""A token counts where its gradient is at least this share of the largest; gradients below are left to no search."""
RADII = (1e-6, 1e-9, 1e-12)
"""Half widths of the boxes that a certificate is tried on."""
SAID = ("value", "length", "components", "at_most", "proved", "certified", "exact", "radius", "unproved", "by_length")
SAID += ("every_token", "grows", "answered_at", "typical", "sentence", "consequence", "not_covered")
"""The fields and properties of a `Support` that its JSON has, arrays aside."""


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
    """The sequence at which these tokens have a gradient."""
    gradients: Float[np.ndarray, " length"]
    """The largest entry of the gradient at each token of the witness."""
    proved: int
    """The number of these gradients that are proved to be non-zero, on a box around the witness."""
    radius: float
    """Half the width of that box; 0 where there is none."""
    unproved: str
    """Why fewer gradients are proved than found; empty where all are."""
    by_length: dict[int, int]
    """The most tokens found at other lengths, and at this one; nothing is proved of other lengths."""
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
        """Whether every token matters at each of several lengths; if so at all lengths, no one D fits."""
        several = self.components is None and len(self.by_length) > 1
        return several and all(count == length for length, count in self.by_length.items())

    @property
    def grows(self) -> bool:
        """Whether longer sequences have more tokens that matter; if that continues, no one D fits.

        A length at which every token matters is not compared with longer ones: it has room for no more.
        """
        counts = sorted(self.by_length.items())
        shorter = [count for length, count in counts[:-1] if count < length]
        return self.components is None and bool(shorter) and counts[-1][1] > max(shorter)

    @property
    def long_enough(self) -> bool:
        """Whether T >= 4 D, the condition under which Assumption 2 makes the value D."""
        return self.length >= 4 * (self.components or self.value)

    @property
    def sentence(self) -> str:
        """What is proved of the value, followed by what a search found."""
        counts = [(length, count) for length, count in sorted(self.by_length.items()) if length != self.length]
        others = ", ".join(f"{count} of {length}" for length, count in counts)
        of = f"{self.value} of {self.length}"
        most = f"{of} tokens {'matters' if self.value == 1 else 'matter'} at one sequence"
        if self.every_token or self.grows:
            most = f"every token matters, {of}" if self.every_token else most
            found = f"{most} (proved; searched: {others})" if self.certified else f"{self._computed}; {others} searched"
            if_so = "no one D fits if this growth continues with the length"
            return f"{found}: {'; '.join(filter(None, [self._no_fewer, if_so]))}"
        more = f"; {others} at other lengths (searched)" if any(count > self.value for _, count in counts) else ""
        if self.exact:
            bound = f"{self.length} tokens" if self.components is None else f"{self.components} components"
            return f"support dimension {self.value}: {most} (proved), and never more (there are {bound}){more}"
        bound = "" if self.components is None else f", at most {self.at_most} can"
        least = f"at least {self.proved} (proved)" if self.proved else "not proved"
        found = f"{most}; no search found more" if self.certified else self._computed
        return f"support dimension {least}: {found}{bound}{more}"

    @property
    def _computed(self) -> str:
        return f"a search computed gradients at {self.value} of {self.length} tokens of one sequence ({self.unproved})"

    @property
    def _no_fewer(self) -> str:
        return f"no retrieval with fewer than {self.proved} components" if self.proved > 1 else ""

    @property
    def consequence(self) -> str:
        """The meaning of the value for heads; empty where it has none for one number of heads."""
        if self.every_token or self.grows or self.answered_at != "sequence":
            return ""
        if self.components is not None:
            heads = f"{_heads_enough(self.components)} enough (Theorem 2)"
        elif self.long_enough:
            meets = "it has a representation that meets 2.1, 2.2, 2.4 and T >= 4 D"
            heads = f"if no more tokens matter and {meets}, {_heads_enough(self.value)} enough"
        else:
            heads = f"D may be larger: T = {self.length} is below 4 x {self.value}"
        searched = "" if self.certified else f"{self.value} was found by a search, not proved"
        return "; ".join(filter(None, [self._no_fewer, heads, searched]))

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Limits of what the value says of this task."""
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
        """Return the result as JSON."""
        said = {name: getattr(self, name) for name in SAID}
        said["by_length"] = {str(length): count for length, count in sorted(self.by_length.items())}
        said["not_covered"] = list(self.not_covered)
        return said | {"witness": self.witness.tolist(), "gradients": self.gradients.tolist()}


def support_dim(
    task: AbstractTask,
    *,
    lengths: tuple[int, ...] | None = None,
    starts: int = 256,
    rounds: int = 60,
    seed: int = 0,
    relative: float = RELATIVE,
) -> Support:
    """Return the largest number of tokens with a non-zero gradient of the target, searched for, with a certificate.

    Args:
        task: A task with a target that JAX can differentiate.
        lengths: Further lengths to search, to see whether the value grows; those at which the target cannot be
            computed are left out. Where None, half the task's own length, and longer ones while every token matters
            at the shorter. None of a `Retrieval`, whose components bound the value.
        starts: Sequences that the search starts from: sampled ones, clusters, and tokens near minimisers.
        rounds: Changes that are tried of each of them.
        seed: Of the search.
        relative: Gradients smaller than this share of the largest do not count.

    Raises `InputError` where the target has no gradient: stored examples, integers, a function that JAX cannot trace,
    or one that is constant around every sequence tried. Or where it has a custom derivative that is not its own.

    Example:
        >>> import headcount as hc
        >>> from headcount.theory import support_dim
        >>> support = support_dim(hc.find_task("max-plus-min"))
        >>> support.value, support.certified, support.exact
        (2, True, True)
    """
    require_count("starts", starts, least=8)
    require_count("rounds", rounds, least=0)
    require_below_one(relative=relative)
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
        by_length=_by_length(task, best.count, lengths, options),
        typical=best.typical,
        answered_at=task.answered_at,
    )


def _by_length(
    task: GeneratedTask, count: int, lengths: tuple[int, ...] | None, options: Mapping[str, Any]
) -> dict[int, int]:
    """Return the most tokens at this length, and at the further ones at which the target can be computed.

    A length at which every token matters does not tell whether the count grows. So the lengths that are chosen here are
    searched until two have tokens that do not matter, or every token matters at twice the length too.
    """
    counts = {task.length: count}
    if lengths is not None:
        chosen = lengths
    elif isinstance(task, Retrieval):
        chosen = ()
    else:
        chosen = (2 * task.length, 4 * task.length) if count == task.length else (task.length // 2, 2 * task.length)
    for length in chosen:
        told = sum(most < at for at, most in counts.items()) > 1 or counts.get(2 * task.length) == 2 * task.length
        if lengths is None and told:
            break
        try:
            other = require_gradient(task.at(length))
        except InputError:
            continue  # a task of one length, or a function that is written for one
        if length not in counts:
            counts[length] = most_tokens(other, **options, enough=length).count
    return counts


def _certify(task: GeneratedTask, best: Found, relative: float) -> tuple[int, float, str]:
    """Return the number of gradients at the witness that are proved non-zero, the radius of the box, and why not more.

    Raises `InputError` where the enclosed gradient is not the one that JAX gave the search.
    """
    counted = best.sizes > relative * best.sizes.max()
    proved, at, reason = 0, 0.0, ""
    with jax.enable_x64(True):
        answers = answers_of(task)

        def chosen_answer(tokens: jax.Array) -> jax.Array:
            return answers(tokens)[best.answer]

        for radius in RADII:
            box = ball(best.sequence, radius)
            try:
                slopes = enclose(jax.grad(decided_on(chosen_answer, box)), box)
            except EnclosureError as error:
                reason = str(error).rstrip(".")
                continue
            _require_own_derivative(task, best, counted, slopes)
            count = int(np.sum(np.any(slopes.mignitude > 0, axis=-1) & counted))
            if count > proved:
                proved, at = count, radius
            if proved == best.count:
                return proved, at, ""
    return proved, at, reason or f"the enclosed gradients of {best.count - proved} tokens contain zero"


def _require_own_derivative(
    task: GeneratedTask, best: Found, counted: Bool[np.ndarray, " length"], slopes: Box
) -> None:
    """Raise unless the search, which counts gradients as JAX gives them, and the certificate see the same."""
    vanish = counted & (slopes.magnitude.max(axis=-1) < best.sizes / 1000)
    appear = ~counted & (slopes.mignitude.max(axis=-1) > best.sizes.max() / 1000)
    require(
        not np.any(vanish | appear),
        f"{task.name}: JAX's gradient is not that of the target at {np.sum(vanish | appear)} of {task.length} tokens, "
        "as with jax.custom_vjp or jax.custom_jvp. The support dimension is that of the target itself; leave the "
        "custom derivative out.",
        what="task",
    )


def _heads_enough(count: int) -> str:
    return "1 head is" if count == 1 else f"{count} heads are"
