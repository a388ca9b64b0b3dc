"""Messages: a header of 56 bytes, and flat buffers that hold a tree.

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
====== ===== ===================================================================

Nothing in a message is executed or unpickled: a payload is numbers, whose layout both sides know beforehand. The
transports of all engines deliver bytes undamaged, in order and once, so that messages have neither checksums nor
numbers.
"""

import dataclasses
import hashlib
import operator
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from oxigrad.distributed.errors import Refused
from oxigrad.extend import crc32c

MAGIC = b"OXGD"
VERSION = 1
_FIELDS = struct.Struct("<4sHH16sIIQ8sQ")
HEADER_BYTES = _FIELDS.size
_NBYTES = operator.attrgetter("nbytes")


class Header(NamedTuple):
    """The header of a message. A sender gives tag, step and digest; `sealed` completes it.

    >>> sealed = Header(tag=3, step=7).sealed([np.ones(2)], rank=1)
    >>> sealed.payload_bytes, len(sealed.pack()), Header.unpack(sealed.pack()) == sealed
    (16, 56, True)
    """

    tag: int
    step: int = 0
    digest: bytes = bytes(8)
    job: bytes = bytes(16)
    generation: int = 0
    rank: int = 0
    payload_bytes: int = 0

    def sealed(
        self, bufs: Iterable[np.ndarray], *, job: bytes = bytes(16), generation: int = 0, rank: int = 0
    ) -> "Header":
        """The header of a message with this payload, from this sender."""
        return self._replace(job=job, generation=generation, rank=rank, payload_bytes=sum(map(_NBYTES, bufs)))

    def pack(self) -> bytes:
        """The header as bytes."""
        place = self.generation, self.rank
        return _FIELDS.pack(MAGIC, VERSION, self.tag, self.job, *place, self.step, self.digest, self.payload_bytes)

    @classmethod
    def unpack(cls, data: Any) -> Self:
        """The header in bytes. Raises `Refused` for a wrong length, magic or version."""
        data = bytes(data)
        if len(data) != HEADER_BYTES:
            raise Refused("length", f"a header has {len(data)} bytes: expected {HEADER_BYTES}")
        magic, version, tag, job, generation, rank, step, digest, payload = _FIELDS.unpack(data)
        if magic != MAGIC:
            raise Refused("magic", f"a message begins with {magic!r}: expected {MAGIC!r}")
        if version != VERSION:
            raise Refused("version", f"a message has the version {version} of the protocol: expected {VERSION}")
        return cls(tag, step, digest, job, generation, rank, payload)


def scatter(payload: np.ndarray, targets: Sequence[np.ndarray]) -> None:
    """Copies bytes into buffers, one after the other. Raises `Refused` for another total length."""
    if payload.nbytes != (expected := sum(map(_NBYTES, targets))):
        raise Refused("length", f"a message has {payload.nbytes} bytes of payload: expected {expected}")
    at = 0
    for target in targets:
        target.reshape(-1).view(np.uint8)[:] = payload[at : at + target.nbytes]
        at += target.nbytes


def checksum(bufs: Iterable[np.ndarray]) -> int:
    """The CRC-32C of the bytes of buffers, as of one sequence."""
    crc = 0
    for buffer in bufs:
        crc = crc32c(buffer.reshape(-1).view(np.uint8), crc)
    return crc


def size_of(bufs: Iterable[np.ndarray]) -> int:
    """The number of bytes of buffers together."""
    return sum(map(_NBYTES, bufs))


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
    """The dtype in native byte order, in which workers exchange arrays. Digests of a `Layout` ignore the order."""
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
        return [*map(np.empty, self.sizes, self.dtypes)]

    def pack(self, arrays: Mapping[str, np.ndarray], out: list[np.ndarray] | None = None) -> list[np.ndarray]:
        """The arrays in flat buffers: in ``out``, if given.

        A contiguous array that fills a buffer alone is not copied otherwise.
        """
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
        views: dict[str, np.ndarray] = {}
        for entry in self.entries:
            views[entry.path] = buffers[entry.buffer][entry.start : entry.start + entry.size].reshape(entry.shape)
        return views
