"""What goes through a tape beside values: tangents, and the parts of tuples."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import primitives as ops
from oxigrad._core import Variable, plain
from oxigrad.libraries import device_of, dtype_of, is_array, is_complex, is_smooth, namespace
from oxigrad.primitives import Parts, astype, broadcast_to, index, item, ones_like, reshape, stack, zeros_like


def spread(t: Any, y: Any, batch: int | None) -> Any:
    """The tangent ``t`` of an argument, repeated to the shape of the result ``y``, in its dtype."""
    if not is_array(plain(y)):
        return t
    shape = tuple(y.shape)
    if batch is not None:
        own = tuple(t.shape)[1:]
        t, shape = reshape(t, (batch, *(1,) * (len(shape) - len(own)), *own)), (batch, *shape)
    t = broadcast_to(t, shape) if is_array(plain(t)) else ones_like(y) * t
    return t if t.dtype == y.dtype else astype(t, y.dtype)


def zero_tangent(value: Any, batch: int | None) -> Any:
    """The tangent of what nothing flows to; ``batch`` of them along a leading axis."""
    shape = tuple(getattr(value, "shape", ()))
    if batch is not None:
        return namespace(value).zeros((batch, *shape), dtype=dtype_of(value), device=device_of(plain(value)))
    return zeros_like(value) if is_array(plain(value)) else 0.0


def items(parts: Any) -> tuple[Any, ...]:
    """The items of a tuple, which may be the value of a variable."""
    if not isinstance(parts, Variable):
        return parts
    each = enumerate(plain(parts))
    return tuple(item(parts, at) if is_smooth(leaf) else leaf for at, leaf in each)


def real_part(t: Any) -> Any:
    """The real part of a tangent, where that is complex."""
    return ops.real(t) if is_complex(t) else t


def part(tangents: Any, at: int) -> Any:
    """One of the tangents that go forwards together; None where there is none."""
    return None if tangents is None else index(tangents, at)


def stack_parts(tangents: Sequence[Any]) -> Any:
    """Tangents together again; None where there is none."""
    known = next((tangent for tangent in tangents if tangent is not None), None)
    if known is None:
        return None
    if isinstance(known, Parts):
        return Parts({at: stack_parts([each.get(at) if each else None for each in tangents]) for at in known})
    zero = zero_tangent(known, None)
    return stack([zero if tangent is None else tangent for tangent in tangents])


def fingerprint(value: Any) -> int | None:
    """A number that tells what is in an array of the host's memory; None for anything else."""
    value = plain(value)
    return zlib.crc32(np.ascontiguousarray(value).data) if isinstance(value, np.ndarray) else None
