"""Arguments of entries as JSON: numbers, text, containers, slices, dtypes, arrays by name, and the ids of entries."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import EntryId, StateError

_DTYPE_KINDS = "biufc"


class Encoder:
    """Encodes values; arrays are collected in ``arrays``."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encoded(self, value: Any) -> Any:
        """The value as JSON; raises `StateError` for one that no file holds."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, EntryId):
            return {"entry": value.id}
        if type(value) is int:
            return {"int": str(value)}
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(value)
        if value is Ellipsis:
            return {"ellipsis": True}
        if isinstance(value, slice):
            return {"slice": [self.encoded(part) for part in (value.start, value.stop, value.step)]}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self.encoded(part) for part in value]}
        if type(value) is dict and all(isinstance(key, str) for key in value):
            return {"dict": [[key, self.encoded(part)] for key, part in value.items()]}
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return {"dtype": [np.dtype(value).str, isinstance(value, type)]}
        if value in (bool, int, float, complex):
            return {"class": value.__name__}
        raise StateError(f"found {value!r}: expected numbers, text, arrays and containers of them")

    def _array(self, value: Any) -> Any:
        if value.dtype.kind not in _DTYPE_KINDS or (value.dtype.kind == "c"):
            raise StateError(f"an array of dtype {value.dtype} cannot be saved")
        name = f"constant.{len(self.arrays)}"
        array = np.asarray(value)
        # The order in memory, on which the bits of products and sums depend: a file holds the elements in that of the indices.
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        is_permuted = array.transpose(axes).flags.c_contiguous and not array.flags.c_contiguous
        self.arrays[name] = array.transpose(axes) if is_permuted else array
        return {"array": [name, isinstance(value, np.generic), *([axes] if is_permuted else [])]}


def decoded(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value of JSON; raises `StateError` for what no encoder writes."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if not (isinstance(value, dict) and len(value) == 1):
        raise StateError(f"found {value!r}, expected a value")
    ((kind, stated),) = value.items()
    try:
        return _DECODERS[kind](stated, arrays)
    except StateError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StateError(f"found {value!r}, expected a value ({error})") from None


def _list(stated: Any, arrays: dict[str, np.ndarray]) -> list[Any]:
    if not isinstance(stated, list):
        raise StateError(f"found {stated!r}, expected a list")
    return [decoded(part, arrays) for part in stated]


def identifier(stated: Any) -> EntryId:
    """The id of an entry; raises `StateError` for anything else."""
    if type(stated) is not int or not 0 <= stated < 1 << 31:
        raise StateError(f"found {stated!r}, expected the number of an entry")
    return EntryId(stated)


def _float(stated: Any, _: Any) -> float:
    value = float.fromhex(stated)
    return math.nan if math.isnan(value) else value


def _array(stated: Any, arrays: dict[str, np.ndarray]) -> Any:
    name, is_scalar, *order = stated
    array = arrays[name]
    array.flags.writeable = False
    for axes in order:
        array = array.transpose([list(axes).index(axis) for axis in range(array.ndim)])
    return array[()] if is_scalar is True and array.ndim == 0 else array


def _dtype(stated: Any, _: Any) -> Any:
    text, is_class = stated
    dtype = np.dtype(text)
    if dtype.kind not in _DTYPE_KINDS:
        raise StateError(f"found the dtype {text!r}, expected one of numbers")
    return dtype.type if is_class is True else dtype


def _int(stated: Any, _: Any) -> int:
    if not isinstance(stated, str) or len(stated) > 400:
        raise StateError(f"found {stated!r}, expected an integer")
    return int(stated)


def _slice(stated: Any, arrays: dict[str, np.ndarray]) -> slice:
    start, stop, step = _list(stated, arrays)
    return slice(start, stop, step)


def _dict(stated: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if not all(isinstance(key, str) for key, _ in stated):
        raise StateError("found a key that is no text")
    return {key: decoded(part, arrays) for key, part in stated}


_DECODERS: dict[str, Callable[[Any, dict[str, np.ndarray]], Any]] = {
    "entry": lambda stated, _: identifier(stated),
    "int": _int,
    "float": _float,
    "complex": lambda stated, _: complex(float.fromhex(stated[0]), float.fromhex(stated[1])),
    "array": _array,
    "ellipsis": lambda _stated, _: Ellipsis,
    "slice": _slice,
    "list": _list,
    "tuple": lambda stated, arrays: tuple(_list(stated, arrays)),
    "dict": _dict,
    "dtype": _dtype,
    "class": lambda stated, _: {"bool": bool, "int": int, "float": float, "complex": complex}[stated],
}
