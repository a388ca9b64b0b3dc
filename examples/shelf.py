"""A small array library that is not of the Array API standard, for `extend_adapter.py`.

Its arrays are immutable and share no memory. Its functions are NumPy's, without ``device`` and ``copy``.
"""

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np


class Array:
    """An array of `shelf`: ``read`` returns its numbers."""

    def __init__(self, values: Any) -> None:
        self.read: Callable[[], np.ndarray] = np.array(values).copy

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return sys.modules[__name__]

    def __getattr__(self, name: str) -> Any:
        if name not in {"shape", "ndim", "size", "dtype", "T", "mT", "device"}:
            raise AttributeError(name)
        return wrapped(getattr(self.read(), name))

    def __getitem__(self, key: Any) -> "Array":
        return wrapped(self.read()[bare(key)])


def wrapped(value: Any) -> Any:
    """The arrays of a result as arrays of `shelf`."""
    if isinstance(value, (np.ndarray, np.number, np.bool)):
        return Array(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(wrapped, value))
    return type(value)(map(wrapped, value)) if type(value) in (list, tuple) and value[:1] != () else value


def bare(value: Any) -> Any:
    """The arrays of `shelf` in an argument as NumPy's."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(bare, value))
    return value.read() if isinstance(value, Array) else value


def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy over arrays of `shelf`."""
    return lambda *args, **named: wrapped(function(*bare(args), **{key: bare(each) for key, each in named.items()}))


def operator(name: str) -> Callable[..., Any]:
    """An operator of arrays."""

    def called(self: Array, *others: Any) -> Any:
        is_known = all(isinstance(each, (Array, bool, int, float, complex)) for each in others)
        return wrapped(getattr(self.read(), name)(*bare(others))) if is_known else NotImplemented

    return called


for _name in "neg pos abs invert lt le gt ge eq ne".split():
    setattr(Array, f"__{_name}__", operator(f"__{_name}__"))
for _name in "add sub mul truediv floordiv mod pow matmul and or xor".split():
    setattr(Array, f"__{_name}__", operator(f"__{_name}__"))
    setattr(Array, f"__r{_name}__", operator(f"__r{_name}__"))
for _name in "bool int float complex index".split():
    setattr(Array, f"__{_name}__", lambda self, kind=f"__{_name}__": getattr(self.read(), kind)())


def namespace(name: str, module: Any) -> Any:
    """A module whose functions are those of a module of NumPy, over arrays of `shelf`."""
    space: Any = types.ModuleType(name)

    def function(name: str) -> Any:
        value = getattr(module, name)
        is_function = callable(value) and not isinstance(value, type) and name not in ("isdtype", "finfo", "iinfo")
        return lifted(value) if is_function and not name.startswith("__") else value

    space.__getattr__ = function
    return space


def __getattr__(name: str) -> Any:
    return getattr(namespace(__name__, np), name)
