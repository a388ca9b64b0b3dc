"""Axes and shapes of arguments: the checks of all functions, and the errors that replace array libraries' errors.

A function checks an axis when it counts the axis. The shapes of products and of functions of matrices are compared with
the table here only after the array library has raised, so that calls that succeed pay nothing.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from oxigrad._core import ShapeError
from oxigrad._typing import Array, F
from oxigrad.ops.backends import UnbatchedError, one_by_one


class AxisError(ShapeError, np.exceptions.AxisError):
    """Raised for an axis that an array does not have: a `ShapeError`, and the `IndexError` that NumPy raises."""

    __module__ = "oxigrad"


class MatrixShapeError(ShapeError, np.linalg.LinAlgError):
    """Raised for shapes for which NumPy raises ``LinAlgError``: a `ShapeError`, too."""

    __module__ = "oxigrad"


# Errors that array libraries raise for an axis or a shape.
RAW_ERRORS = (IndexError, RuntimeError, TypeError, ValueError)

Shape = tuple[int, ...]

# --- axes -------------------------------------------------------------------------------------------------------------


def position(axis: int, ndim: int, name: str = "") -> int:
    """The axis counted from the front. The name of the function appears in errors.

    Raises `AxisError` for an axis out of range, and `TypeError` for an axis that is not an integer.
    """
    prefix = f"{name}: " if name else ""
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(f"{prefix}axis is {axis!r}: expected a whole number") from None
    if not -ndim <= axis < ndim:
        raise AxisError(f"{prefix}axis is {axis}: expected an axis of an array of {ndim} dimensions")
    return axis % ndim


def not_negative(name: str, shape: Shape) -> Shape:
    """The shape; raises `ShapeError` for one of the function of this ``name`` with a size below 0."""
    if any(type(size) is int and size < 0 for size in shape):  # traced rules have sizes of other types
        raise ShapeError(f"{name}: found the shape {shape}, expected sizes of at least 0")
    return shape


def broadcasting(where: Array, shape: Sequence[int]) -> Array:
    """The mask ``where`` of a reduction; raises `ShapeError` unless it broadcasts to the shape of the array."""
    sizes = tuple(where.shape)
    if len(sizes) > len(shape) or any(m not in (1, n) for m, n in zip(reversed(sizes), reversed(shape), strict=False)):
        raise ShapeError(
            f"found where of shape {sizes}, expected one that broadcasts to {tuple(shape)}, the shape of the array"
        )
    return where


def check_axes(axes: Any, ndim: int, name: str) -> None:
    """Raises as `position`, for one axis or several. None passes, as do the axes 0 and -1 of a 0-d array."""
    for axis in axes if isinstance(axes, (tuple, list)) else () if axes is None else (axes,):
        if ndim or not isinstance(axis, int) or axis not in (0, -1):
            position(axis, ndim, name)


# --- shapes -----------------------------------------------------------------------------------------------------------

_SQUARE = ("(..., n, n)",)
_SOLVED = (
    "(..., n, n) and (n,)",
    "(..., n, n) and (..., n, k)",
)

# The shapes that functions of matrices take, by their names: alternatives, in which a letter is a size.
_SHAPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        """cho_factor cholesky coshm cosm det eig eigh eigvals eigvalsh expm fractional_matrix_power inv logm
        matrix_power sinhm sinm slogdet sqrtm""".split(),
        _SQUARE,
    ),
    **dict.fromkeys("cond matrix_norm matrix_rank pinv polar qr svd svdvals".split(), ("(..., m, n)",)),
    **dict.fromkeys("cho_solve solve solve_triangular".split(), _SOLVED),
    **dict.fromkeys("expm_frechet solve_continuous_lyapunov solve_discrete_lyapunov".split(), ("(n, n) and (n, n)",)),
    **dict.fromkeys("hankel toeplitz".split(), ("(n,)", "(m,) and (n,)",)),
    "circulant": ("(n,)",),
    "lstsq": ("(m, n) and (m,)", "(m, n) and (m, k)",),
    "lu_solve": ("(n, n) and (n,) and (n,)", "(n, n) and (n,) and (n, k)",),
    "matmul": (
        "(n,) and (n,)", "(..., m, n) and (n,)", "(n,) and (..., n, k)", "(..., m, n) and (..., n, k)",
    ),
    "matvec": ("(..., m, n) and (..., n)",),
    "solve_toeplitz": ("(n,) and (n,)", "(n,) and (n, k)", "(n,) and (n,) and (n,)", "(n,) and (n,) and (n, k)",),
    "solveh_banded": ("(u, n) and (n,)", "(u, n) and (n, k)",),
    "vecmat": ("(..., m) and (..., m, n)",),
}  # fmt: skip


def check_shapes(name: str, shapes: Sequence[Shape]) -> None:
    """Raises `ShapeError` if the function ``name`` is in the table and rejects the shapes."""
    forms = _terms(name)
    count = max((len(terms) for terms in forms if len(terms) <= len(shapes)), default=0)
    if count and not any(len(terms) == count and _conform(terms, shapes) for terms in forms):
        shown = " and ".join(map(str, shapes[:count]))
        expected = ", or ".join(text for text in _SHAPES[name] if text.count(" and ") == count - 1)
        kind = MatrixShapeError if hasattr(np.linalg, name) and not hasattr(np, name) else ShapeError
        raise kind(f"{name}: found {'shapes' if count > 1 else 'the shape'} {shown}: expected {expected}") from None


@functools.lru_cache(maxsize=256)
def _terms(name: str) -> list[list[list[str]]]:
    """The letters of each term of the alternatives of a function."""
    return [
        [term.strip("()").replace(" ", "").strip(",").split(",") for term in text.split(" and ")]
        for text in _SHAPES.get(name, ())
    ]


def _conform(terms: Sequence[Sequence[str]], shapes: Sequence[Shape]) -> bool:
    """Whether the letters of terms stand for one size each, and the dimensions for which ``...`` stands broadcast."""
    sizes: dict[str, int] = {}
    stacks: list[Shape] = []
    for term, shape in zip(terms, shapes, strict=False):
        letters = term[term[0] == "..." :]
        ahead = len(shape) - len(letters)
        if ahead < 0 or (ahead and term[0] != "..."):
            return False
        stacks.append(shape[:ahead])
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(letters, shape[ahead:], strict=True)):
            return False
    try:
        np.broadcast_shapes(*stacks)
    except ValueError:
        return False
    return True


# --- calls that failed ------------------------------------------------------------------------------------------------

# Names of the parameter that ``axis`` belongs to, for functions in which it is not the first one.
_ARRAYS = ("y", "x", "a", "arr", "input", "data")


def explain(
    name: str, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], error: Exception
) -> None:
    """Raises our error if an array library rejected an axis or the shapes of a call; else returns None."""
    is_ours = type(error).__module__.partition(".")[0] == "oxigrad"
    if is_ours and (not isinstance(error, ShapeError) or str(error).startswith(f"{name}: ")):
        return
    arguments = _bound_arguments(function, args, named)
    check_shapes(name, [*_shapes(arguments.values())])
    if is_ours:
        return
    if isinstance(error, np.exceptions.AxisError) and error.axis is not None and error.ndim is not None:
        position(error.axis, error.ndim, name)
    check_given_axes(name, arguments)
    axis = arguments.get("axis")
    if isinstance(error, TypeError) and axis is not None and not hasattr(axis, "__index__"):
        raise TypeError(f"{name}: axis is {axis!r}: expected a whole number") from None


def _bound_arguments(function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by parameter name; positional ones are numbered if the function has no signature."""
    try:
        arguments = _signature(function).bind(*args, **named).arguments
    except (TypeError, ValueError):
        return {**{str(at): arg for at, arg in enumerate(args)}, **named}
    return {**{key: value for key, value in arguments.items() if not isinstance(value, dict)}, **named}


def check_given_axes(name: str, arguments: Mapping[str, Any]) -> None:
    """Raises as `check_axes` for the arguments ``axis`` and ``axes`` of a call, given by their parameters."""
    array = next((arguments[key] for key in _ARRAYS if _has_shape(arguments.get(key))), None)
    ndim = len(array.shape) if array is not None else next((len(shape) for shape in _shapes(arguments.values())), None)
    for key in ("axis", "axes"):
        axes = arguments.get(key)
        if ndim is not None and all(
            hasattr(axis, "__index__") for axis in (axes if isinstance(axes, (tuple, list)) else [axes])
        ):
            check_axes(axes, ndim, name)


def _shapes(values: Any) -> Iterator[Shape]:
    """The shapes of the arrays among values, in lists and tuples too."""
    for value in values:
        if _has_shape(value):
            yield tuple(value.shape)
        elif isinstance(value, (list, tuple)):
            yield from _shapes(filter(_has_shape, value))


def _has_shape(value: Any) -> bool:
    return hasattr(value, "shape") and not isinstance(value, type)


@functools.lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def shaped(function: F) -> F:
    """Decorates a function to convert a library's errors about an axis or a shape to our errors."""

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except UnbatchedError as error:
            return one_by_one(called, args, named, error)
        except RAW_ERRORS as error:
            explain(function.__name__, function, args, named, error)
            raise

    return cast(F, called)
