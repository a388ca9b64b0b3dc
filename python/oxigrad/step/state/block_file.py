"""Reads and writes of long ranges of an open file, past the page cache where the system can."""

import errno
import mmap
import os
import weakref
from collections.abc import Callable, Sequence

# A call of `os.preadv` or `os.pwritev`.
Call = Callable[[int, Sequence[memoryview], int], int]
#: Ranges of so many bytes go past the page cache, but for the parts of pages at their ends.
LONG = 1 << 20


class BlockFile:
    """The file with this descriptor, which is mapped too; ``name`` is the file's in errors.

    Ranges of at least `LONG` bytes go past the page cache, where the file system can and keeps mappings coherent with
    them, and the memory is as far from the begin of a page as the range is.
    """

    def __init__(self, file: int, name: str) -> None:
        self._file, self._name = file, name
        self._direct: int | None = None
        if hasattr(os, "O_DIRECT"):
            try:
                direct = os.open(f"/proc/self/fd/{file}", os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
            except OSError:
                return  # A system without /proc, or a file system without such reads.
            weakref.finalize(self, os.close, direct)
            self._direct = direct if _is_coherent(file, direct) else None

    def read(self, start: int, memory: memoryview) -> None:
        """Reads the bytes from ``start`` on into the whole memory."""
        self._copy(os.preadv, start, memory)

    def write(self, start: int, memory: memoryview) -> None:
        """Writes the whole memory to the bytes from ``start`` on."""
        self._copy(os.pwritev, start, memory)

    def _copy(self, call: Call, start: int, memory: memoryview) -> None:
        first, last = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, (start + len(memory)) // mmap.PAGESIZE * mmap.PAGESIZE
        if self._direct is None or last - first < LONG:
            self._call(call, self._file, start, memory)
            return
        self._call(call, self._file, start, memory[: first - start])
        try:
            self._call(call, self._direct, first, memory[first - start : last - start])
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._direct = None  # The file system wants other blocks than pages.
            self._call(call, self._file, first, memory[first - start : last - start])
        self._call(call, self._file, last, memory[last - start :])

    def _call(self, call: Call, file: int, start: int, memory: memoryview) -> None:
        """Copies all bytes; a call may end before."""
        done = 0
        while done < len(memory):
            try:
                count = call(file, [memory[done:]], start + done)
            except OSError as error:
                raise OSError(error.errno, f"{self._name}: {os.strerror(error.errno or 0)}") from error
            if not count:
                raise OSError(errno.EIO, f"{self._name}: it ends before byte {start + len(memory):,}")
            done += count


def _is_coherent(file: int, direct: int) -> bool:
    """Whether mapped memory and direct reads and writes see one another, as on most file systems.

    It is tried on a page beyond the end, which is then that of before.
    """
    size, page = os.fstat(file).st_size, mmap.PAGESIZE
    start = -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
    first, second = b"\x5a" * page, b"\xa5" * page
    try:
        os.posix_fallocate(file, start, page)  # A mapped page that a full disk has no room for would end the process.
        with mmap.mmap(file, page, offset=start) as mapped, mmap.mmap(-1, page) as memory:
            mapped[:] = first
            os.preadv(direct, [memory], start)
            is_read = memory[:] == first
            memory[:] = second
            os.pwritev(direct, [memory], start)
            is_written = mapped[:] == second
            mapped[:] = first  # in pages that were mapped before the write
            os.preadv(direct, [memory], start)
            return is_read and is_written and memory[:] == first
    except OSError:
        return False
    finally:
        os.ftruncate(file, size)
