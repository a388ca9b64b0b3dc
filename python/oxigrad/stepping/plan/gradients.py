"""Gradients of the parameters of a plan: aligned with the leaves of the model, and checked."""

from collections.abc import Sequence
from typing import Any

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
from oxigrad.stepping.parameters.parameter_group import SteppingOptions
from oxigrad.stepping.plan.assignment import Assignment


class GradientPlan(Assignment):
    """An assignment of the parameters of a model, by which a step reads their gradients.

    ``takes_rows`` tells whether they may be `SparseRows`, ``takes_lazy`` whether they may be lazy views (see
    `oxigrad.ops.backends.resolved`): both are set once such a gradient is seen.
    """

    structure: _core.Structure
    present: bytes | None
    idle: bool
    frozen: set[str]
    #: The parameters that are at several key paths.
    tied: list[Any]
    takes_rows: bool
    #: The options of the steps, as they were when the plan was made.
    options: SteppingOptions
    takes_lazy: bool = False

    def gradients_of_step(self, leaves: list[Any], grads: Any) -> list[Any] | None:
        """As `read_gradients`. Without ``grads``, the model's gradients; None for gradients of other parameters."""
        if grads is None:
            gradients = None if self.present is None else self.structure.gradients(leaves, self.present)
            return gradients if gradients is None else self.checked_gradients(gradients)
        # As `align`, without an object for each steady step.
        if (complete := _core.tree_leaves_like(grads, self.structure)) is not None:
            return None if self.idle else self.checked_gradients(complete)
        aligned = align(self.structure, grads)
        present = aligned.present()
        if present != (self.present or bytes([1]) * len(present)):
            return None
        return self.gradients_of_leaves(aligned)

    def read_gradients(
        self, grads: Any, *, called: bool = False, keep_rows: bool = False, optional: bool = False
    ) -> list[Any]:
        """The gradients at the positions of the model's leaves, those of tied parameters added up.

        One array that is given at several paths of a tied parameter counts once. Where rules are to be ``called`` on
        all of them, all are checked here; otherwise the core checks those that it reads. Where they are ``optional``,
        any may be None. Raises an error with the key path.
        """
        aligned = align(self.structure, grads)
        return self.gradients_of_leaves(aligned, called=called, keep_rows=keep_rows, optional=optional)

    def gradients_of_leaves(
        self, aligned: AlignedGradients, *, called: bool = False, keep_rows: bool = False, optional: bool = False
    ) -> list[Any]:
        """As `read_gradients`, for gradients at the positions of leaves."""
        if not aligned.is_complete:
            self._check_known_gradients(aligned)
        return self.checked_gradients(aligned.leaves, called=called, keep_rows=keep_rows, optional=optional)

    def _check_known_gradients(self, aligned: AlignedGradients) -> None:
        """Raises `StructureError` for a gradient that is missing, and for one that belongs to no parameter."""
        unknown = [text for text in aligned.unknown if text not in self.frozen]
        for parameter in self.parameters:
            for i in parameter.indices:
                if aligned.leaves[i] is MISSING:
                    others = [path_name(text) for text in aligned.unmatched[:3] if text not in self.frozen]
                    raise StructureError(
                        f"{path_name(self.structure.path(i))}: the gradient is missing: expected an array, or None "
                        "for no "
                        f"update{'; found ' * bool(others)}{', '.join(others)}"
                    )
        if unknown:
            raise StructureError(f"{path_name(unknown[0])}: there is a gradient, but no parameter in the model")

    def checked_gradients(
        self, gradients: list[Any], *, called: bool = False, keep_rows: bool = False, optional: bool = False
    ) -> list[Any]:
        """The gradients, given for each leaf: checked, with those of tied parameters added up.

        With ``keep_rows``, those that are `SparseRows` remain so, and are not checked.
        """
        # The core checks the others.
        if checked := self.parameters if called or self.ruled else self.tied:
            self.check_numbers(gradients, checked, optional=optional)
        if self.takes_rows:
            self._check_readable_rows(gradients)
        # The core sees gradients beside rows in the step alone, so that lazy views among them are resolved before it.
        if self.takes_lazy or (self.takes_rows and not self.options.zero_gradients):
            self._resolve(gradients)
        if self.tied:
            self._add_tied(gradients)
        if self.takes_rows and not keep_rows:
            self._check_sparse(gradients)
        return gradients

    def admit(self, gradients: Sequence[Any]) -> bool:
        """Allows gradients to be rows, or lazy views, from now on, as some of these are; False if nothing changes."""
        if not self.takes_rows and any(isinstance(g, SparseRows) for g in gradients):
            self.takes_rows = True
        elif not self.takes_lazy and not self.options.zero_gradients and any(map(_is_lazy, gradients)):
            self.takes_lazy = True
        else:
            return False
        return True

    def refuse_shapeless(self, gradients: Sequence[Any], leaves: Sequence[Any] = ()) -> None:
        """Raises `ArrayMemoryError` for a gradient, or one of ``leaves``, without a readable shape or dtype."""
        indices = [i for parameter in self.parameters for i in parameter.indices]
        for what, arrays in (("parameter", leaves), ("gradient", gradients)):
            refuse_shapeless((f"{path_name(self.structure.path(i))}: the {what}", arrays[i]) for i in indices if arrays)

    def check_numbers(self, gradients: Sequence[Any], parameters: list[Parameter], *, optional: bool = False) -> None:
        """Raises for missing gradients of these parameters, and for arrays that are more than numbers.

        These are masked arrays and arrays with units.
        """
        try:
            for parameter in parameters:
                for i in parameter.indices:
                    is_needed = not optional and (self.present is None or bool(self.present[i]))
                    if is_needed or gradients[i] is not None:
                        self._check_one(i, gradients[i])
        except REFUSALS:
            self.refuse_shapeless(gradients)
            raise

    def _check_one(self, i: int, g: Any) -> None:
        if not is_array(g):
            raise StructureError(
                f"{path_name(self.structure.path(i))}: the gradient is missing: found {type(g).__name__}"
            )
        if type(g) is np.ndarray:
            return
        if isinstance(g, SparseRows):  # which checked its values
            self.takes_rows = True
        else:
            refuse_masked_or_units(g, f"{path_name(self.structure.path(i))}: the gradient")

    def _resolve(self, gradients: list[Any]) -> None:
        """Puts the numbers of lazy views in their place; one array at several paths stays one."""
        for parameter in self.parameters:
            read = {id(g): (g, g if g is None else resolved(g)) for g in (gradients[i] for i in parameter.indices)}
            for i in parameter.indices:
                gradients[i] = read[id(gradients[i])][1]

    def _add_tied(self, gradients: list[Any]) -> None:
        """Adds up the gradients of each tied parameter."""
        for parameter in self.tied:
            for i in parameter.indices:
                if not (gradients[i] is None or isinstance(gradients[i], SparseRows)):
                    check_gradient(str(self.structure.path(i)), gradients[i], parameter.shape, parameter.dtype)
            terms = [gradients[i] for i in parameter.indices if gradients[i] is not None]
            gradients[parameter.index] = summed(terms) if terms else None

    def _check_readable_rows(self, gradients: Sequence[Any]) -> None:
        """Raises `ArrayMemoryError` for `SparseRows` of arrays that cannot be read."""
        for i in (i for parameter in self.parameters for i in parameter.indices):
            if isinstance(g := gradients[i], SparseRows):
                for array in (g.values, g.indices):
                    check_readable(str(self.structure.path(i)), "gradient", array)

    def _check_sparse(self, gradients: list[Any]) -> None:
        """Checks gradients that are `SparseRows`; makes arrays of them where the option ``sparse`` is "dense"."""
        for parameter in self.parameters:
            if isinstance(g := gradients[parameter.index], SparseRows):
                self._check_rows(parameter, g)
                gradients[parameter.index] = g.todense() if self.options.sparse == "dense" else g

    def _check_rows(self, parameter: Parameter, g: SparseRows) -> None:
        path = parameter.text
        check_gradient(path, g, parameter.shape, parameter.dtype)
        rule = self.groups[parameter.group].rule()
        if not rule.elementwise and self.options.sparse != "dense":
            raise RuleError(
                f"{path_name(path)}: the rule {rule.name} is not elementwise, and takes rows only with sparse='dense'"
            )
        if self.options.zero_gradients:
            raise StructureError(
                f"{path_name(path)}: zero_gradients leaves zeros in arrays: expected an array, found SparseRows"
            )

    def gradient_zeros(self, gradients: list[Any], grads: Any) -> list[tuple[Any, Any]]:
        """Zeros to copy into the gradients that the core does not write itself.

        Raises `ArrayMemoryError` or `DtypeError` for a gradient that cannot be written.
        """
        if not self.ruled and not self.tied:
            return []
        leaves = gradients if grads is None else align(self.structure, grads).leaves
        by_path = {str(self.structure.path(i)): g for i, g in enumerate(leaves) if g is not None}
        zeros = {}
        for p in (*self.tied, *self.ruled):
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


def _is_lazy(gradient: Any) -> bool:
    """Whether an array is a lazy view, whose numbers are not in its memory.

    Not an array without memory, which the core refuses.
    """
    try:
        return resolved(gradient) is not gradient
    except REFUSALS:
        return False
