"""Messages: a header of 64 bytes, and flat buffers that hold a tree.

The header is little-endian, without padding:

====== ===== ===================================================================
offset bytes field
====== ===== ===================================================================
0      4     magic, ``OXGD``
4      2     version of the protocol
6      2     tag
8      16    job
24     4     generation
28     4     rank of the sender
32     8     step
40     8     digest of the tree: of key paths, shapes and dtypes, and of what else
             both sides agree on, as the identity of the training
48     8     bytes of payload
56     4     sequence number among the messages of one sender to one receiver
60     4     CRC-32C of the bytes before it and of the CRC-32C of the payload
====== ===== ===================================================================

Nothing in a message is executed or unpickled: a payload is numbers, whose layout both sides know beforehand.
"""

import dataclasses
import functools
import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from oxigrad._core import copied_crc32c, crc32c
from oxigrad.distributed.errors import Refused

MAGIC = b"OXGD"
VERSION = 1
HEADER_BYTES = 64
CHECKSUM_BYTES = 4
"""Bytes at the end of a header, of its checksum."""
_FIELDS = struct.Struct("<4sHH16sIIQ8sQI")
_ADDRESS = struct.Struct("<6xH20xI24xI4x")


@dataclasses.dataclass(frozen=True)
class Header:
    """The header of a message. A sender gives tag, step and digest; `sealed` completes it.

    >>> sealed = Header(tag=3, step=7).sealed([np.ones(2)], rank=1)
    >>> sealed.payload_bytes, len(sealed.pack()), Header.unpack(sealed.pack()) == sealed
    (16, 64, True)
    """

    tag: int
    step: int = 0
    digest: bytes = bytes(8)
    job: bytes = bytes(16)
    generation: int = 0
    rank: int = 0
    sequence: int = 0
    payload_bytes: int = 0
    checksum: int = 0

    def sealed(
        self,
        bufs: Iterable[np.ndarray],
        *,
        job: bytes = bytes(16),
        generation: int = 0,
        rank: int = 0,
        sequence: int = 0,
        payload_checksum: int | None = None,
    ) -> "Header":
        """The header of a message with this payload, from this sender; the `checksum` of the payload may be known."""
        bufs = list(bufs)
        payload_bytes = size_of(bufs)
        complete = dataclasses.replace(
            self,
            job=job,
            generation=generation,
            rank=rank,
            sequence=sequence & 0xFFFFFFFF,
            payload_bytes=payload_bytes,
        )
        crc = checksum(bufs) if payload_checksum is None else payload_checksum
        return dataclasses.replace(complete, checksum=complete.checksum_with(crc))

    def pack(self) -> bytes:
        """The header as 64 bytes."""
        return self._fields() + self.checksum.to_bytes(4, "little")

    @classmethod
    def unpack(cls, data: Any) -> Self:
        """The header in 64 bytes. Raises `Refused` for a wrong length, magic or version."""
        data = bytes(data)
        if len(data) != HEADER_BYTES:
            raise Refused("length", f"a header has {len(data)} bytes: expected {HEADER_BYTES}")
        magic, version, tag, job, generation, rank, step, digest, payload, sequence = _FIELDS.unpack(data[:-4])
        if magic != MAGIC:
            raise Refused("magic", f"a message begins with {magic!r}: expected {MAGIC!r}")
        if version != VERSION:
            raise Refused("version", f"a message has the version {version} of the protocol: expected {VERSION}")
        return cls(tag, step, digest, job, generation, rank, sequence, payload, int.from_bytes(data[-4:], "little"))

    def checksum_with(self, payload_checksum: int) -> int:
        """The checksum of the other fields and of a payload, given by its own."""
        return crc32c(payload_checksum.to_bytes(4, "little"), crc32c(self._fields()))

    def _fields(self) -> bytes:
        return _FIELDS.pack(
            MAGIC,
            VERSION,
            self.tag,
            self.job,
            self.generation,
            self.rank,
            self.step,
            self.digest,
            self.payload_bytes,
            self.sequence,
        )


class Address(NamedTuple):
    """The fields of a header by which a message is sorted before it is checked.

    >>> Address.of(Header(tag=3).sealed([], rank=1, sequence=5).pack())
    Address(tag=3, rank=1, sequence=5)
    """

    tag: int
    rank: int
    sequence: int

    @classmethod
    def of(cls, message: Any) -> Self:
        """The fields in bytes that begin with a header, which may be malformed: missing bytes count as zeros."""
        return cls(*_ADDRESS.unpack(bytes(message[:HEADER_BYTES]).ljust(HEADER_BYTES, b"\0")))


class Guard:
    """Checks received messages: of the job, the generation and a known rank, complete, intact and new.

    ``size`` is the number of workers. A sender's sequence numbers must grow within each tag, so that a replayed message is
    refused, and one that a later message overtook is too.
    """

    job: bytes
    generation: int
    size: int

    def __init__(self, job: bytes, generation: int, size: int) -> None:
        self.job, self.generation, self.size = job, generation, size
        self._last: dict[tuple[int, int], int] = {}

    def check(
        self, header: Header, bufs: Sequence[np.ndarray] | None = None, payload_checksum: int | None = None
    ) -> None:
        """Raises `Refused` for a message that must not be used; ``bufs`` is its payload, None before it is received.

        The `checksum` of the payload may be known.
        """
        check_origin(header, self.job, self.generation, self.size)
        last = self._last.get((header.rank, header.tag), -1)
        if header.sequence <= last:
            raise Refused("sequence", f"message {header.sequence} of the rank {header.rank} came after message {last}")
        if bufs is None:
            return
        if (expected := size_of(bufs)) != header.payload_bytes:
            raise Refused("length", f"a message has {header.payload_bytes} bytes of payload: expected {expected}")
        crc = checksum(bufs) if payload_checksum is None else payload_checksum
        if header.checksum_with(crc) != header.checksum:
            raise Refused("checksum", f"a message of the rank {header.rank} is damaged: its checksum differs")
        self._last[header.rank, header.tag] = header.sequence

    def forget(self, rank: int) -> None:
        """Accepts any sequence numbers of a rank next, as that of a worker that was restarted."""
        for key in [key for key in self._last if key[0] == rank]:
            del self._last[key]


def check_origin(header: Header, job: bytes, generation: int, size: int) -> None:
    """Raises `Refused` for a message that is not of a worker of this job, this generation and a rank below ``size``."""
    if header.job != job:
        raise Refused("job", f"a message is of the job {header.job.hex()}: expected {job.hex()}")
    if header.generation != generation:
        raise Refused("generation", f"a message is of the generation {header.generation}: expected {generation}")
    if header.rank >= size:
        raise Refused("rank", f"a message is from the rank {header.rank}: expected less than {size}")


def scatter(sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> None:
    """Copies the bytes of buffers into others, which may be divided otherwise. Raises `Refused` for another total length."""
    nbytes, expected = size_of(sources), size_of(targets)
    if nbytes != expected:
        raise Refused("length", f"a message has {nbytes} bytes of payload: expected {expected}")
    parts, rest = (as_bytes(source) for source in sources if source.nbytes), np.empty(0, np.uint8)
    for target in targets:
        left = as_bytes(target)
        while left.nbytes:
            rest = rest if rest.nbytes else next(parts)
            count = min(left.nbytes, rest.nbytes)
            left[:count] = rest[:count]
            left, rest = left[count:], rest[count:]


def checksum(bufs: Iterable[np.ndarray]) -> int:
    """The CRC-32C of the bytes of buffers, as of one sequence."""
    return functools.reduce(lambda crc, buffer: crc32c(as_bytes(buffer), crc), bufs, 0)


def copied(bufs: Iterable[np.ndarray], into: np.ndarray, crc: int = 0) -> int:
    """Copies the bytes of buffers, one after the other, into bytes; returns their `checksum`, which takes no pass of its own.

    It continues ``crc``, that of the bytes before them.
    """
    at = 0
    for buffer in bufs:
        crc = copied_crc32c(as_bytes(buffer), into[at : at + buffer.nbytes], crc)
        at += buffer.nbytes
    return crc


def in_pieces(bufs: Iterable[np.ndarray], step: int) -> Iterator[list[np.ndarray]]:
    """The bytes of buffers in pieces of ``step`` bytes, of which the last one may have less: each is a list of parts of buffers.

    >>> [
    ...     [part.nbytes for part in piece]
    ...     for piece in in_pieces([np.zeros(3, np.uint8), np.zeros(6, np.uint8)], 4)
    ... ]
    [[3, 1], [4], [1]]
    """
    piece: list[np.ndarray] = []
    left = step
    for rest in map(as_bytes, bufs):
        while rest.nbytes:
            part, rest = rest[:left], rest[left:]  # noqa: PLW2901 - what is left of the buffer
            piece.append(part)
            left -= part.nbytes
            if not left:
                yield piece
                piece, left = [], step
    if piece:
        yield piece


def size_of(bufs: Iterable[np.ndarray]) -> int:
    """The number of bytes of buffers together."""
    return sum(buffer.nbytes for buffer in bufs)


def as_bytes(buffer: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array as bytes."""
    return buffer.reshape(-1).view(np.uint8)


@dataclasses.dataclass(frozen=True)
class LayoutEntry:
    """One array of a `Layout`: ``size`` elements of the flat buffer ``buffer``, from ``start``."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype
    buffer: int
    start: int
    size: int


def native(dtype: np.dtype) -> np.dtype:
    """The dtype in native byte order, in which workers exchange arrays: the digest of a `Layout` tells no byte orders apart."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


class Layout:
    """The layout of named arrays in flat buffers, one for each dtype, in the order of the names given.

    >>> layout = Layout({"w": np.ones((2, 2)), "b": np.zeros(2), "n": np.zeros(1, np.float32)})
    >>> buffers = layout.pack({"w": np.ones((2, 2)), "b": np.zeros(2), "n": np.zeros(1, np.float32)})
    >>> buffers
    [array([1., 1., 1., 1., 0., 0.]), array([0.], dtype=float32)]
    >>> layout.views(buffers)["w"]
    array([[1., 1.],
           [1., 1.]])
    """

    entries: tuple[LayoutEntry, ...]
    digest: bytes

    def __init__(self, arrays: Mapping[str, Any], extra: str = "") -> None:
        """``extra`` is any text that sender and receiver must agree on, such as the configuration of an optimizer."""
        entries: list[LayoutEntry] = []
        self.dtypes: list[np.dtype] = []
        self.sizes: list[int] = []
        for path, array in arrays.items():
            shape, dtype = tuple(map(int, array.shape)), native(np.dtype(array.dtype))
            if dtype not in self.dtypes:
                self.dtypes.append(dtype)
                self.sizes.append(0)
            at, size = self.dtypes.index(dtype), int(np.prod(shape, dtype=np.int64))
            entries.append(LayoutEntry(path, shape, dtype, at, self.sizes[at], size))
            self.sizes[at] += size
        self.entries = tuple(entries)
        text = "\n".join([*(f"{entry.path}\t{entry.shape}\t{entry.dtype.name}" for entry in entries), extra])
        #: Eight bytes that differ between trees of other key paths, shapes or dtypes.
        self.digest = hashlib.sha256(text.encode()).digest()[:8]

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        return sum(dtype.itemsize * size for dtype, size in zip(self.dtypes, self.sizes, strict=True))

    def empty(self) -> list[np.ndarray]:
        """New buffers, not initialized."""
        return [np.empty(size, dtype) for dtype, size in zip(self.dtypes, self.sizes, strict=True)]

    def pack(self, arrays: Mapping[str, np.ndarray], out: list[np.ndarray] | None = None) -> list[np.ndarray]:
        """The arrays in flat buffers: in ``out``, if given; a contiguous array that fills a buffer alone is not copied otherwise."""
        if out is None:
            if len(self.entries) == len(self.dtypes) and all(
                arrays[entry.path].flags.c_contiguous and arrays[entry.path].dtype == entry.dtype
                for entry in self.entries
            ):
                return [arrays[entry.path].reshape(-1) for entry in self.entries]
            out = self.empty()
        for entry in self.entries:
            out[entry.buffer][entry.start : entry.start + entry.size] = arrays[entry.path].reshape(-1)
        return out

    def views(self, buffers: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays in flat buffers by name, without copies."""
        return {
            entry.path: buffers[entry.buffer][entry.start : entry.start + entry.size].reshape(entry.shape)
            for entry in self.entries
        }
