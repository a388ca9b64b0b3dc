"""Slices of parameters, and the layout of a piece of them in a place of host memory."""

import itertools
import mmap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

# Units of slices: a block of codes with one scale, and a page of a file.
_BLOCK, _PAGE = 256, mmap.PAGESIZE
# Tensors in a place begin at multiples of so many bytes.
_ALIGNMENT = 64


class Slice(NamedTuple):
    """Elements of a parameter, the ``leaf``: ``length`` from ``first`` on, in row-major order of its shape."""

    path: str
    leaf: Any
    first: int
    length: int

    def of(self, tensor: Any) -> Any:
        """These elements of a tensor like the parameter, which is contiguous if it is cut: a view."""
        is_whole = self.length == tensor.numel()
        return tensor if is_whole else tensor.view(-1)[self.first : self.first + self.length]


def sliced(
    path: str, leaf: Any, elements: int, size_of: Callable[[Slice], int], size: int, *, is_cut: bool
) -> list[tuple[Slice, int]]:
    """The elements of a parameter in slices of at most ``size`` bytes, or of one unit, with their bytes by ``size_of``.

    A parameter that is not ``is_cut`` is one slice.
    """
    whole = Slice(path, leaf, 0, elements)
    if not is_cut or (count := size_of(whole)) <= size:
        return [(whole, size_of(whole))]
    most = elements * size // count
    unit = _PAGE if most > _PAGE else _BLOCK
    step = max(most // unit, 1) * unit
    slices = [Slice(path, leaf, first, min(step, elements - first)) for first in range(0, elements, step)]
    return [(each, size_of(each)) for each in slices]


# --- layouts in a place -----------------------------------------------------------------------------------------------


def aligned(count: int, alignment: int = _ALIGNMENT) -> int:
    """The first multiple of the alignment from ``count`` on.

    >>> aligned(1), aligned(64), aligned(65)
    (64, 64, 128)
    """
    return -(-count // alignment) * alignment


def laid_out(sizes: Iterable[int]) -> tuple[list[int], int]:
    """The first bytes in a place of tensors with these bytes, and the bytes of the place.

    >>> laid_out([10, 100])
    ([0, 64], 192)
    """
    *starts, size = itertools.accumulate(map(aligned, sizes), initial=0)
    return starts, size


def laid_out_as_in_file(spans: Sequence[tuple[int, int]]) -> tuple[list[int], list[tuple[int, int, int]], int]:
    """The layout of slots in a place as in their file, so that slots which are side by side there are read at once.

    Args:
        spans: the first byte in the file and the bytes of each slot, in the order of the file.

    Returns:
        The first byte of each slot in the place; the ranges to copy, each with its first byte in the file, its first
        byte in the place, and its bytes; and the bytes of the place.

    >>> laid_out_as_in_file([(0, 64), (64, 10), (8192 + 64, 64)])
    ([0, 64, 4160], [(0, 0, 74), (8256, 4160, 64)], 4224)
    """
    starts: list[int] = []
    ranges: list[tuple[int, int, int]] = []
    size = 0
    for start, count in spans:
        first, at, length = ranges[-1] if ranges else (-1, 0, 0)
        if first == aligned(first) and start == aligned(first + length):
            starts.append(at + start - first)
            ranges[-1] = first, at, start - first + count
        else:
            # As far from the begin of a page as in the file, which reads of whole pages require.
            starts.append(aligned(size, _PAGE) + start % _PAGE)
            ranges.append((start, starts[-1], count))
        size = aligned(starts[-1] + count)
    return starts, ranges, size
