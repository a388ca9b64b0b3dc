"""A slice: some elements of a leaf, the unit of all steps that are not of whole leaves."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

from oxigrad.ops.backends import size_of

# Returns the bytes of all who step slices of the same parameters, one after the other.
Gather: TypeAlias = Callable[[bytes], bytes]


@dataclasses.dataclass(frozen=True)
class Slice:
    """The ``count`` elements of a ``leaf`` from the element ``first`` on, in row-major order of its shape.

    Args:
        path: key path of the leaf in its tree.
        leaf: array, parameter or description of one, with a ``shape``.
        first: index of the first element, from 0 on.
        count: number of elements, which may be 0.

    >>> import numpy as np
    >>> leaf = np.arange(6.0).reshape(2, 3)
    >>> some, whole, none = Slice("w", leaf, 2, 3), Slice("w", leaf, 0, 6), Slice("w", leaf, 0, 0)
    >>> str(some), some.stop, some.is_whole, some.of(leaf)
    ('w[2:5]', 5, False, array([2., 3., 4.]))
    >>> str(whole), whole.is_whole, whole.of(leaf) is leaf, none.of(leaf).shape
    ('w', True, True, (0,))
    """

    path: str
    leaf: Any = dataclasses.field(compare=False, repr=False)
    first: int
    count: int

    def __str__(self) -> str:
        return self.path if self.is_whole else f"{self.path}[{self.first}:{self.stop}]"

    @property
    def stop(self) -> int:
        """The index of the element after the last one."""
        return self.first + self.count

    @property
    def is_whole(self) -> bool:
        """Whether these are all elements of the leaf."""
        return self.count == size_of(self.leaf.shape)

    def of(self, array: Any) -> Any:
        """These elements of an array of the leaf's shape: the array itself or a flat part, a view where possible."""
        return array if self.count == size_of(array.shape) else array.reshape(-1)[self.first : self.stop]
