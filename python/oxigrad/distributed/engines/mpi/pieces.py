"""Large payloads in pieces: the receiver has the first ones while the sender copies the next, and checks each while it is in the cache.

After the last piece comes the checksum of the header, which the sender does not know before. A receiver depends on its sender until then: it
keeps what it has of a payload whose sender pauses, and receives other messages meanwhile.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oxigrad._core import crc32c
from oxigrad.distributed.communicator import Buffer
from oxigrad.distributed.engines.base import Arrival
from oxigrad.distributed.errors import Refused
from oxigrad.distributed.messages.message import CHECKSUM_BYTES, copied, in_pieces, scatter, size_of

PIECE = 1 << 20
"""Bytes of a piece, less than a second-level cache has; a payload up to this travels whole."""

PAUSE = 0.2
"""Seconds without a piece after which a receiver goes on with other messages."""


@dataclasses.dataclass(eq=False)
class Announced(Arrival):
    """A message whose payload may follow its header: None before it comes, then a matched message of MPI or its `Incoming` pieces."""

    #: The bytes of a payload that follows.
    nbytes: int = 0
    #: The checksum of a payload that came in pieces.
    checksum: int | None = None


class Incoming:
    """A payload of ``nbytes`` whose ``first`` piece has come. ``next_one`` returns the next one, or None before it has come; ``transfer`` receives it.

    A piece is a matched message of MPI and its number of bytes.
    """

    def __init__(
        self,
        nbytes: int,
        first: tuple[Any, int],
        next_one: Callable[[], tuple[Any, int] | None],
        transfer: Callable[[Any, np.ndarray], None],
    ) -> None:
        self._nbytes, self._next_one, self._transfer = nbytes, next_one, transfer
        self._piece: tuple[Any, int] | None = first
        self._bufs: Sequence[np.ndarray] = ()
        self._memory: Iterator[list[np.ndarray]] = iter(())
        self._checksum = 0
        #: The bytes that have come, and memory of the engine for them where the receiver's is in use for other messages.
        self.received: int = 0
        self.store: np.ndarray | None = None
        self._is_over = False

    def fill(self, bufs: Sequence[Buffer]) -> None:
        """Receives the payload into these buffers, of as many bytes."""
        self._bufs, self._memory = bufs, in_pieces(bufs, PIECE)

    def keep(self) -> None:
        """Moves what has come out of the receiver's buffers, into which another message may be received."""
        store, at = np.empty(self._nbytes, np.uint8), 0
        for parts in in_pieces(self._bufs, PIECE):
            if at < self.received:
                copied(parts, store[at : at + size_of(parts)])
                at += size_of(parts)
        self.store, self._bufs = store, ()
        self._memory = in_pieces([store[at:]], PIECE)

    def drop(self) -> None:
        """Receives what is left of the payload into memory that nobody reads."""
        scratch = np.empty(min(PIECE, self._nbytes), np.uint8)
        starts = range(self.received, self._nbytes, PIECE)
        self._bufs, self._memory = (), ([scratch[: self._nbytes - start]] for start in starts)

    def progress(self, arrival: Announced) -> bool:
        """Receives the pieces that have come; returns whether those were the last, which completes header and checksum of the message.

        Raises `Refused` for a piece of another length.
        """
        while not self._is_over and (piece := self._piece or self._next_one()) is not None:
            self._piece = None
            self._take(arrival, *piece)
        return self._is_over

    def _take(self, arrival: Announced, matched: Any, count: int) -> None:
        parts = next(self._memory, None)
        expected = CHECKSUM_BYTES if parts is None else size_of(parts)
        is_direct = parts is not None and len(parts) == 1 and count == expected
        into = parts[0] if is_direct and parts else np.empty(count, np.uint8)
        self._transfer(matched, into)
        if count != expected:
            self._is_over = True
            raise Refused("length", f"a piece of a message has {count} bytes: expected {expected}")
        if parts is None:
            self._is_over = True
            arrival.header = arrival.header[:-CHECKSUM_BYTES] + into.tobytes()
            arrival.checksum = self._checksum
            return
        self._checksum = crc32c(into, self._checksum)
        self.received += count
        if not is_direct:
            scatter([into], parts)
