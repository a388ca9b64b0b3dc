"""An array library whose arrays lie elsewhere: the host sees nothing of them but what it copies by ``to_device("cpu")``.

It stands in for a GPU where there is none. Underneath are arrays of array-api-strict on a device of its own, so that only
what the standard has can be called, and only with arrays of that device. An array refuses what would make the host wait
for it: its truth, its number, NumPy's protocols, the buffer protocol, DLPack. Under `alone`, the library also refuses
what is allowed to programs but not to what runs behind them: arrays from the host, and shapes that depend on numbers.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict as strict

DEVICE = strict.Device("device1")

_is_alone = contextvars.ContextVar("is_alone", default=False)


class Waiting(TypeError):
    """The host would wait for the device."""


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Refuses what takes the host's numbers, or gives it some, for as long as it is entered."""
    before = _is_alone.set(True)
    try:
        with strict.ArrayAPIStrictFlags(boolean_indexing=False, data_dependent_shapes=False):
            yield
    finally:
        _is_alone.reset(before)


class Array:
    """An array on the device."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return sys.modules[__name__]

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0  # the first CUDA device

    def __getitem__(self, key: Any) -> Array:
        return _wrapped(self._array[_bare(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[_bare(key)] = _bare(value)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """A copy that the host can read, where the device is "cpu"."""
        if device != "cpu":
            return self
        _refuse_if_alone("a copy to the host")
        return self._array.to_device(strict.Device("CPU_DEVICE"))._array

    def __repr__(self) -> str:
        return f"device.Array(shape={self._array.shape}, dtype={self._array.dtype})"


def _wrapped(value: Any) -> Any:
    if isinstance(value, type(_EMPTY)):
        return Array(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_wrapped, value))
    return type(value)(map(_wrapped, value)) if isinstance(value, (list, tuple)) else value


def _bare(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_bare, value))
    return value._array if isinstance(value, Array) else value


def _refuse_if_alone(what: str) -> None:
    if _is_alone.get():
        raise Waiting(f"{what}, where the device is to be left alone")


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self: Array, *args: Any, **named: Any) -> Any:
        raise Waiting(f"{name} of an array that lies on a device")

    return refuse


def _unary(name: str) -> Callable[[Array], Array]:
    return lambda self: Array(getattr(self._array, name)())


def _binary(name: str) -> Callable[[Array, Any], Any]:
    def operator(self: Array, other: Any) -> Any:
        if not isinstance(other, (Array, bool, int, float, complex)):
            return NotImplemented
        return _wrapped(getattr(self._array, name)(_bare(other)))

    return operator


def _attribute(name: str) -> property:
    return property(lambda self: _wrapped(getattr(self._array, name)))


_EMPTY = strict.empty(0)
for _name in "bool float int complex index len iter array buffer dlpack contains".split():
    setattr(Array, f"__{_name}__", _refused(f"__{_name}__"))
for _name in "neg pos abs invert".split():
    setattr(Array, f"__{_name}__", _unary(f"__{_name}__"))
for _name in "lt le gt ge eq ne".split():
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__"))
for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__"))
    setattr(Array, f"__r{_name}__", _binary(f"__r{_name}__"))
for _name in "shape dtype ndim size device T mT".split():
    setattr(Array, _name, _attribute(_name))


# --- the namespace -----------------------------------------------------------------------------------------------------


# Functions that, over some libraries, copy a number beside an array to where the array lies.
_COPYING = set("where maximum minimum atan2 hypot logaddexp copysign".split())


def of_strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of array-api-strict, of arrays on the device."""

    def called(*args: Any, **named: Any) -> Any:
        if function.__name__ in _COPYING and any(isinstance(arg, (int, float, complex)) for arg in args):
            _refuse_if_alone("a number to be copied there")
        return _wrapped(function(*_bare(args), **{key: _bare(value) for key, value in named.items()}))

    return called


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """An array of the host's numbers where it is told to put them, else of those of another array."""
    if not isinstance(obj, Array):
        _refuse_if_alone("an array of the host's numbers")
    return Array(strict.asarray(_bare(obj), dtype=dtype, device=device, copy=copy))


class _Extension:
    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return of_strict(getattr(self._module, name))


linalg, fft = _Extension(strict.linalg), _Extension(strict.fft)


def __getattr__(name: str) -> Any:
    found = getattr(strict, name)
    return of_strict(found) if hasattr(found, "__name__") and not isinstance(found, type) else found


from device import special as special  # noqa: E402  an extension of the namespace
