"""The count of the messages that a worker refuses."""

from collections import Counter

import numpy as np

from oxigrad.distributed.errors import Refused, log


class Refusals(Counter[str]):
    """Counts refused messages by reason. The first one of each reason is logged as a warning, which names what differs.

    A message of another job, or one that is damaged, has no sender that can be answered.

    >>> refusals = Refusals()
    >>> refusals.add(Refused("job", "a message is of the job 01: expected 02"))
    >>> refusals
    Refusals({'job': 1})
    """

    def add(self, error: Refused) -> None:
        """Counts a message that was refused."""
        self[error.reason] += 1
        if self[error.reason] == 1:
            log.warning("a message is refused: %s; further ones are counted under %r", error, error.reason)


def encoded(error: Refused) -> np.ndarray:
    """A refusal as bytes, by which the sender of a message is told.

    >>> refusal_of(encoded(Refused("job", "a message is of another job")))
    Refused('a message is of another job')
    """
    return np.frombuffer(f"{error.reason}\n{error}".encode(), np.uint8)


def refusal_of(data: np.ndarray) -> Refused:
    """The refusal in bytes that `encoded` made."""
    reason, _, text = data.tobytes().decode().partition("\n")
    return Refused(reason, text)
