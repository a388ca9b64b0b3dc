"""Functions that are called for each example of a batch, and the levels of the values that they are called with."""

from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import Variable
from oxigrad.autodiff.batching import Batched
from oxigrad.ops.backends import UnbatchedError, for_each_example, holds_variable, is_array


def level_of(leaves: Sequence[Any]) -> int | None:
    """The highest level of batched values; None where there are none."""
    return max((leaf.level for leaf in leaves if isinstance(leaf, Batched)), default=None)


def level_of_variables(leaves: Sequence[Any]) -> int | None:
    """The highest level of batched values, if a value is or holds a variable; None otherwise."""
    return level_of(leaves) if any(map(holds_variable, leaves)) else None


def called_for_each(f: Callable[..., Any], args: Any, named: Any, level: int) -> Any:
    """The results of a function for each example of the batched values of a level, stacked.

    Raises `UnbatchedError` where the results differ between examples in more than their elements.
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
    """A leaf of the results; what is no array or number, as a dtype is, must be the same for all examples."""
    if not all(map(is_number, results)):
        if any(each != results[0] for each in results):
            raise _refused(f, "values", results)
        return results[0]
    arrays = [xp.asarray(each) for each in results]
    shapes = sorted({tuple(each.shape) for each in arrays})
    if len(shapes) > 1:
        raise _refused(f, "shapes", shapes)
    return Batched(level, xp.stack(arrays))


def is_number(value: Any) -> bool:
    """Whether a leaf is an array or a number, unlike a dtype or a class of scalars."""
    is_of_array = is_array(value) and not isinstance(value, type)
    return is_of_array or isinstance(value, (bool, int, float, complex, Variable))


def _refused(f: Callable[..., Any], what: str, found: Sequence[Any]) -> UnbatchedError:
    name = getattr(f, "__name__", "a function")
    shown = ", ".join(map(str, dict.fromkeys(map(str, found))))
    return UnbatchedError(f"vmap: {name}: the results of the examples differ in their {what}: found {shown}, expected the same")
