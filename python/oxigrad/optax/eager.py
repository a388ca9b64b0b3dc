"""Steps on JAX arrays in host memory, outside of compiled functions: resolved once a model, run by the core."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad import _core, tree
from oxigrad.optax.library import jax
from oxigrad.optax.pytrees import Named, State
from oxigrad.optim import Optimizer
from oxigrad.step.parameters.parameter_group import ParameterGroup
from oxigrad.step.plan.plan import Plan
from oxigrad.step.pure.pure_step import PureStep

Slots = Mapping[str, Mapping[str, Any]]

_DTYPE, _SHAPE = operator.attrgetter("dtype"), operator.attrgetter("shape")
_SHARDING, _IS_COMMITTED = operator.attrgetter("sharding"), operator.attrgetter("committed")
_IS_DELETED = operator.methodcaller("is_deleted")


def _read(loss: Any) -> Any:
    """The loss as an array of NumPy, unless it is traced, or a number of Python."""
    return np.asarray(loss) if isinstance(loss, jax.Array) and not isinstance(loss, jax.core.Tracer) else loss


def _of_jax(*lists: list[Any]) -> list[Any]:
    """The values of lists that are no arrays of NumPy."""
    return [value for values in lists for value in values if type(value) is not np.ndarray]


def _keys(named: Named, state: State) -> list[tuple[str, str]]:
    """The key path and the name of each slot, in the order of the tree of all slots; JAX has no leaf for None."""
    columns = [(name, named.like(column, name)) for name, column in sorted(state.slots.items())]
    return [
        (path, name)
        for name, column in columns
        for path, slot in zip(named.paths, column, strict=True)
        if slot is not None
    ]


class EagerStep:
    """A resolved step of a transformation, valid for parameters of one structure on one device that is the host.

    The core reads JAX's memory, and JAX takes the arrays that it writes. It is of one call at a time, as `PureStep` is.
    """

    def __init__(self, pure: PureStep, named: Named, state: State) -> None:
        self._pure = pure
        self._types, self._shardings = {*map(type, named.leaves)}, {*map(_SHARDING, named.leaves)}
        self._are_committed = named.leaves[0].committed
        self._like = [(leaf.dtype, leaf.shape) for leaf in named.leaves]
        #: The number in `pure` of each slot, in the order of the tree of all arguments, and the reverse.
        self._numbers = [*map(pure.keys.index, _keys(named, state))]
        self._at = sorted(range(len(self._numbers)), key=self._numbers.__getitem__)
        flat, self._structure = jax.tree.flatten((named.params, named.params, state.slots))
        slots = [*map(flat[2 * len(self._like) :].__getitem__, self._at)]
        self._count, self._dtypes = state.count.dtype, [*map(_DTYPE, slots)]
        self._most = min(_core.MOST_STEPS, int(np.iinfo(self._count).max))
        #: The dtype in which the core reads each slot: float64 for numbers, None for the slot's own.
        self._read = [np.float64 if is_number else None for is_number in pure.are_numbers]

    @classmethod
    def of(
        cls,
        named: Named,
        opt: Optimizer,
        state: State,
        slots: Slots,
        adapt: Callable[[ParameterGroup], ParameterGroup] | None,
    ) -> "EagerStep | None":
        """The step of a model. ``slots`` are the slots of the state, by key path.

        None where kernels of the core do not take it.
        """
        arrays = _of_jax([state.count], named.leaves, *([*by_name.values()] for by_name in slots.values()))
        if len({*map(type, arrays)}) > 1 or len({*map(_IS_COMMITTED, named.leaves)}) > 1:
            return None
        devices = {device for array in arrays for device in array.devices()}
        if len(devices) > 1 or devices.pop().platform != "cpu":
            return None
        leaves, structure = tree.flatten(named.nested([*map(np.asarray, named.leaves)]))
        plan = Plan(leaves, structure, opt._step_options, adapt=adapt)
        pure = PureStep.of(plan, {"step": 0, "slots": slots})
        is_whole = pure is not None and len(plan.parameters) == len(leaves) and {*pure.keys} == {*_keys(named, state)}
        return cls(pure, named, state) if pure is not None and is_whole else None

    def take(
        self, opt: Optimizer, updates: Any, state: State, params: Any, loss: Any = None
    ) -> tuple[Any, Any, dict[str, Any]] | None:
        """The values that the rules give for the parameters, the next count and the next slots.

        None where it was resolved for other arguments.
        """
        if not self._pure.is_of(opt._step_options) or type(state) is not State or type(state.slots) is not dict:
            return None
        flat, structure = jax.tree.flatten((params, updates, state.slots))
        if structure != self._structure:
            return None
        count = len(self._like)
        leaves, gradients = flat[:count], flat[count : 2 * count]
        slots = [*map(flat[2 * count :].__getitem__, self._at)]
        # Arrays of NumPy and JAX are read without a copy.
        committed, arrays = _of_jax(leaves, gradients), _of_jax([state.count], leaves, gradients, slots)
        if not ({*map(type, arrays)} <= self._types and {*map(_SHARDING, arrays)} <= self._shardings):
            return None
        if not {*map(_IS_COMMITTED, committed)} <= {self._are_committed} or any(map(_IS_DELETED, arrays)):
            return None
        if state.count.shape or [state.count.dtype, *map(_DTYPE, slots)] != [self._count, *self._dtypes]:
            return None
        if [*zip(map(_DTYPE, gradients), map(_SHAPE, gradients), strict=True)] != self._like:
            return None
        step = int(state.count)
        if not 0 <= step < self._most:
            return None
        values, host_gradients = [*map(np.asarray, leaves)], [*map(np.asarray, gradients)]
        host_slots, read = [*map(np.asarray, slots, self._read)], loss if loss is None else _read(loss)
        results = self._pure.run(values, host_gradients, host_slots, step, read)
        return None if results is None else self._in_jax(*results, step)

    def _in_jax(self, new: list[Any], after: list[Any], step: int) -> tuple[Any, Any, dict[str, Any]]:
        slots = map(np.asarray, after, self._dtypes)
        (device,) = self._shardings if self._are_committed else [None]
        with jax.enable_x64(True):  # numbers are of float64 in every mode
            count, *arrays = jax.device_put([np.asarray(step + 1, self._count), *new, *slots], device)
        new, after = arrays[: len(new)], arrays[len(new) :]
        params, _, slots = self._structure.unflatten([*new, *new, *map(after.__getitem__, self._numbers)])
        return params, count, slots
