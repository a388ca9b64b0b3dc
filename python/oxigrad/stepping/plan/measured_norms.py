"""The squares of the norms of gradients in host memory, with the bits of a step that reads all of them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.rules.core import norms, rule
from oxigrad.stepping.parameters.rule_executors import kernel_of
from oxigrad.stepping.plan.programs import host_parameter

_MEASURE = rule.read(norms.square_of_gradients)


class SquareMeasure:
    """Computes the squares of the norms of a parameter's gradients, as the kernels of steps do.

    ``array`` is the parameter, or memory like it, which is not written.
    """

    def __init__(self, path: str, array: Any) -> None:
        self._array, self._square = array, np.zeros(())
        (slot,) = _MEASURE.slots
        self._programs = [(kernel_of(_MEASURE, {}), [[0.0] * len(_MEASURE.numbers)])]
        self._core = _core.Stepper()
        self._core.prepare([host_parameter(path, 0, array, [(slot, self._square)], (0, 0))])

    def square(self, gradient: Any, array: Any = None) -> float:
        """The square of the norm of a gradient; another ``array`` takes the place of the one at construction."""
        array = self._array if array is None else array
        self._core.step(True, (array,), (gradient,), programs=self._programs, seed=0)
        return float(self._square)


def summed_squares(terms: Iterable[tuple[Any, float]]) -> float:
    """The square of the norm of all gradients, from the square of each and the kernel that updates its parameter, in their order.

    It is summed up as in a step: the squares of each kernel, then these sums.
    """
    sums: dict[int, float] = {}
    for program, square in terms:
        sums[id(program)] = sums.get(id(program), 0.0) + square
    total = 0.0
    for each in sums.values():  # by no `sum`, which may compensate
        total += each
    return total
