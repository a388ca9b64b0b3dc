"""The functions of the Python layer that the core calls, installed when the package is imported.

The core holds references to these functions, and looks up nothing by name. A new callback is a row in
``rust/python/src/callbacks.rs``, a parameter of `_core.install_callbacks` in ``_core.pyi`` and a keyword in `install`.
"""

import sys
from types import ModuleType
from typing import Any

from oxigrad import _core, xp
from oxigrad.autodiff.inspection import debug_nans, diagram
from oxigrad.autodiff.rules import cotangents, jvp_rules, masks, symbols, tangents, vjp_rules
from oxigrad.ops import backends
from oxigrad.ops.core import indexed_update, primitives, shapes, standard
from oxigrad.ops.protocols import (
    arguments,
    array_methods,
    foreign_calls,
    foreign_operands,
    numpy_protocols,
    variable_methods,
)


def namespace_module(api_version: str | None) -> ModuleType:
    """`oxigrad.xp`, for ``__array_namespace__``."""
    if api_version is not None and api_version > xp.__array_api_version__:
        raise ValueError(f"version {api_version!r} of the Array API standard is not supported")
    return sys.modules["oxigrad.xp"]


def array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
    """Implements NumPy's protocol ``__array_ufunc__``: ``np.sin(x)`` of a variable is ``xp.sin(x)``."""
    return numpy_protocols.array_ufunc(xp, ufunc, method, inputs, named or {})


def array_function(function: Any, args: tuple[Any, ...], named: dict[str, Any], x: Any) -> Any:
    """Implements NumPy's protocol ``__array_function__``: ``np.sum(x)`` of a variable is ``xp.sum(x)``."""
    return numpy_protocols.array_function(xp, function, args, named, like=x)


def attribute(x: Any, name: str) -> Any:
    """An attribute of the array that a variable wraps: ``x.sum`` is a function of the variable."""
    return array_methods.attribute(xp, x, name)


def documentation(name: str, text: str, names: list[str]) -> str:
    """The docstring of an elementwise function, with a section of its arguments."""
    return arguments.documentation("xp" if name in vars(xp) else "xp.special", name, text, names)


def check_matmul(a: Any, b: Any) -> None:
    """Raises `ShapeError` for arrays whose shapes do not fit a matrix product."""
    if hasattr(a, "shape") and hasattr(b, "shape"):
        shapes.check_shapes("matmul", [tuple(a.shape), tuple(b.shape)])


def refuse_deadlock(holder: int) -> None:
    """See `oxigrad.ops.backends.memory.deadlock`, which is imported where a thread has waited for an optimizer."""
    from oxigrad.ops.backends.memory import deadlock

    deadlock.refuse_deadlock(holder)


def install() -> None:
    """Installs the callbacks and the table of derivative rules in the core, once."""
    foreign_calls.install()
    array_methods.install()
    _core.install_callbacks(
        copy_duplicates=cotangents.copy_duplicates,
        array_function=array_function,
        array_of=backends.array_of,
        array_ufunc=array_ufunc,
        as_floats=standard.as_floats,
        assigned=indexed_update.assigned,
        at=indexed_update.At,
        attribute=attribute,
        attribute_names=array_methods.names,
        cast_in_place=indexed_update.cast_in_place,
        check_matmul=check_matmul,
        complex_number=variable_methods.complex_number,
        container=backends.container_of,
        device_of=backends.device_of,
        documentation=documentation,
        dtype_of=backends.dtype_of,
        fingerprint=backends.fingerprint,
        foreign=foreign_operands.computed,
        formatted=variable_methods.formatted,
        html=array_methods.html,
        implementation=backends.implementation,
        in_dtype=tangents.in_dtype,
        index=primitives.index,
        initial_cotangent=cotangents.initial_cotangent,
        is_complex=backends.is_complex,
        is_foreign=backends.is_foreign,
        is_formatting=variable_methods.is_formatting,
        iterate=variable_methods.iterate,
        iterate_reversed=variable_methods.iterate_reversed,
        like_cotangent=tangents.like_cotangent,
        masked_zeros=masks.spoiled_zeros,
        matrix_transpose=primitives.matrix_transpose,
        mermaid=diagram.mermaid,
        namespace_module=namespace_module,
        numpy_ufunc=numpy_protocols.numpy_ufunc,
        op_of_ufunc=numpy_protocols.op_of_ufunc,
        part=tangents.part,
        pulled=debug_nans.pulled,
        recorded=debug_nans.recorded,
        refuse_deadlock=refuse_deadlock,
        rounded=variable_methods.rounded,
        spread=tangents.spread,
        stack_parts=tangents.stack_parts,
        svg=diagram.svg,
        traced=symbols.traced,
        transpose=variable_methods.transpose,
        unbroadcast=cotangents.unbroadcast,
        unbroadcast_to_number=cotangents.unbroadcast_to_number,
        zero_cotangent=tangents.zero_cotangent,
        zero_tangent=tangents.zero_tangent,
        zeros_like=cotangents.zeros_like,
    )
    rows = vjp_rules.rows
    squares, tangents_of = rows(vjp_rules.SQUARES), rows(vjp_rules.TANGENTS)
    _core.install(rows(vjp_rules.TABLE), squares, tangents_of, rows(masks.TABLE), jvp_rules.push)
