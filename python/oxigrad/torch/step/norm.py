"""The norm of all gradients, measured one gradient at a time, with the bits of a step that has all of them."""

from typing import Any

import numpy as np

from oxigrad.rules.core import norms, rule
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.parameters.rule_executors import kernel_of
from oxigrad.stepping.plan.programs import host_parameter, step_once
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.state import conversion
from oxigrad.torch.step.plan import TensorPlace

_SQUARE = rule.read(norms.square_of_gradients)


class MeasuredNorm:
    """The squares of the norms of gradients that were measured, and of the norm of all of them."""

    def __init__(self) -> None:
        # By the identity of a parameter: its number among all, the kernel of its step, and the square.
        self._terms: dict[int, tuple[int, Any, float]] = {}
        self._square: float | None = None
        # The kernels of a step, by group and half precision.
        self._programs: dict[tuple[int, str | None], Any] = {}

    def __contains__(self, p: Any) -> bool:
        return id(p) in self._terms

    def __bool__(self) -> bool:
        return bool(self._terms)

    def clear(self) -> None:
        """Forgets all gradients."""
        self._terms.clear()
        self._programs.clear()
        self._square = None

    def add(self, opt: Any, place: TensorPlace, gradient: Any = None, like: Any = None) -> None:
        """Measures a gradient, as `measure`.

        Raises `RuntimeError` where a step would not run a kernel in host memory.
        """
        if not self.measure(opt, place, gradient, like):
            raise RuntimeError(
                f"{place.path}: norm_pass() measures gradients for kernels in host memory: expected an elementwise "
                "rule, and a tensor "
                "in host memory that is no DTensor"
            )

    def measure(self, opt: Any, place: TensorPlace, gradient: Any = None, like: Any = None) -> bool:
        """Measures the gradient of a parameter.

        False where its step is no kernel in host memory, whose sum of squares this repeats.

        ``gradient`` is a copy of it in host memory, and ``like`` a tensor there of the parameter's dtype, where the
        parameter is elsewhere.
        """
        p = place.tensor
        # The data's version is not that of the parameter, which autograd checks.
        tensor = conversion.local(p.data) if like is None else like
        if conversion.is_distributed(p) or executor_of(tensor, elementwise=True) is not HOST:
            return False
        program = self._program(opt, place.group, half(tensor))
        if program is None:
            return False
        g = conversion.local(p.grad) if gradient is None else gradient
        self._terms[id(p)] = place.position, program, _square_of(place.path, g, tensor)
        self._square = None
        return True

    def _program(self, opt: Any, number: int, storage: str | None) -> Any:
        """The kernel of a group of parameters."""
        if (number, storage) not in self._programs:
            group = TensorGroup(opt.entry, opt.param_groups[number], storage, scaled=False)
            self._programs[number, storage] = group.program(group.rule())
        return self._programs[number, storage]

    def square(self, _: Any = None) -> float:
        """The square of the norm of all gradients, in the order of a step: terms of each kernel, then these sums."""
        if self._square is None:
            sums: dict[int, float] = {}
            for _, program, square in sorted(self._terms.values(), key=lambda term: term[0]):
                sums[id(program)] = sums.get(id(program), 0.0) + square
            total = 0.0
            for each in sums.values():  # by no `sum`, which may compensate
                total += each
            self._square = total
        return self._square


def _square_of(path: str, gradient: Any, tensor: Any) -> float:
    """The square of the norm of a gradient, as the kernels of steps compute it; ``tensor`` is not written."""
    (slot,) = _SQUARE.slots
    square = np.zeros(())
    step_once(
        [host_parameter(path, 0, tensor, [(slot, square)], (0, 0))],
        (tensor,),
        (gradient,),
        programs=[(kernel_of(_SQUARE, {}), [[0.0] * len(_SQUARE.numbers)])],
    )
    return float(square)
