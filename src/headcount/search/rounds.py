"""Round after round: what to train next, decided from what has been trained.

Where heads can be removed, the search comes from above, because training is easy with more heads than a task needs and
hard with exactly as many:

    1. random starts at a large head count; one of them says how many heads the task looks like (`estimate`); where that
       leaves little room, a larger head count;
    2. models of about that many heads, descended from the best of the large ones;
    3. until it is settled: more starts at the answer, and just below it, where the answer would be wrong if one of them
       did as well;
    4. the same on other draws of the data.

Elsewhere every head count gets some random starts, and those at the boundary more of them.

The rounds are a function of the results alone, and each sees only what earlier rounds asked for: the same command after
an interruption asks for the same cells in the same order.
"""

import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..recipes import SEEDS
from ..store import Cell
from .levels import SearchEffort
from .question import Question
from .results import SearchResults

ROOM = 0.65
"""A largest head count leaves room while the task looks like it needs at most this share of it."""
TOPS = (4, 8, 12, 16, 24, 32)
"""Head counts that a descent may begin from."""
SPARE = 1.3
"""On another draw of the data the descent begins from this many times the answer, or a little more."""
OTHER_SEEDS = 2
"""Random starts, at the smallest head count and on other draws."""
MAX_ROUNDS = 8
"""Rounds at the boundary of one draw: an answer that still moves after them is given as it is."""
SLOWER = (0.5, 0.25)
"""Learning rates, as shares, of the starts that are added where most got stuck."""
SEED_BLOCK = 100
"""Seeds of slower starts begin here, and at twice this: past those of every effort, so that a place has one cell."""
STUCK = 3.0
"""A start that ends with this many times the best error, or more, got stuck."""


@dataclass(frozen=True)
class Round:
    """Cells that can be trained side by side, and why."""

    why: str
    cells: tuple[Cell, ...]


def rounds(question: Question, effort: SearchEffort, results: SearchResults) -> Iterator[Round]:
    """Yield what to train next. When the iteration continues, `results` must hold what the last round asked for."""
    search = _SearchRounds(question, effort, results)
    return search.from_above() if question.removes_heads else search.more_seeds()


@dataclass(frozen=True)
class _SearchRounds:
    """Rounds of one question; `top` is the head count that a descent begins from, `draw` the number of a data draw."""

    question: Question
    effort: SearchEffort
    results: SearchResults

    def from_above(self) -> Iterator[Round]:
        question, effort, results = self.question, self.effort, self.results
        top = yield from self._largest()
        yield from self._settled(top, draw=0)
        answer = results.answer(0)
        if answer.heads is None:
            yield from self._other_splits(top)
        for draw in range(1, effort.draws):
            if answer.heads is None or not question.can_draw(draw):
                return
            enough = [count for count in question.between(1, top) if count >= SPARE * answer.heads]
            other = min([count for count in TOPS if count in enough], default=top)
            yield from self._at_top(other, OTHER_SEEDS, draw, f"draw {draw + 1} of the data")
            yield from self._settled(other, draw=draw, around=answer.heads)
            there = results.answer(draw).heads
            if there is not None and there < answer.heads:
                seeds = range(effort.low_seeds, 2 * effort.low_seeds)
                again = question.random([there], seeds) + self._descended(there, answer.heads, 0)
                yield Round(f"{there} heads were enough on draw {draw + 1}", tuple(again))
                yield from self._settled(top, draw=0)
                answer = results.answer(0)

    def _largest(self) -> Generator[Round, None, int]:
        """Train the largest models; returns the head count that they have."""
        question, effort = self.question, self.effort
        top = question.heads[-1]
        fewest = [] if question.heads[0] == top else question.random([question.heads[0]], range(OTHER_SEEDS))
        yield from self._at_top(top, effort.top_seeds, 0, f"{top} heads", fewest)
        while max(self.results.estimates(top, 0), default=0) > ROOM * top:
            larger = [count for count in TOPS if top < count <= question.most]
            if not larger or not (yield from self._falls_up_to(top)):
                break
            top = larger[0]
            yield from self._at_top(top, effort.top_seeds, 0, f"{top} heads, for room")
        return top

    def _falls_up_to(self, top: int) -> Generator[Round, None, bool]:
        """Train about two thirds of the heads, and say whether the largest count does better than chance explains."""
        below = max((count for count in TOPS if count < top and count >= self.question.heads[0]), default=None)
        if below is None or self.question.task.endless:
            return True
        yield Round(f"{below} heads, to compare with {top}", tuple(self.question.random([below], range(OTHER_SEEDS))))
        return self.results.differ(below, top, 0)

    def _other_splits(self, top: int) -> Iterator[Round]:
        """Train the head counts that random starts were tried at on other splits of few stored examples."""
        question, results = self.question, self.results
        if question.task.endless or not results.learned(top, 0):
            return
        counts = [count for count in question.between(1, top) if results.starts(count, 0) >= OTHER_SEEDS]
        for draw in range(1, self.effort.splits_of(results.validation_examples)):
            if question.can_draw(draw):
                cells = question.random(counts, range(OTHER_SEEDS), draw=draw)
                yield Round(f"split {draw + 1} of the data", tuple(cells))

    def _at_top(self, top: int, seeds: int, draw: int, why: str, others: Sequence[Cell] = ()) -> Iterator[Round]:
        """Train random starts to descend from; more, at smaller rates, where most got stuck."""
        question, results = self.question, self.results
        yield Round(why, (*question.random([top], range(seeds), draw=draw), *others))
        for turn, share in enumerate(SLOWER, start=1):
            enough = 2 if draw == 0 and turn == 1 else 1
            learned = results.learned(top, draw)
            if (learned and results.unstuck(top, draw, STUCK) < enough) or (
                not learned and results.learned_somewhere()
            ):
                block = range(turn * SEED_BLOCK, turn * SEED_BLOCK + seeds)
                again = question.random([top], block, draw=draw, rate=share)
                yield Round(f"{why}: most starts got stuck", tuple(again))

    def _settled(self, top: int, *, draw: int, around: int | None = None) -> Iterator[Round]:
        """Descend from the largest models, and train more at the answer until nothing is missing there."""
        results = self.results
        if results.learned(top, draw):
            near = self._near({*results.estimates(top, draw), *([] if around is None else [around])}, top)
            cells = [cell for count in near for cell in self._descended(count, top, draw)]
            yield Round(f"descent to {_listed(near)}", tuple(cells))
        for turn in range(MAX_ROUNDS + 1):
            missing = [cell for cell in self._missing(top, draw) if cell.key not in results.records]
            if not missing:
                return
            if turn == MAX_ROUNDS:
                results.at_rest = False
                return
            answer = results.answer(draw)
            why = "no answer yet" if answer.heads is None else f"around {answer.heads} heads"
            yield Round(why, tuple(missing))

    def _missing(self, top: int, draw: int) -> list[Cell]:
        """Return what the answer on one draw of the data depends on; some of it may have been trained."""
        question, effort, results = self.question, self.effort, self.results
        heads = results.answer(draw).heads
        if heads is None:
            return self._without_answer(top) if draw == 0 else []
        cells = []
        for count in (heads, *question.between(heads + 1, top)[:1]):
            if count < top and len(results.tried(count, draw)) < effort.parents:
                cells += self._descended(count, top, draw)
        for below in question.between(1, heads - 1)[-1:]:
            seeds = effort.low_seeds if draw == 0 else OTHER_SEEDS
            cells += question.random([below], range(seeds), draw=draw)
            if results.descents(below, heads, draw) < effort.parents * effort.children:
                cells += self._descended(below, heads, draw, children=effort.children)
        return cells

    def _without_answer(self, top: int) -> list[Cell]:
        """Try every head count once; then random starts near the estimate, and where the error falls most; then the
        models there, and the largest, for longer, and what descends from those."""
        question, effort, results = self.question, self.effort, self.results
        longer = results.continuations(top, 0) < effort.continuations
        if not results.learned(top, 0):
            return [question.continued(parent) for parent in results.best(top, 0, effort.parents)] if longer else []
        near = self._near({*results.estimates(top, 0), *results.steepest(0)}, top)
        untried = question.between(1, top - 1)
        if not question.task.endless:  # of users' data more is asked for only where head counts differ
            gaps = self._gaps(top)
            near = [count for count in near if any(few <= count <= many for few, many in gaps)]
            untried = [middle for few, many in gaps for middle in self._middle(few, many)]
        sparse = [count for count in untried if len(results.tried(count, 0)) < OTHER_SEEDS]
        stages = [
            lambda: (
                [cell for count in sparse for cell in self._descended(count, top, 0)]
                if question.task.endless
                else question.random(sparse, range(OTHER_SEEDS))
            ),
            lambda: question.random(near, range(effort.low_seeds)),
            lambda: [
                question.continued(parent)
                for count in (*near, top)
                for parent in results.best(count, 0, effort.parents)
                if longer and (question.task.endless or near)
            ],
            lambda: [cell for count in near for cell in self._descended(count, top, 0)],
        ]
        for stage in stages:
            cells = [cell for cell in stage() if cell.key not in results.records]
            if cells:
                return cells
        return []

    def _gaps(self, top: int) -> list[tuple[int, int]]:
        """Return neighbours among the head counts tried where the larger one does better than chance explains."""
        results = self.results
        tried = [count for count in self.question.between(1, top) if len(results.tried(count, 0)) >= OTHER_SEEDS]
        return [(few, many) for few, many in itertools.pairwise(tried) if results.differ(few, many, 0)]

    def _middle(self, few: int, many: int) -> list[int]:
        """Return the head count in the middle of two, by their ratio; none where there is none between them."""
        between = self.question.between(few + 1, many - 1)
        return sorted(between, key=lambda count: abs(count - (few * many) ** 0.5))[:1]

    def _descended(self, heads: int, above: int, draw: int, *, children: int = 1) -> list[Cell]:
        """Return models of `heads` heads, descended from the best ones of `above` heads at every length.

        The heads whose removal changes the answers least go. Every length gets `effort.parents * children` models:
        where more are wanted than there are parents that did not get stuck, the last head to go is one of the next
        best.
        """
        cells, surplus, wanted = [], above - heads, self.effort.parents * children
        for parents in self.results.parents(above, draw, self.effort.parents, STUCK):
            for turn in range(wanted):
                parent, choice = parents[turn % len(parents)], turn // len(parents)
                order = self.results.elimination(parent).order
                order = (*order, *set(range(above)).difference(order))  # the last one may go too, if another stays
                if surplus - 1 + choice < len(order):
                    cells.append(self.question.descended(parent, (*order[: surplus - 1], order[surplus - 1 + choice])))
        return cells

    def _near(self, middles: Iterable[int], top: int) -> list[int]:
        """Return the head counts around each of these, below the largest."""
        return sorted({count for middle in middles for count in self.question.around(middle) if count < top})

    def more_seeds(self) -> Iterator[Round]:
        """Train random starts only: some at every head count, then more where the answer is not certain.

        Of stored data some at every power of two, and at those between where the error differs.
        """
        question, most = self.question, self.effort.more_seeds
        if question.task.endless:
            seeds = min(SEEDS, most)
            yield Round("every head count", tuple(question.random(question.heads, range(seeds))))
        else:
            seeds = OTHER_SEEDS
            yield from self._where_errors_differ(range(seeds))
        while seeds < most:
            answer = self.results.answer(0)
            if answer.low is None or answer.high is None or answer.low == answer.high:
                return
            more = range(seeds, min(2 * seeds, most))
            seeds = more.stop
            counts = question.between(answer.low - 1, answer.high)
            yield Round(f"more seeds for {_listed(counts)} heads", tuple(question.random(counts, more)))

    def _where_errors_differ(self, seeds: range) -> Iterator[Round]:
        """Train the fewest, the most and the powers of two between, then the middles of neighbours that differ."""
        counts = first_counts(self.question.heads)
        while counts:
            yield Round(f"{_listed(counts)} heads", tuple(self.question.random(counts, seeds)))
            gaps = self._gaps(self.question.heads[-1])
            counts = [middle for few, many in gaps for middle in self._middle(few, many)]


def first_counts(heads: Sequence[int]) -> list[int]:
    """Return the fewest and the most heads, and the powers of two between."""
    return [count for count in heads if count in (heads[0], heads[-1]) or count & (count - 1) == 0]


def _listed(counts: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(counts)))
