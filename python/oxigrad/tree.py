"""Trees: nested dataclasses, named tuples, lists, tuples, dicts and registered classes, and key paths into them.

A tree is any nesting of these containers, of modules of PyTorch, and of arrays and datasets of xarray, whose children
are their data. `None` is a container without children; everything else is a leaf. A key path names a subtree, prints as
`layers.0.weight`, and gets or sets the subtree in any tree of the same structure.

>>> from dataclasses import dataclass
>>> import numpy as np
>>> @dataclass
... class Dense:
...     weight: np.ndarray
...     bias: np.ndarray
...     name: str = "dense"
>>> model = {"l1": Dense(np.ones((2, 3)), np.zeros(3)), "scales": [np.ones(3)]}
>>> [str(path) for path in parameters(model)]
['l1.weight', 'l1.bias', 'scales.0']
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from oxigrad import _core, xp
from oxigrad._core import Key, KeyPath, Structure
from oxigrad._names import without
from oxigrad.ops.backends import device_of, is_array, is_smooth, namespace

__all__ = [
    "Key",
    "KeyPath",
    "Structure",
    "field",
    "flatten",
    "key_paths",
    "leaves",
    "map",
    "parameters",
    "path",
    "ravel",
    "register",
    "unflatten",
    "zeros_like",
]

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__)

T = TypeVar("T")


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of `tree`, depth first, and its structure, which is the tree without them.

    Args:
        tree: tree: any nesting of containers, with arrays or other leaves.

    Dicts are taken in insertion order, so two dicts with the same keys in another order have other structures.

    Raises `StructureError` where a container contains itself, or a dict key is neither a str nor an int.

    >>> flatten({"a": [1, 2], "b": None})
    ([1, 2], Structure({a: [*, *], b: None}))
    """
    return _core.tree_flatten(tree)


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """A tree of `structure` with `leaves`, in new containers.

    Args:
        structure: structure of the tree, as returned by `flatten`.
        leaves: leaves of the new tree, depth first.

    Instances are made without calling `__init__` or `__post_init__`, frozen or not, and keep attributes that are
    not fields.

    Raises `StructureError` if the number of leaves does not match the structure.

    >>> leaves, structure = flatten({"a": [1, 2], "b": None})
    >>> unflatten(structure, [10, 20])
    {'a': [10, 20], 'b': None}
    """
    return _core.tree_unflatten(structure, leaves)


def leaves(tree: Any) -> list[Any]:
    """The leaves of `tree`, depth first; `None` is not a leaf.

    Args:
        tree: tree: any nesting of containers, with arrays or other leaves.

    >>> leaves((1, {"a": 2, "b": None}))
    [1, 2]
    """
    return _core.tree_leaves(tree)


def map(f: Callable[..., Any], tree: T, *rest: Any) -> T:
    """A new tree of the results of `f`, called with each leaf of `tree` and the corresponding leaves of `rest`.

    Args:
        f: function of one leaf of each tree.
        tree: tree: any nesting of containers, with arrays or other leaves.
        *rest: further trees of the same structure.

    The trees must have the same structure, except for the order of dict keys; the result has the order of `tree`.

    Raises `StructureError` with the path of the first difference. Exceptions of `f` propagate.

    >>> map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"b": [20], "a": 10})
    {'a': 11, 'b': [22]}
    """
    return _core.tree_map(f, tree, *rest)


def key_paths(tree: Any, to: Any = None, *, recursive: bool = True, writable: bool | None = None) -> list[KeyPath]:
    """The key paths of all subtrees of `tree` except the root, parents before children.

    Args:
        tree: tree: any nesting of containers, with arrays or other leaves.
        to: keep paths to instances of this type, to arrays of this dtype, or to subtrees for which this predicate is
            true; a tuple keeps what any of its items keeps. `None` keeps all, containers included.
        recursive: whether to descend below the children of the root.
        writable: keep only paths that can be set in place (`True`), or only the others (`False`).

    A callable that is not a class is a predicate, and is called with containers too.

    >>> import numpy as np
    >>> tree = {"w": np.ones(2), "sizes": (3, np.ones(2, dtype=np.float32))}
    >>> key_paths(tree)
    [KeyPath('w'), KeyPath('sizes'), KeyPath('sizes.0'), KeyPath('sizes.1')]
    >>> key_paths(tree, to=(np.float32, int))
    [KeyPath('sizes.0'), KeyPath('sizes.1')]
    >>> key_paths(tree, to=np.ndarray, writable=True)
    [KeyPath('w')]
    """
    for wanted in to if isinstance(to, tuple) else (to,):
        if isinstance(wanted, (str, bytes, int, float, list, dict, set)):
            raise TypeError(f"to is {wanted!r}: expected a type, a dtype, a predicate, or a tuple of them")
    return _core.tree_key_paths(tree, to, recursive, writable)


def path(text: str, tree: Any) -> KeyPath:
    """Parses a key path of `tree`, which tells an index `0` from a dict key and a field `a` from a key.

    Args:
        text: key path as it is printed, such as ``layers.0.weight``.
        tree: tree in which the path is looked up.

    A dict key with characters other than letters, digits, `_` and `-`, or a str key that looks like a number, is
    written in double quotes.

    Raises `KeyPathError` where `text` is malformed or names no subtree of `tree`.

    >>> tree = {"layers": [{"a.b": 1}]}
    >>> path('layers.0."a.b"', tree)(tree)
    1
    """
    return _core.tree_path(text, tree)


def parameters(tree: Any) -> dict[KeyPath, Any]:
    """Trainable leaves of `tree` by key path: floating-point and complex arrays, except below `trainable=False`.

    Args:
        tree: tree: any nesting of containers, with arrays or other leaves.

    The same array at two paths is one parameter, listed at its first path. Python numbers are not parameters.

    >>> import numpy as np
    >>> w = np.ones(2)
    >>> parameters({"w": w, "tied": w, "n": np.arange(3), "rate": 0.1})
    {KeyPath('w'): array([1., 1.])}
    """
    return _core.tree_parameters(tree)


def zeros_like(tree: T) -> T:
    """A new tree with zeros of the same shape, dtype and device for every parameter, and the other leaves unchanged.

    Args:
        tree: tree: any nesting of containers, with arrays or other leaves.

    An array at two paths becomes one array of zeros at both.

    >>> import numpy as np
    >>> zeros_like({"w": np.ones(2), "name": "l1"})
    {'w': array([0., 0.]), 'name': 'l1'}
    """
    leaves, structure = _core.tree_flatten(tree)
    for places in _core.tree_tied(leaves, structure):
        array = leaves[places[0]]
        zeros = xp.zeros_like(array)
        for place in places:
            leaves[place] = zeros
    return _core.tree_unflatten(structure, leaves)


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of `tree` as one vector, and the function that makes such a tree from a vector.

    Args:
        tree: tree with at least one floating-point number or array.

    The vector has the elements of arrays of floating-point or complex dtype, and Python floats, depth first, in the
    dtype to which they promote. ``unravel(vector)`` takes a vector of the same length and gives each array its shape
    and dtype back, and each number an element of the vector; other leaves come from `tree`. Both are differentiable.

    Raises `StructureError` where `tree` has no such leaf, and `ShapeError` where a vector has another shape.

    >>> import numpy as np
    >>> vector, unravel = ravel({"w": np.ones((2, 2)), "b": 3.0, "name": "l1"})
    >>> vector
    array([1., 1., 1., 1., 3.])
    >>> unravel(2 * vector)
    {'w': array([[2., 2.],
           [2., 2.]]), 'b': np.float64(6.0), 'name': 'l1'}
    """
    leaves, structure = _core.tree_flatten(tree)
    chosen = [at for at, leaf in enumerate(leaves) if is_smooth(leaf)]
    if not chosen:
        raise _core.StructureError("ravel: the tree has no floating-point number: expected one at least")
    arrays = [leaf for leaf in (leaves[at] for at in chosen) if is_array(_core.plain(leaf))]
    dtype = xp.result_type(*arrays) if arrays else None
    parts = [leaves[at] for at in chosen]
    vector = xp.concat([_flat(part, arrays, dtype) for part in parts])
    shapes = [tuple(getattr(part, "shape", ())) for part in parts]

    def unravel(vector: Any) -> Any:
        if tuple(vector.shape) != (total,):
            raise _core.ShapeError(f"unravel: found a vector of shape {tuple(vector.shape)}, expected {(total,)}")
        new_leaves, end = [*leaves], 0
        for at, part, shape in zip(chosen, parts, shapes, strict=True):
            begin, end = end, end + math.prod(shape)
            if is_array(_core.plain(part)):
                new_leaves[at] = xp.astype(xp.reshape(vector[begin:end], shape), part.dtype, copy=False)
            else:
                new_leaves[at] = vector[begin]
        return _core.tree_unflatten(structure, new_leaves)

    total = sum(math.prod(shape) for shape in shapes)
    return vector, unravel


def _flat(leaf: Any, arrays: list[Any], dtype: Any) -> Any:
    """A leaf as a vector of a dtype; a number as one of the library and device of the first array."""
    if is_array(_core.plain(leaf)):
        return xp.astype(xp.reshape(leaf, (-1,)), dtype, copy=False)
    like = _core.plain(arrays[0]) if arrays else None
    library, device = (namespace(), None) if like is None else (namespace(like), device_of(like))
    return library.zeros(1, dtype=dtype, device=device) + leaf


def field(*, trainable: bool = True, metadata: Mapping[Any, Any] | None = None, **options: Any) -> Any:
    """`dataclasses.field` that is marked as trainable or not, with everything below it.

    Args:
        trainable: whether the field and everything below it is trained.
        metadata: mapping of your own, as in `dataclasses.field`.
        **options: further arguments of `dataclasses.field`, such as ``default``.

    `options` and `metadata` are passed to `dataclasses.field`.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @dataclass
    ... class Norm:
    ...     scale: np.ndarray
    ...     mean: np.ndarray = field(trainable=False)
    >>> list(parameters(Norm(np.ones(2), np.zeros(2))))
    [KeyPath('scale')]
    """
    if not isinstance(trainable, bool):
        raise TypeError(f"trainable is {trainable!r}: expected True or False")
    return dataclasses.field(metadata={**(metadata or {}), _core.TRAINABLE: trainable}, **options)


def register(
    cls: type[T] | None = None,
    *,
    fields: Iterable[str] | None = None,
    not_trainable: Iterable[str] = (),
    writable: bool = True,
    flatten: Callable[[T], tuple[Iterable[Any], Any]] | None = None,
    unflatten: Callable[[Any, list[Any]], T] | None = None,
) -> Any:
    """Registers a class whose instances are containers; without `cls`, returns a decorator. Returns the class.

    By attributes: those named in `fields` are the children. A new instance is made without calling `__init__`, with all
    other attributes as they were, and subclasses are containers too. By functions, where children are not attributes:
    `flatten(instance)` returns the children and anything else, `unflatten(anything_else, children)` a new instance. The
    children have index paths, or paths of their names where `flatten` returns a dict of them; `unflatten` is given a
    list. They are not writable in place, and a subclass has to be registered by itself.

    Args:
        cls: class to register; None makes a decorator.
        fields: the attributes that are children.
        not_trainable: the names in `fields` that are not trained.
        writable: whether instances accept assignment to the fields.
        flatten: function of an instance that returns its children and anything else.
        unflatten: function ``(anything_else, children)`` that returns an instance.

    A second registration of a class replaces the first.

    Raises `TypeError` where neither or both ways are given.

    >>> @register(fields=("weight",))
    ... class Scale:
    ...     def __init__(self, weight, name):
    ...         self.weight, self.name = weight, name
    >>> scale = map(lambda x: 2 * x, Scale(1.0, "s"))
    >>> scale.weight, scale.name
    (2.0, 's')
    """
    for name, names in (("fields", fields), ("not_trainable", not_trainable)):
        if isinstance(names, str):
            raise TypeError(f"register: {name} is {names!r}: expected a tuple of names, ({names!r},)")
    if cls is None:
        return lambda cls: register(
            cls, fields=fields, not_trainable=not_trainable, writable=writable, flatten=flatten, unflatten=unflatten
        )
    if fields is not None and flatten is None and unflatten is None:
        _register_fields(cls, tuple(fields), frozenset(not_trainable), writable)
    elif fields is None and flatten is not None and unflatten is not None:
        _core.tree_register_functions(cls, flatten, unflatten)
    else:
        raise TypeError(f"register({cls.__name__}): give either fields, or both flatten and unflatten")
    return cls


def _register_fields(cls: type, fields: tuple[str, ...], not_trainable: frozenset[str], writable: bool) -> None:
    if unknown := not_trainable.difference(fields):
        raise TypeError(f"register({cls.__name__}): not_trainable names no fields: {', '.join(sorted(unknown))}")
    _core.tree_register_fields(cls, [(name, name not in not_trainable) for name in fields], writable)
