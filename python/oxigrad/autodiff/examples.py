"""Functions that are called for each example of a batch, and the levels of the values that they are called with."""

from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import tree, xp
from oxigrad.autodiff.batching import Batched
from oxigrad.ops.backends import for_each_example, holds_variable


def level_of(leaves: Sequence[Any]) -> int | None:
    """The highest level of batched values; None where there are none."""
    return max((leaf.level for leaf in leaves if isinstance(leaf, Batched)), default=None)


def level_of_variables(leaves: Sequence[Any]) -> int | None:
    """The highest level of batched values, if a value is or holds a variable; None otherwise."""
    return level_of(leaves) if any(map(holds_variable, leaves)) else None


def called_for_each(f: Callable[..., Any], args: Any, named: Any, level: int) -> Any:
    """The results of a function for each example of the batched values of a level, stacked."""
    leaves, structure = tree.flatten((args, named))

    def example(*leaves: Any) -> Any:
        args, named = tree.unflatten(structure, leaves)
        return f(*args, **named)

    results = for_each_example(example, leaves, level)
    return tree.map(lambda *parts: Batched(level, xp.stack([xp.asarray(part) for part in parts])), *results)
