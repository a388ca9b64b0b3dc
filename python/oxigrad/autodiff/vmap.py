"""The transform `vmap`: a function of one example, applied to a batch of examples at once."""

import functools
from collections.abc import Callable
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import ShapeError, StructureError, Variable, new_batch_level
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.batching import Batched
from oxigrad.autodiff.transforms import check_callable
from oxigrad.ops.backends import is_array


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that applies ``f`` to each example of a batch, and computes all examples at once.

    ``in_axes`` is the axis of the examples in all positional arguments, or a tuple with an item for each: an axis, None for an
    argument that is the same for all examples, or a tree of these whose structure begins as that of the argument. Keyword
    arguments are mapped over their first axis. ``out_axes`` is the axis of the examples in the results, likewise; results
    that are the same for all examples are repeated, unless their axis is None. ``f`` sees arrays without the axis of the examples. Each
    operation is called once, with a leading axis. Called for each example are indexing by a key that depends on it, functions with a
    rule of the user's, `implicit` among them, functions of other libraries, and checkpoints inside of a further derivative. The transforms compose in any order: ``vmap(grad(f))`` has a gradient a
    example.

    Raises `ShapeError` where the axes of examples differ in size or do not exist, `StructureError` where ``in_axes`` or
    ``out_axes`` does not match, `ValueError` where no argument is mapped, and `TypeError` for an operation without a batching
    rule, and for a branch on a batched value.

    >>> import numpy as np
    >>> vmap(lambda x, y: x @ y)(np.ones((3, 2)), np.ones((3, 2)))
    array([2., 2., 2.])
    """
    check_callable(f, "vmap")

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise StructureError(f"vmap: in_axes has {len(axes)} items, expected {len(args)}, one for each argument")
        given = [
            _pairs(argument, axis, f"argument {at}") for at, (argument, axis) in enumerate(zip(args, axes, strict=True))
        ]
        by_name = {name: _pairs(argument, 0, f"argument {name!r}") for name, argument in named.items()}
        size = _size([pair for pairs, _ in (*given, *by_name.values()) for pair in pairs])
        level = new_batch_level()
        inside = [_batched(level, pairs, structure) for pairs, structure in given]
        result = f(*inside, **{name: _batched(level, *made) for name, made in by_name.items()})
        pairs, structure = _pairs(result, out_axes, "the result")
        return tree.unflatten(structure, [_unbatched(level, size, *pair) for pair in pairs])

    return wrapped


# A leaf, its axis of examples, and its place for errors.
_Pair = tuple[Any, int | None, str]


def _pairs(given: Tree, axes: Any, what: str) -> tuple[list[_Pair], tree.Structure]:
    """The leaves of a tree with their axes, and the structure of the tree."""
    leaves, structure = tree.flatten(given)
    chosen = tree.leaves(_spread(axes, given, what))
    places = [f"{what}, {path}" if (path := str(structure.path(at))) else what for at in range(len(leaves))]
    return [(leaf, axis.axis, place) for leaf, axis, place in zip(leaves, chosen, places, strict=True)], structure


class _Axis:
    """An axis as a leaf of a tree: None would be an empty container."""

    def __init__(self, axis: int | None) -> None:
        self.axis = axis


def _spread(axes: Any, given: Tree, what: str) -> Tree:
    """The axes as a tree of the structure of ``given``."""
    if axes is None or isinstance(axes, int):
        return tree.map(lambda _: _Axis(axes), given)
    if isinstance(axes, dict) and isinstance(given, dict) and axes.keys() == given.keys():
        return {key: _spread(axes[key], part, what) for key, part in given.items()}
    if isinstance(axes, (tuple, list)) and isinstance(given, (tuple, list)) and len(axes) == len(given):
        parts = [_spread(axis, part, what) for axis, part in zip(axes, given, strict=True)]
        return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
    raise StructureError(
        f"vmap: {what}: found the axes {axes!r}, expected an axis, None, or a tree of these like {what}"
    )


def _size(pairs: list[_Pair]) -> int:
    """The number of examples."""
    found: tuple[int, str] | None = None
    for leaf, axis, place in pairs:
        if axis is None:
            continue
        shape = tuple(getattr(leaf, "shape", ()))
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"vmap: {place}: found shape {shape}, expected an axis {axis} of examples, or None in in_axes"
            )
        if found is not None and shape[axis] != found[0]:
            raise ShapeError(
                f"vmap: {place}: axis {axis} has size {shape[axis]}, expected {found[0]}, that of {found[1]}"
            )
        found = found or (shape[axis], place)
    if found is None:
        raise ValueError("vmap: no argument is mapped: expected an axis in in_axes")
    return found[0]


def _batched(level: int, pairs: list[_Pair], structure: tree.Structure) -> Tree:
    return tree.unflatten(
        structure,
        [
            leaf if axis is None else Batched(level, xp.moveaxis(leaf, axis, 0) if axis else leaf)
            for leaf, axis, _ in pairs
        ],
    )


def _unbatched(level: int, size: int, leaf: Array, axis: int | None, place: str) -> Any:
    """A leaf of the result with the axis of the examples."""
    if isinstance(leaf, Batched) and leaf.level == level:
        if axis is None:
            raise ValueError(f"vmap: {place} differs between examples: expected an axis in out_axes, found None")
        return xp.moveaxis(leaf.value, 0, axis) if axis else leaf.value
    if axis is None:
        return leaf
    array = leaf if is_array(leaf) or isinstance(leaf, (Variable, Batched)) else xp.asarray(leaf)
    repeated = xp.broadcast_to(array, (size, *array.shape))
    return xp.moveaxis(repeated, 0, axis) if axis else repeated
