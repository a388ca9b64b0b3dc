"""The plan of a step for a model: the group of hyperparameters and the executor of each parameter."""

import operator
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import _core, xp
from oxigrad._core import ArrayMemoryError, DtypeError, ShapeError, StructureError
from oxigrad._names import path_name
from oxigrad.ops.backends import (
    REFUSALS,
    detached,
    device_of,
    dtype_name,
    is_array,
    is_complex,
    is_inexact,
    obstacle,
    refuse_masked_or_units,
    resolved,
    size_of,
)
from oxigrad.ops.core.aliasing import Named, refuse_shared, refuse_unwritable
from oxigrad.step.arrays.places import check_readable, known_shape, refuse_shapeless, refuse_traced
from oxigrad.step.arrays.sparse_rows import SparseRows
from oxigrad.step.parameters.device_kernels import accepts, dtypes_of, is_permuted, tell_inexpressible
from oxigrad.step.parameters.executor import COPY, DEVICE, HOST, RULE, executor_of
from oxigrad.step.parameters.hyperparameter import PROCESS, Version
from oxigrad.step.parameters.parameter import Parameter, copying
from oxigrad.step.parameters.parameter_group import ParameterGroup, SteppingOptions
from oxigrad.step.parameters.slots import Slots
from oxigrad.step.plan.assignment import Assignment
from oxigrad.step.slice import Gather, Slice

_STRUCTURE = operator.attrgetter("structure")


class Plan(Assignment):
    """The plan of steps for a model, valid for one structure of the model, and for the options and groups.

    ``groups`` are the groups of hyperparameters of ``parameters``, ``frozen`` the key paths of those in groups that are
    not updated. ``present`` is a byte for each leaf that tells whether its gradient is other than None, where some are;
    parameters without one are not updated. With ``holds_own``, these are gradients that the model holds itself.
    ``inactive`` are the key paths of all parameters that are not: of these, of frozen ones, and of leaves that are not
    trainable. ``missed`` gives the number of steps that did not update the parameter at a path, ``adapt`` the group in
    the place of that of the ``options``. The model has ``slices`` in the place of parameters, by key path.
    ``gradients`` are those of the first step. ``versions`` are those of the settings that it was made from.

    Raises `StructureError` for a model without parameters or gradients, `DtypeError` for complex parameters, and
    `ArrayMemoryError` for those that cannot be updated, with the key path.
    """

    #: The arrays among the inactive ones, which a later plan may update.
    waiting: set[str]

    def __init__(
        self,
        leaves: list[Any],
        structure: _core.Structure,
        options: SteppingOptions,
        *versions: Version,
        present: bytes | None = None,
        holds_own: bool = False,
        missed: Callable[[str], int] | None = None,
        adapt: Callable[[ParameterGroup], ParameterGroup] | None = None,
        slices: Mapping[str, Slice] | None = None,
        gather: Gather | None = None,
        gradients: Sequence[Any] = (),
    ) -> None:
        super().__init__()
        self.versions: list[Version] = [*versions, PROCESS, *options.versions]
        self._structures = [*map(_STRUCTURE, self.versions)]  # before the settings are read
        self.structure: _core.Structure = structure
        self.present: bytes | None = present
        self.options = options
        self.frozen: set[str] = set()
        self.idle: bool = False
        self.gather: Gather | None = gather
        holds_gradients = structure.holds_gradients()
        untrained = {str(structure.path(i)): i for i in range(len(structure)) if not structure.is_trainable(i)}
        self.inactive: set[str] = set(untrained)
        seen: list[tuple[str, Any]] = []
        #: Of leaves that are neither parameters nor frozen by their field, whether they are Python floats, and the type
        #: in words, by index.
        self.constants: dict[int, tuple[bool, str]] = {}
        parameters = _tied(leaves, structure)
        for i in {*range(len(leaves))}.difference(*parameters) if len(parameters) < len(leaves) else ():
            if structure.is_trainable(i):
                self.constants[i] = type(leaves[i]) is float, _kind(leaves[i])
        for index, *tied in parameters:
            array, paths = leaves[index], [*map(structure.path, (index, *tied))]
            text = str(paths[0])
            seen.append((text, slices[text].leaf if slices else array))
            group = options.group_of(*seen[-1])
            if group is None:
                self.frozen.update(map(str, paths))
                self.inactive.add(str(paths[0]))
                continue
            if present is not None and not any(present[i] for i in (index, *tied)):
                if holds_own and not holds_gradients[index]:
                    raise StructureError(
                        f"{path_name(paths[0])}: the gradient is missing: the model does not hold it, expected grads"
                    )
                self.idle = True
                self.inactive.add(str(paths[0]))
                continue
            group = adapt(group) if adapt else group
            self._add(array, paths, index, tuple(tied), group, missed(str(paths[0])) if missed else 0)
            if slices:
                self.parameters[-1].first = slices[text].first
                self.parameters[-1].whole = size_of(slices[text].leaf.shape)
        self.waiting = set()
        for path in self.inactive:
            if path not in untrained or is_array(leaves[untrained[path]]):
                self.waiting.add(path)
        if self.idle and not self.parameters:
            raise StructureError(
                "no parameter has a gradient: expected one at least that is not None, as after loss.backward()"
            )
        if not self.parameters:
            raise StructureError(
                "the model has no parameters: expected an array of floating-point dtype somewhere"
                + (" that is not frozen" if self.frozen else "")
                + _leaves_in_words(leaves)
            )
        if slices is None:  # else the plan of the whole model does it, which has the frozen ones
            options.check_patterns(seen)
        self._choose_executors(leaves, holds_gradients)
        #: Whether gradients may be some that the core does not read: `SparseRows` and lazy views, for which see
        #: `oxigrad.ops.backends.resolved`.
        are_plain = {*map(type, gradients)} <= {np.ndarray}
        self.reads: bool = options.sparse != "dense" or (not are_plain and any(map(_is_unread, gradients)))

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
        if type(array) is not np.ndarray:
            refuse_masked_or_units(array, f"{path_name(text)}: the parameter")
        if not _core.is_floating(array) and is_complex(array):
            raise DtypeError(
                f"{path_name(text)}: the parameter has dtype {array.dtype}: expected a real floating-point dtype"
            )
        number, position = self.group_number(group, missed), len(self.parameters)
        self.parameters.append(
            Parameter(paths, text, index, tied, tuple(array.shape), array.dtype, number, position, missed)
        )

    def _choose_executors(self, leaves: list[Any], holds_gradients: Sequence[Any]) -> None:
        rules = self.rules
        for p in self.parameters:
            p.executor = executor_of(leaves[p.index], rules[p.group].elementwise)
            if p.executor is DEVICE:
                p.is_permuted = is_permuted(leaves[p.index])
                dtypes = dtypes_of(rules[p.group], dtype_name(p.dtype))
                if why := accepts(self.groups[p.group], dtypes, permuted=p.is_permuted):
                    tell_inexpressible(why)
                    p.executor = RULE
        self.unite(leaves)
        for p in self.parameters:
            if p.executor.replaces and any(holds_gradients[i] for i in p.indices):
                why = obstacle(leaves[p.index]) or f"on the device {device_of(leaves[p.index])}, or cannot be written"
                raise ArrayMemoryError(
                    f"{path_name(p.text)}: the parameter is {why}: its container cannot be given another array"
                )
            if p.executor is RULE and (why := obstacle(leaves[p.index])):
                raise ArrayMemoryError(f"{path_name(p.text)}: the parameter is {why}")
        self._may_change = bool(self.tied or self.copied or self.into)
        # Kernels on devices take addresses; those of their leaves whose rules are called are detached then.
        self.recorded: list[Any] = []
        # Those of them that the core cannot read directly.
        self._unread: list[Any] = []
        for p in self.parameters:
            array = leaves[p.index]
            if type(array) is np.ndarray or p.executor is DEVICE or array is detached(array):
                continue
            self.recorded.append(p)
            if p.executor is not HOST or not _core.exports_memory(array):
                self._unread.append(p)

    def reads_codes(self, p: Parameter) -> bool:
        """Whether what updates a parameter reads slots that are codes: the core, or a kernel for all gradients."""
        by_kernel = p.executor is DEVICE and not p.is_permuted and self.options.sparse == "dense"
        return by_kernel or p.executor.is_core

    def leaves(self, model: Any) -> list[Any] | None:
        """The leaves of a model for which the plan holds; None for any other.

        The core checks what may change from step to step, such as shapes and dtypes.
        """
        leaves = _core.tree_leaves_like(model, self.structure, trainable=True)
        if leaves is None or (self.constants and any(is_inexact(leaves[i]) for i in self.constants)):
            return None
        for p in self.ruled:
            shape = known_shape(leaves[p.index])
            if shape is None:
                return None
            if shape != p.shape:
                raise ShapeError(
                    f"{path_name(p.text)}: the parameter has shape {shape}, at the first step {p.shape}: "
                    "rebuild(model) begins its slots anew"
                )
        return None if self._may_change and not self._fits(leaves) else leaves

    def _fits(self, leaves: list[Any]) -> bool:
        """Whether tied parameters and executors are those of the plan."""
        if self.tied and not all(leaves[i] is leaves[p.index] for p in self.tied for i in p.tied):
            return False
        try:
            for p in (*self.copied, *self.into):
                if executor_of(leaves[p.index], p.executor is COPY) is not p.executor:
                    return False
        except REFUSALS:
            self.refuse_shapeless((), leaves)
            raise
        return True

    def detach(self, leaves: list[Any], *, for_core: bool = False) -> list[Any]:
        """The leaves, with parameters detached from their library's own autodiff, which must not record steps.

        With ``for_core``, only those are detached that the core could not read otherwise.
        """
        for p in self._unread if for_core else self.recorded:
            leaves[p.index] = detached(leaves[p.index])
        return leaves

    def check_known(
        self, slots: Mapping[str, dict[str, Any]], were_inactive: Container[str] = (), orphans: Container[str] = ()
    ) -> None:
        """Raises `StructureError` or `ShapeError` for other parameters than those that the slots were made for.

        Parameters without slots may be among those that ``were_inactive`` in earlier steps; slots without a parameter
        among those that are ``orphans``.
        """
        if not slots:
            return
        by_path = {p.text: p for p in self.parameters}
        for text in [*by_path, *slots]:
            if text not in slots:
                if text in were_inactive:
                    continue
                raise StructureError(
                    f"{path_name(text)}: the parameter is new: the model did not have it at the first step; "
                    "rebuild(model) begins its slots"
                )
            if text not in by_path:
                if text in self.inactive or text in orphans:
                    continue
                raise StructureError(
                    f"{path_name(text)}: the parameter is missing: the model had it at the first step; rebuild(model) "
                    "keeps its slots, "
                    "rebuild(model, remove=True) drops them"
                )
            rule = self.groups[by_path[text].group].rule()
            for slot in rule.slots:
                begun, is_like = slots[text].get(slot.name), rule.elementwise and not slot.is_number
                if (slot.begin is None or is_like) and begun is not None and tuple(begun.shape) != by_path[text].shape:
                    shape, begun = by_path[text].shape, tuple(begun.shape)
                    raise ShapeError(
                        f"{path_name(text)}: the parameter has shape {shape}, its slot {slot.name} {begun}"
                    )

    def check_parameters(self, leaves: list[Any], *, apart: bool = True) -> None:
        """Raises `DtypeError` for a masked array, an array with units, or the like.

        If they are to be ``apart``, raises `AliasError` for two parameters that share elements, whatever their
        executors: see `refuse_shared`.
        """
        named = list[Named]()
        for p in self.parameters:
            if type(leaves[p.index]) is not np.ndarray:
                refuse_masked_or_units(leaves[p.index], f"{path_name(p.text)}: the parameter")
            named.append((p.text, leaves[p.index], True))
        if apart:
            refuse_shared(named)

    def check_memory(
        self, leaves: list[Any], gradients: list[Any], slots: Mapping[str, Slots], zeroed: list[Any]
    ) -> None:
        """Raises `ArrayMemoryError` for arrays that cannot be written, `AliasError` for shared memory that is written.

        Raises `StateError` for tracers of a library.

        The core checks the arrays itself where it updates all parameters in place and no gradient is ``zeroed``
        besides.
        """
        for p in self.ruled:
            for what, array in (("parameter", leaves[p.index]), ("gradient", gradients[p.index])):
                if type(array) is np.ndarray:
                    continue
                refuse_traced(p.text, what, array)
                if not isinstance(array, SparseRows):
                    check_readable(p.text, what, array)
        # The core does not write parameters that are replaced, so that others may share their memory.
        self.check_parameters(leaves, apart=bool(self.replaced))
        for p in self.into:
            refuse_unwritable(p.text, "parameter", leaves[p.index])
        self.refuse_shared(leaves, gradients, slots, zeroed)

    def reads_on_devices(self, gradients: Sequence[Any]) -> bool:
        """As `Assignment.reads_on_devices`; raises for missing gradients, and for arrays that are more than numbers."""
        return self.check_numbers(gradients, self.on_devices) <= self.reads

    def refuse_shapeless(self, gradients: Sequence[Any], leaves: Sequence[Any] = ()) -> None:
        """Raises `ArrayMemoryError` for a gradient, or one of ``leaves``, without a readable shape or dtype."""
        indices = [i for parameter in self.parameters for i in parameter.indices]
        for what, arrays in (("parameter", leaves), ("gradient", gradients)):
            refuse_shapeless((f"{path_name(self.structure.path(i))}: the {what}", arrays[i]) for i in indices if arrays)

    def check_numbers(self, gradients: Sequence[Any], parameters: list[Parameter], *, optional: bool = False) -> bool:
        """Whether gradients of these parameters are `SparseRows`.

        Raises for missing ones, and for arrays that are more than numbers: masked arrays and arrays with units.
        """
        has_rows = False
        try:
            for parameter in parameters:
                for i in parameter.indices:
                    is_needed = not optional and (self.present is None or bool(self.present[i]))
                    if is_needed or gradients[i] is not None:
                        has_rows |= self._is_rows(i, gradients[i])
        except REFUSALS:
            self.refuse_shapeless(gradients)
            raise
        return has_rows

    def _is_rows(self, i: int, g: Any) -> bool:
        if not is_array(g):
            kind = "missing" if g is None else type(g).__name__
            raise StructureError(f"{path_name(self.structure.path(i))}: the gradient is {kind}: expected an array")
        if type(g) is np.ndarray:
            return False
        if isinstance(g, SparseRows):  # which checked its values
            return True
        refuse_masked_or_units(g, f"{path_name(self.structure.path(i))}: the gradient")
        return False

    def unrecorded(self, gradients: list[Any], ruled: Sequence[Parameter]) -> list[Any]:
        """The gradients, detached for the ``ruled`` parameters: slots would keep their graphs alive."""
        for p in ruled:
            g = gradients[p.index]
            gradients[p.index] = g.map(detached) if isinstance(g, SparseRows) else detached(g)
        return gradients

    def written_with(
        self, leaves: list[Any], values: Mapping[str, Any]
    ) -> tuple[list[tuple[_core.KeyPath, Any]], list[tuple[Any, Any]]]:
        """The replacements and the copies (see `_core.Writes`) that give parameters other values, by key path."""
        self.check_parameters(leaves)
        replacements, copies = [], []
        for p in self.parameters:
            if p.text not in values:
                continue
            leaf = leaves[p.index]
            new_shape, shape = tuple(values[p.text].shape), tuple(leaf.shape)
            if new_shape != shape:
                raise ShapeError(f"{path_name(p.text)}: the new value has shape {new_shape}, the parameter {shape}")
            old_dtype, dtype = dtype_name(p.dtype), dtype_name(leaf.dtype)
            if old_dtype != dtype:  # the plan is of an earlier model
                raise DtypeError(f"{path_name(p.text)}: the parameter has dtype {dtype}, at the last step {old_dtype}")
            value = xp.asarray(xp.astype(values[p.text], p.dtype, copy=True))
            if p.executor.writes_host and _core.is_writable(leaf):
                refuse_unwritable(p.text, "parameter", leaf)
                copies.append(copying(value, leaf))
            else:
                replacements += [(path, value) for path in p.paths]
        return replacements, copies

    def check_replaceable(self, model: Any) -> None:
        """Raises `StructureError` for a model that a step would have to replace by another tree."""
        for p in self.replaced:
            if not all(path.replaceable(model) for path in p.paths):
                raise StructureError(
                    f"{path_name(p.text)}: the parameter cannot be written, and no container on its path can be "
                    "changed: use update, which returns the new tree"
                )


def _tied(leaves: list[Any], structure: _core.Structure) -> list[list[int]]:
    """The trainable leaves, with those that are the same array."""
    try:
        return _core.tree_tied(leaves, structure)
    except REFUSALS:
        refuse_shapeless((f"{path_name(structure.path(i))}: the parameter", leaf) for i, leaf in enumerate(leaves))
        raise


def _is_unread(gradient: Any) -> bool:
    """Whether a gradient is `SparseRows`, or a lazy view, whose numbers are not in its memory."""
    if isinstance(gradient, SparseRows):
        return True
    try:
        return is_array(gradient) and resolved(gradient) is not gradient
    except REFUSALS:  # an array without memory, which the core refuses
        return False


def _kind(leaf: Any) -> str:
    """The type of a leaf, with the dtype of an array."""
    return type(leaf).__name__ + (f" of dtype {leaf.dtype}" if is_array(leaf) else "")


def _leaves_in_words(leaves: list[Any]) -> str:
    """The end of an error for a model without parameters: kinds of leaves, and a class that is no container."""
    kinds = dict.fromkeys(map(_kind, leaves))
    listed = f"; found {', '.join(list(kinds)[:3])}" if kinds else ""
    plain = (type(leaf) for leaf in leaves if hasattr(leaf, "__dict__") and not callable(leaf))
    name = next((cls.__name__ for cls in plain), "")
    hint = f"; {name} is no container: make it a dataclass, or register it by ox.tree.register" if name else ""
    return listed + hint
