"""The envelope of a collective operation: workers exchange it before the operation, so that all call the same one."""

import hashlib
import struct
from collections.abc import Sequence

import numpy as np

from oxigrad.distributed.communicator import Buffer
from oxigrad.distributed.errors import Refused

# The number of the call, the bytes of the buffers, and a digest of the operation and the layout.
_FORMAT = struct.Struct("<QQ16s")
#: The bytes of an envelope.
BYTES = _FORMAT.size


class Envelope:
    """The envelope of the call ``number`` of the operation ``kind`` on these buffers; ``detail`` are its other arguments.

    With ``any_length``, the lengths of the buffers may differ between workers.
    """

    def __init__(self, number: int, kind: str, bufs: Sequence[Buffer], detail: str, *, any_length: bool) -> None:
        layout = "" if any_length else " ".join(f"{buffer.dtype.str}{len(buffer)}" for buffer in bufs)
        self._kind, self._number = kind, number
        self._digest = hashlib.sha256(f"{kind} {detail} {layout}".encode()).digest()[:16]
        self._nbytes = sum(buffer.nbytes for buffer in bufs)

    def packed(self) -> np.ndarray:
        """The envelope as a writable array of `BYTES` bytes."""
        return np.frombuffer(_FORMAT.pack(self._number, self._nbytes, self._digest), np.uint8).copy()

    def check(self, rows: np.ndarray) -> list[int]:
        """The bytes of the buffers by rank, of the envelopes of all workers in the order of rank.

        Raises `Refused` where a worker calls another operation, or one on buffers of another layout.
        """
        envelopes = list(_FORMAT.iter_unpack(rows.tobytes()))
        for rank, (number, size, digest) in enumerate(envelopes):
            if (number, digest) != (self._number, self._digest):
                raise Refused(
                    "collective",
                    f"{self._kind}: rank {rank} calls another operation, or one on buffers of another layout ({size} bytes, "
                    f"{self._nbytes} here): expected the same operation, model and configuration on every worker",
                )
        return [size for _, size, _ in envelopes]
