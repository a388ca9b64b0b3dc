"""The norm of all gradients, measured one gradient at a time, with the bits of a step that has all of them."""

from typing import Any

from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.parameters.rule_executors import kernel_of
from oxigrad.stepping.plan.programs import host_parameter, step_once
from oxigrad.torch import formulas
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.plan import TensorPlace


class MeasuredNorm:
    """The squares of the norms of gradients that were measured, and of the norm of all of them."""

    def __init__(self) -> None:
        # By the identity of a parameter: its number among all, the kernel of its step, and the square.
        self._terms: dict[int, tuple[int, Any, float]] = {}
        self._square: float | None = None

    def __contains__(self, p: Any) -> bool:
        return id(p) in self._terms

    def __bool__(self) -> bool:
        return bool(self._terms)

    def clear(self) -> None:
        """Forgets all of them."""
        self._terms.clear()
        self._square = None

    def add(self, opt: Any, place: TensorPlace, gradient: Any = None, like: Any = None) -> None:
        """Measures the gradient of a parameter. Raises `RuntimeError` where a step would not run a kernel in host memory.

        ``gradient`` is a copy of it in host memory, and ``like`` a tensor there of the parameter's dtype, where the parameter is elsewhere.
        """
        path, position, number, p = place
        # The data's version is not that of the parameter, which autograd checks.
        tensor = conversion.local(p.data) if like is None else like
        group = TensorGroup(opt.entry, opt.param_groups[number], half(tensor), scaled=False)
        program = group.program(group.rule())
        if program is None or executor_of(tensor, elementwise=True) is not HOST or conversion.is_distributed(p):
            raise RuntimeError(
                f"{path}: norm_pass() measures gradients for kernels in host memory: expected an elementwise rule, and a tensor "
                "in host memory that is no DTensor"
            )
        found = conversion.local(p.grad) if gradient is None else gradient
        self._terms[id(p)] = position, program, _square_of(path, tensor, found)

    def square(self, _: Any = None) -> float:
        """The square of the norm of all gradients, summed up in the order of a step: the terms of each kernel, then these sums."""
        if self._square is None:
            sums: dict[int, float] = {}
            for _, program, term in sorted(self._terms.values(), key=lambda found: found[0]):
                sums[id(program)] = sums.get(id(program), 0.0) + term
            total = 0.0
            for found in sums.values():  # by no `sum`, which may compensate
                total += found
            self._square = total
        return self._square


def _square_of(path: str, tensor: Any, gradient: Any) -> float:
    """The square of the norm of a gradient, as the kernels of steps compute it; the tensor of the parameter is not written."""
    number = torch.zeros((), dtype=torch.float64)
    (slot,) = formulas.MEASURE.slots
    parameter = host_parameter(path, 0, tensor, [(slot, number)], (0, 0))
    program = kernel_of(formulas.MEASURE, {})
    step_once([parameter], (tensor,), (gradient,), programs=[(program, [[0.0] * len(formulas.MEASURE.numbers)])])
    return float(number)
