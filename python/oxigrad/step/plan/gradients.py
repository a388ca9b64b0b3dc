"""Gradients of the parameters of a plan: aligned with the leaves of the model, and checked."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import DtypeError, RuleError, StructureError
from oxigrad._names import calling_frame, path_name
from oxigrad.ops.backends import is_array, is_smooth, on_host, resolved, size_of, to_host
from oxigrad.ops.core.aliasing import refuse_unwritable
from oxigrad.step.arrays.alignment import MISSING, AlignedGradients, align
from oxigrad.step.arrays.gradient_check import check_gradient
from oxigrad.step.arrays.places import check_readable
from oxigrad.step.arrays.sparse_rows import SparseRows
from oxigrad.step.arrays.tied_gradients import summed
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.plan.plan import Plan


def step_gradients(plan: Plan, leaves: list[Any], grads: Any) -> list[Any] | None:
    """As `read_gradients`. Without ``grads``, the model's gradients; None for gradients of other parameters."""
    if grads is None:
        gradients = None if plan.present is None else plan.structure.gradients(leaves, plan.present)
        return gradients if gradients is None else checked_gradients(plan, gradients)
    # As `align`, without an object for each steady step.
    if (complete := _core.tree_leaves_like(grads, plan.structure)) is not None:
        return None if plan.idle else checked_gradients(plan, complete)
    aligned = align(plan.structure, grads)
    present = aligned.present()
    if present != (plan.present or bytes([1]) * len(present)):
        return None
    return aligned_gradients(plan, aligned)


def read_gradients(
    plan: Plan, grads: Any, *, called: bool = False, keep_rows: bool = False, optional: bool = False
) -> list[Any]:
    """The gradients at the positions of the model's leaves; gradients of tied parameters are added up.

    One array that is given at several paths of a tied parameter counts once. Where rules are to be ``called`` on
    all of them, all are checked here; otherwise the core checks those that it reads. Where they are ``optional``,
    any may be None. Raises an error with the key path.
    """
    aligned = align(plan.structure, grads)
    return aligned_gradients(plan, aligned, called=called, keep_rows=keep_rows, optional=optional)


def aligned_gradients(
    plan: Plan, aligned: AlignedGradients, *, called: bool = False, keep_rows: bool = False, optional: bool = False
) -> list[Any]:
    """As `read_gradients`, for gradients at the positions of leaves."""
    if not aligned.is_complete:
        _check_known_gradients(plan, aligned)
    return checked_gradients(plan, aligned.leaves, called=called, keep_rows=keep_rows, optional=optional)


def _check_known_gradients(plan: Plan, aligned: AlignedGradients) -> None:
    """Raises `StructureError` for a gradient that is missing, and for one that belongs to no parameter."""
    unknown = [text for text in aligned.unknown if text not in plan.frozen]
    for parameter in plan.parameters:
        for i in parameter.indices:
            if aligned.leaves[i] is MISSING:
                others = [path_name(text) for text in unknown[:3]]
                raise StructureError(
                    f"{path_name(plan.structure.path(i))}: the gradient is missing: expected an array, or None "
                    "for no "
                    f"update{'; found ' * bool(others)}{', '.join(others)}"
                )
    if unknown:
        raise StructureError(f"{path_name(unknown[0])}: there is a gradient, but no parameter in the model")


def checked_gradients(
    plan: Plan,
    gradients: list[Any],
    *,
    called: bool = False,
    keep_rows: bool = False,
    optional: bool = False,
    reads: bool = False,
) -> list[Any]:
    """The checked gradients of the leaves; gradients of tied parameters are added up.

    With ``keep_rows``, those that are `SparseRows` remain so, and are not checked. With ``reads``, any may be one that
    the core does not read, also where the plan has none.
    """
    if plan.constants:
        check_constants(plan, gradients)
    reads |= plan.reads
    # The core checks the others.
    if checked := plan.parameters if called or plan.ruled else plan.tied:
        reads |= plan.check_numbers(gradients, checked, optional=optional)
    has_rows = reads and _read(plan, gradients)
    if plan.tied:
        _add_tied(plan, gradients)
    if has_rows and not keep_rows:
        _check_sparse(plan, gradients)
    return gradients


def check_constants(plan: Plan, gradients: Sequence[Any]) -> None:
    """Raises `StructureError` for a gradient, other than zero, of a leaf that is no parameter.

    Python floats with a number as their gradient, such as the ``eps`` of a layer, are an exception: the first step of
    a plan warns of them. The gradient that `oxigrad.grad` returns for any other such leaf is the leaf itself.
    """
    floats: dict[int, str] = {}
    for i, (is_float, kind) in plan.constants.items():
        g, path = gradients[i], path_name(plan.structure.path(i))
        number = to_host(g).item() if is_array(g) and size_of(g.shape) == 1 and on_host(g) else g
        if isinstance(number, (int, float, complex)) and number == 0:
            continue
        if is_float and isinstance(g, (int, float)):
            floats[i] = path
        elif is_smooth(g):
            raise StructureError(
                f"{path}: there is a gradient, but the model has {kind}, which is no parameter: make it a "
                "floating-point array, such as np.array(1.0), to train it; else read it in the loss by "
                "ox.stop_gradient, or make it a dataclass field by ox.field(trainable=False)"
            )
    if floats:
        for i in floats:
            del plan.constants[i]  # which no later step looks at
        paths = ", ".join(floats.values())
        frame = calling_frame()
        warnings.warn_explicit(
            f"{paths}: the gradient is of Python floats, which are no parameters and stay as they are: "
            "make them arrays, such as np.array(1.0), to train them, or dataclass fields by ox.field(trainable=False)",
            UserWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
            registry=frame.f_globals.setdefault("__warningregistry__", {}),
        )


def _read(plan: Plan, gradients: list[Any]) -> bool:
    """Whether some gradients are `SparseRows`, which are checked; puts the numbers of lazy views in their place.

    One array at several paths stays one. Raises `ArrayMemoryError` for `SparseRows` of arrays that cannot be read.
    """
    has_rows = False
    for parameter in plan.parameters:
        read: dict[int, Any] = {}
        for i in parameter.indices:
            g = gradients[i]
            if type(g) is np.ndarray or g is None:
                continue
            if isinstance(g, SparseRows):
                has_rows = True
                for array in (g.values, g.indices):
                    check_readable(str(plan.structure.path(i)), "gradient", array)
            elif not plan.options.zero_gradients:  # zeros are written to the array itself
                if id(g) not in read:
                    read[id(g)] = resolved(g)
                gradients[i] = read[id(g)]
    return has_rows


def _add_tied(plan: Plan, gradients: list[Any]) -> None:
    """Adds up the gradients of each tied parameter."""
    for parameter in plan.tied:
        for i in parameter.indices:
            if not (gradients[i] is None or isinstance(gradients[i], SparseRows)):
                check_gradient(str(plan.structure.path(i)), gradients[i], parameter.shape, parameter.dtype)
        terms = [gradients[i] for i in parameter.indices if gradients[i] is not None]
        gradients[parameter.index] = summed(terms) if terms else None


def _check_sparse(plan: Plan, gradients: list[Any]) -> None:
    """Checks gradients that are `SparseRows`; makes arrays of them where the option ``sparse`` is "dense"."""
    for parameter in plan.parameters:
        if isinstance(g := gradients[parameter.index], SparseRows):
            _check_rows(plan, parameter, g)
            gradients[parameter.index] = g.todense() if plan.options.sparse == "dense" else g


def _check_rows(plan: Plan, parameter: Parameter, g: SparseRows) -> None:
    path = parameter.text
    check_gradient(path, g, parameter.shape, parameter.dtype)
    rule = plan.groups[parameter.group].rule()
    if not rule.elementwise and plan.options.sparse != "dense":
        raise RuleError(
            f"{path_name(path)}: the rule {rule.name} is not elementwise, and takes rows only with sparse='dense'"
        )
    if plan.options.zero_gradients:
        raise StructureError(
            f"{path_name(path)}: zero_gradients leaves zeros in arrays: expected an array, found SparseRows"
        )


def gradient_zeros(plan: Plan, gradients: list[Any], grads: Any) -> list[tuple[Any, Any]]:
    """Zeros to copy into the gradients that the core does not write itplan.

    Raises `ArrayMemoryError` or `DtypeError` for a gradient that cannot be written.
    """
    if not plan.ruled and not plan.tied:
        return []
    leaves = gradients if grads is None else align(plan.structure, grads).leaves
    by_path = {str(plan.structure.path(i)): g for i, g in enumerate(leaves) if g is not None}
    zeros = {}
    for p in (*plan.tied, *plan.ruled):
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
