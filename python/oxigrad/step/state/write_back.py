"""Writing back the changed pages of a mapped file while a step changes them.

The system writes changed pages of a mapping when it likes, and a control group that is full of them may be ended rather
than wait. So a thread asks the disk for them during steps over files that memory cannot hold.
"""

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path

from oxigrad.ops.backends.memory.worker import Future, Worker

#: The part of the memory limit that a file may take before its pages are written back during steps, and the bytes below
#: which none are.
SHARE, LEAST = 0.25, 1 << 24
_GROUPS = Path("/sys/fs/cgroup")


class WriteBack:
    """The changed pages of a mapped file, by its descriptor; ``name`` is the file's in errors."""

    def __init__(self, file: int, name: str) -> None:
        self._file, self._name = file, name
        self._is_in_block = False
        self._worker = Worker()
        self._writing: Future | None = None
        self._error: OSError | None = None

    @contextlib.contextmanager
    def block(self, size: int) -> Iterator[None]:
        """A block that changes ``size`` bytes of the file, which are written meanwhile if it is, or grows, large.

        Raises `OSError` after the block where the disk fails.
        """
        self._is_in_block = True
        try:
            self.grow(size)
            yield
        finally:
            self._is_in_block = False
            self._end()
        if (error := self._error) is not None:
            self._error = None
            raise OSError(error.errno, f"{self._name}: {os.strerror(error.errno or 0)}") from error

    @property
    def is_writing(self) -> bool:
        """Whether pages are written, in a block over a file that is large."""
        return self._writing is not None

    def grow(self, size: int) -> None:
        """Begins to write pages, within a block, once the file of ``size`` bytes is large."""
        if self._is_in_block and self._writing is None and is_large(size):
            writing = Future(self._write)
            self._worker.begin(writing)
            self._writing = writing

    def _end(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.join()

    def _write(self) -> None:
        synchronize = os.fdatasync if hasattr(os, "fdatasync") else os.fsync
        while True:  # once in a block that has ended already
            try:
                synchronize(self._file)
            except OSError as error:
                self._error = error
                return
            if not self._is_in_block:
                return
            time.sleep(0.001)


def is_large(size: int) -> bool:
    """Whether a file of ``size`` bytes is large beside `memory_limit`."""
    return size >= LEAST and size > SHARE * memory_limit()


def memory_limit() -> float:
    """The bytes that this process may have in memory, files included: the machine's, or its control groups'."""
    try:
        limits = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    except (AttributeError, OSError, ValueError):
        return float("inf")  # A system that does not say.
    root, group, is_first = memory_group()
    name = "memory.limit_in_bytes" if is_first else "memory.max"
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):
            limits.append(float((folder / name).read_text()))
        if folder == root:
            break
    return min(limits)


def memory_group() -> tuple[Path, Path, bool]:
    """The folders of the control groups of memory, and of this process's, and whether their version is 1."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    groups = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    for controllers, path in groups.items():
        if "memory" in controllers.split(","):
            return _GROUPS / "memory", _GROUPS / "memory" / path.lstrip("/"), True
    return _GROUPS, _GROUPS / groups.get("", "").lstrip("/"), False


def release_free_memory() -> None:
    """Gives freed memory back to the system, which the allocator of the C library, such as glibc's, may keep."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
