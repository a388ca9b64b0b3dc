"""Membership: what the decisions know of each worker, with each gradient decided exactly once."""

import dataclasses
from collections.abc import Hashable
from typing import Any

from oxigrad.distributed.decisions.events import Action, Clock, Event, Join, Leave, Pull, Push, Step, Token, Verdict


@dataclasses.dataclass
class Member:
    """A worker that takes part: when it was given a token, and its last gradient."""

    since: float = 0.0
    #: The number of its last gradient, and the decision on it; None while the gradient waits for a step.
    last: int = -1
    decision: Verdict | None = None


class Decisions:
    """Base class of the decisions of a coordinator: takes events by `handle`, and answers with actions.

    The identities of workers are comparable, which gives the order of sums, and not used again: a worker that left and
    comes back joins under another one. Events may be repeated.

    It is deterministic: the same events give the same actions. Subclasses say what is done with a fresh gradient
    (`_take`), and which workers get a token (`_grant`).

    Attributes:
        step: the number of steps taken.
        expected: the number of workers that are waited for at the start, until the lease ends.
        lease: seconds after which a worker is no longer waited for; None is without end.
        members: the workers that take part.
        waiting: the gradients that were taken and are in no step yet.
    """

    step: int
    expected: int
    lease: float | None
    now: float

    def __init__(self, step: int = 0, expected: int = 0, lease: float | None = None) -> None:
        self.step, self.expected, self.lease = step, expected, lease
        self.now = 0.0
        self.members: dict[Hashable, Member] = {}
        self.waiting: list[Push] = []
        #: The number of first ones in ``waiting`` whose order is final.
        self._settled = 0
        #: The workers that wait for a token, and the times at which those that compute for the next step got theirs,
        #: in order.
        self.idle: set[Any] = set()
        self.holders: dict[Hashable, float] = {}
        self._departed: set[Hashable] = set()
        self._seen: set[Hashable] = set()

    def handle(self, event: Event) -> list[Action]:
        """The actions that an event causes, in the order in which they are to be done."""
        actions: list[Action] = []
        match event:
            case Join(worker):
                self._join(worker)
            case Leave(worker):
                self._leave(worker)
            case Pull(worker):
                self._pull(worker)
            case Push():
                self._push(event, actions)
            case Clock(now):
                self.now = max(self.now, now)
        if self.waiting and self.is_done:
            self._step(actions)  # Nobody is left to complete it.
        self._grant(actions)
        return actions

    @property
    def is_complete(self) -> bool:
        """Whether all expected workers have joined or left, or are no longer waited for."""
        return len(self._seen) >= self.expected or (self.lease is not None and self.now >= self.lease)

    @property
    def is_done(self) -> bool:
        """Whether workers have joined, all have left, and none is waited for."""
        return self.is_complete and bool(self._seen) and not self.members

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def _take(self, push: Push, actions: list[Action]) -> None:
        """Decides on a gradient of a member that was not seen before."""
        raise NotImplementedError

    def _grant(self, actions: list[Action]) -> None:
        """Gives tokens to those members that should compute a gradient now."""
        raise NotImplementedError

    def _may_precede(self, push: Push) -> bool:
        """Whether a gradient that comes later may stand before this one in the sum of a step."""
        return not self.is_complete or any(worker < push.worker for worker in self.holders)

    def _weight(self, staleness: int) -> float:
        """The factor of a gradient of this staleness."""
        return 1.0

    # --- events -------------------------------------------------------------------------------------------------------

    def _join(self, worker: Hashable) -> None:
        self._seen.add(worker)
        if worker in self.members:
            self._pull(worker)
        elif worker not in self._departed:
            self.members[worker] = Member()
            self._free(worker)

    def _leave(self, worker: Hashable) -> None:
        self._seen.add(worker)
        self._departed.add(worker)
        self.idle.discard(worker)
        self.members.pop(worker, None)
        self.holders.pop(worker, None)

    def _pull(self, worker: Hashable) -> None:
        if worker in self.members:
            self._free(worker)

    def _push(self, push: Push, actions: list[Action]) -> None:
        member = self.members.get(push.worker)
        if member is None and push.worker in self._departed:
            return  # it cannot be told, and its gradient may wait for a step
        if member is None:
            self._tell(push, actions, "unknown")
        elif push.number == member.last:  # a duplicate, as of a worker that missed the answer
            if member.decision is not None:
                actions.append(member.decision)
            self._free(push.worker)  # its token may have been lost, while the gradient waits for a step
        elif push.number > member.last:
            member.last, member.decision = push.number, None
            self._free(push.worker)
            if push.local_step > self.step:
                self._tell(push, actions, "future")
            else:
                self._take(push, actions)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def settled(self) -> list[tuple[Push, float]]:
        """The gradients that wait for a step, and that no other one comes before, with their weights.

        Each is returned once.
        """
        self.waiting[self._settled :] = self._in_order(self.waiting[self._settled :])
        first = self._settled
        while self._settled < len(self.waiting) and not self._may_precede(self.waiting[self._settled]):
            self._settled += 1
        return [(push, self._weight(self.step - push.local_step)) for push in self.waiting[first : self._settled]]

    @staticmethod
    def _in_order(pushes: list[Push]) -> list[Push]:
        return sorted(pushes, key=lambda push: (push.worker, push.number))

    def _tell(self, push: Push, actions: list[Action], reason: str = "") -> None:
        """Decides on a gradient: it is in the step that was just taken, or is dropped for a reason."""
        accepted = not reason
        verdict = Verdict(push.worker, push.number, accepted, self.step - accepted - push.local_step, self.step, reason)
        member = self.members.get(push.worker)
        if member is not None and member.last == push.number:
            member.decision = verdict
        actions.append(verdict)

    def _step(self, actions: list[Action]) -> None:
        """Takes a step by all waiting gradients, except settled ones, in the order of workers, and tells these."""
        taken = [*self.waiting[: self._settled], *self._in_order(self.waiting[self._settled :])]
        self.waiting.clear()
        self._settled = 0
        self.holders.clear()
        weights = tuple(self._weight(self.step - push.local_step) for push in taken)
        self.step += 1
        actions.append(Step(self.step, tuple((push.worker, push.number) for push in taken), weights))
        for push in taken:
            self._tell(push, actions)

    def _free(self, worker: Hashable) -> None:
        """Takes back the token of a worker, which may get another."""
        self.idle.add(worker)
        self.holders.pop(worker, None)

    def _give(self, worker: Hashable, actions: list[Action]) -> None:
        self.members[worker].since = self.now
        self.idle.discard(worker)
        self.holders.pop(worker, None)
        self.holders[worker] = self.now
        actions.append(Token(worker, self.step))
