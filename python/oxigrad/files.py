"""Arrays by name in safetensors files, which are replaced whole or not at all.

Such a file is the length of a header, the header (JSON: for each name a dtype, a shape and where its bytes are) and the bytes
of all arrays, one after the other (https://github.com/huggingface/safetensors). Nothing in it is run, and no size in it is
believed before it is checked.
"""

import contextlib
import hashlib
import importlib
import io
import json
import math
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from oxigrad._core import StateError
from oxigrad.libraries import dtype_name, to_host

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

# What files and NumPy call a dtype.
_DTYPES = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "BOOL": "bool"}
_DTYPES |= {f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)} | {
    f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)
}
_CODES = {name: code for code, name in _DTYPES.items()}
_LONGEST_HEADER = 100_000_000
_BUFFERED = 1 << 20
# Where files cannot be locked, an unfinished one counts as left behind after this many seconds.
_OLD = 24 * 3600.0


def write(file: Any, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Writes arrays of any library, and text by name, to a file, in place of what is there.

    That stays as it is until all is written and on the disk: another file takes its place then, at once. What a process that
    was killed while it saved this file has left behind is removed. Raises `StateError` for a dtype that such a file cannot
    have, and `OSError` where it cannot be written.
    """
    for name, array in arrays.items():
        if dtype_name(array.dtype) not in _CODES:
            raise StateError(f"{name}: the dtype {array.dtype} cannot be saved: expected one of {[*_CODES]}")
    on_host = {name: _laid_out(array) for name, array in arrays.items()}
    # Those of the longest numbers first, so that all lie where they can be read.
    order = sorted(on_host, key=lambda name: -on_host[name].itemsize)
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        array, begin = on_host[name], end
        end += array.nbytes
        code = _CODES[dtype_name(array.dtype)]
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LONGEST_HEADER:
        raise OSError(f"{os.fspath(file)}: the names and the text take {len(text)} bytes: at most {_LONGEST_HEADER}")
    with _replacing(file) as opened:
        opened.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            opened.write(on_host[name].reshape(-1).view(np.uint8).data)


def _laid_out(array: Any) -> np.ndarray:
    """The array in host memory, its elements in order, their bytes the least significant first."""
    found = np.asarray(to_host(array), order="C")
    return found if found.dtype.isnative and _IS_LITTLE else found.astype(found.dtype.newbyteorder("<"))


_IS_LITTLE = np.little_endian


def read(file: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the text by name that are in a file: parts of one block of memory.

    Raises `StateError` where it is no such file or is damaged, and `OSError` where it cannot be read.
    """
    path = os.fspath(file)
    with open(path, "rb", buffering=0) as opened:
        try:
            header, size = _read_header(opened)
            metadata = header.pop("__metadata__", {})
            if type(metadata) is not dict or not all(type(text) is str for text in metadata.values()):
                raise ValueError("its metadata is no text by name")
            places = {name: _place(name, entry) for name, entry in header.items()}
            _check_places(places, size)
            content = np.empty(size, np.uint8)
            _read_into(opened, content)
            return {name: _array(content, *place) for name, place in places.items()}, metadata
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StateError(f"{path}: {error}") from error


# Where an array is: its dtype, its shape, and where its bytes begin and end.
_Place = tuple[np.dtype[Any], tuple[int, ...], int, int]


def _read_header(opened: io.FileIO) -> tuple[dict[str, Any], int]:
    """The header, and how many bytes come after it."""
    size = os.fstat(opened.fileno()).st_size
    length = int.from_bytes(opened.read(8), "little")
    if size < 8 or not 2 <= length <= min(size - 8, _LONGEST_HEADER):
        raise ValueError(f"it has {size} bytes, and says that {length} of them are the header, after the first 8")
    text = np.empty(length, np.uint8)
    _read_into(opened, text)
    try:
        header = json.loads(text.tobytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header cannot be read: {error}") from error
    if type(header) is not dict:
        raise ValueError(f"its header is {type(header).__name__}: expected a dict")
    return header, size - 8 - length


def _read_into(opened: io.FileIO, content: np.ndarray) -> None:
    rest = memoryview(content.data)
    while rest.nbytes:
        count = opened.readinto(rest)
        if not count:
            raise ValueError("it has ended too early")
        rest = rest[count:]


_KNOWN: dict[str, np.dtype[Any]] = {}


def _dtype(code: Any) -> np.dtype[Any]:
    if code not in _KNOWN:
        if code not in _DTYPES:
            raise ValueError(f"it has arrays of dtype {code}")
        if code == "BF16":
            importlib.import_module("ml_dtypes")  # tells NumPy the dtype
        native = np.dtype(_DTYPES[code])
        _KNOWN[code] = native if _IS_LITTLE else native.newbyteorder("<")
    return _KNOWN[code]


def _place(name: str, entry: Any) -> _Place:
    """Where an array is, as its entry in the header says it."""
    code, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    dtype = _dtype(code)
    if type(shape) is not list:
        raise ValueError(f"the array {name!r} has the shape {shape!r}")
    for extent in shape:
        if type(extent) is not int or not 0 <= extent < 2**63:
            raise ValueError(f"the array {name!r} has the shape {shape!r}")
    if type(begin) is not int or type(end) is not int or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"the array {name!r} of dtype {code} and shape {shape!r} is at {begin!r} to {end!r}")
    return dtype, tuple(shape), begin, end


def _check_places(places: Mapping[str, _Place], size: int) -> None:
    """That the arrays follow one another, from the first byte to the last."""
    last = 0
    for begin, end in sorted((begin, end) for _, _, begin, end in places.values()):
        if begin != last:
            raise ValueError(f"its arrays leave out bytes, or overlap, at {min(begin, last)}")
        last = end
    if last != size:
        raise ValueError(f"its arrays take {last} bytes, and there are {size}")


def _array(content: np.ndarray, dtype: np.dtype[Any], shape: tuple[int, ...], begin: int, end: int) -> np.ndarray:
    part = content[begin:end]
    if begin % dtype.itemsize:
        part = part.copy()
    return part.view(dtype).reshape(shape)


# --- replacing ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _replacing(file: Any) -> Iterator[BinaryIO]:
    """A new file, opened, which takes the place of ``file`` once the block is done, and is gone if it fails.

    It is locked for as long as it is written, so that another save of the same file tells it from one that was left behind.
    """
    target = os.path.realpath(os.fspath(file))
    folder, name = os.path.split(target)
    prefix = f".oxigrad-{hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()}-"
    _remove_stale(folder, prefix)
    temporary, opened = "", None
    try:
        while opened is None or not _is_ours(opened):
            if opened is not None:
                opened.close()
            temporary = os.path.join(folder, f"{prefix}{secrets.token_hex(8)}.tmp")
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)
            opened = os.fdopen(handle, "r+b", buffering=_BUFFERED)
        mode = _mode(opened, target)
        yield opened
        opened.flush()
        os.chmod(temporary, mode)
        os.fsync(opened.fileno())
        if fcntl is None:  # What is open cannot be renamed there.
            opened.close()
        os.replace(temporary, target)
    except BaseException:
        if opened is not None:
            _abandon(opened)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    opened.close()
    if os.name != "nt":  # there, a folder cannot be opened
        _sync(folder)


def _is_ours(opened: BinaryIO) -> bool:
    """Locks a new file; False where another save took it for one that was left behind, before it was locked."""
    if fcntl is None:
        return True
    with contextlib.suppress(OSError):  # Not every file system has locks.
        fcntl.flock(opened.fileno(), fcntl.LOCK_EX)
    return os.fstat(opened.fileno()).st_nlink > 0


def _abandon(opened: BinaryIO) -> None:
    """Closes a file, whether what is left of it can be written or not."""
    with contextlib.suppress(OSError):
        opened.close()


def _remove_stale(folder: str, prefix: str) -> None:
    """Removes the unfinished files of this prefix that nobody writes any more."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    _remove_if_stale(entry.path)


def _remove_if_stale(path: str) -> None:
    if fcntl is None:
        if time.time() - os.stat(path).st_mtime > _OLD:
            os.unlink(path)
        return
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:  # no locks here
            if time.time() - os.fstat(handle).st_mtime <= _OLD:
                return
        os.unlink(path)
    finally:
        os.close(handle)


def _mode(opened: BinaryIO, target: str) -> int:
    """The permissions of the file that is to be replaced, or those that a new one has."""
    with contextlib.suppress(FileNotFoundError):
        return os.stat(target).st_mode & 0o777
    return os.fstat(opened.fileno()).st_mode & 0o777


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
