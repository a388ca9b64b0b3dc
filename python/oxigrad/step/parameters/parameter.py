"""A parameter of a model."""

import dataclasses
from typing import Any

from oxigrad import _core
from oxigrad.ops.backends import to_host
from oxigrad.step.parameters.executor import HOST, Executor


def copying(value: Any, array: Any) -> tuple[Any, Any]:
    """The pair that the core copies at the end of a step: ``value`` in host memory, and ``array``, which takes it."""
    return value if _core.exports_memory(value) else to_host(value), array


@dataclasses.dataclass
class Parameter:
    """A parameter of a model.

    ``index`` is that of its leaf, ``tied`` are those of further leaves that are the same array; ``paths`` are the key
    paths of all, ``text`` the first of them as text. ``position`` is its number among all, from which random numbers
    are drawn. ``group`` is an index into `Assignment.groups`. ``missed`` is the number of steps that did not update it.
    """

    paths: list[_core.KeyPath]
    text: str
    index: int
    tied: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: Any
    group: int
    position: int
    missed: int = 0
    executor: Executor = HOST
    #: For a slice, the index of its first element in the parameter, and the number of elements of that.
    first: int = 0
    whole: int | None = None
    #: Whether it lies on a device in an order of axes other than row-major.
    is_permuted: bool = False
    #: Whether kernels update a row-major copy of it.
    is_copied: bool = False
    #: The indices of all of its leaves.
    indices: tuple[int, ...] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.indices = (self.index, *self.tied)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another worker calls its rule, and has its slots."""
        return bool(self.whole) and 0 in self.shape and self.executor.calls_rule
