"""Set functions of the standard. Unique elements are differentiable; indices and counts are plain values."""

from typing import NamedTuple

from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.ops.backends import device_of, standard_namespace
from oxigrad.ops.core.composite import composite
from oxigrad.ops.core.primitives import reshape
from oxigrad.ops.core.standard import take

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAllResult(NamedTuple):
    """The unique elements, the index of each one's first occurrence, the inverse indices, and the counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The unique elements and their counts."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The unique elements and the inverse indices."""

    values: Array
    inverse_indices: Array


@composite
def unique_all(x: Array, /) -> UniqueAllResult:
    """The unique elements, sorted, with their indices and counts; gradients flow to the first occurrences."""
    flat = reshape(x, (-1,))
    library, bare = standard_namespace(x), plain(flat)
    size, device = bare.shape[0], device_of(bare)
    some = min(1, size)
    order = library.argsort(bare, stable=True)
    ordered = library.take(bare, order)
    first = library.ones(some, dtype=library.bool, device=device)
    is_new = library.concat([first, ordered[some:] != ordered[: size - some]])
    (starts,) = library.nonzero(is_new)
    ends = library.concat([starts[some:], library.full(some, size, dtype=starts.dtype, device=device)])
    indices = library.take(order, starts)
    place = library.cumulative_sum(library.astype(is_new, starts.dtype)) - 1
    inverse = library.reshape(library.take(place, library.argsort(order)), tuple(x.shape))
    return UniqueAllResult(take(flat, indices), indices, inverse, ends - starts)


@composite
def unique_counts(x: Array, /) -> UniqueCountsResult:
    """The unique elements and their counts."""
    unique = unique_all(x)
    return UniqueCountsResult(unique.values, unique.counts)


@composite
def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """The unique elements and the inverse indices, so that ``values[inverse_indices]`` is ``x``."""
    unique = unique_all(x)
    return UniqueInverseResult(unique.values, unique.inverse_indices)


@composite
def unique_values(x: Array, /) -> Array:
    """The unique elements, sorted; gradients flow to the first occurrences."""
    return unique_all(x).values
