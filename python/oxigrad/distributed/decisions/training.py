"""The identity of a training: workers that end one early wait for the others, and are not served by the old one.

Every worker counts the wrappers that it makes on its communicator, and how often each of them has joined, so that all
workers give the same training the same identity as long as they make the same wrappers in the same order.
"""

import contextlib
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Self, TypeAlias

from oxigrad.distributed.errors import Excluded, Refused

_BITS = 32


@dataclasses.dataclass(frozen=True, order=True)
class Training:
    """The identity of a training: the number of the wrapper on its communicator, and of the time that it has joined.

    Later trainings compare greater. (0, 0) is that of a worker which does not know it: one that came after the start.

    >>> Training(1, 2) < Training(2, 1), Training.of_code(Training(2, 1).code)
    (True, Training(number=2, session=1))
    """

    number: int = 0
    session: int = 0

    @property
    def code(self) -> int:
        """The identity as an integer of 64 bits, in the same order."""
        return self.number << _BITS | self.session

    @classmethod
    def of_code(cls, code: int) -> Self:
        """The identity of a code."""
        return cls(code >> _BITS, code & ((1 << _BITS) - 1))

    def __str__(self) -> str:
        return f"training {self.number}" + (f", session {self.session}" if self.session > 1 else "")


class Trainings:
    """The count of the wrappers that a worker has made on its communicator; unknown on one that came after the start.

    >>> trainings = Trainings()
    >>> trainings.new_number(), trainings.new_number()
    (1, 2)
    """

    def __init__(self, is_known: bool = True) -> None:
        self.count: int | None = 0 if is_known else None
        #: What the last shards of data on the communicator have in common on all workers, as plain data.
        self.shards: deque[dict[str, Any]] = deque(maxlen=16)
        #: The digests of messages of the last trainings that this worker has left: late answers.
        self.left: deque[bytes] = deque(maxlen=64)
        #: Ends what serves the present training in this process.
        self.stop: Callable[[], None] | None = None
        #: The last step that this worker completed of a training whose workers call the same operations, and that step
        #: where the work ended before it left the training; 0 before the first training, which the others may begin.
        self.completed: int | None = 0 if is_known else None
        self.unfinished: int | None = None
        #: Whether the work of this worker has ended.
        self.has_ended: bool = False
        #: Leaves the present training, where this process serves it; None too where its wrapper is gone.
        self.leave: Callable[[], Callable[[], Any] | None] = lambda: None

    def new_number(self) -> int:
        """The number of a wrapper that is made now; 0 where the other workers know it."""
        if self.count is not None:
            self.count += 1
        return self.count or 0

    def end(self) -> None:
        """Leaves the training that this process serves, at the end of its work. The others go on until they leave."""
        self.unfinished, self.has_ended = self.completed, True
        leave, self.leave = self.leave(), lambda: None
        if leave is not None:
            with contextlib.suppress(Excluded):  # the others go on without this worker
                leave()

    def adopt(self, training: Training) -> None:
        """Takes the count of a worker that knows it, in a training that both take part in."""
        self.count = max(self.count or 0, training.number)


@dataclasses.dataclass(eq=False)
class Numbered:
    """The owner of the number of a training; 0 stands for no training, or for one that is not known yet."""

    number: int = 0


NO_TRAINING = Numbered()
EXCHANGE: ContextVar[Numbered] = ContextVar("exchange", default=NO_TRAINING)
"""The training that the collective operations of a context belong to."""


@contextlib.contextmanager
def exchanging(of: Numbered) -> Iterator[None]:
    """A context whose collective operations belong to a training, or to `NO_TRAINING`.

    >>> with exchanging(Numbered(3)):
    ...     number_of_exchange()
    3
    """
    token = EXCHANGE.set(of)
    try:
        yield
    finally:
        EXCHANGE.reset(token)


def number_of_exchange() -> int:
    """The number of the training that a collective operation of this context belongs to."""
    return EXCHANGE.get().number


def check_exchange(numbers: Sequence[int]) -> None:
    """Raises `Refused` where the operations that workers call at the same time belong to several trainings.

    >>> check_exchange([1, 1])
    """
    if len(trainings := {*numbers}) > 1:
        names = " and ".join(f"training {number}" if number else "no training" for number in sorted(trainings))
        raise Refused("training", f"workers exchange arrays of {names} at the same time: {ORDER}")


ORDER = "make the same wrappers, and call them, in the same order on every worker"


def common(numbers: Sequence[int]) -> int:
    """The number of the training that workers begin together; 0 is that of one which does not know it.

    Raises `Refused` where they begin several.

    >>> common([2, 0, 2])
    2
    """
    ranks = {number: rank for rank, number in reversed([*enumerate(numbers)]) if number}
    if len(ranks) > 1:
        begun = " and ".join(f"rank {rank} training {number}" for number, rank in sorted(ranks.items()))
        raise Refused("training", f"{begun} begin at the same time: {ORDER}")
    return max(ranks, default=0)


Admission: TypeAlias = Literal["serve", "tell", "later", "over"]
"""The outcome for a worker that asks to join: it is served, told the identity, asks again later, or is refused."""


def ended(rank: int, asked: Training, current: Training) -> Refused:
    """The error of a worker that asks to join a training which has ended."""
    text = f"rank {rank} joins {asked}, which has ended: {current} has begun"
    return Refused("training", f"{text}; make the same wrappers in the same order on every worker")


def admission(current: Training, asked: Training) -> Admission:
    """The decision of the coordinator of the training ``current`` on a worker that asks to join the training ``asked``.

    >>> [
    ...     admission(Training(2, 1), asked)
    ...     for asked in (Training(2, 1), Training(), Training(3, 1), Training(1, 1))
    ... ]
    ['serve', 'tell', 'later', 'over']
    """
    if asked == current:
        return "serve"
    if asked == Training():
        return "tell"
    return "later" if asked > current else "over"
