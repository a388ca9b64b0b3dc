"""Steps of slices of parameters, where others step the rest."""

from collections.abc import Iterable, Mapping
from typing import Any

from oxigrad._typing import Array, Tree
from oxigrad.optim.optimizer import LocalOptimizer
from oxigrad.step.arrays.quantized import CODECS
from oxigrad.step.parameters.parameter_group import ParameterGroup
from oxigrad.step.slice import Gather, Slice
from oxigrad.step.slots.initial import is_of_elements
from oxigrad.step.stepper import Stepper

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

    def take(self, parts: Tree, grads: Tree | None, slices: Iterable[Slice], gather: Gather) -> Tree:
        """The ``parts`` of a model after `Optimizer.update` with ``grads``, or after `Optimizer.flush` without.

        They are the arrays of the ``slices``, one of each parameter, which is the leaf. A slice has no elements where
        another worker has the whole parameter. Sums over parameters are folded from the partial sums that ``gather``
        returns: the bytes of all who step slices, in one order.
        """
        stepper = self._stepper
        stepper.slices, stepper.gather = {each.path: each for each in slices}, gather
        try:
            with self._optimizer._lock.stepping():
                return stepper.flush(parts) if grads is None else stepper.update(parts, grads)
        finally:
            stepper.slices = stepper.gather = None

    @staticmethod
    def unit(group: ParameterGroup) -> int:
        """The number of elements by which parameters of a group are cut; 0 where they are not."""
        rule = group.rule()
        if group.takes_rows or not all(is_of_elements(slot, group) for slot in rule.slots):
            return 0
        programs = [group.program(group.rule(holds)) for holds in (False, True)]
        units = [program.unit for program in programs if program is not None]
        return max(*units, _BLOCK if group.precision.slot_dtype in CODECS else 1) if all(units) else 0
