"""The division of a model's parameters among workers: each has a part of one flat buffer of all elements."""

import bisect
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad.extend import Slice


@dataclasses.dataclass(frozen=True)
class Extent:
    """A parameter as it is divided: its shape, the bytes of an element, and the ``unit`` of a cut, 0 for no cut.

    Where its rule ``is_called`` on arrays, one worker alone has its slots. All have the ``numbers``, slots of one
    number.
    """

    shape: tuple[int, ...]
    itemsize: int
    unit: int
    is_called: bool = False
    numbers: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def cut(self, near: float) -> int:
        """The element nearest to ``near`` before which it may be cut, or its first or its end.

        >>> (
        ...     Extent((10_000,), 4, 0).cut(4000.0),
        ...     Extent((10_000,), 4, 4096).cut(5500.0),
        ...     Extent((10,), 4, 1).cut(3.4),
        ... )
        (0, 4096, 3)
        """
        cuts = [0, self.size]
        if self.unit:
            whole = int(near) // self.unit * self.unit
            cuts += [at for at in (whole, whole + self.unit) if self.unit <= at <= self.size - self.unit]
        return min(cuts, key=lambda at: abs(at - near))


def split(flat: Any, part: Sequence[Slice]) -> list[Any]:
    """The slices of a part in a flat array or tensor, which has them one after the other."""
    ends = [0, *itertools.accumulate(each.count for each in part)]
    pairs = zip(part, itertools.pairwise(ends), strict=True)
    return [flat[start:stop].reshape(each.leaf.shape if each.is_whole else -1) for each, (start, stop) in pairs]


def whole(leaves: Mapping[str, Any]) -> list[Slice]:
    """The slices of all elements of leaves, which have a size, by key path."""
    return [Slice(path, leaf, 0, leaf.size) for path, leaf in leaves.items()]


def divided(extents: Mapping[str, Extent], workers: int) -> list[list[Slice]]:
    """The slices of each worker, in the order of the parameters: equal bytes for each, if parameters may be cut.

    >>> slices = divided({"a": Extent((6,), 4, 1), "b": Extent((2, 3), 4, 1)}, 3)
    >>> [[str(each) for each in own] for own in slices]
    [['a[0:4]'], ['a[4:6]', 'b[0:2]'], ['b[2:6]']]
    """
    paths = [*extents]
    ends = [*itertools.accumulate(extents[path].size * extents[path].itemsize for path in paths)]
    total = ends[-1] if ends else 0
    inner = [_bound(extents, paths, ends, total * rank / workers) for rank in range(1, workers)]
    return [_between(extents, paths, *pair) for pair in itertools.pairwise([(0, 0), *inner, (len(paths), 0)])]


def _bound(extents: Mapping[str, Extent], paths: Sequence[str], ends: Sequence[int], target: float) -> tuple[int, int]:
    """The number of the parameter, and its element, where a worker's part begins: ideally at byte ``target``."""
    number = bisect.bisect_right(ends, target)
    if number == len(paths):
        return number, 0
    extent, start = extents[paths[number]], ends[number - 1] if number else 0
    at = extent.cut((target - start) / extent.itemsize)
    return (number + 1, 0) if at == extent.size else (number, at)


def _between(
    extents: Mapping[str, Extent], paths: Sequence[str], first: tuple[int, int], last: tuple[int, int]
) -> list[Slice]:
    slices = []
    for number in range(first[0], min(last[0] + 1, len(paths))):
        path, extent = paths[number], extents[paths[number]]
        size = extent.size
        start, stop = first[1] if number == first[0] else 0, last[1] if number == last[0] else size
        if start < stop or (not size and number < last[0]):
            slices.append(Slice(path, extent, start, stop - start))
    return slices
