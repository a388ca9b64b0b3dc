"""The decisions of model averaging: the steps in which fragments of a model are exchanged and merged."""

import dataclasses
from collections.abc import Iterable
from typing import TypeVar

_Item = TypeVar("_Item")


@dataclasses.dataclass(frozen=True)
class _OfFragment:
    """An action on a fragment of the parameters."""

    fragment: int


class Send(_OfFragment):
    """Action: take the differences of a fragment since its last merge, and start their mean over the workers."""


class Merge(_OfFragment):
    """Action: merge the mean that was started by the last `Send` of the fragment into the parameters."""


class Averaging:
    """State machine of model averaging on one worker: it is fed the local steps and answers with actions.

    Fragment ``p`` of ``fragments`` is sent every ``interval`` steps, first after step ``(p + 1) * interval //
    fragments``, and is merged ``delay`` steps later, as in Streaming DiLoCo (Douillard et al. 2025, arXiv:2501.18512,
    algorithm 2). All workers that start from the same step take the same actions. It reads no clock and has no state
    but the step and what was sent.

    >>> machine = Averaging(interval=4, fragments=2, delay=1)
    >>> [machine.stepped() for _ in range(5)]
    [(), (Send(fragment=0),), (Merge(fragment=0),), (Send(fragment=1),), (Merge(fragment=1),)]
    """

    interval: int
    fragments: int
    delay: int
    step: int

    def __init__(self, interval: int, fragments: int = 1, delay: int = 0) -> None:
        if interval < 1:
            raise ValueError(f"interval is {interval}: expected a number of steps, at least 1")
        if not 1 <= fragments <= interval:
            raise ValueError(f"fragments is {fragments}: expected 1 to {interval}, the interval")
        if not 0 <= delay < interval:
            raise ValueError(f"delay is {delay}: expected 0 to {interval - 1}, less than the interval")
        self.interval, self.fragments, self.delay = interval, fragments, delay
        self.step = 0
        #: The step of the last `Send` of each fragment that is not merged yet.
        self.sent: dict[int, int] = {}

    def stepped(self) -> tuple[Send | Merge, ...]:
        """Event: the worker has taken a local step. Returns what to do after it, in this order."""
        self.step += 1
        due = tuple(Send(p) for p in range(self.fragments) if self._is_due(p))
        self.sent.update({action.fragment: self.step for action in due})
        merged = tuple(Merge(p) for p, sent in sorted(self.sent.items()) if sent + self.delay == self.step)
        for action in merged:
            del self.sent[action.fragment]
        return (*due, *merged)

    def resumed(self, step: int, sent: dict[int, int]) -> "Averaging":
        """Event: the worker continues from a step, as after a checkpoint or where it joins.

        The machine of that step.
        """
        averaging = Averaging(self.interval, self.fragments, self.delay)
        if step < 0 or any(not (0 <= p < self.fragments and step - self.delay < at <= step) for p, at in sent.items()):
            raise ValueError(
                f"step is {step} and sent {sent}: expected fragments below {self.fragments}, sent within the delay"
            )
        averaging.step, averaging.sent = step, dict(sent)
        return averaging

    def _is_due(self, fragment: int) -> bool:
        first = (fragment + 1) * self.interval // self.fragments
        return self.step >= first and (self.step - first) % self.interval == 0


def strided(items: Iterable[_Item], fragment: int, fragments: int) -> list[_Item]:
    """The items of a fragment: every ``fragments``-th one, the strided pattern of Streaming DiLoCo.

    >>> strided("abcde", 1, 2)
    ['b', 'd']
    """
    return [*items][fragment::fragments]
