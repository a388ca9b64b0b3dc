"""The errors of communication between workers, and the logger of what needs no error."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

log: logging.Logger = logging.getLogger("oxigrad.distributed")


class CommunicationError(RuntimeError):
    """Base class of the errors of communication between workers: catch it for any of them.

    Raised itself where an engine cannot be used as it was started; the message says how to start it.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).__new__, (type(self), *self.args), vars(self)


class WorkerLost(CommunicationError):
    """Workers have died or left, so that an operation cannot complete; ``ranks`` are theirs in this generation.

    The survivors may continue with ``communicator.reform()``, unless a ``cause`` says otherwise. ``steps`` has the last
    step, by rank, of workers whose work ended within a training, without a call of `leave`.
    """

    ranks: frozenset[int]
    what: str
    cause: str | None
    steps: dict[int, int]

    def __init__(
        self,
        ranks: Iterable[int],
        what: str = "the operation",
        cause: str | None = None,
        steps: Mapping[int, int] | None = None,
    ) -> None:
        self.ranks, self.what, self.cause = frozenset(ranks), what, cause
        self.steps = {rank: step for rank, step in (steps or {}).items() if rank in self.ranks}
        shown = ", ".join(map(str, sorted(self.ranks)))
        loss = f"lost the workers of rank {shown}" if self.ranks else "the generation has ended"
        super().__init__(f"{what} cannot complete: {cause or f'{loss}; reform() continues with the survivors'}")


class Excluded(CommunicationError):
    """The other workers have excluded this one and continue without it: it did not answer within the time-out."""

    rank: int
    generation: int

    def __init__(self, rank: int, generation: int) -> None:
        self.rank, self.generation = rank, generation
        super().__init__(
            f"the worker of rank {rank} of generation {generation} did not answer within the time-out: the others "
            "have excluded it, and go on without it"
        )


class TimedOut(CommunicationError):
    """A wait exceeded its time-out: another worker hangs, has not started, or is slower than ``timeout`` allows.

    Raise ``timeout`` where the others only need longer.
    """


class Refused(CommunicationError):
    """A message was refused before its payload was used. ``reason`` is one word, by which such messages are counted.

    A worker gets it for its own message where it has another model, configuration or version than the others, or its
    message was damaged: start all workers with the same program.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@contextmanager
def of_all(call: str) -> Iterator[None]:
    """A block with the operations of a ``call`` of all workers, which its errors name.

    >>> with of_all("report(gather=True)"):
    ...     raise TimedOut("it took longer than 3 s")
    Traceback (most recent call last):
        ...
    oxigrad.distributed.errors.TimedOut: report(gather=True), which all workers must call: it took longer than 3 s
    """
    what = f"{call}, which all workers must call"
    try:
        yield
    except WorkerLost as error:
        raise WorkerLost(error.ranks, f"{what},", error.cause, error.steps) from error
    except TimedOut as error:
        raise TimedOut(f"{what}: {error}") from error
    except Refused as error:
        raise Refused(error.reason, f"{what}: {error}") from error


class NotSupported(CommunicationError):
    """The engine does not have this operation, as `reform` after a death under an MPI without fault tolerance.

    Choose another engine.
    """


class Aborted(CommunicationError):
    """A worker has ended the job by ``abort``: its own error, printed where it ran, is the cause."""
