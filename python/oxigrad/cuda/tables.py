"""The structures that kernels read: leaves, tasks and the argument of a launch, as bytes.

The doc comment of ``rust/core/src/kernel/cuda/mod.rs`` defines them. A table lies in device memory; values that change
from step to step are in the argument of the launch.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Elements of a chunk, which one block of an update works on.
CHUNK = 4096
# Numbers in the argument of a launch.
MOST_NUMBERS = 256
_LAUNCH = struct.Struct(f"<9Q3Q{MOST_NUMBERS}d")
_HEAD = struct.Struct("<12Q")
#: The fields of ``OxLeaf`` before its pointers.
LEAF = np.dtype(
    [
        *((name, "<u8") for name in ("length", "position")),
        *((name, "<u4") for name in ("set", "row", "first_chunk", "term")),
    ]
)
#: The number of fields of eight bytes of a leaf before its pointers.
FIRST_POINTER = LEAF.itemsize // 8
CONTROL = struct.Struct("<Q2I")
TASK_SIZE = 8
LAUNCH_SIZE = _LAUNCH.size


class Launch(NamedTuple):
    """The fields of ``OxLaunch`` before its numbers: addresses, then counts."""

    leaves: int = 0
    tasks: int = 0
    scalars: int = 0
    values: int = 0
    partials: int = 0
    terms: int = 0
    totals: int = 0
    control: int = 0
    batches: int = 0
    batch_count: int = 0
    seed: int = 0
    step: int = 0

    def pack_into(self, to: memoryview, numbers: Sequence[float]) -> None:
        """Writes the argument of a launch with these numbers."""
        _HEAD.pack_into(to, 0, *self)
        struct.pack_into(f"<{len(numbers)}d", to, _HEAD.size, *numbers)


def leaf_table(fields: Sequence[tuple[int, ...]], pointers: Sequence[Sequence[int]]) -> np.ndarray:
    """The table of leaves, one row each: the fields of `LEAF`, then the addresses of arrays, scales and numbers."""
    heads = np.array(fields, LEAF).view(np.uint64).reshape(len(fields), FIRST_POINTER)
    return np.hstack([heads, np.array(pointers, np.uint64)])


def chunks(length: int) -> int:
    """The number of chunks of a leaf."""
    return -(-length // CHUNK)


def task_bytes(lengths: Sequence[int]) -> bytes:
    """The tasks of leaves of these lengths: pairs of leaf number and chunk number."""
    counts = np.array([chunks(length) for length in lengths], np.int64)
    tasks = np.empty((int(counts.sum()), 2), np.uint32)
    tasks[:, 0] = np.repeat(np.arange(len(lengths)), counts)
    tasks[:, 1] = np.arange(len(tasks)) - np.repeat(np.cumsum(counts) - counts, counts)
    return tasks.tobytes()


def batch_bytes(ends: Sequence[int]) -> bytes:
    """The ends of batches among the terms."""
    return np.array(ends, np.uint32).tobytes()
