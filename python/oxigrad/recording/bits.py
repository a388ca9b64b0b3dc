"""Comparisons by bits: of values, of results, and of NumPy's functions with those of the core."""

import functools
from typing import Any

import numpy as np

from oxigrad import tree
from oxigrad._core import StructureError, compute_in_rule, have_same_bits


def is_repeated(array: Any) -> bool:
    """Whether an array is one element that is repeated."""
    return isinstance(array, np.ndarray) and array.ndim > 0 and array.size > 0 and not any(array.strides)


def is_same(a: Any, b: Any) -> bool:
    """Whether two values have the same type and the same bits."""
    if (is_equal := have_same_bits(a, b)) is not None:
        return is_equal
    if isinstance(a, (np.ndarray, np.generic)):
        if type(a) is not type(b) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        if is_repeated(a) and is_repeated(b):
            first: Any = (0,) * a.ndim
            return np.asarray(a)[first].tobytes() == np.asarray(b)[first].tobytes()
        return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    if type(a) is not type(b):
        return False
    if isinstance(a, (float, complex)):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    return bool(a is b or a == b)


def is_alike(a: Any, b: Any) -> bool:
    """Whether two values have the same type and the same bits, where NaN equals NaN."""
    if is_same(a, b):
        return True
    one, other = np.asarray(a), np.asarray(b)
    if type(a) is not type(b) or one.dtype != other.dtype or one.shape != other.shape or one.dtype.kind not in "fc":
        return False
    if one.dtype.kind == "c":
        return is_alike(np.real(one), np.real(other)) and is_alike(np.imag(one), np.imag(other))
    are_zero = (one == 0) & (np.signbit(one) != np.signbit(other))
    return not are_zero.any() and np.array_equal(one, other, equal_nan=True)


def difference(one: Any, other: Any) -> str | None:
    """The place in which two results differ, with both values; None if structure, dtypes and bits are the same."""
    try:
        (leaves, structure), (others, its) = tree.flatten(one), tree.flatten(other)
    except StructureError as error:
        return f"the structure: {error}"
    if structure != its:
        return f"the structure: {structure} and {its}"
    for at, (leaf, another) in enumerate(zip(leaves, others, strict=True)):
        if not is_alike(leaf, another):
            return f"{structure.path(at)}: {_briefly(leaf)} and {_briefly(another)}".removeprefix(": ")
    return None


def _briefly(value: Any) -> str:
    return repr(value) if getattr(value, "size", 1) == 1 else f"arrays of {type(value).__name__}"


@functools.cache
def has_bits_of_core(op: str) -> bool:
    """Whether NumPy computes ``maximum`` or ``minimum`` of arrays with the bits of the core.

    Of zeros of both signs, and of two NaNs, the result depends on NumPy's vector code, and so on the processor. Each
    pair of these is looked at in each place of an array, of arrays in order, with steps, and with a number.
    """
    return all(_is_alike(op, dtype, bits) for dtype, bits in (("f4", _NANS_OF_32), ("f8", _NANS_OF_64)))


_NANS_OF_32 = np.array([0x7FC00123, 0xFFC00000], "u4")
_NANS_OF_64 = np.array([0x7FF8000000000123, 0xFFF8000000000000], "u8")
# More elements than a vector has, and some after the last whole one.
_LENGTH = 67


def _is_alike(op: str, dtype: str, nans: np.ndarray) -> bool:
    special = np.concatenate([np.array([0.0, -0.0, 1.0, np.inf], dtype), nans.view(dtype)])
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    # Rows of a length without a common divisor with the number of pairs, so that each pair is in each place of one.
    x, y = (np.resize(each, (each.size, _LENGTH)) for each in pairs)
    wide = np.repeat(np.stack([x, y]), 2, axis=2)
    operands = [
        (x, y),
        tuple(wide[..., ::2]),
        *((x, number) for number in special),
        *((number, y) for number in special),
    ]
    for a, b in operands:
        in_order = [np.ascontiguousarray(np.broadcast_to(each, x.shape)) for each in (a, b)]
        if not have_same_bits(compute_in_rule(op, in_order), getattr(np, op)(a, b)):
            return False
    return True
