"""Writing back the changed pages of a mapped file while a step changes them.

The system writes changed pages of a mapping when it likes, and a control group that is full of them may be ended rather than wait. So a
thread asks the disk for them during steps over files that memory cannot hold.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path

#: The part of the memory limit that a file may take before its pages are written back during steps.
SHARE = 0.25
_GROUPS = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def writing_back(file: int, size: int, name: str) -> Iterator[None]:
    """A block that changes pages of a mapped file of ``size`` bytes, by its descriptor, and whose pages are written meanwhile.

    A file that is small beside `memory_limit` is left to the system. Raises `OSError`, with ``name``, after the block where the disk
    fails.
    """
    if not is_large(size):
        yield
        return
    ended, errors = threading.Event(), list[OSError]()
    thread = threading.Thread(target=_write_back, args=(file, ended, errors), name="oxigrad write-back", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if errors:
        raise OSError(errors[0].errno, f"{name}: {os.strerror(errors[0].errno or 0)}") from errors[0]


def _write_back(file: int, ended: threading.Event, errors: list[OSError]) -> None:
    while not ended.is_set():
        try:
            write_pages(file)
        except OSError as error:
            errors.append(error)
            return
        ended.wait(0.001)


def write_pages(file: int) -> None:
    """Writes all changed pages of a file, by its descriptor, to the disk."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(file)


def is_large(size: int) -> bool:
    """Whether a file of ``size`` bytes is large beside `memory_limit`."""
    return size > SHARE * memory_limit()


def memory_limit() -> float:
    """The bytes that this process may have in memory, files included: those of the machine, or of its control groups."""
    try:
        limits = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    except (AttributeError, OSError, ValueError):
        return float("inf")  # A system that does not say.
    return min([*limits, *_limits_of_groups()])


def _limits_of_groups() -> Iterator[float]:
    """The limits of the control groups of this process, of both versions."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (_GROUPS / "memory", "memory.limit_in_bytes") if controllers else (_GROUPS, "memory.max")
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            with contextlib.suppress(OSError, ValueError):
                yield float((folder / name).read_text())
            if folder == root:
                break


def release_free_memory() -> None:
    """Gives freed memory back to the system, where the allocator of the C library keeps it between allocations, as that of glibc does."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
