"""The parameters and gradients of a model as named arrays."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad import _core, tree, xp
from oxigrad._core import KeyPath, StructureError, Watched
from oxigrad._names import path_name
from oxigrad._typing import Array, Tree
from oxigrad.ops.backends import copied_like, detached, dtype_name, is_array, is_immutable, on_host, resolved, to_host
from oxigrad.ops.core.aliasing import refuse_unwritable
from oxigrad.optim.optimizer import Optimizer
from oxigrad.step.arrays.alignment import align
from oxigrad.step.arrays.gradient_check import check_gradient
from oxigrad.step.arrays.sparse_rows import SparseRows
from oxigrad.step.arrays.tied_gradients import summed
from oxigrad.step.device.step_writes import StepWrites
from oxigrad.step.parameters.executor import executor_of
from oxigrad.step.parameters.parameter import copying
from oxigrad.step.plan.announcements import FinalGradients
from oxigrad.step.plan.gradient_hooks import GradientHooks
from oxigrad.step.plan.gradients import checked_gradients, read_gradients
from oxigrad.step.plan.plan import Plan

_FLOATING = {"bfloat16", "float16", "float32", "float64"}


def nested(arrays: Mapping[KeyPath, Array]) -> Tree:
    """Nested dicts in which arrays have the given key paths; a bare array for the empty one."""
    root: dict[Any, Any] = {}
    for path, array in arrays.items():
        classes: list[Any] = [*map(type, path)]
        keys = [getattr(key, each.__match_args__[0]) for key, each in zip(path, classes, strict=True)]
        if not keys:
            return array
        *parents, last = keys
        place = root
        for key in parents:
            place = place.setdefault(key, {})
        place[last] = array
    return root


def host_gradient(gradient: Array) -> np.ndarray:
    """A dense gradient of any library in host memory, a view where that is possible."""
    return gradient if type(gradient) is np.ndarray else _host(resolved(gradient))


class Parameters:
    """Reads and writes the parameters that an optimizer updates, by key path, in models of any library.

    Args:
        optimizer: optimizer whose settings select the parameters.

    >>> import oxigrad as ox
    >>> parameters, model = Parameters(ox.optim.SGD()), {"w": np.ones(2), "name": "m"}
    >>> parameters.read(model)
    {'w': array([1., 1.])}
    >>> parameters.write(model, {"w": np.zeros(2)})
    {'w': array([0., 0.]), 'name': 'm'}
    """

    nested: Callable[[Mapping[KeyPath, Array]], Tree] = staticmethod(nested)
    on_host: Callable[[Array], np.ndarray[Any, Any]] = staticmethod(host_gradient)

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._plan: Plan | None = None
        #: The model that replaced the one of the present update, and of one that an error ended with the leaves that
        #: it was given.
        self._replacement: Tree = None
        self._ended: tuple[list[Array], Tree] | None = None

    def read(self, model: Tree) -> dict[str, np.ndarray]:
        """The parameters by key path: views where they are in host memory, which are not to be written to."""
        plan, leaves = self._planned(model)
        return {p.text: _host(leaves[p.index]) for p in plan.parameters}

    def leaves(self, model: Tree) -> dict[str, Array]:
        """The arrays of the model itself that are its parameters, by key path."""
        plan = self._planned(model)[0]
        leaves = tree.flatten(model)[0] if (planned := plan.leaves(model)) is None else planned
        return {p.text: leaves[p.index] for p in plan.parameters}

    def writable(self, model: Tree) -> dict[str, Array]:
        """The arrays of `leaves` that a step writes to."""
        return {path: array for path, array in self.leaves(model).items() if _core.is_writable(array)}

    def gradients(
        self, model: Tree, grads: Tree | None, *, optional: bool = False, on_host: bool = True
    ) -> dict[str, Array]:
        """The gradients by key path; gradients of tied parameters are summed.

        Without ``grads``, those that the model holds itself.

        Each parameter needs a gradient, because workers must have gradients of the same parameters. (`Optimizer.update`
        skips parameters without one.) With ``optional``, the result lacks the parameters whose gradient is None. Dense
        ones are in host memory, unless they are to stay where they are. Raises `StructureError`, `ShapeError` or
        `DtypeError` with the key path.
        """
        if grads is None:
            leaves, structure = tree.flatten(model)
            held = structure.gradients(leaves)
            if held is None:
                raise StructureError("the model does not hold its gradients: expected grads")
            plan = self._planned(model)[0]
            for p in plan.parameters if not optional else ():
                if all(held[index] is None for index in p.indices):
                    raise StructureError(
                        f"{p.text}: the gradient is missing: expected one of each parameter on every worker, as after "
                        "loss.backward(); a parameter that is frozen, by its own flag or by groups, needs none"
                    )
            aligned = checked_gradients(plan, held, called=True, keep_rows=True, optional=optional)
        else:
            plan, leaves = self._planned(model)
            if (plain := _plain(plan, grads)) is not None:
                return plain
            aligned = read_gradients(plan, grads, called=True, keep_rows=True, optional=optional)
        gradients = [(p, aligned[p.index]) for p in plan.parameters]
        return {p.text: _checked(p, gradient, on_host=on_host) for p, gradient in gradients if gradient is not None}

    def tree(self, model: Tree, gradients: Mapping[str, Array]) -> Tree:
        """Gradients by key path as a tree of dicts that `Optimizer.update` matches with the model by key path.

        An array becomes one of the library of its parameter, on its device, unless the core computes the update.
        Parameters that ``gradients`` lack are not updated.
        """
        plan, leaves = self._planned(model)
        by_path: dict[KeyPath, Array] = {}
        for p in plan.parameters:
            g, array = gradients.get(p.text), leaves[p.index]
            if not p.executor.is_core and isinstance(g, np.ndarray) and not isinstance(array, np.ndarray):
                g = copied_like(g, array)
            by_path |= dict.fromkeys(p.paths, g)
        return nested(by_path)

    def plan(self, model: Tree) -> Plan:
        """The parameters of a model, each with its group of hyperparameters."""
        return self._planned(model)[0]

    def announced(self, model: Tree, watched: Watched) -> "AnnouncedGradients":
        """The gradients of a replay, which announces them one by one: see `AnnouncedGradients`."""
        return AnnouncedGradients(self._planned(model)[0], watched)

    @staticmethod
    def hooks(owner: Any, announce: Callable[[Any, Any], None]) -> GradientHooks:
        """The hooks of an ``owner`` on tensors of PyTorch: ``announce(owner, leaf)`` tells of each final gradient."""
        return GradientHooks(owner, announce)

    def paths(self, model: Tree) -> list[KeyPath]:
        """The key paths of the parameters, the first one of each."""
        return [p.paths[0] for p in self._planned(model)[0].parameters]

    def frozen(self, model: Tree) -> dict[KeyPath, Array]:
        """The arrays that groups or a partition freeze, by key path."""
        plan, leaves = self._planned(model)
        paths = {index: plan.structure.path(index) for index in range(len(leaves))} if plan.frozen else {}
        return {path: leaves[index] for index, path in paths.items() if str(path) in plan.frozen}

    def untrained(self, model: Tree) -> dict[str, np.ndarray]:
        """The arrays of floating-point dtype that no step updates, such as frozen parameters and buffers, by key path.

        Views as of `read`.
        """
        return {str(path): _host(array) for path, array in self._untrained(model).items()}

    def all(self, model: Tree) -> dict[str, np.ndarray]:
        """The arrays of `read` and `untrained`."""
        return {**self.read(model), **self.untrained(model)}

    def write_untrained(self, model: Tree, values: Mapping[str, np.ndarray]) -> Tree:
        """As `write`, for arrays of `untrained`. Those that have these values already are left alone."""
        replacements, copies = [], []
        for path, array in self._untrained(model).items():
            value = values.get(str(path))
            if value is None or value.tobytes() == _host(array).tobytes():
                continue
            if executor_of(array).writes_host:
                refuse_unwritable(str(path), "array", array)
                copies.append(copying(value, array))
            else:
                replacements.append((path, copied_like(value, array)))
        return self._write(model, replacements, copies) if replacements or copies else model

    def _untrained(self, model: Tree) -> dict[KeyPath, Array]:
        plan = self._planned(model)[0]
        trained = {index for p in plan.parameters for index in p.indices}
        leaves, structure = tree.flatten(model)
        paths = {index: structure.path(index) for index in range(len(leaves)) if index not in trained}
        return {
            path: detached(leaves[index])
            for index, path in paths.items()
            if is_array(leaves[index]) and dtype_name(leaves[index].dtype) in _FLOATING
        }

    def mapped(self, model: Tree, change: Callable[[Any, Array], Array]) -> Tree:
        """A copy of the model with ``change(parameter, array)`` in place of the array of each parameter.

        The arrays are outside of their library's own recording.
        """
        plan, leaves = self._planned(model)
        arrays = list(leaves)
        for p in plan.parameters:
            changed = change(p, leaves[p.index])
            for index in p.indices:
                arrays[index] = changed
        return tree.unflatten(plan.structure, arrays)

    def check_replaceable(self, model: Tree) -> None:
        """Raises `StructureError` for a model that `write` would have to replace by another tree."""
        self._planned(model)[0].check_replaceable(model)

    def write(self, model: Tree, values: Mapping[str, np.ndarray]) -> Tree:
        """The model with other values for the parameters named: in place where they can be written."""
        plan, leaves = self._planned(model)
        rest = {}
        for p in plan.parameters:
            if p.text not in values:
                continue
            array, value = leaves[p.index], values[p.text]
            is_simple = p.executor.writes_host and _core.is_writable(array) and _core.exports_memory(array)
            if is_simple and (value.dtype is array.dtype or dtype_name(value.dtype) == dtype_name(array.dtype)):
                _core.copy(value, array)
            else:
                rest[p.text] = value if isinstance(array, (np.ndarray, np.generic)) else copied_like(value, array)
        if not rest:
            return model
        return self._write(model, *plan.written_with(leaves, rest))

    def _write(self, model: Tree, replacements: Any, copies: Any) -> Tree:
        new = _core.Stepper().write(model, _core.Writes(replacements=replacements, copies=copies))
        if new is not model:
            self._replacement = new
        return new

    def update(self, model: Tree, step: Callable[[Tree], Tree]) -> Tree:
        """The result of ``step`` for a model.

        A model of tuples or a bare array is replaced by what workers exchange before the step itself. Where that
        raises, the caller has the model from before: the next update of it begins from the replacement.
        """
        begin, (ended, self._ended) = model, (self._ended, None)
        if ended is not None:
            leaves = tree.leaves(model)
            if len(leaves) == len(ended[0]) and all(map(operator.is_, leaves, ended[0])):
                begin = ended[1]
        self._replacement = begin
        try:
            return step(begin)
        except BaseException:
            if self._replacement is not model:
                self._ended = tree.leaves(model), self._replacement
            raise
        finally:
            self._replacement = None

    def zeros(self, model: Tree, grads: Tree | None) -> _core.Writes:
        """The writes of zeros into the gradients of the parameters, or into those that the model holds.

        Raises `StructureError` for `SparseRows` and `ArrayMemoryError` for an array that cannot be written.
        """
        plan, writes = self._planned(model)[0], StepWrites()
        leaves, structure = tree.flatten(model)
        gradients = (structure.gradients(leaves) or []) if grads is None else align(plan.structure, grads).leaves
        for p in plan.parameters:
            for path, g in ((str(plan.structure.path(i)), gradients[i]) for i in p.indices if gradients[i] is not None):
                if not is_array(g):
                    raise StructureError(
                        f"{path_name(path)}: zero_gradients leaves zeros in arrays: expected an array, found "
                        f"{type(g).__name__}"
                    )
                if on_host(g) or is_immutable(g):
                    refuse_unwritable(path, "gradient, where zero_gradients is to leave zeros,", g)
                writes.copy_into(detached(g), xp.zeros_like(detached(g)))
        return writes.frozen()

    def _planned(self, model: Tree) -> tuple[Plan, list[Array]]:
        plan = self._plan
        if plan is not None and plan.is_current() and (leaves := plan.leaves(model)) is not None:
            return plan, plan.detach(leaves)
        leaves, structure = tree.flatten(model)
        plan = self._plan = Plan(leaves, structure, self._optimizer._step_options)
        return plan, plan.detach(leaves)


class AnnouncedGradients(FinalGradients):
    """The dense gradients of the parameters of a ``plan``, by key path, as a replay announces them.

    It calls ``begin(watched, ...)`` first. `paths` are the key paths of all parameters.
    """

    def __init__(self, plan: Plan, watched: Watched) -> None:
        super().__init__(plan.parameters, watched)
        self._plan = plan
        self.paths: list[str] = [p.text for p in plan.parameters]

    def take(self, which: int, g: Array) -> tuple[bool, tuple[str, Array] | None]:
        """Whether a gradient is a dense one of a parameter, with the key path and the gradient that it completes."""
        leaf = self.leaves[which]
        p = self.of_leaf.get(leaf)
        if p is None or isinstance(g, SparseRows):
            return False, None
        if not self.add(p, leaf, g):
            return True, None
        gradients = self.pop(p)
        gradient = gradients[0] if len(gradients) == 1 else summed(gradients)
        check_gradient(p.text, gradient, p.shape, p.dtype)
        return True, (p.text, gradient)

    def put_back(self, grads: Tree, complete: Mapping[str, Array]) -> Tree:
        """The gradients that the replay returned, with those that were taken from it.

        ``complete`` are the ones of whole parameters.
        """
        aligned = align(self._plan.structure, grads)
        for p in self._plan.parameters:
            if p.text in complete:
                for i in p.indices:
                    aligned.leaves[i] = None
                aligned.leaves[p.index] = complete[p.text]
        for leaf, g in self.held.items():
            aligned.leaves[leaf] = g
        return aligned


def _host(array: Array) -> np.ndarray:
    return np.asarray(to_host(array))


def _plain(plan: Plan, grads: Tree) -> dict[str, Array] | None:
    """The gradients, where all are NumPy arrays of the parameters' shapes and dtypes at their places: nothing to do."""
    leaves = None if plan.tied or plan.constants else _core.tree_leaves_like(grads, plan.structure)
    if leaves is None:
        return None
    gradients: dict[str, Array] = {}
    for p in plan.parameters:
        g = leaves[p.index]
        if type(g) is not np.ndarray or g.dtype is not p.dtype or g.shape != p.shape:
            return None
        gradients[p.text] = g
    return gradients


def _checked(parameter: Any, gradient: Array, *, on_host: bool) -> Array:
    """A gradient of the parameter's shape and dtype (float32 for half precision), in host memory if ``on_host``."""
    is_sparse = isinstance(gradient, SparseRows)
    read = host_gradient if on_host else resolved
    array = gradient.coalesce().map(_host) if is_sparse else read(gradient)
    check_gradient(parameter.text, array, parameter.shape, parameter.dtype)
    return array
