"""The errors of communication between workers."""

from collections.abc import Iterable

__all__ = ["Aborted", "CommunicationError", "NotSupported", "Refused", "TimedOut", "WorkerLost"]


def __dir__() -> list[str]:
    return list(__all__)


class CommunicationError(RuntimeError):
    """Base class of the errors of communication between workers."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)


class WorkerLost(CommunicationError):
    """Workers have died or left, so that an operation cannot complete; ``ranks`` are theirs in this generation.

    The survivors may continue with ``communicator.reform()``, unless a ``cause`` says otherwise.
    """

    def __init__(self, ranks: Iterable[int], what: str = "the operation", cause: str | None = None) -> None:
        self.ranks, self.what, self.cause = frozenset(ranks), what, cause
        shown = ", ".join(map(str, sorted(self.ranks)))
        found = f"lost the workers of rank {shown}" if self.ranks else "the generation has ended"
        super().__init__(f"{what} cannot complete: {cause or f'{found}; reform() continues with the survivors'}")

    def __reduce__(self) -> tuple[type, tuple[list[int], str, str | None]]:
        return type(self), (sorted(self.ranks), self.what, self.cause)


class TimedOut(CommunicationError):
    """A wait took longer than its time-out."""


class Refused(CommunicationError):
    """A message was refused before its payload was used. ``reason`` is one word, by which such messages are counted."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.reason, str(self))


class NotSupported(CommunicationError):
    """The engine does not have this operation."""


class Aborted(CommunicationError):
    """A worker has ended the job by ``abort``."""
