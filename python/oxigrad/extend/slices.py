"""Steps of slices of parameters, where others step the rest."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._typing import Array, Tree
from oxigrad.optim.optimizer import LocalOptimizer
from oxigrad.rules.core.slots import Formula, Slot
from oxigrad.stepping.arrays.quantized import CODECS
from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.plan.slices import Slices
from oxigrad.stepping.stepper import Stepper

# The least common multiple of the elements that share a scale, in codes of each kind.
_BLOCK = 256


class SlicedSteps:
    """The steps of an optimizer that has one slice of each parameter, with the bits of the whole step.

    Args:
        optimizer: optimizer of a rule, a chain or a partition. It then has the slots of slices alone.
        refusal: error for what needs the slots of all, such as a pure step.

    Raises `TypeError` for any other optimizer.
    """

    def __init__(self, optimizer: Any, refusal: Exception) -> None:
        if not isinstance(optimizer, LocalOptimizer):
            raise TypeError(f"found {optimizer!r}, expected an optimizer that is not a wrapper")
        self._optimizer = optimizer
        optimizer._resume(self._stepper.copied(self._stepper.options))
        self._stepper.refusal = refusal

    @property
    def _stepper(self) -> Stepper:
        """The stepper of the optimizer, which the load of a state replaces."""
        return self._optimizer._stepper

    @property
    def slots(self) -> Mapping[str, Mapping[str, Array]]:
        """The slots of the slices, by key path and name."""
        return self._stepper.table.by_path

    def take(
        self,
        step: Callable[[Stepper], Tree],
        wholes: Mapping[str, Array],
        firsts: Mapping[str, int],
        gather: Callable[[bytes], bytes],
    ) -> Tree:
        """The result of ``step``, a call of ``update`` or ``flush`` of the stepper that gets a tree of slices.

        ``wholes`` are the parameters by key path, ``firsts`` the indices of the first elements of the slices. A slice
        has no axes or no elements where another worker has the whole parameter. Sums over parameters are folded from
        the partial sums that ``gather`` returns: the bytes of all who step slices, in one order.
        """
        stepper = self._stepper
        stepper.slices = Slices(wholes, firsts, gather)
        try:
            with self._optimizer._lock.stepping():
                return step(stepper)
        finally:
            stepper.slices = None

    @staticmethod
    def unit(group: ParameterGroup) -> int:
        """The number of elements by which parameters of a group are cut; 0 where they are not."""
        rule = group.rule()
        if group.takes_rows or not all(_is_of_elements(slot, group) for slot in rule.slots):
            return 0
        programs = [group.program(group.rule(holds)) for holds in (False, True)]
        units = [program.unit for program in programs if program is not None]
        return max(*units, _BLOCK if group.precision.slot_dtype in CODECS else 1) if all(units) else 0


def _is_of_elements(slot: Slot, group: ParameterGroup) -> bool:
    """Whether a slot of a piece begins with the numbers that it has in the slot of the parameter."""
    if not isinstance(slot.begin, Formula):
        return True
    p = np.linspace(-1.0, 2.0, 6)
    whole, part = (slot.first(xp, each, p.dtype, group.value) for each in (p, p[2:5]))
    if whole is None or part is None:
        return whole is part
    return whole.shape == p.shape and part.shape == (3,) and np.array_equal(np.asarray(whole)[2:5], np.asarray(part))
