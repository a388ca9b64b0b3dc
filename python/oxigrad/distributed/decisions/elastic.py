"""The decisions of elastic averaging: when workers exchange with the centre, and which exchanges the centre applies."""

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class _Answer:
    """An action that answers the push ``number`` of a worker."""

    worker: int
    number: int


class Apply(_Answer):
    """Action: move the centre by the push, and answer it with the move."""


class Repeat(_Answer):
    """Action: answer a push that came twice as before; the centre does not move."""


class Give(_Answer):
    """Action: give the centre to a worker that joins; its next push has the number ``number + 1``."""


@dataclasses.dataclass(frozen=True)
class Refuse(_Answer):
    """Action: tell a worker that its push changes nothing, and why."""

    reason: str


Action = Apply | Repeat | Give | Refuse


class Centre:
    """State machine of the centre: it is fed pushes, joins, leaves and the time, and answers with actions.

    Pushes of a worker are numbered from 1. Each is applied once: a repeated one is answered again, any other number is refused.
    With ``ordered`` the pushes are applied in rounds, in each one those of all members by rank, so that the result depends
    on no timing; a push waits for those before it, until their workers leave. ``lease`` is the time without a push after which a
    worker counts as having left, in the unit of ``now``; None means never. ``awaited`` are further members; with ``ordered`` no push
    is applied before all of them have joined or left, so that they join the same centre.

    >>> centre = Centre([0, 1], ordered=True)
    >>> centre.push(1, 1), centre.push(0, 1)
    ((), (Apply(worker=0, number=1), Apply(worker=1, number=1)))
    """

    ordered: bool
    lease: float | None

    def __init__(
        self,
        workers: Iterable[int],
        *,
        ordered: bool = False,
        lease: float | None = None,
        awaited: Iterable[int] = (),
    ) -> None:
        if lease is not None and not lease > 0:
            raise ValueError(f"lease is {lease}: expected a positive time, or None")
        self.ordered, self.lease = ordered, lease
        #: The number of the last push of each member that was applied.
        self._awaited = set(awaited)
        self.applied: dict[int, int] = dict.fromkeys(sorted({*workers, *self._awaited}), 0)
        self._held: dict[int, int] = {}
        self._to_come = sorted(self.applied)
        self._seen: dict[int, float] = dict.fromkeys(self.applied, 0.0)

    def push(self, worker: int, number: int, now: float = 0.0) -> tuple[Action, ...]:
        """Event: the push ``number`` of a worker has come."""
        if worker not in self.applied:
            return (Refuse(worker, number, "the worker is not a member: it has not joined, or its lease has ended"),)
        self._seen[worker] = now
        last = self.applied[worker]
        if number == last:
            return (Repeat(worker, number),)
        if number != last + 1:
            return (Refuse(worker, number, f"the push has the number {number}: expected {last + 1}"),)
        if not self.ordered:
            return (self._apply(worker, number),)
        self._held[worker] = number
        return self._drain()

    def join(self, worker: int, now: float = 0.0) -> tuple[Action, ...]:
        """Event: a worker joins, or comes back; with ``ordered`` the first push of a new one belongs to the next round."""
        self._held.pop(worker, None)
        self._awaited.discard(worker)
        self.applied[worker] = 0
        self._seen[worker] = now
        return (Give(worker, 0), *self._drain())

    def leave(self, worker: int) -> tuple[Action, ...]:
        """Event: a worker has left or died. A push of it that waits is dropped; those that wait for it may be applied."""
        if self.applied.pop(worker, None) is None:
            return ()
        self._held.pop(worker, None)
        self._awaited.discard(worker)
        self._seen.pop(worker)
        if worker in self._to_come:
            self._to_come.remove(worker)
        return self._drain()

    def clock(self, now: float) -> tuple[Action, ...]:
        """Event: the time is ``now``. Members whose lease has ended leave, but for those whose push waits for others."""
        if self.lease is None:
            return ()
        ended = [w for w, seen in self._seen.items() if now - seen > self.lease and w not in self._held]
        return tuple(action for worker in ended for action in self.leave(worker))

    def _apply(self, worker: int, number: int) -> Apply:
        self.applied[worker] = number
        return Apply(worker, number)

    def _drain(self) -> tuple[Action, ...]:
        actions: list[Action] = []
        while self.ordered and self.applied and not self._awaited:
            if not self._to_come:
                self._to_come = sorted(self.applied)
            if (worker := self._to_come[0]) not in self._held:
                break
            actions.append(self._apply(worker, self._held.pop(worker)))
            del self._to_come[0]
        return tuple(actions)


def moving_rate(period: int, workers: int) -> float:
    """The default moving rate of TensorFlow 1: ``0.9 / period / workers``.

    >>> moving_rate(10, 4)
    0.0225
    """
    return 0.9 / period / workers
