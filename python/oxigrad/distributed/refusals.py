"""The count of the messages that a worker refuses."""

import logging
from collections import Counter

from oxigrad.distributed.errors import Refused

__all__ = ["Refusals"]


_log = logging.getLogger("oxigrad.distributed")


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
            _log.warning("a message is refused: %s; further ones are counted under %r", error, error.reason)
