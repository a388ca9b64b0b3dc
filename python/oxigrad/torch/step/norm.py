"""The norm of all gradients, measured one gradient at a time, with the bits of a step that has all of them."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from oxigrad.rules.core.slots import Slot
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.parameters.rule_executors import kernel_of
from oxigrad.stepping.plan.announcements import OpenStep, named, updated
from oxigrad.stepping.plan.programs import host_parameter, step_once
from oxigrad.torch import formulas
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.state import conversion
from oxigrad.torch.step.plan import TensorPlace, reads_all
from oxigrad.torch.step.resolved import all_parameters


class MeasuredNorm:
    """The squares of the norms of gradients that were measured, and of the norm of all of them.

    A `block` measures the gradients of a backward that drops each of them, for a second backward that uses them.
    """

    def __init__(self) -> None:
        # By the identity of a parameter: its number among all, the kernel of its step, and the square.
        self._terms: dict[int, tuple[int, Any, float]] = {}
        self._square: float | None = None
        # The kernels of a step, by group and half precision.
        self._programs: dict[tuple[int, str | None], Any] = {}
        # The blocks that are entered.
        self._blocks = set[object]()

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

    # --- a backward that measures -------------------------------------------------------------------------------------

    @property
    def is_measuring(self) -> bool:
        """Whether a block is entered, whose gradients are measured."""
        return bool(self._blocks)

    @property
    def whole(self) -> "MeasuredNorm | None":
        """The norm of all gradients, after the block until the step ends; None otherwise."""
        return self if self and not self._blocks else None

    @contextlib.contextmanager
    def block(self, opt: Any, step: OpenStep) -> Iterator[None]:
        """A block that begins a step, in which gradients are measured. An error or an interrupt in it drops the norm.

        Raises `ValueError` for an optimizer without ``max_norm``, or one that needs other gradients than one at a time;
        and `RuntimeError` in the middle of a step.
        """
        name = type(opt).__name__
        if any(group.get("max_norm") is None for group in opt.param_groups):
            raise ValueError(f"{name}: norm_pass() is for max_norm, which is None")
        if reads_all(opt):
            raise ValueError(
                f"{name}: norm_pass() is for rules that need one gradient at a time, and this one sums over all "
                "parameters"
            )
        if opt._host is not None:
            raise ValueError(
                f"{name}: norm_pass() excludes state_device='host', which clips exactly without it: gradients wait in "
                "host memory"
            )
        if step.updated or self or any(p.grad is not None for p in all_parameters(opt)):
            raise RuntimeError(
                "norm_pass() begins a step, and gradients are there already, accumulated, measured or used: expected "
                "step(), and the gradient of the whole batch in one backward"
            )
        block = object()
        try:
            self._blocks.add(block)
            yield
        except BaseException:
            self.clear()
            raise
        finally:
            self._blocks.discard(block)

    def measures(self, path: str, p: Any, *, is_taken: bool) -> bool:
        """Whether a gradient is to be measured, rather than used with the norm that was measured.

        Raises `RuntimeError` for neither, and for a gradient that a hook cannot take.
        """
        if not is_taken:
            raise RuntimeError(
                f"{path}: norm_pass() is not supported for sparse gradients, nor where another hook was registered "
                "after the last step()"
            )
        if self.is_measuring is (p in self):
            which = "a second gradient in" if self._blocks else "a gradient that is not measured in"
            raise RuntimeError(
                f"{path}: {which} norm_pass(): expected the same backward once in norm_pass(), and once after it"
            )
        return self.is_measuring

    def check_used(self, places: Iterable[TensorPlace], step: OpenStep) -> None:
        """Raises `RuntimeError` where the gradients that were measured are not those that the step has used."""
        odd = [
            place.path
            for place in places
            if (place.tensor in self) is not (id(place.tensor) in step.updated) or place.tensor.grad is not None
        ]
        if odd:
            self.clear()
            raise RuntimeError(
                f"{named(odd)}: the gradient was measured in norm_pass() and not used, or was not measured; "
                + updated(step.ahead)
            )


def _square_of(path: str, gradient: Any, tensor: Any) -> float:
    """The square of the norm of a gradient: the total that a clipping step computes. ``tensor`` is not written."""
    square = np.zeros(())
    measured = host_parameter(path, 0, tensor, [(Slot.scalar(0.0, name="square"), square)], (0, 0))
    program = kernel_of(formulas.CLIP, {}, totals="results")
    step_once([measured], (tensor,), (gradient,), programs=[(program, [[0.0] * len(formulas.CLIP.numbers)])])
    return float(square)
