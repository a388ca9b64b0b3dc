"""Which parameter of a model is updated by which executor, by which rule, with which hyperparameters."""

import dataclasses
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import _core, tree, xp
from oxigrad._core import ArrayMemoryError, DtypeError, RuleError, ShapeError, StructureError
from oxigrad.ops.aliasing import Named, is_same_array, refuse_shared, refuse_unwritable
from oxigrad.ops.backends import detached, dtype_name, is_array, is_complex, obstacle, refuse_meaning, resolved, to_host
from oxigrad.stepping.precision import HALVES
from oxigrad.stepping.quantized import Quantized
from oxigrad.stepping.sparse_rows import SparseRows


def copying(value: Any, array: Any) -> tuple[Any, Any]:
    """What the core copies at the end of a step: a value in host memory, and the array there that takes it."""
    return value if _core.exports_memory(value) else to_host(value), array


def executor(array: Any, elementwise: bool = True) -> str:
    """How a parameter is updated: by the core in place ("host") or in a "copy", or by the "rule", maybe "into" its memory."""
    if not _core.is_floating(array):
        return "rule"
    if _core.is_writable(array):
        return "host" if elementwise else "into"
    return "copy" if elementwise and isinstance(array, (np.ndarray, np.generic)) else "rule"


@dataclasses.dataclass
class Parameter:
    """A parameter of the model that a plan was made for; ``choice`` says whose rule updates it (see `Plan.choices`)."""

    paths: list[Any]
    text: str
    index: int
    tied: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: Any
    choice: int
    executor: str = "host"

    @property
    def is_half(self) -> bool:
        """Whether it is of half precision: its gradient may be of float32, then."""
        return dtype_name(self.dtype) in HALVES


class Plan:
    """What stays the same from step to step while the model keeps its structure.

    ``choices`` are the rules with their hyperparameters (see `oxigrad.optim.ParameterGroup`) that parameters have; ``frozen`` the
    paths of parameters that nobody updates. ``sparse`` says whether gradients may be `SparseRows`, ``lazy`` whether they may be
    lazy views (see `oxigrad.ops.backends.resolved`); set it where one is seen.
    """

    def __init__(self, leaves: list[Any], structure: Any, owner: Any) -> None:
        self._versions = [
            (version, version.structure) for version in owner._versions()
        ]  # before what they are of is read
        self.structure = structure
        self.sparse = owner.sparse != "dense"
        self.lazy = False
        self._weak_owner = weakref.ref(owner)
        self.parameters: list[Parameter] = []
        self.choices: list[Any] = []
        self.frozen: set[str] = set()
        seen = []
        for index, *tied in _core.tree_tied(leaves, structure):
            array, paths = leaves[index], [structure.path(i) for i in (index, *tied)]
            seen.append((str(paths[0]), array))
            choice = owner._assign(*seen[-1])
            if choice is None:
                self.frozen.update(map(str, paths))
                continue
            self._add(array, paths, index, tuple(tied), choice)
        if not self.parameters:
            raise StructureError(
                "the model has no parameters: expected an array of floating-point dtype somewhere"
                + (" that is not frozen" if self.frozen else "")
            )
        owner._check_patterns(seen)
        self._choose_executors(leaves)

    @property
    def _owner(self) -> Any:
        return self._weak_owner()

    def _add(self, array: Any, paths: list[Any], index: int, tied: tuple[int, ...], choice: Any) -> None:
        text = str(paths[0])
        refuse_meaning(array, f"{text}: the parameter")
        if is_complex(array):
            raise DtypeError(f"{text}: the parameter has dtype {array.dtype}: expected a real floating-point dtype")
        if choice not in self.choices:
            self.choices.append(choice)
        number = self.choices.index(choice)
        self.parameters.append(Parameter(paths, text, index, tied, tuple(array.shape), array.dtype, number))

    def _choose_executors(self, leaves: list[Any]) -> None:
        rules = [choice.rule() for choice in self.choices]
        for p in self.parameters:
            p.executor = executor(leaves[p.index], rules[p.choice].elementwise)
            if p.executor == "rule" and (why := obstacle(leaves[p.index])):
                raise ArrayMemoryError(f"{p.text}: the parameter is {why}")
        if any(p.executor in ("rule", "into") for p in self.parameters) and any(r.supplied & {"total"} for r in rules):
            for p in self.parameters:  # A total is over all of them: all of them by one executor.
                p.executor = executor(leaves[p.index], elementwise=False)
        self.host = [p for p in self.parameters if p.executor in ("host", "copy")]
        self.pick = _picker([p.index for p in self.host], len(leaves))
        self.replaced = [p for p in self.parameters if p.executor in ("copy", "rule")]
        self.copied = [p for p in self.parameters if p.executor == "copy"]
        self.into = [p for p in self.parameters if p.executor == "into"]
        self._looked_at = [*self.copied, *self.into]
        self.ruled = [(i, p) for i, p in enumerate(self.parameters) if p.executor in ("rule", "into")]
        self._tied = [p for p in self.parameters if p.tied]
        self._recorded = [p for p in self.parameters if leaves[p.index] is not detached(leaves[p.index])]
        # The core checks the gradients that go to it as they are.
        self._checked_here = self.parameters if self.ruled else self._tied

    def is_current(self) -> bool:
        """Whether options and groups of hyperparameters are as they were when the plan was made."""
        return all(version.structure == made for version, made in self._versions)

    def fits(self, leaves: list[Any]) -> bool:
        """Whether the plan still holds for these leaves; what changes from step to step the core checks anyway."""
        if not all(leaves[i] is leaves[p.index] for p in self._tied for i in p.tied):
            return False
        return all(executor(leaves[p.index], p.executor == "copy") == p.executor for p in self._looked_at)

    def detach(self, leaves: list[Any]) -> list[Any]:
        """The leaves, with parameters of which their library records derivatives detached: steps are not to be recorded."""
        for p in self._recorded:
            leaves[p.index] = detached(leaves[p.index])
        return leaves

    def unrecorded(self, gradients: list[Any]) -> list[Any]:
        """The gradients, with those that rules are called on detached: what slots are made of would keep their graphs."""
        for _, p in self.ruled:
            g = gradients[p.index]
            gradients[p.index] = g.map(detached) if isinstance(g, SparseRows) else detached(g)
        return gradients

    def check_known(self, slots: Mapping[str, dict[str, Any]]) -> None:
        """Refuses a model whose parameters are not those that the slots were made for."""
        if not slots:
            return
        found = {p.text: p for p in self.parameters}
        for text in [*found, *slots]:
            if text not in slots:
                raise StructureError(f"{text}: a new parameter; the optimizer was begun without it")
            if text not in found:
                raise StructureError(
                    f"{text}: the model has no such parameter any more; the optimizer was begun with it"
                )
            for slot in self.choices[found[text].choice].rule().slots:
                begun = slots[text].get(slot.name)
                if slot.begin is None and begun is not None and tuple(begun.shape) != found[text].shape:
                    shape, begun = found[text].shape, tuple(begun.shape)
                    raise ShapeError(f"{text}: the parameter has shape {shape}, its slot {slot.name} {begun}")

    def gradients(self, leaves: list[Any], grads: Any, *, called: bool = False) -> list[Any]:
        """The gradients at the positions of the model's leaves, those of tied parameters added up.

        One array that is given at several paths of a tied parameter counts once. All are checked here where rules are
        ``called`` on them, whoever updates the parameters otherwise.
        """
        given = _leaves_like(self.structure, grads)
        if given is None:
            given = self._by_path(len(leaves), *tree.flatten(grads))
        for parameter in self.parameters if called else self._checked_here:
            for i in (parameter.index, *parameter.tied):
                if not is_array(given[i]):
                    found = type(given[i]).__name__
                    raise StructureError(f"{self.structure.path(i)}: the gradient is missing: found {found}")
                if type(given[i]) is np.ndarray:
                    continue
                if isinstance(given[i], SparseRows):  # which checked its values
                    self.sparse = True
                else:
                    refuse_meaning(given[i], f"{self.structure.path(i)}: the gradient")
        for parameter in self.parameters if self.lazy else ():
            tied = (parameter.index, *parameter.tied)
            read = {id(g): (g, resolved(g)) for g in (given[i] for i in tied)}  # one array at several paths stays one
            for i in tied:
                given[i] = read[id(given[i])][1]
        for parameter in self._tied:
            for i in (parameter.index, *parameter.tied):
                if not isinstance(given[i], SparseRows):
                    _check_alike(str(self.structure.path(i)), given[i], parameter)
            first, *others = _distinct([given[i] for i in (parameter.index, *parameter.tied)])
            total: Any = sum(others, first)
            total = np.asarray(total) if isinstance(total, np.generic) else total  # NumPy's sums of no axes are numbers
            given[parameter.index] = total if total.dtype == first.dtype else xp.astype(total, first.dtype)
        for parameter in self.parameters if self.sparse else ():
            if isinstance(g := given[parameter.index], SparseRows):
                self._check_rows(parameter, g)
                given[parameter.index] = g.todense() if self._owner.sparse == "dense" else g
        return given

    def _check_rows(self, parameter: Parameter, g: SparseRows) -> None:
        path = parameter.text
        if g.shape != parameter.shape:
            raise ShapeError(f"{path}: gradient has shape {g.shape}, the parameter {parameter.shape}")
        if g.dtype != parameter.dtype and not (parameter.is_half and dtype_name(g.dtype) == "float32"):
            raise DtypeError(f"{path}: gradient has dtype {g.dtype}, the parameter {parameter.dtype}")
        rule = self.choices[parameter.choice].rule()
        if not rule.elementwise and self._owner.sparse != "dense":
            raise RuleError(f"{path}: the rule {rule.name} is not elementwise, and takes rows only with sparse='dense'")
        if self._owner.zero_gradients:
            raise StructureError(f"{path}: zero_gradients leaves zeros in arrays: expected an array, found SparseRows")

    def zeros(self, grads: Any) -> list[tuple[Any, Any]]:
        """Zeros to copy into the gradients that the core does not write itself; raises where one cannot be written."""
        if not self.ruled and not self._tied:
            return []
        given, structure = tree.flatten(grads)
        found = {str(structure.path(i)): g for i, g in enumerate(given)}
        zeros = {}
        for p in (*self._tied, *(p for _, p in self.ruled)):
            for path in map(str, p.paths):
                refuse_unwritable(path, "gradient, where zero_gradients is to leave zeros,", found[path])
                if not _core.is_floating(found[path]):
                    raise DtypeError(
                        f"{path}: the gradient, where zero_gradients is to leave zeros, has dtype {found[path].dtype}: "
                        "expected a floating-point dtype in native byte order"
                    )
                zeros[id(found[path])] = np.zeros(()), found[path]
        return [*zeros.values()]

    def check_parameters(self, leaves: list[Any]) -> None:
        """Raises `AliasError` where two parameters in host memory share elements, whoever updates them.

        Raises `DtypeError` where one means more than its numbers.
        """
        for p in self.parameters:
            refuse_meaning(leaves[p.index], f"{p.text}: the parameter")
        refuse_shared([(p.text, leaves[p.index], True) for p in self.parameters])

    def check_memory(
        self, leaves: list[Any], gradients: list[Any], slots: Mapping[str, dict[str, Any]], zeroed: list[Any]
    ) -> None:
        """Raises `ArrayMemoryError` or `AliasError` where arrays cannot be written, or share memory that is written.

        Where the core updates all parameters in place, and nothing is ``zeroed`` besides, it checks them itself.
        """
        self.check_parameters(leaves)
        for p in self.into:
            refuse_unwritable(p.text, "parameter", leaves[p.index])
        given = {}
        for p in self.parameters:
            g = gradients[p.index]
            given[id(g)] = f"the gradient of {p.text}", g.values if isinstance(g, SparseRows) else g, False
        given |= {id(g): ("a gradient that zero_gradients is to zero", g, True) for g in zeroed}
        others = [named for p in self.parameters for named in _updated(p, leaves[p.index], slots[p.text])]
        refuse_shared([*others, *given.values()])

    def _by_path(self, count: int, given: list[Any], structure: Any) -> list[Any]:
        """The gradients of a tree that agrees with the model only where it has arrays."""
        found = {str(structure.path(i)): g for i, g in enumerate(given) if is_array(g)}
        aligned: list[Any] = [None] * count
        for parameter in self.parameters:
            for i in (parameter.index, *parameter.tied):
                text = str(self.structure.path(i))
                if text not in found:
                    raise StructureError(f"{text}: the gradient is missing")
                aligned[i] = found.pop(text)
        unknown = [text for text in found if text not in self.frozen]
        if unknown:
            raise StructureError(f"{unknown[0]}: there is a gradient, but no parameter in the model")
        return aligned


def _updated(p: Parameter, array: Any, slots: dict[str, Any]) -> Iterator[Named]:
    """What a step changes of a parameter: itself and its slots, and whether it does so in place."""
    yield p.text, array, p.executor in ("host", "into")
    for slot in slots.values():
        for part in (slot.codes, slot.scales) if isinstance(slot, Quantized) else (slot,):
            yield f"a slot of {p.text}", part, p.executor in ("host", "copy")


def _check_alike(path: str, g: Any, parameter: Parameter) -> None:
    """Raises where the gradient of a tied parameter has another shape or dtype: a sum would broadcast and promote it."""
    if tuple(g.shape) != parameter.shape:
        raise ShapeError(f"{path}: gradient has shape {tuple(g.shape)}, the parameter {parameter.shape}")
    name, own = dtype_name(g.dtype), dtype_name(parameter.dtype)
    if name != own and not (parameter.is_half and name == "float32"):
        raise DtypeError(f"{path}: gradient has dtype {g.dtype}, the parameter {parameter.dtype}")


def _distinct(gradients: list[Any]) -> list[Any]:
    """The gradients, but each array once."""
    found: list[Any] = []
    for g in gradients:
        if not any(_is_same(g, other) for other in found):
            found.append(g)
    return found


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, SparseRows) and isinstance(b, SparseRows):
        return a is b or (is_same_array(a.values, b.values) and is_same_array(a.indices, b.indices))
    return is_same_array(a, b)


def _leaves_like(structure: Any, like: Any) -> list[Any] | None:
    """The leaves of a tree, in the order of ``structure``; None where it has another. Takes a third of a flatten's time."""
    try:
        return _core.tree_leaves(like, structure)
    except StructureError:
        return None


def leaves_along(plan: Plan | None, model: Any) -> list[Any] | None:
    """The leaves of a model for which the plan still holds; None for any other."""
    leaves = plan and _leaves_like(plan.structure, model)
    return leaves if plan and leaves is not None and plan.fits(leaves) else None


def _picker(indices: Sequence[int], count: int) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that picks the items at ``indices`` of a list of ``count``."""
    if list(indices) == list(range(count)):
        return tuple
    if len(indices) > 1:
        return operator.itemgetter(*indices)
    return lambda items: tuple(items[i] for i in indices)
