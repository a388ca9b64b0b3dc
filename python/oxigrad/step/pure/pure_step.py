"""A step as a pure function on NumPy's arrays, resolved once for a model: the kernels of `Stepper`, on copies.

`oxigrad.step.pure.functional` takes every other step: of other libraries, of variables, and all that happens once.
"""

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import _core, tree
from oxigrad.cuda.availability import FLOATING
from oxigrad.ops.backends import dtype_name
from oxigrad.ops.core.aliasing import refuse_shared
from oxigrad.step.parameters.parameter_group import SteppingOptions
from oxigrad.step.plan.plan import Plan
from oxigrad.step.plan.programs import answer
from oxigrad.step.plan.step_program import StepProgram

_ARRAYS = {np.ndarray}
_NUMBERS = (int, float, np.generic, np.ndarray)
_DTYPE, _SHAPE = operator.attrgetter("dtype"), operator.attrgetter("shape")
_STATE = {"step", "slots"}


class PureStep(StepProgram):
    """A resolved step of parameters that the core updates, valid until a setting or the structure of the model changes.

    It is of one call at a time, since the numbers of a step are filled in where they are kept.
    """

    def __init__(self, plan: Plan, slots: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(plan)
        self._dtypes = [p.dtype for p in plan.parameters]
        arrays, self._tree = tree.flatten(slots)
        #: The key paths and names of all slots, and which of them are numbers.
        self.keys: list[tuple[str, str]] = [(path, name) for path, by_name in slots.items() for name in by_name]
        numbers = {key: number for number, key in enumerate(self.keys)}
        # The slots of each parameter, with their numbers among all.
        self._slots = [
            [(slot, numbers[p.text, slot.name]) for slot in self.groups[p.group].rule.slots] for p in plan.parameters
        ]
        self.are_numbers: list[bool] = [False] * len(numbers)
        for slot, number in itertools.chain.from_iterable(self._slots):
            self.are_numbers[number] = slot.is_number
        self._shapes, self._slot_dtypes = [tuple(array.shape) for array in arrays], [array.dtype for array in arrays]

    @classmethod
    def of(cls, plan: Plan, state: Mapping[str, Any]) -> "PureStep | None":
        """The step of a plan; None where it takes more than kernels of the core, or counts more than steps."""
        is_simple = state.keys() == _STATE and plan.options.accumulate == 1 and plan.options.sparse == "dense"
        is_simple = is_simple and not (plan.idle or plan.tied or plan.constants)
        if not is_simple or not all(p.executor.is_core for p in plan.parameters):
            return None
        slots = state["slots"]
        names = {(p.text, slot.name) for p in plan.parameters for slot in plan.groups[p.group].rule().slots}
        if names != {(path, name) for path, by_name in slots.items() for name in by_name}:
            return None
        step = cls(plan, slots)
        return step if step.is_of_core else None

    @property
    def is_of_core(self) -> bool:
        """Whether the core takes the step alone: no guard stops it, and it has the dtypes of all slots."""
        is_guarded = any(program.is_guarded for program, _ in self.programs)
        return not is_guarded and all(map(_is_taken, self._slot_dtypes, self.are_numbers))

    def take(self, params: Any, grads: Any, state: Mapping[str, Any], options: SteppingOptions, loss: Any) -> Any:
        """The new parameters and the new state; None for other arguments than the step was resolved for."""
        if not self.is_of(options):  # of a copy of the optimizer, or of other settings
            return None
        if type(state) is not dict or state.keys() != _STATE:
            return None
        plan, step = self.plan, state["step"]
        if type(step) is not int or not 0 <= step < _core.MOST_STEPS or (leaves := plan.leaves(params)) is None:
            return None
        gradients = _core.tree_leaves_like(grads, plan.structure)
        slots = _core.tree_leaves_like(state["slots"], self._tree)
        if gradients is None or slots is None:
            return None
        arrays = plan.pick(leaves)
        if (taken := self.run(arrays, plan.pick(gradients), slots, step, loss)) is None:
            return None
        refuse_shared([(p.text, array, True) for p, array in zip(plan.parameters, arrays, strict=True)])
        new, after = taken
        for p, array in zip(plan.parameters, new, strict=True):
            leaves[p.index] = array
        slots = _core.tree_unflatten(self._tree, after)
        return _core.tree_unflatten(plan.structure, leaves), {"step": step + 1, "slots": slots}

    def is_of(self, options: SteppingOptions) -> bool:
        """Whether it was resolved for the optimizer with these options, and for its present settings."""
        return self.plan.options is options and self.is_current()

    def run(
        self, arrays: Sequence[Any], gradients: Sequence[Any], slots: Sequence[Any], step: int, loss: Any = None
    ) -> tuple[list[Any], list[Any]] | None:
        """The new parameters and slots, in the order of `keys`, after ``step`` steps, on arrays of NumPy.

        None where they are not those that it was resolved for.
        """
        if {*map(type, arrays), *map(type, gradients), *map(type, slots)} != _ARRAYS:
            return None
        if [*map(_DTYPE, arrays)] != self._dtypes or [*map(_SHAPE, slots)] != self._shapes:
            return None
        for slot, dtype, is_number in zip(slots, self._slot_dtypes, self.are_numbers, strict=True):
            if slot.dtype != dtype and not (is_number and _is_taken(slot.dtype, is_number)):
                return None
        if self.reads_loss is not None and not isinstance(loss, _NUMBERS):
            return None
        self.fill(step, 1, 1.0 / self.plan.options.scale, loss)
        new, after = [*map(np.array, arrays)], [*map(np.array, slots)]
        stated = [
            self.host_parameter(p, array, [(slot, after[number]) for slot, number in of_one], first=0)
            for p, array, of_one in zip(self.plan.parameters, new, self._slots, strict=True)
        ]
        done = answer(stated, tuple(new), tuple(gradients), programs=self.programs, count=step, seed=self.seed)
        return None if isinstance(done, _core.Misfit) else (new, after)


def _is_taken(dtype: Any, is_number: bool) -> bool:
    """Whether the core takes a slot of a dtype."""
    names = ("float64", "float32") if is_number else FLOATING
    return isinstance(dtype, np.dtype) and dtype.isnative and dtype_name(dtype) in names
