"""Arrays by name in safetensors files, which are replaced whole or not at all."""

import contextlib
import importlib
import os
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from oxigrad._core import StateError
from oxigrad.libraries import dtype_name, to_host

# What files and NumPy call a dtype. What is in the header is checked by safetensors: sizes add up, 100 MB at most.
_DTYPES = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "BOOL": "bool"}
_DTYPES |= {f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)} | {
    f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)
}


def write(file: Any, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Writes arrays of any library, and text by name, to a file, in place of what is there.

    That stays as it is until all is written and on the disk: another file takes its place then, at once. Raises `StateError`
    for a dtype that such a file cannot have, and `OSError` where it cannot be written.
    """
    for name, array in arrays.items():
        if dtype_name(array.dtype) not in _DTYPES.values():
            raise StateError(f"{name}: the dtype {array.dtype} cannot be saved: expected one of {[*_DTYPES.values()]}")
    on_host = {name: np.asarray(to_host(array), order="C") for name, array in arrays.items()}
    with _replacing(file) as temporary:
        try:
            save_file(on_host, temporary, dict(metadata))
        except SafetensorError as error:
            raise OSError(f"{os.fspath(file)}: {error}") from error


def read(file: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the text by name that are in a file.

    Raises `StateError` where it is no such file or is damaged, and `OSError` where it cannot be read.
    """
    try:
        with safe_open(os.fspath(file), framework="np", backend="pread") as opened:
            codes = {name: opened.get_slice(name).get_dtype() for name in opened.offset_keys()}
            if unknown := sorted({*codes.values()} - {*_DTYPES}):
                raise StateError(f"{os.fspath(file)}: it has arrays of dtype {', '.join(unknown)}")
            if "BF16" in codes.values():
                importlib.import_module("ml_dtypes")  # tells NumPy the dtype
            return {name: opened.get_tensor(name) for name in codes}, opened.metadata() or {}
    except SafetensorError as error:
        raise StateError(f"{os.fspath(file)}: {error}") from error


@contextlib.contextmanager
def _replacing(file: Any) -> Iterator[str]:
    """The name of a new file, which takes the place of ``file`` once the block is done, and is gone if it fails."""
    target = os.path.realpath(os.fspath(file))
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".oxigrad-{secrets.token_hex(8)}.tmp")
    try:
        mode = _made(temporary, target)
        yield temporary
        os.chmod(temporary, mode)
        _sync(temporary, os.O_RDWR)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if os.name != "nt":  # there, a folder cannot be opened
        _sync(folder, os.O_RDONLY)


def _made(temporary: str, target: str) -> int:
    """Makes an empty file; returns the permissions of the file that it will replace, or those that a new one has."""
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with contextlib.suppress(FileNotFoundError):
            return os.stat(target).st_mode & 0o777
        return os.fstat(handle).st_mode & 0o777
    finally:
        os.close(handle)


def _sync(path: str, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
