"""The norm of all gradients, measured one gradient at a time, with the bits of a step that has all of them."""

from typing import Any

import numpy as np

from oxigrad.rules.core.slots import Slot
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.parameters.rule_executors import kernel_of
from oxigrad.stepping.plan.programs import host_parameter, step_once
from oxigrad.torch import formulas
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.state import conversion
from oxigrad.torch.step.plan import TensorPlace


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
        """Measures the gradient of a parameter.

        ``gradient`` is a copy of it in host memory, and ``like`` a tensor there of the parameter's dtype, where the
        parameter is elsewhere. Raises `RuntimeError` where a step would not run a kernel in host memory, whose sum of
        squares this repeats.
        """
        p = place.tensor
        # The data's version is not that of the parameter, which autograd checks.
        tensor = conversion.local(p.data) if like is None else like
        is_host = not conversion.is_distributed(p) and executor_of(tensor, elementwise=True) is HOST
        program = self._program(opt, place.group, half(tensor)) if is_host else None
        if program is None:
            raise RuntimeError(
                f"{place.path}: norm_pass() measures gradients for kernels in host memory: expected an elementwise "
                "rule, and a tensor in host memory that is no DTensor"
            )
        g = conversion.local(p.grad) if gradient is None else gradient
        self._terms[id(p)] = place.position, program, _square_of(place.path, g, tensor)
        self._square = None

    def _program(self, opt: Any, number: int, storage: str | None) -> Any:
        """The kernel of a group of parameters."""
        if (number, storage) not in self._programs:
            group = TensorGroup(opt.entry, opt.param_groups[number], storage, number=number, scaled=False)
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
    """The square of the norm of a gradient: the total that a clipping step computes. ``tensor`` is not written."""
    square = np.zeros(())
    measured = host_parameter(path, 0, tensor, [(Slot.scalar(0.0, name="square"), square)], (0, 0))
    program = kernel_of(formulas.CLIP, {}, totals="results")
    step_once([measured], (tensor,), (gradient,), programs=[(program, [[0.0] * len(formulas.CLIP.numbers)])])
    return float(square)
