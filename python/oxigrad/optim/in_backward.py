"""Steps of `minimize` inside of the backward: each final gradient updates its parameter, and is dropped."""

import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from oxigrad import _core, tree
from oxigrad._core import DerivativeError, Variable, Watched
from oxigrad.autodiff.transforms import value_and_grad_of
from oxigrad.ops.backends import is_array
from oxigrad.optim.losses import dependent
from oxigrad.step import parts
from oxigrad.step.arrays.alignment import align
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.plan.announcements import FinalGradients
from oxigrad.step.plan.gradients import check_constants
from oxigrad.step.plan.plan import Plan
from oxigrad.step.plan.step_program import StepProgram

_TEXT = operator.attrgetter("text")


def is_in_parts(opt: Any, *, record: bool, is_own: bool) -> bool:
    """Whether a step is taken in parts, while the backward goes on.

    Otherwise it follows the backward, with all gradients.

    Raises `ValueError` for an optimizer that defines its steps, and for ``record``.
    """
    if not is_own:
        raise ValueError(f"{opt.name} does not support in_backward=True: it defines its steps")
    if record:
        raise ValueError(
            f"{opt.name}: in_backward=True excludes record=True, whose replays compute all gradients in one call"
        )
    is_whole = opt.nonfinite != "propagate" or opt.loss_scale is not None
    return not (is_whole or opt.state_device is not None or opt.accumulate > 1 or opt.zero_gradients)


def minimize(opt: Any, loss: Callable[[Any], Any], model: Any) -> Any:
    """The value of a loss before the step, which is taken while its derivatives are replayed."""
    lock = LateLock(opt._lock)
    step = BackwardStep(opt, model, lock)
    try:
        try:
            value, grads = value_and_grad_of(lambda model: dependent(loss(model)), model, step.begin)
            step.finish(value, grads)
        except BaseException:
            step.abort()
            raise
    finally:
        if lock.entered:
            lock.hold.__exit__(None, None, None)
    return value


class LateLock:
    """The lock of an optimizer for a step, taken in the middle of a block, if at all: ``hold``, once it is ``entered``.

    The block ends by ``finally``, where no function of Python is called before the end of the hold: an interrupt may
    come at its begin.
    """

    def __init__(self, lock: "_core.Lock") -> None:
        self.hold: AbstractContextManager[None] = lock.stepping()
        self.entered: list[None] = []

    def take(self) -> None:
        """Takes the lock unless it is taken, and notes it, in one built-in call, which no interrupt divides."""
        if not self.entered:
            self.entered.extend(map(type(self.hold).__enter__, (self.hold,)))


class BackwardStep:
    """A step of an optimizer, in parts: those in the backward, and the rest after it.

    It takes the optimizer's ``lock``.
    """

    def __init__(self, opt: Any, model: Any, lock: LateLock) -> None:
        self._model, self._lock = model, lock
        self._stepper = opt._stepper
        self._step: StepProgram | None = None
        self._before: tuple[Any, Any] | None = None

    def begin(self, watched: Watched, constants: Sequence[Any], value: Any) -> Callable[[int, Any], bool]:
        """Prepares the step, before anything is changed; returns the function that takes a final gradient."""
        self._lock.take()
        self._before = self._stepper.table.by_path, self._stepper.fitting
        step, leaves = parts.resolve_whole(self._stepper, self._model, value)
        plan = step.plan
        if plan.needs_all or plan.on_devices:  # the step follows the backward
            return lambda which, g: False
        plan.check_parameters(leaves)
        excluded = _read_again(plan, leaves, constants) if constants else ()
        self._step, self._leaves = step, leaves
        self._gradients = gradients = FinalGradients(plan.parameters, watched)
        self._left = dict(zip(map(_TEXT, plan.parameters), plan.parameters, strict=True))
        due = self._stepper.open.due

        def take(which: int, g: Any) -> bool:
            leaf = gradients.leaves[which]
            p = gradients.of_leaf.get(leaf)
            if p is None or p.text in excluded:  # it gets its gradient when the backward has ended
                return p is None and is_array(leaves[leaf])  # that of a frozen parameter is dropped
            if gradients.add(p, leaf, g):
                size = getattr(g, "nbytes", 0)
                for i in p.tied:
                    size += getattr(gradients.held[i], "nbytes", 0)
                if together := due(p.position, p, size):
                    self._update(step, together, [None] * len(leaves))
            return True

        return take

    def finish(self, value: Any, grads: Any) -> None:
        """Updates the parameters that are left, and counts the step."""
        step = self._step
        if step is None:
            if not self._lock.entered:  # the loss was none of one number, or one of an outer derivative
                _refuse_variables(self._model)
                self._lock.take()
            self._stepper.update(self._model, grads, loss=value, keep_root=True)
            return
        gradients: list[Any] = [None] * len(self._leaves)
        if step.plan.constants or len(self._left) > len(self._stepper.open.waiting):
            gradients = align(step.plan.structure, grads).leaves
            check_constants(step.plan, gradients)
        if self._left:
            self._update(step, [*self._left.values()], gradients)
        self._stepper.count_open()

    def abort(self) -> None:
        """Leaves things as they were before the step, where an error has ended it before the first update."""
        core, opened = self._stepper.core, self._stepper.open
        if self._before is not None and not (opened.updated or core.count == opened.number):
            self._stepper.undo(*self._before)

    def _update(self, step: StepProgram, parameters: Sequence[Parameter], gradients: list[Any]) -> None:
        """Updates some parameters, in one dispatch, with the numbers of the step.

        ``gradients`` are those of leaves that were not announced.
        """
        for p in parameters:
            for i in p.indices:
                if i in self._gradients.held:
                    gradients[i] = self._gradients.held.pop(i)
        parts.take_part(self._stepper, step, parameters, self._model, self._leaves, gradients)
        for p in parameters:
            del self._left[p.text]


def _refuse_variables(model: Any) -> None:
    """Raises `DerivativeError` for parameters that are variables."""
    leaves, structure = tree.flatten(model)
    variables = [str(structure.path(i)) for i, leaf in enumerate(leaves) if isinstance(leaf, Variable)]
    if variables:
        raise DerivativeError(
            f"{variables[0]}: in_backward=True changes parameters, and this one is a variable of an outer derivative: "
            "expected an array"
        )


def _read_again(plan: Plan, leaves: list[Any], constants: Sequence[Any]) -> set[str]:
    """Parameters whose memory derivatives read past the model, as constants: they are updated after the backward."""
    if not (arrays := [*filter(_core.exports_memory, constants)]):
        return set()
    parameters = [p for p in plan.parameters if _core.exports_memory(leaves[p.index])]
    ranges = [(leaves[p.index], True) for p in parameters] + [(array, False) for array in arrays]
    return {parameters[at].text for at in _core.aliases(ranges)}
