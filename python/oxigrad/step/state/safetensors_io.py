"""Arrays by name in safetensors files, which are replaced whole or not at all.

The library safetensors writes and reads them, and checks headers. This module makes a save atomic: the existing file
stays until the new one is complete and on the disk, and the next save removes what a killed process left behind.
"""

import contextlib
import errno
import hashlib
import importlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.numpy import save, save_file

from oxigrad._core import StateError
from oxigrad.ops.backends import dtype_name, to_host

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

# The names of dtypes in files, and in NumPy.
_DTYPES = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "BOOL": "bool"}
_DTYPES |= {f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)} | {
    f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)
}
_NAMES = frozenset(_DTYPES.values())
# Seconds after which an unfinished save counts as stale, on file systems without locks on folders.
_OLD = 24 * 3600.0


def write(file: Any, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Writes arrays of any library, and text by name, to a file, which is replaced if it exists.

    A binary file object is written to as it is. The write to a path is atomic: the old file is replaced once the new
    one is complete and on the disk. Temporary files of killed processes that were saving this file are removed. Raises
    `StateError` for a dtype that the format lacks, and where there is something that is no regular file; `OSError`
    where the file cannot be written.
    """
    for name, array in arrays.items():
        if dtype_name(array.dtype) not in _NAMES:
            raise StateError(f"{name}: the dtype {array.dtype} cannot be saved: expected one of {[*_DTYPES.values()]}")
    on_host = {name: np.asarray(to_host(array), order="C") for name, array in arrays.items()}
    if hasattr(file, "write"):
        file.write(save(on_host, dict(metadata)))
        return
    with _replacing(file) as temporary:
        try:
            save_file(on_host, temporary, dict(metadata))
        except SafetensorError as error:
            raise OSError(f"{os.fspath(file)}: {error}") from error


def read(file: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the text by name that are in a file, or that a binary file object has from here on.

    Raises `StateError` for a file of another format or a damaged one, and for what is no regular file, such as a pipe;
    `OSError` where it cannot be read.
    """
    if hasattr(file, "read"):
        return parsed(file.read())
    path = _path(file)
    refuse_irregular(path, os.stat(path).st_mode)
    try:
        # Read rather than memory-mapped, so that later changes of the file do not affect the arrays.
        with safe_open(path, framework="np", backend="pread") as opened:
            codes = {opened.get_slice(name).get_dtype() for name in opened.offset_keys()}
            if unknown := sorted(codes - _DTYPES.keys()):
                raise StateError(f"{path}: it has arrays of dtype {', '.join(unknown)}")
            if "BF16" in codes:
                importlib.import_module("ml_dtypes")  # tells NumPy the dtype
            return opened.get_tensors(), opened.metadata() or {}
    except (SafetensorError, ValueError) as error:  # a ValueError: NumPy has at most 64 axes
        raise StateError(f"{path}: {error}: expected a complete safetensors file, as save writes it") from error


def source(file: Any) -> str:
    """The path of a file, or the text of a file object, for errors."""
    return repr(file) if hasattr(file, "read") else os.fsdecode(file)


def parsed(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the text by name that are in the bytes of a file. Raises `StateError` as `read` does.

    >>> from safetensors.numpy import save
    >>> parsed(save({"w": np.ones(2)}, {"name": "m"}))
    ({'w': array([1., 1.])}, {'name': 'm'})
    """
    try:
        views = deserialize(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        if any(view["dtype"] == "BF16" for _, view in views):
            importlib.import_module("ml_dtypes")  # tells NumPy the dtype
        arrays = {
            name: np.frombuffer(view["data"], np.dtype(_DTYPES[view["dtype"]])).reshape(view["shape"])
            for name, view in views
        }
    except (SafetensorError, ValueError, LookupError, RecursionError) as error:
        raise StateError(f"bytes that are no state: {error}") from error
    return arrays, header.get("__metadata__", {})


def refuse_irregular(path: str, mode: int) -> None:
    """Raises `StateError` for anything but a regular file, and for folders Python's error.

    A pipe may never have data, and a device never end.
    """
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(mode), "a device")
        raise StateError(f"{path}: it is {kind}: expected a regular file")


def _path(file: Any) -> str:
    """The path of a file as text; raises `TypeError` for what is no path, and `FileNotFoundError` for an empty one."""
    try:
        path = os.fsdecode(file)
    except TypeError:
        raise TypeError(f"file is {file!r}: expected a path, or a binary file object") from None
    if not path:
        raise FileNotFoundError(errno.ENOENT, "the path of a file is empty", path)
    return path


# --- replacing --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _replacing(file: Any) -> Iterator[str]:
    """The path of a new file, which replaces ``file`` at the end of the block, and is removed if the block fails.

    It is in a temporary folder, which is removed with everything that the block writes there. The folder is locked
    meanwhile: a folder without a lock is stale.
    """
    target = os.path.realpath(_path(file))
    with contextlib.suppress(FileNotFoundError):
        refuse_irregular(os.fsdecode(file), os.stat(target).st_mode)
    parent, name = os.path.split(target)
    if not os.path.isdir(parent):
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", os.fsdecode(file))
    prefix = f".oxigrad-{hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()}-"
    _remove_stale(parent, prefix)
    with _folder(parent, prefix, os.fsdecode(file)) as folder:
        temporary = os.path.join(folder, "state")
        mode = _mode(target, folder)
        yield temporary
        os.chmod(temporary, mode)
        _sync(temporary, os.O_RDWR)
        os.replace(temporary, target)
    if os.name != "nt":  # there, a folder cannot be opened
        _sync(parent, os.O_RDONLY)


@contextlib.contextmanager
def _folder(parent: str, prefix: str, path: str) -> Iterator[str]:
    """A context with a new folder, which is locked inside the block and removed at its end.

    Raises `OSError`, with the ``path`` of the file for which it is, where there can be none.
    """
    folder, lock = "", None
    try:
        while lock is None:
            folder = os.path.join(parent, f"{prefix}{secrets.token_hex(8)}.tmp")
            try:
                os.mkdir(folder)
            except OSError as error:
                raise type(error)(error.errno, error.strerror, path) from None
            lock = _locked(folder)
        yield folder
    finally:
        _remove(folder)
        if lock:
            os.close(lock)


def _locked(folder: str) -> int | None:
    """The handle that holds a new folder's lock, 0 where there are no locks.

    None where another save removed the folder as stale before it was locked.
    """
    if fcntl is None:
        return 0
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        with contextlib.suppress(OSError):  # Not every file system has locks.
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(handle), os.stat(folder)):
            return handle
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _remove_stale(parent: str, prefix: str) -> None:
    """Removes the folders of abandoned saves with this prefix."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    _remove_if_stale(entry.path)


def _remove_if_stale(folder: str) -> None:
    if fcntl is None:
        if time.time() - os.stat(folder).st_mtime > _OLD:
            _remove(folder)
        return
    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:  # no locks here
            if time.time() - os.fstat(handle).st_mtime <= _OLD:
                return
        _remove(folder)
    finally:
        os.close(handle)


def _remove(folder: str) -> None:
    """Removes a folder and its contents, as far as possible: the next save tries again."""
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return
    except OSError:  # It is not empty: the save has failed.
        shutil.rmtree(folder, ignore_errors=True)


def _mode(target: str, folder: str) -> int:
    """The permissions of the file that is to be replaced, or those that a new one has, as a new folder shows them."""
    with contextlib.suppress(FileNotFoundError):
        return os.stat(target).st_mode & 0o777
    return os.stat(folder).st_mode & 0o666


def _sync(path: str, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
