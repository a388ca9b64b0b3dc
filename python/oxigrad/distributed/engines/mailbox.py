"""Mailboxes: the messages that have come for a worker, until it receives them."""

from collections import deque
from typing import NamedTuple

import numpy as np

from oxigrad.distributed.errors import Refused
from oxigrad.distributed.messages.message import HEADER_BYTES, Header


class Message(NamedTuple):
    """A message that has come: its header, and all of its bytes, which begin with it."""

    header: Header
    data: np.ndarray


class Mailbox:
    """The messages to one worker, by tag and in the order in which they came. It takes messages of its job alone.

    The sender of a message shows the identity of the job, the generation and its rank, which is below ``size``. The
    owner of the mailbox holds its lock.
    """

    def __init__(self, job: bytes, generation: int, size: int) -> None:
        self._job, self._generation, self._size = job, generation, size
        self._messages: dict[int, deque[Message]] = {}

    def put(self, data: np.ndarray, source: int | None = None) -> None:
        """Adds a message, which the rank ``source`` has sent where the engine knows it.

        Raises `Refused` for a message of a stranger.
        """
        header = Header.unpack(data[:HEADER_BYTES])
        if header.job != self._job:
            raise Refused("job", f"a message is of the job {header.job.hex()}: expected {self._job.hex()}")
        if header.generation != self._generation:
            text = f"a message is of the generation {header.generation}: expected {self._generation}"
            raise Refused("generation", text)
        if header.rank >= self._size:
            raise Refused("rank", f"a message is from the rank {header.rank}: expected less than {self._size}")
        if source not in (None, header.rank):
            raise Refused("rank", f"a message is of the rank {header.rank}: expected {source}, its sender")
        if header.payload_bytes != (count := data.nbytes - HEADER_BYTES):
            raise Refused("length", f"a message has {count} bytes of payload: expected {header.payload_bytes}")
        self._messages.setdefault(header.tag, deque()).append(Message(header, data))

    def take(self, tag: int, source: int | None) -> Message | None:
        """Removes and returns the first message with a tag, from any worker or from ``source``.

        None where there is none.
        """
        waiting = self._messages.get(tag, deque())
        for position, message in enumerate(waiting):
            if source in (None, message.header.rank):
                del waiting[position]
                return message
        return None

    def clear(self) -> None:
        """Drops all messages."""
        self._messages.clear()
