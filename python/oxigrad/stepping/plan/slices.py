"""Slices of parameters that are stepped here, where others step the rest."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

# Returns the bytes of all who step slices of the same parameters, one after the other.
Gather: TypeAlias = Callable[[bytes], bytes]


@dataclasses.dataclass(frozen=True)
class Slices:
    """The slices of a model, one of each parameter; without axes or elements if another worker has all of it.

    ``wholes`` are the parameters by key path, ``firsts`` the indices of the first elements of the slices. Kernels add
    up sums over parameters from the partial sums that ``gather`` returns.
    """

    wholes: Mapping[str, Any]
    firsts: Mapping[str, int]
    gather: Gather
