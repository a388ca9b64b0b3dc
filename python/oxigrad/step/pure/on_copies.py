"""Kernels on copies of arrays in host memory, which are the arguments of a step as a pure function.

They are the kernels of `oxigrad.step.stepper`, so that `Optimizer.apply` gives the bits of `Optimizer.update`. A
rule called on the arrays would not: a library sums in another order, has another last bit of a power, and computes with
float64 numbers beside float32 arrays where a kernel rounds them first.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import RuleError
from oxigrad.ops.backends import copied, detached, dtype_name, is_array, size_of, to_host
from oxigrad.step.arrays.gradient_check import check_gradient
from oxigrad.step.arrays.sparse_rows import LAST_STEP, SparseRows, touched_rows
from oxigrad.step.parameters.executor import executor_of
from oxigrad.step.parameters.rule_executors import CalledLeaf, check_library, first_of_each_rule
from oxigrad.step.plan.programs import host_parameter, lay_out, step_once

Results = list[list[Any]]


def program_of(leaf: CalledLeaf, kernel: Callable[..., "_core.Program | None"]) -> "_core.Program | None":
    """The kernel for a leaf whose arrays are in host memory and whose numbers are known; None for another leaf.

    Raises `ShapeError` or `DtypeError` for a gradient that no rule takes.
    """
    g = leaf.g.values if isinstance(leaf.g, SparseRows) else leaf.g
    if not leaf.rule.elementwise or not all(map(_is_read, (g, *leaf.before()))):
        return None
    if not executor_of(leaf.p).is_core or not all(map(_is_known, leaf.values.values())):
        return None
    if any(slot.is_number and dtype_name(leaf.slots[slot.name].dtype) != "float64" for slot in leaf.rule.slots):
        return None
    check_library(leaf)
    if not isinstance(leaf.g, SparseRows):
        check_gradient(leaf.path, leaf.g, tuple(leaf.p.shape), leaf.p.dtype)
    return kernel(**({"catches_up": True} if leaf.decays else {}))


def _is_read(array: Any) -> bool:
    """Whether the core reads an array: it is in host memory, and no library records or traces it."""
    if not is_array(array) or detached(array) is not array:
        return False
    return isinstance(array, np.generic) or _core.exports_memory(array)


def known_number(value: Any) -> Any:
    """A number in host memory, such as the count of a state, as Python's; a traced, recorded or other value as it is.

    Python's numbers are weak: beside them a rule computes in the dtype of its arrays, as `Optimizer.update` does.
    """
    if not is_array(value) or size_of(value.shape) != 1 or not _is_read(value):
        return value
    return to_host(value).item()


def _is_known(value: Any) -> bool:
    """Whether a hyperparameter is a number that can be read, or no number at all."""
    return isinstance(value, (np.ndarray, np.generic)) or not is_array(value)


def run_on_copies(leaves: Sequence[CalledLeaf], programs: Sequence["_core.Program"], seed: int) -> tuple[Results, Any]:
    """The new parameter and slots of each leaf, and whether the step was taken.

    This is True, or a Boolean array for rules with a guard.
    """
    table, layout = lay_out(
        [(program, (id(leaf.rule), id(leaf.values))) for leaf, program in zip(leaves, programs, strict=True)],
        lambda at: [float(leaves[at].values[name]) for name in leaves[at].rule.numbers],
    )
    results = [[*map(_copied, leaf.before())] for leaf in leaves]
    parameters = [
        host_parameter(
            leaf.path,
            leaf.position,
            result[0],
            zip(leaf.rule.slots, result[1:], strict=True),
            place,
            catches_up=bool(leaf.decays),
            stochastic=leaf.stochastic,
        )
        for leaf, result, place in zip(leaves, results, layout, strict=True)
    ]
    gradients, touched = _read_gradients(leaves)
    try:
        done = step_once(
            parameters,
            tuple([result[0] for result in results]),
            gradients,
            programs=table,
            count=leaves[0].drawn_at - 1,
            seed=seed,
            touched=touched,
        )
    except RuleError as error:
        rules = [(leaf.path, leaf.rule.name) for leaf in leaves]
        raise RuleError(f"{first_of_each_rule(rules)}: {error}") from None
    is_guarded = any(program.is_guarded for program in programs)
    converted = [
        [_like(new, old) for new, old in zip(result, leaf.before(), strict=True)]
        for result, leaf in zip(results, leaves, strict=True)
    ]
    return converted, np.asarray(done is not None) if is_guarded else True


def _read_gradients(leaves: Sequence[CalledLeaf]) -> tuple[tuple[Any, ...], list[tuple[int, Any, list[Any]]]]:
    """The gradients, and the leaves of which rows are updated, or whose slots catch up.

    Gradients of rows are their values.
    """
    gradients, touched = [], []
    for number, leaf in enumerate(leaves):
        last = leaf.slots.get(LAST_STEP)
        last = last if last is None else to_host(last)
        g, rows, caught = touched_rows(leaf.g, leaf.decays, last, leaf.values["step"] - 1, leaf.p.shape)
        if rows is not None or caught:
            touched.append((number, rows, caught))
        gradients.append(g)
    return tuple(gradients), touched


def _copied(array: Any) -> Any:
    return np.array(array) if isinstance(array, np.generic) else copied(array)


def _like(new: Any, old: Any) -> Any:
    """A new array as the old one: a scalar of NumPy in place of a scalar."""
    return new[()] if isinstance(old, np.generic) else new
