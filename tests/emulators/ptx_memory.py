"""Memory that kernels run on: registered buffers, and the shared and local memory of a launch.

Every access is checked: its alignment, its bounds against the buffers, writes to read-only ones, two lanes that write one address in
one instruction, and accesses of different threads to one address that no barrier orders.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from ptx_values import PtxError

_ALIGNMENT = 256
# An access is identified by the block, the number of barriers before it, and the thread; 0 is none, and these many threads are "several".
_EPOCH, _BLOCK, _SEVERAL = np.int64(20), np.int64(40), np.int64((1 << 20) - 1)
_EVERYONE = np.int64(-1)


@dataclass(frozen=True)
class Buffer:
    """A registered array: its address is that of its memory."""

    name: str
    array: Any
    writable: bool = True

    @property
    def address(self) -> int:
        return self.array.ctypes.data


class Memory:
    """Global memory: registered arrays, which a launch reads and writes."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []

    def register(self, array: Any, name: str = "", *, writable: bool = True) -> Buffer:
        """Lets kernels access a contiguous array."""
        if not array.flags.c_contiguous:
            raise PtxError(f"{name or 'an array'} is not contiguous")
        buffer = Buffer(name or f"buffer {len(self._buffers)}", array, writable)
        self._buffers.append(buffer)
        return buffer

    def put(self, array: Any, name: str = "", *, offset: int = 0, writable: bool = True) -> Buffer:
        """Registers a copy of an array, whose address is a multiple of 256, plus ``offset`` bytes."""
        array = np.asarray(array)
        space = np.zeros(array.nbytes + offset + _ALIGNMENT, np.uint8)
        start = -space.ctypes.data % _ALIGNMENT + offset
        copy = space[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        return self.register(copy, name, writable=writable)

    @contextmanager
    def launched(self, others: Iterable[Buffer] = ()) -> Iterator["Image"]:
        """The memory as a launch sees it, with buffers of the program; changes are written back at the end."""
        image = Image([buffer for buffer in (*self._buffers, *others) if buffer.array.nbytes])
        yield image
        image.write_back()


class Image:
    """Copies of all buffers in one array of bytes, and the accesses of one launch."""

    def __init__(self, buffers: list[Buffer]) -> None:
        self._buffers = buffers = sorted(buffers, key=lambda each: each.address)
        self._starts = np.array([each.address for each in buffers], np.uint64)
        self._ends = self._starts + np.array([each.array.nbytes for each in buffers], np.uint64)
        if (self._starts[1:] < self._ends[:-1]).any():
            raise PtxError("two buffers share memory")
        self._writable = np.array([each.writable for each in buffers], bool)
        # The place of a buffer differs from its address by a multiple of the alignment.
        shifts, used = [], 0
        for buffer in buffers:
            at = used + buffer.address % _ALIGNMENT
            shifts.append(at - buffer.address)
            used = -(-(at + buffer.array.nbytes) // _ALIGNMENT) * _ALIGNMENT
        self._shifts = np.array(shifts, np.int64)
        self._bytes = np.zeros(used, np.uint8)
        for part, buffer in self._parts():
            part[:] = np.frombuffer(buffer.array.tobytes(), np.uint8)
        self.accesses = Accesses(used)

    def _parts(self) -> Iterator[tuple[Any, Buffer]]:
        for shift, buffer in zip(self._shifts, self._buffers, strict=True):
            yield self._bytes[buffer.address + shift :][: buffer.array.nbytes], buffer

    def write_back(self) -> None:
        """Copies what may have been written to the arrays."""
        for part, buffer in self._parts():
            if buffer.writable:
                buffer.array[...] = part.view(buffer.array.dtype).reshape(buffer.array.shape)

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
        at, numbers = self._checked(lanes, addresses, size)
        wrong = np.flatnonzero(~self._writable[numbers])
        if wrong.size:
            raise PtxError(f"write to {self._buffers[numbers[wrong[0]]].name}, which is read-only")
        self.accesses.write(lanes, at, size, codes)
        self._bytes.reshape(-1, size)[at // size] = rows

    def _checked(self, lanes: Any, addresses: Any, size: int) -> tuple[Any, Any]:
        """The places of accesses, and the numbers of the buffers there."""
        check_alignment(lanes, addresses, size)
        if not self._buffers:
            raise PtxError("an access to global memory, without any buffer")
        numbers = np.searchsorted(self._starts, addresses, side="right") - 1
        inside = (numbers >= 0) & (addresses + np.uint64(size) <= self._ends[numbers])
        wrong = np.flatnonzero(~inside)
        if wrong.size:
            lane, address = int(lanes[wrong[0]]), int(addresses[wrong[0]])
            raise PtxError(f"lane {lane} accesses {size} bytes at {address:#x}: {self._nearest(address)}")
        return addresses.view(np.int64) + self._shifts[numbers], numbers

    def _nearest(self, address: int) -> str:
        buffer = min(
            self._buffers,
            key=lambda each: min(abs(each.address - address), abs(each.address + each.array.nbytes - address)),
        )
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

    def written(self, at: Any, size: int) -> Any:
        """Whether each byte of each access was written."""
        return self._writer.reshape(-1, size)[at // size] != 0

    def read(self, lanes: Any, at: Any, size: int, codes: Any) -> None:
        rows, mine = at // size, codes[:, None]
        self._refuse(lanes, self._writer.reshape(-1, size)[rows], mine, "reads", "wrote")
        readers = self._reader.reshape(-1, size)
        before = readers[rows]
        if before.any():
            several = np.where((before >> _BLOCK) != (mine >> _BLOCK), _EVERYONE, mine | _SEVERAL)
            readers[rows] = np.where(_unordered(before, mine), several, mine)
        else:
            readers[rows] = mine
        # Of lanes that read one address in this instruction, the last was noted.
        others = readers[rows]
        changed = others != mine
        if changed.any():
            several = np.where((others >> _BLOCK) != (mine >> _BLOCK), _EVERYONE, others | _SEVERAL)
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
        if not before.any():
            return
        wrong = np.flatnonzero(_unordered(before, mine).any(axis=1))
        if wrong.size:
            lane = int(lanes[wrong[0]])
            raise PtxError(f"lane {lane} {verb} what another thread {earlier}, with no barrier between")


def _unordered(before: Any, mine: Any) -> Any:
    """Whether accesses were made that nothing orders before these."""
    same_section = (before >> _EPOCH) == (mine >> _EPOCH)
    other_block = (before >> _BLOCK) != (mine >> _BLOCK)
    return (before != 0) & (before != mine) & (same_section | other_block)
