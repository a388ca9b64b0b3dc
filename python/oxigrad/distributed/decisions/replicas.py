"""Decisions of synchronous replicas with backup workers.

A step is taken by the first ``replicas_to_aggregate`` gradients of the current step; later ones of that step are
dropped. The semantics are those of TensorFlow 1's SyncReplicasOptimizer
(tensorflow/python/training/sync_replicas_optimizer.py at 0782c4e6; Chen et al. 2016, arXiv:1604.00981), except where
its users reported faults:

* A gradient is accepted or dropped as a whole, where TensorFlow decided for each variable by itself.
* The worker is told that its gradient was dropped, and how stale it was.
* A token is given when it is used, with the step of that time. TensorFlow queued tokens, so that the first gradient of
  each worker, and those computed after an old token, were wasted.
* Nothing waits for ever: the tokens of workers that leave, die or exceed their lease pass to the others, so that a
  round completes with fewer workers, whose faster ones then contribute several gradients.
* A step is taken by exactly ``replicas_to_aggregate`` gradients, of different workers as long as enough of them
  compute.
"""

import itertools
from typing import Any

from oxigrad.distributed.decisions.events import Action, Push
from oxigrad.distributed.decisions.membership import Decisions


class Replicas(Decisions):
    """Takes a step by the first ``replicas_to_aggregate`` gradients that were computed from the current parameters.

    Args:
        replicas_to_aggregate: the number of gradients of each step.
        total_replicas: the number of workers that compute at the same time, so that ``total_replicas -
            replicas_to_aggregate`` of them are backups. Further workers wait for their turn. With fewer workers than
            ``replicas_to_aggregate``, some contribute several gradients to a step. By default
            ``replicas_to_aggregate``.
        lease: seconds after which a worker that holds a token no longer counts as computing; None is without end.
        step: the number of steps taken before.
        expected: the number of workers whose first tokens are waited for, before a worker contributes several
            gradients.

    >>> from oxigrad.distributed.decisions.events import Join, Push
    >>> decisions = Replicas(2, 3)
    >>> _ = [decisions.handle(Join(worker)) for worker in range(3)]
    >>> decisions.handle(Push(2, 0, local_step=0))
    []
    >>> for action in decisions.handle(Push(0, 0, local_step=0)):
    ...     print(action)
    Step(step=1, gradients=((0, 0), (2, 0)), weights=(1.0, 1.0))
    Verdict(worker=0, number=0, accepted=True, staleness=0, step=1, reason='')
    Verdict(worker=2, number=0, accepted=True, staleness=0, step=1, reason='')
    Token(worker=0, step=1)
    Token(worker=2, step=1)
    >>> for action in decisions.handle(Push(1, 0, local_step=0)):
    ...     print(action)
    Verdict(worker=1, number=0, accepted=False, staleness=1, step=1, reason='stale')
    Token(worker=1, step=1)
    """

    total_replicas: int

    def __init__(
        self,
        replicas_to_aggregate: int,
        total_replicas: int | None = None,
        *,
        lease: float | None = None,
        step: int = 0,
        expected: int = 0,
    ) -> None:
        super().__init__(step, expected, lease)
        self.replicas_to_aggregate = replicas_to_aggregate
        self.total_replicas = replicas_to_aggregate if total_replicas is None else total_replicas

    def _take(self, push: Push, actions: list[Action]) -> None:
        if push.local_step < self.step:
            self._tell(push, actions, "stale")
            return
        self.waiting.append(push)
        if len(self.waiting) >= self.replicas_to_aggregate:
            self._step(actions)

    def _grant(self, actions: list[Action]) -> None:
        self._end_leases()
        if not self.idle:
            return
        issued = len(self.holders) + len(self.waiting)
        fresh = self.idle - {push.worker for push in self.waiting}
        most = max(self.total_replicas, self.replicas_to_aggregate)
        for worker in sorted(fresh, key=self._turn)[: max(0, most - issued)]:
            self._give(worker, actions)
        missing = self.replicas_to_aggregate - len(self.holders) - len(self.waiting)
        if missing > 0 and self.is_complete:
            for worker in sorted(self.idle, key=self._turn)[:missing]:
                self._give(worker, actions)

    def _end_leases(self) -> None:
        """No longer counts workers that have computed for longer than the lease."""
        if self.lease is not None:
            late = itertools.takewhile(lambda item: self.now - item[1] >= (self.lease or 0.0), self.holders.items())
            for worker, _ in list(late):
                del self.holders[worker]

    def _turn(self, worker: Any) -> tuple[float, Any]:
        """Workers that have computed less recently come first."""
        return self.members[worker].since, worker
