"""The transform `vmap`: a function of one example, applied to a batch of examples at once."""

import functools
from collections.abc import Callable
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import DtypeError, ShapeError, StructureError, Tape, Variable, new_batch_level, plain
from oxigrad._names import check_callable
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.arguments import transformed
from oxigrad.autodiff.batching import Batched
from oxigrad.autodiff.rules.tangents import is_numeric
from oxigrad.ops.backends import is_array


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that applies ``f`` to each example of a batch, and computes all examples at once.

    Args:
        f: function of one example.
        in_axes: axis of the examples in each argument: an int, None, a tree of these, or a tuple with an item for
            each argument.
        out_axes: axis of the examples in the results, likewise.

    ``in_axes`` is the axis of the examples in all positional arguments, or a tuple with an item for each. An item is an
    axis, None for an argument that is the same for all examples, or a tree of these that is a prefix of the argument's
    structure. Keyword arguments are mapped over their first axis. ``out_axes`` is the axis of the examples in the
    results, likewise. Results that are the same for all examples are repeated, unless their axis is None.

    ``f`` sees arrays without the axis of the examples. Each operation is called once, with a leading axis. These are
    called for each example instead:

    * indexing by a key that depends on the example;
    * functions with a user-defined rule, `implicit` among them;
    * functions of other libraries, and functions that SciPy computes unless they are elementwise;
    * functions that read values or have no batching rule;
    * checkpoints inside of a further derivative.

    The transforms compose in any order: ``vmap(grad(f))`` computes a gradient for each example.

    Raises `ShapeError` if the axes of examples differ in size or do not exist, `StructureError` if ``in_axes`` or
    ``out_axes`` does not match, and `ValueError` if no argument is mapped. Raises `DtypeError` for an argument that is
    no array, such as a table of pandas. Raises `TypeError` for a branch on a batched value, and for a function whose
    results differ between the examples in more than their elements.

    >>> import numpy as np
    >>> vmap(lambda x, y: x @ y)(np.ones((3, 2)), np.ones((3, 2)))
    array([2., 2., 2.])
    """
    check_callable(f, "vmap")
    for axes, name in ((in_axes, "in_axes"), (out_axes, "out_axes")):
        if is_array(axes):
            expected = (
                "an int, None, or a tree of these; the transformed function takes the arguments, as in vmap(f)(x)"
            )
            raise TypeError(f"vmap: {name} is {axes!r}: expected {expected}")

    def wrapped(*args: Any, **named: Any) -> Any:
        axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise StructureError(f"vmap: in_axes has {len(axes)} items, expected {len(args)}, one for each argument")
        arguments = [
            _pairs(argument, axis, f"argument {at}") for at, (argument, axis) in enumerate(zip(args, axes, strict=True))
        ]
        by_name = {name: _pairs(argument, 0, f"argument {name!r}") for name, argument in named.items()}
        size = _size([pair for pairs, _ in (*arguments, *by_name.values()) for pair in pairs])
        level = new_batch_level()
        inside = [_batched(level, pairs, structure) for pairs, structure in arguments]
        with Tape() as tape:  # of the arrays that the function makes, and assigns to
            result = f(*inside, **{name: _batched(level, *entry) for name, entry in by_name.items()})
        pairs, structure = _pairs(result, out_axes, "the result")
        leaves = [_unbatched(level, size, _without_constant(tape, leaf), axis, place) for leaf, axis, place in pairs]
        return tree.unflatten(structure, leaves)

    return transformed(wrapped, f, functools.partial(vmap, f, in_axes, out_axes))


# A leaf, its axis of examples, and its place for errors.
_Pair = tuple[Any, int | None, str]


def _pairs(argument: Tree, axes: Any, what: str) -> tuple[list[_Pair], tree.Structure]:
    """The leaves of a tree with their axes, and the structure of the tree."""
    leaves, structure = tree.flatten(argument)
    chosen = tree.leaves(_spread(axes, argument, what))
    places = [f"{what}, {path}" if (path := str(structure.path(at))) else what for at in range(len(leaves))]
    return [(leaf, axis.axis, place) for leaf, axis, place in zip(leaves, chosen, places, strict=True)], structure


class _Axis:
    """An axis as a leaf of a tree: None would be an empty container."""

    def __init__(self, axis: int | None) -> None:
        self.axis = axis


def _spread(axes: Any, argument: Tree, what: str) -> Tree:
    """The axes as a tree of the structure of ``argument``."""
    if axes is None or isinstance(axes, int):
        return tree.map(lambda _: _Axis(axes), argument)
    if isinstance(axes, dict) and isinstance(argument, dict) and axes.keys() == argument.keys():
        return {key: _spread(axes[key], part, what) for key, part in argument.items()}
    if isinstance(axes, (tuple, list)) and isinstance(argument, (tuple, list)) and len(axes) == len(argument):
        parts = [_spread(axis, part, what) for axis, part in zip(axes, argument, strict=True)]
        return type(argument)(*parts) if hasattr(argument, "_fields") else type(argument)(parts)
    raise StructureError(
        f"vmap: {what}: found the axes {axes!r}, expected an axis, None, or a tree of these like {what}"
    )


def _size(pairs: list[_Pair]) -> int:
    """The number of examples."""
    first: tuple[int, str] | None = None
    for leaf, axis, place in pairs:
        if axis is None:
            continue
        shape = tuple(getattr(leaf, "shape", ()))
        if shape and not (is_array(plain(leaf)) or isinstance(leaf, Batched)):
            raise DtypeError(f"vmap: {place}: found {type(leaf).__name__}, expected an array, or None in in_axes")
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"vmap: {place}: found shape {shape}, expected an axis {axis} of examples, or None in in_axes"
            )
        if first is not None and shape[axis] != first[0]:
            raise ShapeError(
                f"vmap: {place}: axis {axis} has size {shape[axis]}, expected {first[0]}, as {first[1]} has"
            )
        first = first or (shape[axis], place)
    if first is None:
        raise ValueError("vmap: no argument is mapped: expected an axis in in_axes")
    return first[0]


def _batched(level: int, pairs: list[_Pair], structure: tree.Structure) -> Tree:
    return tree.unflatten(
        structure,
        [
            leaf if axis is None else Batched(level, xp.moveaxis(leaf, axis, 0) if axis else leaf)
            for leaf, axis, _ in pairs
        ],
    )


def _without_constant(tape: Tape, leaf: Any) -> Any:
    """The value of a variable of a tape on which all are constants, also within batched values.

    Anything else is returned unchanged.
    """
    if isinstance(leaf, Batched):
        value = _without_constant(tape, leaf.value)
        return leaf if value is leaf.value else Batched(leaf.level, value)
    return leaf.value if isinstance(leaf, Variable) and tape.owns(leaf) else leaf


def _unbatched(level: int, size: int, leaf: Array, axis: int | None, place: str) -> Any:
    """A leaf of the result with the axis of the examples."""
    if isinstance(leaf, Batched) and leaf.level == level:
        if axis is None:
            raise ValueError(f"vmap: {place} differs between examples: expected an axis in out_axes, found None")
        if not -leaf.value.ndim <= axis < leaf.value.ndim:
            shape = tuple(leaf.value.shape[1:])
            raise ShapeError(
                f"vmap: {place}: found shape {shape} of one example, expected {-len(shape) - 1} to {len(shape)} in "
                f"out_axes, found {axis}"
            )
        return xp.moveaxis(leaf.value, 0, axis) if axis else leaf.value
    if axis is None or not (is_numeric(leaf) or isinstance(leaf, Batched)):
        return leaf
    array = leaf if is_array(leaf) or isinstance(leaf, (Variable, Batched)) else xp.asarray(leaf)
    repeated = xp.broadcast_to(array, (size, *array.shape))
    return xp.moveaxis(repeated, 0, axis) if axis else repeated
