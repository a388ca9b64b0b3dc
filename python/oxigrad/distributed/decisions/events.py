"""Events that decisions are made of, and the actions that they answer with.

Workers are hashable, comparable identities; gradients of one worker are numbered, each number above the last. The
gradients themselves stay with the caller, which keeps those that a decision names until it names them in a `Step` or a
`Verdict`.
"""

import dataclasses
from typing import Any, NamedTuple, TypeAlias

Worker: TypeAlias = Any


@dataclasses.dataclass(frozen=True)
class _OfWorker:
    """An event or an action of one worker."""

    worker: Worker


class Join(_OfWorker):
    """A worker asks to take part, at the start or later."""


class Leave(_OfWorker):
    """A worker has no more data, or has died."""


class Pull(_OfWorker):
    """A worker asks again for the parameters, as after a reply that was lost."""


@dataclasses.dataclass(frozen=True)
class Push(_OfWorker):
    """A worker sends a gradient: its ``number``, and the step whose parameters it was computed from."""

    number: int
    local_step: int


@dataclasses.dataclass(frozen=True)
class Clock:
    """The time, in seconds, of this event and of those after it; time does not go back."""

    now: float


Event: TypeAlias = Join | Leave | Pull | Push | Clock


@dataclasses.dataclass(frozen=True)
class Token(_OfWorker):
    """Lets a worker compute a gradient from the parameters after ``step`` steps, which are sent to it."""

    step: int


class Verdict(NamedTuple):
    """Tells a worker the decision on its gradient of a ``number``, which is final.

    An accepted gradient is in the step that made ``step``. A dropped one is in none; ``reason`` is "stale", "unknown"
    (the worker has not joined) or "future" (of a step that was not taken, as after the loss of a coordinator).
    ``staleness`` is the number of steps taken since the parameters it was computed from.
    """

    worker: Worker
    number: int
    accepted: bool
    staleness: int
    step: int
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the optimizer, which makes ``step``, by the weighted sum of gradients divided by their number.

    ``gradients`` are (worker, number), in the order in which they are added; ``weights`` are their factors.
    """

    step: int
    gradients: tuple[tuple[Worker, int], ...]
    weights: tuple[float, ...]


Action: TypeAlias = Token | Verdict | Step
