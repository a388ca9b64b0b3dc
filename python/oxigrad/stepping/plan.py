"""The plan of a step for a model: the group of hyperparameters and the executor of each parameter."""

import operator
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import _core, xp
from oxigrad._core import ArrayMemoryError, DtypeError, RuleError, ShapeError, StructureError
from oxigrad.cuda.availability import tell
from oxigrad.ops.backends import (
    REFUSALS,
    detached,
    device_of,
    dtype_name,
    is_array,
    is_complex,
    obstacle,
    refuse_meaning,
    resolved,
)
from oxigrad.ops.core.aliasing import Named, refuse_shared, refuse_unwritable
from oxigrad.rules.rule import Rule
from oxigrad.stepping.alignment import MISSING, Given, align
from oxigrad.stepping.device_roads import INEXPRESSIBLE, is_permuted, why_not_rule
from oxigrad.stepping.executor import COPY, DEVICE, HOST, RULE, RULE_INTO, executor_of
from oxigrad.stepping.gradient_check import check_gradient
from oxigrad.stepping.parameter import Parameter, copying
from oxigrad.stepping.parameter_group import ParameterGroup
from oxigrad.stepping.places import refuse_shapeless, refuse_traced
from oxigrad.stepping.protocols import SteppingOptimizer
from oxigrad.stepping.quantized import Quantized
from oxigrad.stepping.sparse_rows import SparseRows
from oxigrad.stepping.tied_gradients import summed
from oxigrad.stepping.version import Version
from oxigrad.stepping.weak import alive


class Plan:
    """The plan of steps for a model, valid while the model keeps its structure and the optimizer its options and groups.

    ``groups`` are the groups of hyperparameters of ``parameters``, ``frozen`` the key paths of those in groups that are not updated.
    ``present`` is a byte for each leaf that tells whether its gradient is other than None, where some are; parameters without one
    are not updated. With ``holds_own``, these are gradients that the model holds itself. ``resting`` are the key paths of all parameters that are not: of these, of frozen ones, and of leaves that are
    not trainable. ``missed`` gives the number of steps that did not update the parameter at a path, ``adapt`` the group in the place of
    that of the owner.
    ``versions`` are those of the settings that it was made from. ``sparse`` tells whether gradients may be `SparseRows`, ``lazy``
    whether they may be lazy views (see `oxigrad.ops.backends.resolved`): both are set once such a gradient is seen.

    Raises `StructureError` for a model without parameters or gradients, `DtypeError` for complex parameters, and
    `ArrayMemoryError` for those that cannot be updated, with the key path.
    """

    def __init__(
        self,
        leaves: list[Any],
        structure: _core.Structure,
        owner: SteppingOptimizer,
        *versions: Version,
        present: bytes | None = None,
        holds_own: bool = False,
        missed: Callable[[str], int] | None = None,
        adapt: Callable[[ParameterGroup], ParameterGroup] | None = None,
    ) -> None:
        self.versions = [*versions, *owner._versions()]
        self._made = [version.structure for version in self.versions]  # before the settings are read
        self.structure = structure
        self.present = present
        #: For each group, the number of steps that did not update its parameters.
        self.missed: list[int] = []
        self.sparse = owner.sparse != "dense"
        self.lazy = False
        self._weak_owner = weakref.ref(owner)
        self.parameters: list[Parameter] = []
        self.groups: list[ParameterGroup] = []
        self.frozen: set[str] = set()
        self.idle = False
        self._holds_gradients = structure.holds_gradients()
        self.resting = {str(structure.path(i)) for i in range(len(structure)) if not structure.is_trainable(i)}
        seen: list[tuple[str, Any]] = []
        for index, *tied in _tied(leaves, structure):
            array, paths = leaves[index], [structure.path(i) for i in (index, *tied)]
            seen.append((str(paths[0]), array))
            group = owner._assign(*seen[-1])
            if group is None:
                self.frozen.update(map(str, paths))
                self.resting.add(str(paths[0]))
                continue
            if present is not None and not any(present[i] for i in (index, *tied)):
                if holds_own and not self._holds_gradients[index]:
                    raise StructureError(
                        f"{paths[0]}: the gradient is missing: the model does not hold it, expected grads"
                    )
                self.idle = True
                self.resting.add(str(paths[0]))
                continue
            group = adapt(group) if adapt else group
            self._add(array, paths, index, tuple(tied), group, missed(str(paths[0])) if missed else 0)
        if self.idle and not self.parameters:
            raise StructureError(
                "no parameter has a gradient: expected one at least that is not None, as after loss.backward()"
            )
        if not self.parameters:
            raise StructureError(
                "the model has no parameters: expected an array of floating-point dtype somewhere"
                + (" that is not frozen" if self.frozen else "")
            )
        owner._check_patterns(seen)
        self._choose_executors(leaves)

    @property
    def _owner(self) -> SteppingOptimizer:
        return alive(self._weak_owner)

    def _add(
        self,
        array: Any,
        paths: list[_core.KeyPath],
        index: int,
        tied: tuple[int, ...],
        group: ParameterGroup,
        missed: int,
    ) -> None:
        text = str(paths[0])
        refuse_meaning(array, f"{text}: the parameter")
        if is_complex(array):
            raise DtypeError(f"{text}: the parameter has dtype {array.dtype}: expected a real floating-point dtype")
        known = [*zip(self.groups, self.missed, strict=True)]
        if (group, missed) not in known:
            known.append((group, missed))
            self.groups.append(group)
            self.missed.append(missed)
        number = known.index((group, missed))
        self.parameters.append(Parameter(paths, text, index, tied, tuple(array.shape), array.dtype, number, missed))

    def _choose_executors(self, leaves: list[Any]) -> None:
        rules = [group.rule() for group in self.groups]
        for p in self.parameters:
            p.executor = executor_of(leaves[p.index], rules[p.group].elementwise)
            if p.executor is DEVICE:
                p.is_permuted = is_permuted(leaves[p.index])
                why = self._why_not(p, rules[p.group])
                p.executor = RULE if why else DEVICE
                if why.startswith(INEXPRESSIBLE):
                    tell(why)
        supplied = {name for rule in rules for name in rule.supplied}
        #: Whether a value over all parameters is computed, for which they need one executor.
        self.needs_all = bool(supplied & {"total", "guard"})
        found = {p.executor for p in self.parameters}
        is_mixed = DEVICE in found and (
            len(found) > 1 or len({device_of(leaves[p.index]) for p in self.parameters}) > 1
        )
        if (any(e.calls_rule for e in found) and "total" in supplied) or (is_mixed and self.needs_all):
            for p in self.parameters:
                p.executor = executor_of(leaves[p.index], elementwise=False)
        for p in self.parameters:
            if p.executor.replaces and any(self._holds_gradients[i] for i in p.indices):
                why = obstacle(leaves[p.index]) or f"on the device {device_of(leaves[p.index])}, or cannot be written"
                raise ArrayMemoryError(f"{p.text}: the parameter is {why}: its container cannot be given another array")
            if p.executor is RULE and (why := obstacle(leaves[p.index])):
                raise ArrayMemoryError(f"{p.text}: the parameter is {why}")
        self.host = [p for p in self.parameters if p.executor.is_core]
        self.pick = _picker([p.index for p in self.host], len(leaves))
        self.replaced = [p for p in self.parameters if p.executor.replaces]
        self.copied = [p for p in self.parameters if p.executor is COPY]
        self.into = [p for p in self.parameters if p.executor is RULE_INTO]
        self._looked_at = [*self.copied, *self.into]
        self.on_devices = [(i, p) for i, p in enumerate(self.parameters) if p.executor is DEVICE]
        self.ruled = [(i, p) for i, p in enumerate(self.parameters) if p.executor.calls_rule]
        self._tied = [p for p in self.parameters if p.tied]
        self.is_tied = bool(self._tied)
        self._may_change = bool(self._tied or self._looked_at)
        # Kernels on devices take addresses; those of their leaves whose rules are called are detached then.
        recorded = [p for p in self.parameters if leaves[p.index] is not detached(leaves[p.index])]
        self.recorded = [p for p in recorded if p.executor is not DEVICE]
        # Those of them that the core cannot read directly.
        self._unread = [p for p in self.recorded if p.executor is not HOST or not _core.exports_memory(leaves[p.index])]
        # The core checks the other gradients.
        self._checked_here = self.parameters if self.ruled else self._tied

    def _why_not(self, p: Parameter, rule: Rule) -> str:
        """The reason why the rule of a parameter on a device is called on arrays; empty where it has a kernel."""
        return why_not_rule(self.groups[p.group], dtype_name(p.dtype), len(rule.numbers), permuted=p.is_permuted)

    def reads_codes(self, p: Parameter) -> bool:
        """Whether what updates a parameter reads slots that are codes of eight bits: the core, or a kernel for all gradients."""
        by_kernel = p.executor is DEVICE and not p.is_permuted and self._owner.sparse == "dense"
        return by_kernel or p.executor.is_core

    def is_current(self) -> bool:
        """Whether options and groups of hyperparameters are unchanged since the plan was made."""
        return self._made == [version.structure for version in self.versions]

    def numbers(self) -> list[tuple[Version, int]]:
        """The versions of all settings that a resolved step depends on, each with its present number."""
        return [(version, version.number) for version in self.versions]

    def leaves(self, model: Any) -> list[Any] | None:
        """The leaves of a model for which the plan holds; None for any other.

        The core checks what may change from step to step, such as shapes and dtypes.
        """
        try:
            leaves = _core.tree_leaves(model, self.structure, trainable=True)
        except StructureError:
            return None
        if self._may_change and not self._fits(leaves):
            return None
        return leaves

    def _fits(self, leaves: list[Any]) -> bool:
        """Whether tied parameters and executors are those of the plan."""
        if not all(leaves[i] is leaves[p.index] for p in self._tied for i in p.tied):
            return False
        try:
            return all(executor_of(leaves[p.index], p.executor is COPY) is p.executor for p in self._looked_at)
        except REFUSALS:  # a new plan says which leaf it is
            return False

    def detach(self, leaves: list[Any], *, for_core: bool = False) -> list[Any]:
        """The leaves, with parameters detached from their library's own autodiff, which must not record steps.

        With ``for_core``, only those are detached that the core could not read otherwise.
        """
        for p in self._unread if for_core else self.recorded:
            leaves[p.index] = detached(leaves[p.index])
        return leaves

    def unrecorded(self, gradients: list[Any], ruled: Iterable[tuple[int, Parameter]]) -> list[Any]:
        """The gradients, detached where rules are called on them, for ``ruled`` parameters: slots computed from them would keep their graphs alive."""
        for _, p in ruled:
            g = gradients[p.index]
            gradients[p.index] = g.map(detached) if isinstance(g, SparseRows) else detached(g)
        return gradients

    def check_known(
        self, slots: Mapping[str, dict[str, Any]], rested: Container[str] = (), kept: Container[str] = ()
    ) -> None:
        """Raises `StructureError` or `ShapeError` for a model whose parameters are not those that the slots were made for.

        Parameters without slots may be among those that ``rested`` in earlier steps; slots without a parameter among those that are
        ``kept``.
        """
        if not slots:
            return
        found = {p.text: p for p in self.parameters}
        for text in [*found, *slots]:
            if text not in slots:
                if text in rested:
                    continue
                raise StructureError(
                    f"{text}: the parameter is new: the model did not have it at the first step; rebuild(model) begins its slots"
                )
            if text not in found:
                if text in self.resting or text in kept:
                    continue
                raise StructureError(
                    f"{text}: the parameter is missing: the model had it at the first step; rebuild(model) keeps its slots, "
                    "rebuild(model, remove=True) drops them"
                )
            rule = self.groups[found[text].group].rule()
            for slot in rule.slots:
                begun, is_like = slots[text].get(slot.name), rule.elementwise and not slot.is_number
                if (slot.begin is None or is_like) and begun is not None and tuple(begun.shape) != found[text].shape:
                    shape, begun = found[text].shape, tuple(begun.shape)
                    raise ShapeError(f"{text}: the parameter has shape {shape}, its slot {slot.name} {begun}")

    def gradients_for(self, leaves: list[Any], grads: Any) -> list[Any] | None:
        """As `gradients`; without ``grads``, those that the model holds itself. None where they are of other parameters than the plan."""
        if grads is None:
            own = None if self.present is None else self.structure.gradients(leaves, self.present)
            return own if own is None else self.aligned(own)
        try:  # as `align`, without an object for each steady step
            complete = _core.tree_leaves(grads, self.structure)
        except StructureError:
            given = align(self.structure, grads)
        else:
            return None if self.idle else self.aligned(complete)
        found = given.present()
        if found != (self.present or bytes([1]) * len(found)):
            return None
        return self.gradients_given(given)

    def gradients(self, leaves: list[Any], grads: Any, *, called: bool = False, keep_rows: bool = False) -> list[Any]:
        """The gradients at the positions of the model's leaves, those of tied parameters added up.

        One array that is given at several paths of a tied parameter counts once. Where rules are to be ``called`` on all of them,
        all are checked here; otherwise the core checks those that it reads. Raises an error with the key path.
        """
        return self.gradients_given(align(self.structure, grads), called=called, keep_rows=keep_rows)

    def gradients_given(self, given: Given, *, called: bool = False, keep_rows: bool = False) -> list[Any]:
        """As `gradients`, for gradients at the positions of leaves."""
        if not given.is_complete:
            self._check_known_gradients(given)
        return self.aligned(given.leaves, called=called, keep_rows=keep_rows)

    def _check_known_gradients(self, given: Given) -> None:
        """Raises `StructureError` for a gradient that is missing, and for one that belongs to no parameter."""
        for parameter in self.parameters:
            for i in parameter.indices:
                if given.leaves[i] is MISSING:
                    raise StructureError(
                        f"{self.structure.path(i)}: the gradient is missing: expected an array, or None for no update"
                    )
        unknown = [text for text in given.unknown if text not in self.frozen]
        if unknown:
            raise StructureError(f"{unknown[0]}: there is a gradient, but no parameter in the model")

    def aligned(self, given: list[Any], *, called: bool = False, keep_rows: bool = False) -> list[Any]:
        """The gradients, given for each leaf: checked, with those of tied parameters added up.

        With ``keep_rows``, those that are `SparseRows` remain so, and are not checked.
        """
        if called or self._checked_here:
            self._check_given(given, self.parameters if called else self._checked_here)
        if self.lazy:
            self._resolve(given)
        if self._tied:
            self._add_tied(given)
        if self.sparse and not keep_rows:
            self._check_sparse(given)
        return given

    def first_of_each_rule(self) -> str:
        """The first parameter of each group of hyperparameters, with its rule, for an error message."""
        first = {p.group: p.text for p in reversed(self.parameters)}
        return ", ".join(f"{text} ({self.groups[group].rule().name})" for group, text in sorted(first.items()))

    def refuse_shapeless(self, gradients: Sequence[Any], leaves: Sequence[Any] = ()) -> None:
        """Raises `ArrayMemoryError` for a gradient, or a parameter among ``leaves``, whose shape or dtype cannot be read."""
        indices = [i for parameter in self.parameters for i in parameter.indices]
        for what, arrays in (("parameter", leaves), ("gradient", gradients)):
            refuse_shapeless((f"{self.structure.path(i)}: the {what}", arrays[i]) for i in indices if arrays)

    def check_given(self, given: Sequence[Any]) -> None:
        """Raises for a missing gradient of a parameter on a device, and for arrays that are more than numbers."""
        self._check_given(given, [p for _, p in self.on_devices])

    def _check_given(self, given: Sequence[Any], parameters: list[Parameter]) -> None:
        """Raises for a missing gradient, and for arrays that are more than numbers (masked arrays, units)."""
        try:
            for parameter in parameters:
                for i in parameter.indices:
                    if given[i] is not None or self._needs(i):
                        self._check_one(i, given[i])
        except REFUSALS:
            self.refuse_shapeless(given)
            raise

    def _needs(self, i: int) -> bool:
        """Whether the leaf of a parameter must have a gradient."""
        return self.present is None or bool(self.present[i])

    def _check_one(self, i: int, g: Any) -> None:
        if not is_array(g):
            raise StructureError(f"{self.structure.path(i)}: the gradient is missing: found {type(g).__name__}")
        if type(g) is np.ndarray:
            return
        if isinstance(g, SparseRows):  # which checked its values
            self.sparse = True
        else:
            refuse_meaning(g, f"{self.structure.path(i)}: the gradient")

    def _resolve(self, given: list[Any]) -> None:
        """Puts the numbers of lazy views in their place; one array at several paths stays one."""
        for parameter in self.parameters:
            read = {id(g): (g, g if g is None else resolved(g)) for g in (given[i] for i in parameter.indices)}
            for i in parameter.indices:
                given[i] = read[id(given[i])][1]

    def _add_tied(self, given: list[Any]) -> None:
        """Adds up the gradients of each tied parameter."""
        for parameter in self._tied:
            for i in parameter.indices:
                if not (given[i] is None or isinstance(given[i], SparseRows)):
                    check_gradient(str(self.structure.path(i)), given[i], parameter.shape, parameter.dtype)
            given[parameter.index] = summed([given[i] for i in parameter.indices if given[i] is not None])

    def _check_sparse(self, given: list[Any]) -> None:
        """Checks gradients that are `SparseRows`; makes arrays of them where the option ``sparse`` is "dense"."""
        for parameter in self.parameters:
            if isinstance(g := given[parameter.index], SparseRows):
                self._check_rows(parameter, g)
                given[parameter.index] = g.todense() if self._owner.sparse == "dense" else g

    def _check_rows(self, parameter: Parameter, g: SparseRows) -> None:
        path = parameter.text
        check_gradient(path, g, parameter.shape, parameter.dtype)
        rule = self.groups[parameter.group].rule()
        if not rule.elementwise and self._owner.sparse != "dense":
            raise RuleError(f"{path}: the rule {rule.name} is not elementwise, and takes rows only with sparse='dense'")
        if self._owner.zero_gradients:
            raise StructureError(f"{path}: zero_gradients leaves zeros in arrays: expected an array, found SparseRows")

    def zeros(self, gradients: list[Any], grads: Any) -> list[tuple[Any, Any]]:
        """Zeros to copy into the gradients that the core does not write itself.

        Raises `ArrayMemoryError` or `DtypeError` for a gradient that cannot be written.
        """
        if not self.ruled and not self._tied:
            return []
        given = gradients if grads is None else align(self.structure, grads).leaves
        found = {str(self.structure.path(i)): g for i, g in enumerate(given) if g is not None}
        zeros = {}
        for p in (*self._tied, *(p for _, p in self.ruled)):
            for path in (str(path) for path in p.paths if str(path) in found):
                refuse_unwritable(path, "gradient, where zero_gradients is to leave zeros,", found[path])
                if not _core.is_floating(found[path]):
                    raise DtypeError(
                        f"{path}: the gradient, where zero_gradients is to leave zeros, has dtype {found[path].dtype}: "
                        "expected a floating-point dtype in native byte order"
                    )
                zeros[id(found[path])] = np.zeros(()), found[path]
        return [*zeros.values()]

    def check_parameters(self, leaves: list[Any]) -> None:
        """Raises `AliasError` for two parameters in host memory that share elements, by whichever executors they are updated.

        Raises `DtypeError` for a masked array, an array with units, or the like.
        """
        for p in self.parameters:
            refuse_meaning(leaves[p.index], f"{p.text}: the parameter")
        refuse_shared([(p.text, leaves[p.index], True) for p in self.parameters])

    def check_memory(
        self, leaves: list[Any], gradients: list[Any], slots: Mapping[str, dict[str, Any]], zeroed: list[Any]
    ) -> None:
        """Raises `ArrayMemoryError` for arrays that cannot be written, `AliasError` for those that share memory that is written.

        Raises `StateError` for tracers of a library.

        The core checks the arrays itself where it updates all parameters in place and no gradient is ``zeroed`` besides.
        """
        for _, p in self.ruled:
            refuse_traced(p.text, "parameter", leaves[p.index])
            refuse_traced(p.text, "gradient", gradients[p.index])
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

    def written_with(
        self, leaves: list[Any], values: Mapping[str, Any]
    ) -> tuple[list[tuple[_core.KeyPath, Any]], list[tuple[Any, Any]]]:
        """The replacements and the copies (see `_core.Writes`) that give parameters other values, by key path."""
        self.check_parameters(leaves)
        replacements, copies = [], []
        for p in self.parameters:
            if p.text not in values:
                continue
            value = xp.asarray(xp.astype(values[p.text], p.dtype, copy=True))
            if p.executor.writes_host and _core.is_writable(leaves[p.index]):
                refuse_unwritable(p.text, "parameter", leaves[p.index])
                copies.append(copying(value, leaves[p.index]))
            else:
                replacements += [(path, value) for path in p.paths]
        return replacements, copies

    def check_replaceable(self, model: Any) -> None:
        """Raises `StructureError` for a model that a step would have to replace by another tree."""
        if self.replaced and not all(path.replaceable(model) for p in self.replaced for path in p.paths):
            raise StructureError(
                "a parameter cannot be written, and no container on its path can be changed: use update, which returns "
                "the new tree"
            )


def _tied(leaves: list[Any], structure: _core.Structure) -> list[list[int]]:
    """The trainable leaves, with those that are the same array."""
    try:
        return _core.tree_tied(leaves, structure)
    except REFUSALS:
        refuse_shapeless((f"{structure.path(i)}: the parameter", leaf) for i, leaf in enumerate(leaves))
        raise


def _updated(p: Parameter, array: Any, slots: dict[str, Any]) -> Iterator[Named]:
    """The arrays of a parameter that a step changes, with their names and whether they are changed in place."""
    yield p.text, array, p.executor.writes_host
    for slot in slots.values():
        for part in (slot.codes, slot.scales) if isinstance(slot, Quantized) else (slot,):
            yield f"a slot of {p.text}", part, p.executor.is_core


def _picker(indices: Sequence[int], count: int) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that picks the items at ``indices`` of a list of ``count``."""
    if list(indices) == list(range(count)):
        return tuple
    if len(indices) > 1:
        return operator.itemgetter(*indices)
    return lambda items: tuple(items[i] for i in indices)
