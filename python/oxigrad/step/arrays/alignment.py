"""Gradients at the positions of a model's leaves: which are given, which are None, and which are missing.

A gradient of None, or a None in place of a subtree, says that the parameters there are not updated. A gradient that is
absent, such as a missing key of a dict, is an error.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from oxigrad import _core, tree
from oxigrad._core import KeyPath, KeyPathError
from oxigrad._names import path_name

#: In the place of a gradient that a tree lacks.
MISSING: Final = object()


@dataclasses.dataclass
class AlignedGradients:
    """The gradients for the leaves of a model: an array, None, or `MISSING` for each.

    ``unknown`` are the key paths of gradients that belong to no leaf. ``is_complete`` tells that the tree has the
    structure of the model, so that none is None.
    """

    leaves: list[Any]
    unknown: list[str]
    is_complete: bool

    def present(self) -> bytes:
        """A byte for each leaf that tells whether its gradient is other than None."""
        return bytes(g is not None for g in self.leaves)


def align(structure: _core.Structure, grads: Any) -> AlignedGradients:
    """The gradients in a tree, which may have another structure than the model: they are then matched by key path.

    Gradients that are `AlignedGradients` already are returned.
    """
    if isinstance(grads, AlignedGradients):
        return grads
    leaves = _core.tree_leaves_like(grads, structure)
    return _by_path(structure, *tree.flatten(grads), grads) if leaves is None else AlignedGradients(leaves, [], True)


def check_order(structure: _core.Structure, leaves: list[Any], grads: AlignedGradients) -> None:
    """Raises TypeError for gradients in the place of the model, which has theirs: the order of optax's ``update``.

    The trees are alike. What tells them apart is the gradient that this thread computed last, and its argument.
    """
    for position, (leaf, gradient) in enumerate(zip(leaves, grads.leaves, strict=True)):
        if _core.are_swapped(leaf, gradient):
            raise TypeError(
                f"{path_name(structure.path(position))}: the model has the gradient that was computed last, and the "
                "gradients have the parameter: expected the model before its gradients"
            )


def _by_path(
    structure: _core.Structure, gradients: list[Any], gradient_structure: _core.Structure, grads: Any
) -> AlignedGradients:
    by_path = {str(gradient_structure.path(i)): g for i, g in enumerate(gradients)}
    nothing = {str(path) for path in _empty(grads)}
    leaves: list[Any] = []
    for path in structure.paths():
        text = str(path)
        if text in by_path:
            leaves.append(by_path.pop(text))
        else:
            leaves.append(None if nothing and any(str(at) in nothing for at in _upwards(path)) else MISSING)
    return AlignedGradients(leaves, [*by_path], False)


def _empty(grads: Any) -> list[KeyPath]:
    """The key paths at which a tree is None."""
    if grads is None:
        return [KeyPath()]
    try:
        return tree.key_paths(grads, lambda subtree: subtree is None)
    except KeyPathError:
        return []


def _upwards(path: KeyPath) -> Iterator[KeyPath]:
    """A key path, and those of the containers around it."""
    at: KeyPath | None = path
    while at is not None:
        yield at
        at = at.parent
