"""Arguments of entries as JSON: numbers, text, containers, slices, dtypes, arrays by name, and the ids of entries.

The entries of a loop are stated once: an integer that is more by the same step in each repetition is ``{"steps":
[first, step]}``, and what differs otherwise is ``{"each": [...]}``, a value for each repetition.
"""

import math
from collections.abc import Callable, Iterable, Sequence
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
        if isinstance(value, type) and value in (bool, int, float, complex):
            return {"class": value.__name__}
        what = "a dict with keys that are not text" if type(value) is dict else f"an object of {type(value).__name__}"
        raise StateError(
            f"found {what}; a file holds lists, tuples and dicts with text as keys, of numbers, text and arrays"
        )

    def _array(self, value: Any) -> Any:
        if value.dtype.kind not in _DTYPE_KINDS:
            raise StateError(f"an array of dtype {value.dtype} cannot be saved")
        name = f"constant.{len(self.arrays)}"
        self.arrays[name] = array = np.asarray(value)
        if array.flags.c_contiguous:
            return {"array": [name, isinstance(value, np.generic)]}
        # The layout in memory, on which the bits of products and sums depend: a file holds the elements in the order of
        # the indices.
        return {"strided": [name, _strides(array)]}


def in_pairs(arrays: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays with complex ones as real and imaginary parts along a last axis; and the names of these."""
    names = [name for name, array in arrays.items() if array.dtype.kind == "c"]
    return arrays | {name: np.stack([np.real(arrays[name]), np.imag(arrays[name])], axis=-1) for name in names}, names


def join_pairs(arrays: dict[str, np.ndarray], names: Iterable[str]) -> None:
    """Puts the complex arrays of these names in the place of their parts; raises `StateError` for what are none."""
    for name in names:
        pairs = arrays[name]
        if pairs.dtype.kind != "f" or pairs.dtype.itemsize < 4 or pairs.shape[-1:] != (2,):
            raise StateError(
                f"{name}: found {pairs.dtype} of shape {pairs.shape}, expected pairs of float32 or float64"
            )
        arrays[name] = np.ascontiguousarray(pairs).view(f"c{2 * pairs.dtype.itemsize}").reshape(pairs.shape[:-1])


def _strides(array: np.ndarray) -> list[int]:
    """The strides in elements; shorter ones of the same order and gaps where an array fills little memory."""
    strides = [stride // array.itemsize for stride in array.strides]
    is_whole = all(stride % array.itemsize == 0 for stride in array.strides)
    if is_whole and _extent(array.shape, strides) <= _most_extent(array.size):
        return strides
    shorter, least, inner = [0] * array.ndim, 1, array.itemsize
    for axis in sorted(range(array.ndim), key=lambda axis: (abs(array.strides[axis]), -axis)):
        stride, size = array.strides[axis], array.shape[axis]
        if stride == 0 or size == 1:
            shorter[axis] = least if size == 1 else 0
        else:
            width = least + (abs(stride) != inner)
            shorter[axis] = width if stride > 0 else -width
            least, inner = width * size, abs(stride) * size
    return shorter


def _extent(shape: tuple[int, ...], strides: Sequence[int]) -> int:
    """The number of elements of memory in which an array lies."""
    return (
        1 + sum((size - 1) * abs(stride) for size, stride in zip(shape, strides, strict=True)) if 0 not in shape else 0
    )


def _most_extent(size: int) -> int:
    """The most elements of memory for an array: two for each along every axis of two, and one for a gap."""
    return 3 * size


def _placed(array: np.ndarray, strides: list[int]) -> np.ndarray:
    """The array at strides in elements; raises `ValueError` for those that would take far more memory than it fills."""
    extent = _extent(array.shape, strides)
    if extent > _most_extent(array.size):
        raise ValueError(f"found the strides {strides!r} for an array of shape {array.shape}")
    memory = np.zeros(extent, array.dtype)
    begin = sum((size - 1) * -stride for size, stride in zip(array.shape, strides, strict=True) if stride < 0)
    in_bytes = [stride * array.itemsize for stride in strides]
    placed = np.lib.stride_tricks.as_strided(memory[begin if extent else 0 :], array.shape, in_bytes)
    placed[...] = array
    return placed


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
    name, is_scalar = stated
    array = arrays[name]
    array.flags.writeable = False
    return array[()] if is_scalar is True and array.ndim == 0 else array


def _strided(stated: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
    name, strides = stated
    if not (isinstance(strides, list) and all(type(stride) is int for stride in strides)):
        raise ValueError(f"found the strides {strides!r}, expected integers")
    array = arrays[name]
    if array.flags.c_contiguous:  # the entries that read it share one copy
        array = arrays[name] = _placed(array, strides)
    if array.strides != tuple(stride * array.itemsize for stride in strides):
        raise ValueError(f"found several layouts of {name}, expected one")
    array.flags.writeable = False
    return array


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
    "strided": _strided,
    "ellipsis": lambda _stated, _: Ellipsis,
    "slice": _slice,
    "list": _list,
    "tuple": lambda stated, arrays: tuple(_list(stated, arrays)),
    "dict": _dict,
    "dtype": _dtype,
    "class": lambda stated, _: {"bool": bool, "int": int, "float": float, "complex": complex}[stated],
}


# --- loops ------------------------------------------------------------------------------------------------------------

# An item of the list of entries: this, the number of repetitions, and the entries of one.
LOOP = "loop"


def rolled(stated: list[Any], loops: Iterable[tuple[int, int, int]]) -> list[Any]:
    """The entries with each loop, as `Replay.loops` has it, as one item."""
    items, before = [], 0
    for start, period, count in loops:
        end = start + period * count
        body = [_merged(stated[at:end:period]) for at in range(start, start + period)]
        items += [*stated[before:start], [LOOP, count, body]]
        before = end
    return items + stated[before:]


def unrolled(items: list[Any], most: int) -> list[Any]:
    """The entries with each repetition stated; raises `ValueError` for other loops, and more entries than ``most``."""
    stated = []
    for item in items:
        if item[0] != LOOP:
            stated.append(item)
            continue
        _, count, body = item
        if type(count) is not int or count < 1 or not isinstance(body, list):
            raise ValueError(f"found a loop of {count!r} repetitions")
        if len(stated) + count * len(body) > most:
            raise ValueError(f"found more than {most} entries")
        stated += [_repetition(entry, at, count) for at in range(count) for entry in body]
    return stated


def _merged(each: list[Any]) -> Any:
    """The values of all repetitions as one."""
    first = each[0]
    if isinstance(first, list):
        if all(isinstance(value, list) and len(value) == len(first) for value in each):
            return [_merged(list(parts)) for parts in zip(*each, strict=True)]
    elif isinstance(first, dict):
        if all(isinstance(value, dict) and value.keys() == first.keys() for value in each):
            return {key: _merged([value[key] for value in each]) for key in first}
    elif all(type(value) is type(first) and value == first for value in each):  # True is no 1
        return first
    elif all(type(value) is int for value in each):
        step = each[1] - first
        if all(value == first + at * step for at, value in enumerate(each)):
            return {"steps": [first, step]}
    return {"each": each}


def _repetition(stated: Any, at: int, count: int) -> Any:
    """The value in one repetition."""
    if isinstance(stated, list):
        return [_repetition(part, at, count) for part in stated]
    if not isinstance(stated, dict):
        return stated
    if stated.keys() == {"steps"}:
        first, step = stated["steps"]
        if type(first) is not int or type(step) is not int:
            raise ValueError(f"found the steps {first!r}, {step!r}, expected integers")
        return first + at * step
    if stated.keys() == {"each"}:
        if len(stated["each"]) != count:
            raise ValueError(f"found {len(stated['each'])} values, expected one for each of {count} repetitions")
        return stated["each"][at]
    return {key: _repetition(part, at, count) for key, part in stated.items()}
