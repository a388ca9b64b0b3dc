"""A parameter of a model, and the executor that updates it."""

import dataclasses
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.ops.backends import dtype_name, to_host
from oxigrad.stepping.device_roads import is_launchable
from oxigrad.stepping.precision import HALVES


def copying(value: Any, array: Any) -> tuple[Any, Any]:
    """The pair that the core copies at the end of a step: ``value`` in host memory, and ``array``, which takes it."""
    return value if _core.exports_memory(value) else to_host(value), array


def executor(array: Any, elementwise: bool = True) -> str:
    """The executor of a parameter: one of five.

    "host": the core updates it in place; "copy": the core updates a copy, which replaces it; "device": a kernel updates it in place on
    its device; "rule": the rule is called on it and the result replaces it; "into": the rule is called on it and the result is copied
    into its memory.
    """
    if not _core.is_floating(array):
        return "device" if elementwise and is_launchable(array) else "rule"
    if _core.is_writable(array):
        return "host" if elementwise else "into"
    return "copy" if elementwise and isinstance(array, (np.ndarray, np.generic)) else "rule"


@dataclasses.dataclass
class Parameter:
    """A parameter of a model.

    ``index`` is that of its leaf, ``tied`` are those of further leaves that are the same array; ``paths`` are the key paths of
    all, ``text`` the first of them as text. ``group`` is an index into `Plan.groups`. ``missed`` is the number of steps that did not
    update it.
    """

    paths: list[_core.KeyPath]
    text: str
    index: int
    tied: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: Any
    group: int
    missed: int = 0
    executor: str = "host"
    #: Whether it lies on a device in an order of axes other than row-major.
    is_permuted: bool = False

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices of all of its leaves."""
        return (self.index, *self.tied)

    @property
    def is_half(self) -> bool:
        """Whether it is of half precision: its gradient may then be of float32."""
        return dtype_name(self.dtype) in HALVES
