"""Pytrees of JAX as trees of oxigrad: parameters, gradients and slots by key path."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from oxigrad import tree, xp
from oxigrad._core import StateError, StructureError, is_inexact
from oxigrad._names import path_name
from oxigrad.ops.backends import dtype_name, is_array, is_complex
from oxigrad.optax.library import jax
from oxigrad.optim import Optimizer, ParameterGroup
from oxigrad.rules.core.rule import Rule
from oxigrad.step.arrays.precision import half
from oxigrad.step.arrays.sparse_rows import SparseRows


class State(NamedTuple):
    """The state of a transformation: the steps taken, and the slots by name, each a tree like the parameters.

    A slot of one number has an array without axes for each parameter. A parameter without the slot has None there.
    ``micro`` is the number of gradients accumulated since the last step, for optimizers with ``accumulate``.
    """

    count: Any
    slots: dict[str, Any]
    micro: Any = None


class Named:
    """The leaves of a pytree of JAX by key path, as a tree of oxigrad: nested dicts."""

    structure: Any

    def __init__(self, params: Any) -> None:
        self.params = params
        with_paths, self.structure = jax.tree_util.tree_flatten_with_path(params)
        self._keys = [tuple(map(_key, path)) for path, _ in with_paths]
        self.leaves: list[Any] = _distinct([jax.numpy.asarray(leaf) for _, leaf in with_paths])
        self.tree: Any = self.nested(self.leaves)
        named, structure = tree.flatten(self.tree)
        self.paths: list[str] = [str(structure.path(i)) for i in range(len(named))]
        if len(named) != len(self.leaves):
            raise StructureError("the parameters have two leaves of one key path: expected keys that print differently")

    def nested(self, leaves: Sequence[Any]) -> Any:
        """Arrays like the leaves, in nested dicts."""
        if self._keys == [()]:
            return leaves[0]
        root: dict[Any, Any] = {}
        for keys, leaf in zip(self._keys, leaves, strict=True):
            at = root
            for key in keys[:-1]:
                at = at.setdefault(key, {})
            at[keys[-1]] = leaf
        return root

    def like(self, pytree: Any, what: str) -> list[Any]:
        """The leaves of a pytree of the same structure."""
        if isinstance(pytree, State):
            raise TypeError(f"the {what} are a State: expected the order update(updates, state, params)")
        try:
            return self.structure.flatten_up_to(pytree)
        except ValueError as error:
            raise StructureError(f"the {what} have another structure than the parameters: {error}") from None

    @property
    def has_parameters(self) -> bool:
        """Whether there is a leaf that an optimizer may update."""
        return any(map(is_inexact, self.leaves))

    def gradients(self, updates: Any, opt: Optimizer) -> Any:
        """The gradients of the leaves, in nested dicts, in the dtypes of the leaves.

        Raises `StructureError` for a gradient of None whose parameter the optimizer updates, as optax does: the state
        does not count the updates of each parameter.
        """
        gradients = self.like(updates, "updates")
        for path, leaf, g in zip(self.paths, self.leaves, gradients, strict=True):
            if g is None and _group(opt, path, leaf) is not None:
                raise StructureError(
                    f"{path_name(path)}: the gradient is None: expected an array; optax.masked, or a group of None, "
                    "leaves a parameter as it is"
                )
        return self.nested([_of_dtype(g, leaf) for g, leaf in zip(gradients, self.leaves, strict=True)])

    def by_slot(self, slots: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> dict[str, Any]:
        """The trees of slots, by name, from the slots of each parameter by key path."""
        every = dict.fromkeys([*names, *(name for parameter_slots in slots.values() for name in parameter_slots)])
        return {
            name: self.structure.unflatten([slots.get(path, {}).get(name) for path in self.paths]) for name in every
        }

    def by_path(self, slots: Mapping[str, Any], opt: Optimizer) -> dict[str, dict[str, Any]]:
        """The slots of each parameter that an optimizer updates, by key path, from the trees of slots."""
        columns = {name: self.like(branch, f"slots {name}") for name, branch in slots.items()}
        by_path = {}
        rule_of = functools.cache(lambda group: group.rule())
        for i, (path, leaf) in enumerate(zip(self.paths, self.leaves, strict=True)):
            if (group := _group(opt, path, leaf)) is not None:
                parameter_slots = {name: column[i] for name, column in columns.items() if column[i] is not None}
                _check_slots(path, leaf, parameter_slots, rule_of(group))
                with jax.enable_x64(True):  # numbers are of float64 in every mode
                    by_path[path] = {name: jax.numpy.asarray(slot) for name, slot in parameter_slots.items()}
        return by_path


def given_parameters(params: Any) -> Named:
    """The parameters of a step; raises `ValueError` for None, and `TypeError` for a state."""
    if params is None:
        raise ValueError("params is None: expected the parameters, as in update(updates, state, params)")
    if isinstance(params, State):
        raise TypeError("params is a State: expected the order update(updates, state, params)")
    return Named(params)


def key_paths(params: Any) -> list[str]:
    """The key paths of the leaves of a pytree, as groups of hyperparameters match them."""
    return Named(params).paths


def _group(opt: Optimizer, path: str, leaf: Any) -> ParameterGroup | None:
    """The group of a leaf; None if it is frozen, or no parameter."""
    return opt._assign(path, leaf) if is_inexact(leaf) else None


def _of_dtype(g: Any, leaf: Any) -> Any:
    """A gradient in the dtype of its parameter, or in float32 for one of half precision.

    The leaf itself if it is not a parameter.
    """
    if not is_inexact(leaf):
        return leaf
    if isinstance(g, SparseRows):
        return g
    g = jax.numpy.asarray(g) if isinstance(g, float) else g
    if not is_inexact(g) or is_complex(g) or is_complex(leaf):
        return g
    is_wider = half(leaf) is not None and dtype_name(g.dtype) == "float32"
    return g if is_wider else xp.astype(g, leaf.dtype, copy=False)


def _check_slots(path: str, p: Any, slots: Mapping[str, Any], rule: Rule) -> None:
    """Raises `StateError` for a parameter's slots that are missing, or whose dtype or shape is not the rule's."""
    for slot in rule.slots:
        name, array = slot.name, slots.get(slot.name)
        if array is None:
            if not rule.elementwise:  # vectors lack slots of matrices
                continue
            raise StateError(
                f"{path_name(path)}: the state has no slot {name}: expected the State that init or the last step "
                "returned"
            )
        if not is_array(array) or not is_inexact(array):
            kind = dtype_name(array.dtype) if is_array(array) else type(array).__name__
            raise StateError(
                f"{path_name(path)}: the slot {name} is {kind}: expected an array of a floating-point dtype"
            )
        shape = () if slot.is_number else tuple(p.shape)
        if tuple(array.shape) != shape and (rule.elementwise or slot.is_number or slot.begin is None):
            raise StateError(f"{path_name(path)}: the slot {name} has shape {tuple(array.shape)}: expected {shape}")


def _key(key: Any) -> Any:
    """The key of a nested dict for a key of JAX."""
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            part = getattr(key, name)
            return part if type(part) in (int, str) else str(part)
    return str(key)


def _distinct(leaves: list[Any]) -> list[Any]:
    """The leaves without repeated arrays: repetitions are copies."""
    seen: set[int] = set()
    for number, leaf in enumerate(leaves):
        if id(leaf) in seen:
            leaves[number] = jax.numpy.array(leaf, copy=True)
        seen.add(id(leaves[number]))
    return leaves
