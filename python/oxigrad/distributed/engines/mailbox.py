"""Mailboxes: the messages that have come for a worker, until it receives them."""

from collections import deque

import numpy as np

from oxigrad.distributed.messages.message import Address


class Mailbox:
    """Messages of one receiver, each a header and its payload in one array of bytes, in the order in which they came.

    They are sorted by the tag and the sender in their headers, and checked by the receiver alone. It is guarded by its owner's lock.
    """

    def __init__(self) -> None:
        self._messages: dict[int, deque[np.ndarray]] = {}

    def put(self, message: np.ndarray) -> None:
        """Adds a message."""
        self._messages.setdefault(Address.of(message).tag, deque()).append(message)

    def take(self, tag: int, source: int | None) -> np.ndarray | None:
        """Removes and returns the first message with a tag, from any worker or from ``source``; None where there is none."""
        waiting = self._messages.get(tag, deque())
        for position, message in enumerate(waiting):
            if source is None or Address.of(message).rank == source:
                del waiting[position]
                return message
        return None

    def clear(self) -> None:
        """Drops all messages."""
        self._messages.clear()
