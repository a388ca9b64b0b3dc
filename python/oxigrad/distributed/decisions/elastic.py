"""The decisions of elastic averaging: when workers exchange with the centre, and which exchanges the centre applies."""

from collections.abc import Hashable
from typing import Any

from oxigrad.distributed.decisions.events import Action, Push, Step
from oxigrad.distributed.decisions.membership import Decisions


class Elastic(Decisions):
    """Applies each push of a worker by itself, as a step of the centre.

    Args:
        ordered: whether pushes are applied in rounds, in each round one push of every member by rank, so that the
            result depends on no timing. A push waits for those before it, until their workers leave. A worker that
            joins takes part from the next round on.
        lease: seconds without a push after which a worker counts as having left, unless its push waits; None for never.
            The next push of such a worker is answered by a verdict with the reason "unknown"; it takes part again after
            a `Pull`.
        step: the number of pushes applied before.
        expected: the number of workers without which no round begins, and the training does not end.

    >>> from oxigrad.distributed.decisions.events import Join
    >>> centre = Elastic(ordered=True, expected=2)
    >>> _ = [centre.handle(Join(worker)) for worker in range(2)]
    >>> centre.handle(Push(1, 1, 0))
    []
    >>> [action.gradients for action in centre.handle(Push(0, 1, 0)) if isinstance(action, Step)]
    [((0, 1),), ((1, 1),)]
    """

    ordered: bool
    step: int

    def __init__(self, *, ordered: bool = False, lease: float | None = None, step: int = 0, expected: int = 0) -> None:
        if lease is not None and not lease > 0:
            raise ValueError(f"lease is {lease}: expected a positive time, or None")
        super().__init__(step, expected, lease)
        self.ordered = ordered
        #: The members whose pushes are still to come in this round.
        self._to_come: list[Any] = []

    def _may_precede(self, push: Push) -> bool:
        return True  # pushes are not added up

    def _leave(self, worker: Hashable) -> None:
        super()._leave(worker)
        self.waiting: list[Push] = [push for push in self.waiting if push.worker != worker]

    def _pull(self, worker: Hashable) -> None:
        if worker in self._departed:  # its lease has ended
            self._departed.discard(worker)
            self._join(worker)
        else:
            super()._pull(worker)

    def _push(self, push: Push, actions: list[Action]) -> None:
        if push.worker in self._departed:
            self._tell(push, actions, "unknown")
        else:
            super()._push(push, actions)

    def _take(self, push: Push, actions: list[Action]) -> None:
        self.waiting.append(push)

    def _grant(self, actions: list[Action]) -> None:
        waits = {push.worker for push in self.waiting}
        late = [w for w, member in self.members.items() if self.lease and self.now - member.since > self.lease]
        for worker in late:
            if worker not in waits:
                self._leave(worker)
        while (push := self._next()) is not None:
            self.waiting.remove(push)
            self.step += 1
            actions.append(Step(self.step, ((push.worker, push.number),), (1.0,)))
            self._tell(push, actions)
        for worker in sorted(self.idle - {push.worker for push in self.waiting}):
            self._give(worker, actions)

    def _next(self) -> Push | None:
        """The push whose turn has come."""
        if not self.ordered:
            return self.waiting[0] if self.waiting else None
        if not (self.waiting and self.is_complete):
            return None
        self._to_come = [worker for worker in self._to_come if worker in self.members] or sorted(self.members)
        push = next((push for push in self.waiting if push.worker == self._to_come[0]), None)
        if push is not None:
            del self._to_come[0]
        return push


def moving_rate(period: int, workers: int) -> float:
    """The default moving rate of TensorFlow 1: ``0.9 / period / workers``.

    >>> moving_rate(10, 4)
    0.0225
    """
    return 0.9 / period / workers
