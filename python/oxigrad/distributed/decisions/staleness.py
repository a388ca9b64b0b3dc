"""Decisions of asynchronous workers: every gradient is used as it comes, unless it is too stale."""

from oxigrad.distributed.decisions.events import Action, Push
from oxigrad.distributed.decisions.membership import Decisions


class Staleness(Decisions):
    """Takes a step after every ``gradients_per_step`` gradients, and never lets a worker wait.

    Args:
        gradients_per_step: the number of gradients of each step.
        limit: the staleness above which a gradient is dropped; None for no limit.
        is_scaled: whether a gradient of staleness t > 0 has the weight 1 / t (Zhang et al. 2016, arXiv:1511.05950).
        step: the number of steps taken before.
        expected, lease: the number of workers without which the training does not end, and seconds until it may.

    >>> from oxigrad.distributed.decisions.events import Join, Push
    >>> decisions = Staleness(limit=0)
    >>> _ = [decisions.handle(Join(worker)) for worker in range(2)]
    >>> decisions.handle(Push(0, 0, local_step=0))[0]
    Step(step=1, gradients=((0, 0),), weights=(1.0,))
    >>> decisions.handle(Push(1, 0, local_step=0))[0]
    Verdict(worker=1, number=0, accepted=False, staleness=1, step=1, reason='stale')
    """

    gradients_per_step: int
    limit: int | None
    is_scaled: bool

    def __init__(
        self,
        gradients_per_step: int = 1,
        *,
        limit: int | None = None,
        is_scaled: bool = False,
        step: int = 0,
        expected: int = 0,
        lease: float | None = None,
    ) -> None:
        super().__init__(step, expected, lease)
        self.gradients_per_step, self.limit, self.is_scaled = gradients_per_step, limit, is_scaled

    def _may_precede(self, push: Push) -> bool:
        return False  # no worker waits, so that the order is the order of arrival

    def _weight(self, staleness: int) -> float:
        return 1.0 / staleness if self.is_scaled and staleness > 0 else 1.0

    def _take(self, push: Push, actions: list[Action]) -> None:
        if self.limit is not None and self.step - push.local_step > self.limit:
            self._tell(push, actions, "stale")
            return
        self.waiting.append(push)
        if len(self.waiting) >= self.gradients_per_step:
            self._step(actions)

    def _grant(self, actions: list[Action]) -> None:
        for worker in sorted(self.idle):
            self._give(worker, actions)
