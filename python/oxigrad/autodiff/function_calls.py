"""Calls of whole functions as single entries of a tape, as recorded by checkpoints and functions with custom rules.

A call is two kinds of entry: ``call``, whose value is the tuple of the result's leaves and whose rule gives the
cotangents of all arguments at once, and an ``item`` for each leaf.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import tree, xp
from oxigrad._core import BatchLevel, DerivativeError, Tape, Variable, record, value_of_constant
from oxigrad._names import name_of
from oxigrad.autodiff.batching import Batched
from oxigrad.autodiff.rules.tangents import is_numeric, zero_or_same
from oxigrad.ops.backends import UnbatchedError, for_each_example, holds_variable, is_smooth
from oxigrad.ops.core import primitives
from oxigrad.ops.core.aliasing import Owners, lend, owner

# The cotangents or tangents of a call's leaves, which may be None.
Leaves = Sequence[Any]


def replaced(items: Sequence[Any], at: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """A copy of the items with ``values`` at the positions ``at``.

    >>> replaced("abc", [2, 0], [1, 2])
    [2, 'b', 1]
    """
    filled = list(items)
    for i, value in zip(at, values, strict=True):
        filled[i] = value
    return filled


def call_read_only(rule: Callable[..., Any], g: Any, *args: Any) -> Any:
    """The result of a rule on ``g``, a tree whose NumPy arrays are read-only in it: other rules read the same memory.

    >>> import numpy as np
    >>> call_read_only(lambda g, x: np.multiply(g, x, out=g), np.ones(2), 3.0)
    Traceback (most recent call last):
    ValueError: output array is read-only
    """
    if isinstance(g, (float, Variable)):
        return rule(g, *args)
    owners: Owners = {}
    result = rule(lend(g, owners) if type(g) is np.ndarray else tree.map(lambda leaf: lend(leaf, owners), g), *args)
    if type(result) in (tuple, list):  # what a rule returns is writable again
        return type(result)([owner(item, owners) for item in result])
    return owner(result, owners)


class TreeCall:
    """A call of a function of trees, as a function of selected leaves of its arguments, the ``variables``.

    ``is_variable`` selects the leaves. A tape or a graph may keep the call to repeat it. The ``variables`` must then be
    removed from the call.
    """

    variables: list[Any]

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
        is_variable: Callable[[Any], bool],
    ) -> None:
        leaves, self._structure = tree.flatten((args, named))
        self._f, self._chosen = f, [i for i, leaf in enumerate(leaves) if is_variable(leaf)]
        self.variables = [leaves[i] for i in self._chosen]
        self._leaves = replaced(leaves, self._chosen, [None] * len(self._chosen))

    def arguments(self, values: Leaves) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with the variables replaced by these values."""
        return tree.unflatten(self._structure, replaced(self._leaves, self._chosen, values))


def is_traced(leaf: Any) -> bool:
    """Whether a leaf is a variable, or a value that `vmap` has batched."""
    return isinstance(leaf, (Variable, BatchLevel))


class FunctionCall(TreeCall):
    """A call whose variables belong to a tape, and whose results are leaves.

    Values that `vmap` has batched count as variables without derivatives: a tape outside of the `vmap` must not keep
    them.

    Args:
        f: the function.
        args: its arguments, trees.
        named: its keyword arguments, trees.
        again: the function called for each example of batched values.
        takes_batches: whether ``f`` accepts batched values, so that only variables among them need a call for each
            example.
        name: the name for errors, by default the name of ``f``.
        is_variable: selects the variables.
    """

    are_active: list[bool]

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
        again: Callable[..., Any],
        *,
        takes_batches: bool = True,
        name: str | None = None,
        is_variable: Callable[[Any], bool] = is_traced,
    ) -> None:
        super().__init__(f, args, named, is_variable)
        self._again, self._level = again, level_of_variables if takes_batches else level_of
        #: Whether each is a variable of a tape.
        self.are_active = [isinstance(variable, Variable) for variable in self.variables]
        self.structure: tree.Structure | None = None
        self.name: str = name or name_of(f)

    def tangents(self, tangents: Leaves) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Trees of the structure of the arguments: these tangents for the variables, zeros for other numeric leaves."""
        return tree.unflatten(self._structure, replaced([*map(zero_or_same, self._leaves)], self._chosen, tangents))

    def chosen(self, trees: Any) -> list[Any]:
        """The leaves of a tree with the structure of the arguments, at the positions of the variables."""
        leaves = tree.leaves(trees)
        return [None if leaves[i] is Zero else leaves[i] for i in self._chosen]

    def leaves(self, result: Any) -> tuple[Any, ...]:
        """The leaves of the function's result, whose structure is kept."""
        leaves, self.structure = tree.flatten(result)
        return tuple(leaves)

    def outputs(self, values: Leaves) -> tuple[Any, ...]:
        """The leaves of the function's result for these values."""
        args, named = self.arguments(values)
        return self.leaves(self._f(*args, **named))

    def taped(self, values: Leaves) -> tuple[Any, ...]:
        """`outputs` on a temporary tape, so that assignments to the arguments (``x[k] = v``) change no array."""
        with Tape() as tape:
            outputs = self.outputs([tape.watch(value) if is_smooth(value) else value for value in values])
        return self.values(tape, outputs)

    @staticmethod
    def values(tape: Tape, outputs: Leaves) -> tuple[Any, ...]:
        """The outputs, of variables of the tape their values."""
        return tuple(output.value if is_on(tape, output) else output for output in outputs)

    def record(
        self,
        call: Callable[[Leaves], tuple[Any, ...]],
        pull: Callable[..., Any],
        push: Callable[..., Any] | None,
    ) -> Any:
        """Calls ``call`` on the variables, and records one entry for the call and one for each leaf of the result."""
        if not any(self.are_active):
            return self._result(self.outputs(self.variables))

        function = functools.partial(self.results, call)
        variables = self.variables
        self.variables: list[Any] = []
        called = record("call", variables, {"function": function, "pull": pull, "push": push})
        return self._result(primitives.items(called))

    def results(self, call: Callable[[Leaves], tuple[Any, ...]], *values: Any) -> tuple[Any, ...]:
        """The results of ``call`` for values of the variables; of the whole call for each example of batched ones."""
        level = self._level(values)
        if level is not None:
            leaves, self.structure = tree.flatten(called_for_each(self._again, *self.arguments(values), level))
            return tuple(leaves)
        outputs = tuple(map(value_of_constant, call(values)))
        if any(isinstance(output, Variable) for output in outputs):
            raise DerivativeError(
                f"{self.name}: found a variable that is not among its arguments, and whose derivative would be lost: "
                "pass it as an argument, or ox.stop_gradient of it"
            )
        return outputs

    def _result(self, outputs: Leaves) -> Any:
        assert self.structure is not None, "the function has been called"  # noqa: S101
        return tree.unflatten(self.structure, outputs)


class Zero:
    """A cotangent of zeros as a leaf of a tree; None would be an empty container."""


def is_on(tape: Tape, value: Any) -> bool:
    """Whether a value is a variable of the tape."""
    return isinstance(value, Variable) and tape.owns(value)


# --- calls for each example of a batch --------------------------------------------------------------------------------


def level_of(leaves: Sequence[Any]) -> int | None:
    """The highest level of batched values, or None."""
    return max((leaf.level for leaf in leaves if isinstance(leaf, Batched)), default=None)


def level_of_variables(leaves: Sequence[Any]) -> int | None:
    """The highest level of batched values, if a value is or holds a variable; None otherwise."""
    return level_of(leaves) if any(map(holds_variable, leaves)) else None


def called_for_each(f: Callable[..., Any], args: Any, named: Any, level: int) -> Any:
    """The results of a function for each example of the batched values of a level, stacked.

    Raises `UnbatchedError` if the results differ between examples in more than their elements.
    """
    leaves, structure = tree.flatten((args, named))

    def example(*leaves: Any) -> Any:
        args, named = tree.unflatten(structure, leaves)
        return f(*args, **named)

    results = [tree.flatten(result) for result in for_each_example(example, leaves, level)]
    parts, structures = zip(*results, strict=True)
    if any(other != structures[0] for other in structures):
        raise _refused(f, "structures", [len(each) for each in parts])
    return tree.unflatten(structures[0], [_stacked(f, each, level) for each in zip(*parts, strict=True)])


def _stacked(f: Callable[..., Any], results: Sequence[Any], level: int) -> Any:
    """A leaf of the results. A leaf that is no array or number, such as a dtype, must be equal for all examples."""
    if not all(map(is_numeric, results)):
        if any(each != results[0] for each in results):
            raise _refused(f, "values", results)
        return results[0]
    arrays = [xp.asarray(each) for each in results]
    shapes = sorted({tuple(each.shape) for each in arrays})
    if len(shapes) > 1:
        raise _refused(f, "shapes", shapes)
    return Batched(level, xp.stack(arrays))


def _refused(f: Callable[..., Any], what: str, values: Sequence[Any]) -> UnbatchedError:
    name = getattr(f, "__name__", "a function")
    shown = ", ".join(map(str, dict.fromkeys(map(str, values))))
    return UnbatchedError(
        f"vmap: {name}: the results of the examples differ in their {what}: found {shown}, expected the same"
    )
