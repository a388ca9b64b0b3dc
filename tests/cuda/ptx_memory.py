"""Memory that kernels run on: registered buffers, and the shared and local memory of a launch.

Every access is checked: its alignment, its bounds against the buffers, writes to read-only ones, two lanes that write one address in
one instruction, and accesses of different threads to one address that no barrier orders.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from ptx_values import PtxError

GLOBAL_BASE = 0x7F00_0000_0000
_REDZONE = 256
# An access is identified by the block, the number of barriers before it, and the thread; 0 is none, and these many threads are "several".
_EPOCH, _BLOCK, _SEVERAL = np.int64(20), np.int64(40), np.int64((1 << 20) - 1)
_EVERYONE = np.int64(-1)


@dataclass(frozen=True)
class Buffer:
    """An array in global memory: its address, and a view of its content."""

    name: str
    address: int
    array: Any


class Memory:
    """Global memory: buffers with forbidden zones between them."""

    def __init__(self, capacity: int = 1 << 22) -> None:
        self._bytes = np.zeros(capacity, np.uint8)
        self._owner = np.zeros(capacity, np.int32)
        self._buffers: list[tuple[Buffer, bool]] = []
        self._used = _REDZONE
        self.accesses = Accesses(capacity)

    def put(self, array: Any, name: str = "", *, offset: int = 0, writable: bool = True) -> Buffer:
        """Copies an array into a new buffer, whose address is a multiple of 256, plus ``offset`` bytes."""
        array = np.asarray(array)
        start = self._used + offset
        end = start + array.nbytes
        self._used = (end + 2 * _REDZONE - 1) // _REDZONE * _REDZONE
        if self._used > self._bytes.size:
            raise PtxError(f"the memory of {self._bytes.size} bytes is full")
        self._bytes[start:end] = np.frombuffer(array.tobytes(), np.uint8)
        view = self._bytes[start:end].view(array.dtype).reshape(array.shape)
        buffer = Buffer(name or f"buffer {len(self._buffers)}", GLOBAL_BASE + start, view)
        self._buffers.append((buffer, writable))
        self._owner[start:end] = len(self._buffers)
        return buffer

    def begin(self) -> None:
        """Forgets the accesses of earlier launches."""
        self.accesses.forget(slice(None, self._used))

    def read(self, lanes: Any, addresses: Any, size: int, codes: Any, *, is_constant: bool) -> Any:
        """Rows of ``size`` bytes, by lane. Constant memory must not be written by the launch."""
        at, _ = self._checked(lanes, addresses, size)
        if is_constant and self.accesses.written(at, size).any():
            raise PtxError("memory that the kernel writes is read as constant (.nc)")
        self.accesses.read(lanes, at, size, codes)
        return self._bytes.reshape(-1, size)[at // size]

    def write(self, lanes: Any, addresses: Any, rows: Any, codes: Any) -> None:
        """Writes rows of bytes, by lane."""
        size = rows.shape[1]
        at, owners = self._checked(lanes, addresses, size)
        for owner in np.unique(owners):
            buffer, writable = self._buffers[owner - 1]
            if not writable:
                raise PtxError(f"write to {buffer.name}, which is read-only")
        self.accesses.write(lanes, at, size, codes)
        self._bytes.reshape(-1, size)[at // size] = rows

    def _checked(self, lanes: Any, addresses: Any, size: int) -> tuple[Any, Any]:
        """The places of accesses within memory, and the buffers there."""
        check_alignment(lanes, addresses, size)
        at = (addresses - np.uint64(GLOBAL_BASE)).view(np.int64)
        inside = (at >= 0) & (at + size <= self._used)
        first = np.where(inside, self._owner[np.where(inside, at, 0)], 0)
        last = np.where(inside, self._owner[np.where(inside, at + (size - 1), 0)], 0)
        wrong = np.flatnonzero((first == 0) | (first != last))
        if wrong.size:
            lane, address = int(lanes[wrong[0]]), int(addresses[wrong[0]])
            raise PtxError(f"lane {lane} accesses {size} bytes at {address:#x}: {self._nearest(address)}")
        return at, first

    def _nearest(self, address: int) -> str:
        if not self._buffers:
            return "there are no buffers"
        buffer = min((buffer for buffer, _ in self._buffers), key=lambda each: abs(each.address - address))
        return f"byte {address - buffer.address} of {buffer.name}, which has {buffer.array.nbytes} bytes"


class Scratch:
    """Memory that each block (shared) or each lane (local) has a copy of."""

    def __init__(self, kind: str, size: int, copies: int) -> None:
        self.kind = kind
        self.size = size
        self._row = (size + 15) // 16 * 16
        self._bytes = np.full(copies * self._row, 0xA5, np.uint8)
        self.accesses = Accesses(self._bytes.size)

    def read(self, lanes: Any, addresses: Any, size: int, codes: Any, copies: Any) -> Any:
        """Rows of ``size`` bytes, by lane, from the copies of the lanes."""
        at = self._checked(lanes, addresses, size, copies)
        if not self.accesses.written(at, size).all():
            raise PtxError(f"{self.kind} memory is read before it is written")
        self.accesses.read(lanes, at, size, codes)
        return self._bytes.reshape(-1, size)[at // size]

    def write(self, lanes: Any, addresses: Any, rows: Any, codes: Any, copies: Any) -> None:
        """Writes rows of bytes, by lane, to the copies of the lanes."""
        size = rows.shape[1]
        at = self._checked(lanes, addresses, size, copies)
        self.accesses.write(lanes, at, size, codes)
        self._bytes.reshape(-1, size)[at // size] = rows

    def _checked(self, lanes: Any, addresses: Any, size: int, copies: Any) -> Any:
        check_alignment(lanes, addresses, size)
        at = addresses.view(np.int64)
        wrong = np.flatnonzero((at < 0) | (at + size > self.size))
        if wrong.size:
            place = f"byte {int(at[wrong[0]])} of {self.size}"
            raise PtxError(f"lane {int(lanes[wrong[0]])} accesses {size} bytes of {self.kind} memory at {place}")
        return at + copies * self._row


def check_alignment(lanes: Any, addresses: Any, size: int) -> None:
    """An access must lie at a multiple of its size."""
    wrong = np.flatnonzero(addresses & np.uint64(size - 1))
    if wrong.size:
        address = int(addresses[wrong[0]])
        raise PtxError(f"lane {int(lanes[wrong[0]])} accesses {size} bytes at {address:#x}, which is not aligned")


class Accesses:
    """The last write and the last reads of each byte, to find accesses that nothing orders.

    Two accesses are ordered if they are of one thread, or of one block with a barrier between them.
    """

    def __init__(self, capacity: int) -> None:
        self._writer = np.zeros(capacity, np.int64)
        self._reader = np.zeros(capacity, np.int64)

    @staticmethod
    def codes(blocks: Any, epochs: Any, threads: Any) -> Any:
        """Numbers that identify the accesses of threads between two barriers."""
        return (blocks << _BLOCK) | (epochs << _EPOCH) | (threads + 1)

    def forget(self, part: slice) -> None:
        """Takes memory for neither read nor written."""
        self._writer[part] = 0
        self._reader[part] = 0

    def written(self, at: Any, size: int) -> Any:
        """Whether each byte of each access was written."""
        return self._writer.reshape(-1, size)[at // size] != 0

    def read(self, lanes: Any, at: Any, size: int, codes: Any) -> None:
        rows, mine = at // size, codes[:, None]
        self._refuse(lanes, self._writer.reshape(-1, size)[rows], mine, "reads", "wrote")
        readers = self._reader.reshape(-1, size)
        before = readers[rows]
        several = np.where((before >> _BLOCK) != (mine >> _BLOCK), _EVERYONE, mine | _SEVERAL)
        readers[rows] = np.where(_unordered(before, mine), several, mine)
        # Of lanes that read one address in this instruction, the last was noted.
        others = readers[rows]
        several = np.where((others >> _BLOCK) != (mine >> _BLOCK), _EVERYONE, others | _SEVERAL)
        changed = others != mine
        if changed.any():
            readers[rows] = np.where(changed, several, others)

    def write(self, lanes: Any, at: Any, size: int, codes: Any) -> None:
        rows, mine = at // size, codes[:, None]
        writers = self._writer.reshape(-1, size)
        self._refuse(lanes, writers[rows], mine, "writes", "wrote")
        self._refuse(lanes, self._reader.reshape(-1, size)[rows], mine, "writes", "read")
        writers[rows] = mine
        twice = np.flatnonzero((writers[rows] != mine).any(axis=1))
        if twice.size:
            raise PtxError(f"lane {int(lanes[twice[0]])} and another write one address in one instruction")

    @staticmethod
    def _refuse(lanes: Any, before: Any, mine: Any, verb: str, earlier: str) -> None:
        wrong = np.flatnonzero(_unordered(before, mine).any(axis=1))
        if wrong.size:
            lane = int(lanes[wrong[0]])
            raise PtxError(f"lane {lane} {verb} what another thread {earlier}, with no barrier between")


def _unordered(before: Any, mine: Any) -> Any:
    """Whether accesses were made that nothing orders before these."""
    same_section = (before >> _EPOCH) == (mine >> _EPOCH)
    other_block = (before >> _BLOCK) != (mine >> _BLOCK)
    return (before != 0) & (before != mine) & (same_section | other_block)
