"""Slices of parameters: their sizes, what is measured of them, and their layout in a place of host memory."""

import itertools
import mmap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.rules.core.slots import Slot
from oxigrad.step.plan.programs import host_parameter, lay_out
from oxigrad.step.slice import Slice

# Units of slices: a block of codes with one scale; a page of a file, which is a multiple of the elements that a kernel
# sums at once.
_BLOCK, _PAGE = 256, mmap.PAGESIZE
# Tensors in a place begin at multiples of so many bytes.
_ALIGNMENT = 64


def sliced(
    path: str, leaf: Any, elements: int, size_of: Callable[[Slice], int], size: int, *, unit: int
) -> list[tuple[Slice, int]]:
    """The elements of a parameter in slices of at most ``size`` bytes, or of one unit, with their bytes by ``size_of``.

    Slices begin at multiples of the ``unit`` of a program; with 0, a parameter is one slice.
    """
    whole = Slice(path, leaf, 0, elements)
    if not unit or (count := size_of(whole)) <= size:
        return [(whole, size_of(whole))]
    most = elements * size // count
    unit = _PAGE if most > _PAGE else max(unit, _BLOCK)
    step = max(most // unit, 1) * unit
    slices = [Slice(path, leaf, first, min(step, elements - first)) for first in range(0, elements, step)]
    return [(each, size_of(each)) for each in slices]


class Measures:
    """The partial sums of slices of a step, which are folded into its totals, phase by phase.

    Slices are measured in any order. A parameter has its ``position``, by which its chunks are folded.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all parameters."""
        #: The parameters by position: the program of each, its scalars, its slots of one number, and its elements.
        self.parameters: dict[int, tuple[_core.Program, list[float], list[tuple[Slot, Any]], int]] = {}
        self._partials: dict[tuple[int, int], bytes] = {}
        self._folded = 0
        #: The totals, once all parameters are known.
        self.totals: _core.Totals | None = None

    def __contains__(self, position: int) -> bool:
        return position in self.parameters

    def add(
        self,
        position: int,
        program: "_core.Program",
        scalars: list[float],
        numbers: list[tuple[Slot, Any]],
        elements: int,
    ) -> None:
        """Adds a parameter with its number of elements, its program, and the scalars of this, slots among them."""
        self.parameters[position] = program, scalars, numbers, elements

    def note(self, position: int, first: int, partials: bytes) -> None:
        """Takes the partial sums of the elements of a parameter from ``first`` on."""
        self._partials[position, first] = partials

    def complete(self) -> "_core.Totals":
        """The totals of all parameters, of which there will be no further ones."""
        if self.totals is None:
            items = sorted(self.parameters.items())
            keyed = [(program, id(scalars)) for _, (program, scalars, *_) in items]
            programs, layout = lay_out(keyed, lambda at: items[at][1][1])
            core, nothing = _core.Stepper(), np.zeros(0)
            core.prepare(
                [
                    host_parameter("", position, nothing, numbers, place, whole=elements)
                    for (position, (_, _, numbers, elements)), place in zip(items, layout, strict=True)
                ]
            )
            self.totals = core.totals(programs)
        return self.totals

    def square(self, _: Any = None) -> float:
        """The first total, the square of the norm of all gradients, as the value of a hyperparameter."""
        if not self._folded:
            self.fold()
        return self.complete().values[0]

    def fold(self) -> bool:
        """Folds a phase that all slices have measured; whether there is a further one.

        The sums of parameters that are measured elsewhere, as in phases after that of the norm, are zeros.
        """
        totals = self.complete()
        if self._folded < totals.phases:
            parts: dict[int, list[bytes]] = {position: [] for position in sorted(self.parameters)}
            for position, first in sorted(self._partials):
                parts[position].append(self._partials[position, first])
            if not all(parts.values()):
                for part, width in zip(parts.values(), totals.widths, strict=True):
                    if not part:
                        part.append(bytes(8 * width))
            totals.fold(b"".join(itertools.chain.from_iterable(parts.values())))
            self._folded += 1
            self._partials = {}
        return self._folded < totals.phases


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
