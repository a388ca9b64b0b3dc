"""The norm of all gradients, measured one gradient at a time, with the bits of a step that has all of them."""

import weakref
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.rules.core import norms, rule
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.parameters.rule_executors import kernel_of
from oxigrad.stepping.plan.programs import host_parameter
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
        # The kernels of a step, by group and half precision; and the measures of parameters, for all steps.
        self._programs: dict[tuple[int, str | None], Any] = {}
        self._measures: dict[int, _Measure] = {}

    def __contains__(self, p: Any) -> bool:
        return id(p) in self._terms

    def __bool__(self) -> bool:
        return bool(self._terms)

    def clear(self) -> None:
        """Forgets all gradients."""
        self._terms.clear()
        self._programs.clear()
        self._measures = {key: measure for key, measure in self._measures.items() if measure.is_needed}
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
        measure = self._measures.get(id(p))
        if measure is None or not measure.is_of(p):
            # The data's version is not that of the parameter, which autograd checks.
            tensor = conversion.local(p.data) if like is None else like
            if conversion.is_distributed(p) or executor_of(tensor, elementwise=True) is not HOST:
                return False
            measure = self._measures[id(p)] = _Measure(place.path, p, tensor)
        program = self._program(opt, place.group, measure.half)
        if program is None:
            return False
        g = conversion.local(p.grad) if gradient is None else gradient
        self._terms[id(p)] = place.position, program, measure.square(g, like)
        self._square = None
        return True

    def _program(self, opt: Any, number: int, storage: str | None) -> Any:
        """The kernel of a group of parameters."""
        if (number, storage) not in self._programs:
            group = TensorGroup(opt.entry, opt.param_groups[number], storage, scaled=False)
            self._programs[number, storage] = group.program(group.rule())
        return self._programs[number, storage]

    def square(self, _: Any = None) -> float:
        """The square of the norm of all gradients, summed up in the order of a step: the terms of each kernel, then these sums."""
        if self._square is None:
            sums: dict[int, float] = {}
            for _, program, square in sorted(self._terms.values(), key=lambda term: term[0]):
                sums[id(program)] = sums.get(id(program), 0.0) + square
            total = 0.0
            for each in sums.values():  # by no `sum`, which may compensate
                total += each
            self._square = total
        return self._square


class _Measure:
    """Squares of the norms of the gradients of the parameter ``p``, as the kernels of steps compute them.

    ``tensor`` is the parameter in host memory, or one like it, which is not written.
    """

    def __init__(self, path: str, p: Any, tensor: Any) -> None:
        self._p, self._tensor, self._square = weakref.ref(p), tensor, np.zeros(())
        self._like = p.data_ptr(), p.shape, p.dtype
        self.half: str | None = half(tensor)
        (slot,) = _SQUARE.slots
        self._programs = [(kernel_of(_SQUARE, {}), [[0.0] * len(_SQUARE.numbers)])]
        self._core = _core.Stepper()
        self._core.prepare([host_parameter(path, 0, tensor, [(slot, self._square)], (0, 0))])

    def square(self, gradient: Any, tensor: Any = None) -> float:
        """The square of the norm of a gradient; another ``tensor`` takes the place of the one at construction."""
        tensor = self._tensor if tensor is None else tensor
        self._core.step(True, (tensor,), (gradient,), programs=self._programs, seed=0)
        return float(self._square)

    def is_of(self, p: Any) -> bool:
        """Whether it measures gradients of this parameter, where it is now."""
        return self._p() is p and self._like == (p.data_ptr(), p.shape, p.dtype)

    @property
    def is_needed(self) -> bool:
        """Whether the parameter lives."""
        return self._p() is not None
