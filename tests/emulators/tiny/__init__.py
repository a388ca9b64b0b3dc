"""A minimal array library: the functions of the Array API standard, and no other protocol.

Arrays are immutable (no ``__setitem__``) and share no memory (no DLPack, buffer or ``__array__``); the host reads an element by
``float`` of an array without axes. Dtypes, devices and the namespace are objects of the library's own classes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import numpy as standard

from oxigrad.ops.backends.functions import kernels


class DType:
    """A dtype."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tiny.{self.name}"


class Device:
    """The only device."""

    def __repr__(self) -> str:
        return "tiny.HERE"


HERE = Device()
DTYPES = {
    name: DType(name)
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
}


class Array:
    """An array."""

    __slots__ = ("__weakref__", "_numbers")

    def __init__(self, numbers: Any) -> None:
        self._numbers = np.array(numbers)
        self._numbers.flags.writeable = False

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return NAMESPACE

    @property
    def dtype(self) -> DType:
        return DTYPES[self._numbers.dtype.name]

    @property
    def device(self) -> Device:
        return HERE

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """The array, which is there."""
        if device is not HERE:
            raise ValueError(f"there is no device {device!r}, only {HERE}")
        return self

    def __array__(self, *args: Any, **named: Any) -> Any:  # without it, NumPy would make an array of this object
        raise TypeError("a tiny array has no memory to share")

    def __repr__(self) -> str:
        return f"tiny.Array(shape={self._numbers.shape}, dtype={self.dtype})"


def _attribute(name: str) -> property:
    return property(lambda self: _wrapped(getattr(self._numbers, name)))


def _operator(name: str) -> Callable[..., Any]:
    def operator(self: Array, *others: Any) -> Any:
        if not all(isinstance(other, (Array, bool, int, float, complex)) for other in others):
            return NotImplemented
        return _wrapped(getattr(self._numbers, name)(*_bare(others)))

    return operator


def _number(name: str) -> Callable[[Array], Any]:
    return lambda self: getattr(self._numbers, name)()


for _name in "shape ndim size T mT".split():
    setattr(Array, _name, _attribute(_name))
for _name in "neg pos abs invert lt le gt ge eq ne".split():
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))
for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Array, f"__r{_name}__", _operator(f"__r{_name}__"))
for _name in "bool int float complex index".split():
    setattr(Array, f"__{_name}__", _number(f"__{_name}__"))
Array.__getitem__ = lambda self, key: _wrapped(self._numbers[_bare(key)])  # type: ignore[attr-defined]
Array.__hash__ = None  # type: ignore[assignment]


def _wrapped(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return Array(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_wrapped, value))
    return type(value)(map(_wrapped, value)) if isinstance(value, (list, tuple)) else value


def _bare(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_bare, value))
    if isinstance(value, Array):
        return value._numbers
    return np.dtype(value.name) if isinstance(value, DType) else value


def _of_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, device: Any = None, **named: Any) -> Any:
        assert device in (None, HERE)
        if any(isinstance(arg, (np.ndarray, np.generic)) for arg in args):
            raise TypeError("expected arrays of tiny")
        return _wrapped(function(*_bare(args), **{name: _bare(value) for name, value in named.items()}))

    return called


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """An array of numbers, or of the host's."""
    assert device in (None, HERE)
    return Array(np.asarray(_bare(obj), dtype=_bare(dtype)))


def isdtype(dtype: DType, kind: Any) -> bool:
    """Whether a dtype is of a kind, or is another dtype."""
    if not isinstance(dtype, DType):
        raise TypeError("expected a dtype of tiny")
    return np.isdtype(np.dtype(dtype.name), _bare(kind))


def _finfo(dtype: Any) -> Any:
    return np.finfo(_bare(dtype))


class _Info:
    def __init__(self) -> None:
        self._numpys = np.__array_namespace_info__()

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        assert device in (None, HERE)
        return {name: DTYPES[name] for name in self._numpys.dtypes(kind=kind)}

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        assert device in (None, HERE)
        return {kind: DTYPES[dtype.name] for kind, dtype in self._numpys.default_dtypes().items()}

    def default_device(self) -> Device:
        return HERE

    def devices(self) -> list[Device]:
        return [HERE]


class _Namespace:
    """The functions of a module of NumPy's, of arrays of this library; and its dtypes."""

    def __init__(self, module: Any, **own: Any) -> None:
        self._module = module
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if not callable(found) or isinstance(found, type):
            raise AttributeError(name)
        return _of_numpy(found)


class _Special:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args: _wrapped(kernels.compute(name, *_bare(args)))


NAMESPACE: Any = _Namespace(
    standard,
    special=_Special(),
    __name__="tiny",
    **DTYPES,
    linalg=_Namespace(standard.linalg),
    fft=_Namespace(standard.fft),
    asarray=asarray,
    isdtype=isdtype,
    finfo=_finfo,
    __array_namespace_info__=_Info,
    **{name: getattr(np, name) for name in "e inf nan newaxis pi".split()},
)
