"""Which worker gets which bucket: pure bookkeeping, without a clock and without a cluster.

A program that is compiled already is preferred to one that is not; then the costly buckets go first. A bucket that was
planned for a larger worker is cut to what fits, and the rest stays in the queue: on a CPU no result depends on the
bucket.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from ..engine.buckets import Bucket
from ..engine.hardware import Hardware

MAX_DEATHS = 10
"""Workers that a bucket may outlive: it is given up when it has cost one more."""


@runtime_checkable
class Fit(Protocol):
    """What buckets take on a machine; `plan.Fit` is the one that knows tasks and models."""

    def program(self, bucket: Bucket) -> Hashable: ...
    def for_machine(self, bucket: Bucket, machine: Hardware) -> Bucket: ...
    def seconds(self, bucket: Bucket, machine: Hardware) -> float: ...


@dataclass(frozen=True)
class Seat:
    """A worker, as the queue sees it: `machine.workers` buckets at once, on a node that keeps compiled programs.

    `cores` are those of its node, which the workers on it share; 0 where that is not known.
    """

    name: str
    node: str
    machine: Hardware
    cores: int = 0


@dataclass(eq=False)
class Ticket:
    """A bucket on its way: `order` is its place in the queue, `step` the last one that was told of.

    `deaths` counts the workers that it did not survive; `alone` says that its worker had no other since then.
    One that is `suspect` is trained with no other beside it, so that it is clear which one a worker died of.
    """

    number: int
    bucket: Bucket
    program: Hashable
    order: int
    step: int = 0
    deaths: int = 0
    alone: bool = False
    suspect: bool = False


class BucketQueue:
    """The buckets of a job: waiting, in hand, or done.

    Args:
        buckets: In working order, the costly ones first.
        planned: The machine they were planned for.
        fit: What they take on other machines.
        shared_programs: Workers of one node find on disk what another has compiled, so that waiting for it is cheaper
            than compiling it too.
    """

    def __init__(self, buckets: Iterable[Bucket], planned: Hardware, fit: Fit, *, shared_programs: bool = True):
        self._planned, self._fit, self._shared = planned, fit, shared_programs
        self._waiting: dict[Hashable, deque[Ticket]] = {}
        self._in_hand: dict[str, list[Ticket]] = {}
        self._holders: dict[int, tuple[Seat, Ticket]] = {}
        self._compiled, self._compiling = _Whereabouts(), _Whereabouts()
        self._numbers, self._seconds = 0, 0.0
        self.done, self.total, self.ready = 0, 0, set[Hashable]()
        for order, bucket in enumerate(buckets):
            self._wait(self._ticket(bucket, order))

    @property
    def waiting(self) -> int:
        """Buckets that nobody has."""
        return sum(map(len, self._waiting.values()))

    @property
    def in_hand(self) -> int:
        """Buckets that workers have."""
        return len(self._holders)

    def held(self, number: int) -> tuple[Seat, Ticket] | None:
        """The worker that has a ticket, and the ticket; None once it has no more."""
        return self._holders.get(number)

    def held_by(self, name: str) -> Sequence[Ticket]:
        """What a worker has in hand."""
        return tuple(self._in_hand.get(name, ()))

    def take(self, seat: Seat, seats: Iterable[Seat]) -> Ticket | None:
        """The next bucket for a worker, None where it has enough or should wait. `seats` are all that are alive."""
        held = self._in_hand.get(seat.name, [])
        if len(held) >= seat.machine.workers or any(ticket.suspect for ticket in held):
            return None
        ranked = []
        for program, tickets in self._waiting.items():
            rank, ticket = self._rank(program, seat), tickets[0]
            if rank is not None and not (ticket.suspect and held):
                ranked.append(((rank, ticket.order), ticket))
        if not ranked:
            return None
        _, ticket = min(ranked, key=lambda entry: entry[0])
        if not self._same_kind(seat.machine):
            part = self._fit.for_machine(ticket.bucket, seat.machine)
            if not self._worth(part, seat, seats):
                return None
            return self._hand(seat, self._cut(ticket, part))
        self._remove(ticket)
        return self._hand(seat, ticket)

    def compiled(self, number: int) -> None:
        """The program of a ticket is ready on the worker that has it."""
        if number in self._holders:
            seat, ticket = self._holders[number]
            self._compiling.remove(ticket.program, seat)
            self._compiled.add(ticket.program, seat)
            self.ready.add(ticket.program)

    def finish(self, number: int) -> Ticket | None:
        """A ticket's bucket has come to an end; None for one that nobody has, such as that of a worker given up."""
        if number not in self._holders:
            return None
        self.done += 1
        return self._let_go(number)

    def died(self, number: int) -> Ticket | None:
        """A bucket's worker died: it waits again, behind all others, or is given up and handed back to be recorded."""
        if number not in self._holders:
            return None
        seat, ticket = self._holders[number]
        self._let_go(number)
        self._compiled.forget(seat)  # what it had in memory
        ticket.deaths += 1
        ticket.order += self._numbers
        if ticket.deaths > MAX_DEATHS and (ticket.suspect or ticket.alone):
            self.done += 1
            return ticket
        if ticket.deaths > MAX_DEATHS:  # perhaps another one killed them all
            ticket.deaths, ticket.suspect = 0, True
        self._wait(ticket)
        return None

    def gone(self, seat: Seat) -> list[Ticket]:
        """A worker will not come back: what it had waits again, but for what is given up and handed back."""
        given_up = [self.died(ticket.number) for ticket in self.held_by(seat.name)]
        self._compiled.forget(seat)
        self._compiling.forget(seat)
        return [ticket for ticket in given_up if ticket is not None]

    def _let_go(self, number: int) -> Ticket:
        seat, ticket = self._holders.pop(number)
        self._in_hand[seat.name].remove(ticket)
        self._compiling.remove(ticket.program, seat)
        return ticket

    def _ticket(self, bucket: Bucket, order: int) -> Ticket:
        self._numbers += 1
        self.total += 1
        return Ticket(self._numbers, bucket, self._fit.program(bucket), order)

    def _wait(self, ticket: Ticket) -> None:
        tickets = self._waiting.setdefault(ticket.program, deque())
        if tickets and ticket.order < tickets[0].order:  # the rest of a bucket that was cut
            tickets.appendleft(ticket)
        else:
            tickets.append(ticket)
        self._seconds += self._fit.seconds(ticket.bucket, self._planned)

    def _remove(self, ticket: Ticket) -> None:
        tickets = self._waiting[ticket.program]
        tickets.remove(ticket)
        if not tickets:
            del self._waiting[ticket.program]
        self._seconds -= self._fit.seconds(ticket.bucket, self._planned)

    def _cut(self, ticket: Ticket, part: Bucket) -> Ticket:
        """A ticket for a part of a bucket; the rest waits on."""
        self._remove(ticket)
        rest = ticket.bucket.cells[len(part.cells) :]
        if not rest:
            ticket.bucket = part
            return ticket
        cut = self._ticket(part, ticket.order)
        cut.step, cut.deaths, cut.suspect = ticket.step, ticket.deaths, ticket.suspect
        ticket.bucket = replace(ticket.bucket, cells=rest)
        self._wait(ticket)
        return cut

    def _hand(self, seat: Seat, ticket: Ticket) -> Ticket:
        held = self._in_hand.setdefault(seat.name, [])
        held.append(ticket)
        for each in held:
            each.alone = len(held) == 1
        self._holders[ticket.number] = seat, ticket
        if not self._compiled.has(ticket.program, seat):
            self._compiling.add(ticket.program, seat)
        return ticket

    def _rank(self, program: Hashable, seat: Seat) -> int | None:
        """How well a program suits a worker, 0 best; None where a neighbour is about to have compiled it."""
        if self._compiled.has(program, seat) or self._compiling.has(program, seat):
            return 0
        if not self._compiled.known(program) and not self._compiling.known(program):
            return 1
        if self._shared and self._compiled.near(program, seat):
            return 2
        if self._shared and self._compiling.near(program, seat):
            return None
        return 3

    def _same_kind(self, machine: Hardware) -> bool:
        return (machine.side_by_side, machine.backend) == (self._planned.side_by_side, self._planned.backend)

    def _worth(self, part: Bucket, seat: Seat, seats: Iterable[Seat]) -> bool:
        """Whether a worker of another kind is done with a part before those planned for are done with everything."""
        planned_for = sum(self._same_kind(other.machine) for other in seats)
        return not planned_for or self._fit.seconds(part, seat.machine) <= self._seconds / planned_for


class _Whereabouts:
    """Of programs: the workers that have them, and how many there are on each node."""

    def __init__(self):
        self._seats: dict[Hashable, set[Seat]] = {}
        self._nodes: dict[Hashable, Counter[str]] = {}

    def add(self, program: Hashable, seat: Seat) -> None:
        if not self.has(program, seat):
            self._seats.setdefault(program, set()).add(seat)
            self._nodes.setdefault(program, Counter())[seat.node] += 1

    def remove(self, program: Hashable, seat: Seat) -> None:
        if self.has(program, seat):
            self._seats[program].remove(seat)
            self._nodes[program][seat.node] -= 1

    def forget(self, seat: Seat) -> None:
        for program in self._seats:
            self.remove(program, seat)

    def known(self, program: Hashable) -> bool:
        return bool(self._seats.get(program))

    def has(self, program: Hashable, seat: Seat) -> bool:
        return seat in self._seats.get(program, ())

    def near(self, program: Hashable, seat: Seat) -> bool:
        return self._nodes.get(program, Counter())[seat.node] > 0
