"""The gradients of the parameters of a plan: aligned with the leaves of the model, and checked."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from oxigrad import _core
from oxigrad._core import DtypeError, RuleError, StructureError
from oxigrad._names import path_name
from oxigrad.ops.backends import REFUSALS, is_array, refuse_masked_or_units, resolved
from oxigrad.ops.core.aliasing import refuse_unwritable
from oxigrad.stepping.arrays.alignment import MISSING, AlignedGradients, align
from oxigrad.stepping.arrays.gradient_check import check_gradient
from oxigrad.stepping.arrays.places import check_readable, refuse_shapeless
from oxigrad.stepping.arrays.sparse_rows import SparseRows
from oxigrad.stepping.arrays.tied_gradients import summed
from oxigrad.stepping.parameters.parameter import Parameter
from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.parameters.weak import WeakAttribute
from oxigrad.stepping.protocols import SteppingOptimizer


class PlannedParameters(Protocol):
    """A plan, as far as its gradients depend on it: see `oxigrad.stepping.plan.plan.Plan`."""

    structure: _core.Structure
    present: bytes | None
    idle: bool
    frozen: set[str]
    parameters: list[Parameter]
    groups: list[ParameterGroup]
    ruled: list[Parameter]
    tied: list[Parameter]


class PlannedGradients:
    """The gradients that a step of a plan reads.

    ``sparse`` tells whether they may be `SparseRows`, ``lazy`` whether they may be lazy views (see
    `oxigrad.ops.backends.resolved`): both are set once such a gradient is seen.
    """

    _owner = WeakAttribute[SteppingOptimizer]()

    def __init__(self, plan: PlannedParameters, owner: SteppingOptimizer) -> None:
        self._structure, self._parameters, self._groups = plan.structure, plan.parameters, plan.groups
        self._present, self._idle, self._frozen = plan.present, plan.idle, plan.frozen
        self._ruled, self._tied = plan.ruled, plan.tied
        # The core checks the other gradients.
        self._checked_here = plan.parameters if plan.ruled else plan.tied
        self._owner = owner
        self.sparse: bool = owner.sparse != "dense"
        self.lazy = False

    def of_step(self, leaves: list[Any], grads: Any) -> list[Any] | None:
        """As `read`; without ``grads``, the gradients that the model holds. None for gradients of other parameters."""
        if grads is None:
            gradients = None if self._present is None else self._structure.gradients(leaves, self._present)
            return gradients if gradients is None else self.checked(gradients)
        try:  # as `align`, without an object for each steady step
            complete = _core.tree_leaves(grads, self._structure)
        except StructureError:
            aligned = align(self._structure, grads)
        else:
            return None if self._idle else self.checked(complete)
        present = aligned.present()
        if present != (self._present or bytes([1]) * len(present)):
            return None
        return self.of_leaves(aligned)

    def read(self, grads: Any, *, called: bool = False, keep_rows: bool = False, optional: bool = False) -> list[Any]:
        """The gradients at the positions of the model's leaves, those of tied parameters added up.

        One array that is given at several paths of a tied parameter counts once. Where rules are to be ``called`` on
        all of them, all are checked here; otherwise the core checks those that it reads. Where they are ``optional``,
        any may be None. Raises an error with the key path.
        """
        aligned = align(self._structure, grads)
        return self.of_leaves(aligned, called=called, keep_rows=keep_rows, optional=optional)

    def of_leaves(
        self, aligned: AlignedGradients, *, called: bool = False, keep_rows: bool = False, optional: bool = False
    ) -> list[Any]:
        """As `read`, for gradients at the positions of leaves."""
        if not aligned.is_complete:
            self._check_known_gradients(aligned)
        return self.checked(aligned.leaves, called=called, keep_rows=keep_rows, optional=optional)

    def _check_known_gradients(self, aligned: AlignedGradients) -> None:
        """Raises `StructureError` for a gradient that is missing, and for one that belongs to no parameter."""
        unknown = [text for text in aligned.unknown if text not in self._frozen]
        for parameter in self._parameters:
            for i in parameter.indices:
                if aligned.leaves[i] is MISSING:
                    others = [path_name(text) for text in aligned.unmatched[:3] if text not in self._frozen]
                    raise StructureError(
                        f"{path_name(self._structure.path(i))}: the gradient is missing: expected an array, or None "
                        "for no "
                        f"update{'; found ' * bool(others)}{', '.join(others)}"
                    )
        if unknown:
            raise StructureError(f"{path_name(unknown[0])}: there is a gradient, but no parameter in the model")

    def checked(
        self, gradients: list[Any], *, called: bool = False, keep_rows: bool = False, optional: bool = False
    ) -> list[Any]:
        """The gradients, given for each leaf: checked, with those of tied parameters added up.

        With ``keep_rows``, those that are `SparseRows` remain so, and are not checked.
        """
        if called or self._checked_here:
            self.check_numbers(gradients, self._parameters if called else self._checked_here, optional=optional)
        if self.sparse:
            self._check_readable_rows(gradients)
        # The core sees gradients beside rows in the step alone, so that lazy views among them are resolved before it.
        if self.lazy or (self.sparse and not self._owner.zero_gradients):
            self._resolve(gradients)
        if self._tied:
            self._add_tied(gradients)
        if self.sparse and not keep_rows:
            self._check_sparse(gradients)
        return gradients

    def refuse_shapeless(self, gradients: Sequence[Any], leaves: Sequence[Any] = ()) -> None:
        """Raises `ArrayMemoryError` for a gradient, or one of ``leaves``, without a readable shape or dtype."""
        indices = [i for parameter in self._parameters for i in parameter.indices]
        for what, arrays in (("parameter", leaves), ("gradient", gradients)):
            refuse_shapeless(
                (f"{path_name(self._structure.path(i))}: the {what}", arrays[i]) for i in indices if arrays
            )

    def check_numbers(self, gradients: Sequence[Any], parameters: list[Parameter], *, optional: bool = False) -> None:
        """Raises for missing gradients of these parameters, and for arrays that are more than numbers.

        These are masked arrays and arrays with units.
        """
        try:
            for parameter in parameters:
                for i in parameter.indices:
                    is_needed = not optional and (self._present is None or bool(self._present[i]))
                    if is_needed or gradients[i] is not None:
                        self._check_one(i, gradients[i])
        except REFUSALS:
            self.refuse_shapeless(gradients)
            raise

    def _check_one(self, i: int, g: Any) -> None:
        if not is_array(g):
            raise StructureError(
                f"{path_name(self._structure.path(i))}: the gradient is missing: found {type(g).__name__}"
            )
        if type(g) is np.ndarray:
            return
        if isinstance(g, SparseRows):  # which checked its values
            self.sparse = True
        else:
            refuse_masked_or_units(g, f"{path_name(self._structure.path(i))}: the gradient")

    def _resolve(self, gradients: list[Any]) -> None:
        """Puts the numbers of lazy views in their place; one array at several paths stays one."""
        for parameter in self._parameters:
            read = {id(g): (g, g if g is None else resolved(g)) for g in (gradients[i] for i in parameter.indices)}
            for i in parameter.indices:
                gradients[i] = read[id(gradients[i])][1]

    def _add_tied(self, gradients: list[Any]) -> None:
        """Adds up the gradients of each tied parameter."""
        for parameter in self._tied:
            for i in parameter.indices:
                if not (gradients[i] is None or isinstance(gradients[i], SparseRows)):
                    check_gradient(str(self._structure.path(i)), gradients[i], parameter.shape, parameter.dtype)
            terms = [gradients[i] for i in parameter.indices if gradients[i] is not None]
            gradients[parameter.index] = summed(terms) if terms else None

    def _check_readable_rows(self, gradients: Sequence[Any]) -> None:
        """Raises `ArrayMemoryError` for `SparseRows` of arrays that cannot be read."""
        for i in (i for parameter in self._parameters for i in parameter.indices):
            if isinstance(g := gradients[i], SparseRows):
                for array in (g.values, g.indices):
                    check_readable(str(self._structure.path(i)), "gradient", array)

    def _check_sparse(self, gradients: list[Any]) -> None:
        """Checks gradients that are `SparseRows`; makes arrays of them where the option ``sparse`` is "dense"."""
        for parameter in self._parameters:
            if isinstance(g := gradients[parameter.index], SparseRows):
                self._check_rows(parameter, g)
                gradients[parameter.index] = g.todense() if self._owner.sparse == "dense" else g

    def _check_rows(self, parameter: Parameter, g: SparseRows) -> None:
        path = parameter.text
        check_gradient(path, g, parameter.shape, parameter.dtype)
        rule = self._groups[parameter.group].rule()
        if not rule.elementwise and self._owner.sparse != "dense":
            raise RuleError(
                f"{path_name(path)}: the rule {rule.name} is not elementwise, and takes rows only with sparse='dense'"
            )
        if self._owner.zero_gradients:
            raise StructureError(
                f"{path_name(path)}: zero_gradients leaves zeros in arrays: expected an array, found SparseRows"
            )

    def zeros(self, gradients: list[Any], grads: Any) -> list[tuple[Any, Any]]:
        """Zeros to copy into the gradients that the core does not write itself.

        Raises `ArrayMemoryError` or `DtypeError` for a gradient that cannot be written.
        """
        if not self._ruled and not self._tied:
            return []
        leaves = gradients if grads is None else align(self._structure, grads).leaves
        by_path = {str(self._structure.path(i)): g for i, g in enumerate(leaves) if g is not None}
        zeros = {}
        for p in (*self._tied, *self._ruled):
            for path in (str(path) for path in p.paths if str(path) in by_path):
                refuse_unwritable(path, "gradient, where zero_gradients is to leave zeros,", by_path[path])
                if not _core.is_floating(by_path[path]):
                    raise DtypeError(
                        f"{path_name(path)}: the gradient, where zero_gradients is to leave zeros, has dtype "
                        f"{by_path[path].dtype}: "
                        "expected a floating-point dtype in native byte order"
                    )
                zeros[id(by_path[path])] = np.zeros(()), by_path[path]
        return [*zeros.values()]
