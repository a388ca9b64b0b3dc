"""Composite functions: composed of ops for variables, the array library's own function for plain values."""

import functools
import inspect
import math
from collections.abc import Callable, Set
from typing import Any, cast

import numpy as np

from oxigrad import _core
from oxigrad._core import DtypeError, plain
from oxigrad._names import parameter_kinds
from oxigrad._typing import F
from oxigrad.ops.backends import (
    UnbatchedError,
    adapter_of_library,
    array_of,
    dtype_in,
    has_batched,
    has_variable,
    is_array,
    is_foreign,
    is_matrix,
    one_by_one,
    standard_namespace,
)
from oxigrad.ops.core.shapes import RAW_ERRORS, explain

# Functions that may return their argument itself, as NumPy's do; all others return a copy.
_MAY_RETURN_ARGUMENT = {"asarray", "diff", "matrix_power", "nan_to_num"}

# Names of array parameters in the signatures of these functions.
_ARRAY_PARAMETERS = {"a", "ab", "arrays", "b", "f", "operands", "q", "v", "x", "x1", "x2", "z"}

# Calls NumPy's function with arguments that the function of ``xp`` lacks; set by
# `oxigrad.ops.protocols.numpy_protocols`.
_numpy_calls: list[Callable[..., Any]] = []


def install_numpy_call(function: Callable[..., Any]) -> None:
    """Installs the function that calls NumPy's functions with further arguments.

    It is called with the function, its positional and keyword arguments, and the `TypeError` of the call. If NumPy's
    function does not accept them either, it raises this error, or returns NotImplemented if the error is None.
    """
    _numpy_calls[:] = [function]


def _is_of_call(error: TypeError) -> bool:
    """Whether the error says that arguments do not match the signature; False for errors of the function's body."""
    is_ours = error.__traceback__ is not None and error.__traceback__.tb_next is None
    return is_ours and "multiple values" not in str(error)


_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_CONVERTED = {list, tuple, str, type(None)}


def composite(
    function: F,
    extension: str | None = None,
    *,
    is_standard: bool = True,
    beyond: Set[str] = frozenset(),
    by_core: bool = False,
) -> F:
    """Decorates a function of ops to call the array library's function, if there is one, on plain values.

    ``extension`` names the standard's extension that has the library's function: "linalg" or "fft". A NumPy function
    outside the standard differs between libraries: it is called only if the library follows NumPy. ``beyond`` names
    keywords that the library's function lacks. With ``by_core`` its ops compute NumPy's floating-point arrays and
    floats too, so that all executors give one value.
    """
    name, on_variables, where = function.__name__, accepts_array_likes(function), _array_positions(function)
    parameters = parameter_kinds(function)
    names, kinds = list(parameters), list(parameters.values())
    stop: Any = None if where is None else where.stop
    by_position = stop if stop is not None and kinds[stop : stop + 1] == [_POSITIONAL] else len(names) + 64
    is_variadic = inspect.Parameter.VAR_POSITIONAL in kinds
    positional: float = math.inf if is_variadic else sum(kind <= _POSITIONAL for kind in kinds)
    is_elementwise = all(kind is inspect.Parameter.POSITIONAL_ONLY for kind in kinds)

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        if has_variable(args) or has_variable(named.values()):
            try:
                result = on_variables(*args, **named)
            except RAW_ERRORS as error:
                if isinstance(error, UnbatchedError):
                    return one_by_one(called, args, named, error)
                if isinstance(error, TypeError) and on_variables is function and _is_of_call(error):
                    return _numpy_calls[0](function, args, named, error)
                explain(name, function, args, named, error)
                raise
            if name not in _MAY_RETURN_ARGUMENT and any(result is arg for arg in args) and is_array(plain(result)):
                return _core.record("astype", [result], {"dtype": result.dtype, "copy": True})
            return result
        if any(map(is_matrix, args)):
            return on_variables(*args, **named)
        if is_elementwise and len(args) > len(kinds):  # a further one might be an array that the library writes to
            raise TypeError(f"{name}: found {len(args)} positional arguments, expected at most {len(kinds)}")
        is_named = named and (not args or has_batched(named.values()))
        library = standard_namespace(*(named.values() if is_named else args))
        library = library if extension is None else getattr(library, extension)
        is_theirs = (is_standard or adapter_of_library(library).follows_numpy) and beyond.isdisjoint(named)
        is_theirs = is_theirs and not (by_core and all(map(_is_float, args)))
        implementation = getattr(library, name, on_variables) if is_theirs else on_variables
        if not named.keys() <= parameters.keys():  # parameters of NumPy's function, or else of the library's
            result = _numpy_calls[0](function, args, named, None)
            if result is not NotImplemented:
                return result
        if "dtype" in named:
            named["dtype"] = dtype_in(library, named["dtype"])
        try:
            return implementation(*args, **named)
        except UnbatchedError as error:
            return one_by_one(called, args, named, error)
        except TypeError as error:
            further = dict(zip(names[by_position:], args[by_position:], strict=False))
            if further and not further.keys() & named.keys() and len(args) <= len(names):
                return called(*args[:by_position], **further, **named)  # as functions of array_api_compat take them
            if len(args) > positional:
                return _numpy_calls[0](function, args, named, error)
            # Many libraries refuse lists, and numbers as an index is.
            if library is not np and any(arg.__class__ in (list, tuple, int) for arg in (*args, *named.values())):
                return on_variables(*args, **named)
            if defaults := _defaults_left_out(function, args, named):  # which the library's function may require
                return called(*args, **defaults, **named)
            raise
        except AttributeError as error:
            if beyond and len(args) > positional:
                return _numpy_calls[0](function, args, named, error)
            if where is not None and any(arg.__class__ in (list, tuple) for arg in args[where]):
                return called(*_with_arrays(args, where), **named)
            _require_arrays(function, args, where or slice(0, 0))
            raise

    return cast(F, called)


def of_numpy(function: F) -> F:
    """Decorates a function of NumPy's that the standard does not have, as `composite` does."""
    return composite(function, is_standard=False)


def _defaults_left_out(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The defaults, other than None, of parameters by position or name that a call leaves out."""
    parameters = [*inspect.signature(function).parameters.values()][len(args) :]
    left_out = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in named]
    return {p.name: p.default for p in left_out if p.default not in (None, p.empty)}


def _is_float(x: Any) -> bool:
    """Whether an argument is a float, or an array of NumPy of floating-point numbers."""
    return isinstance(x, float | np.floating) or (x.__class__ is np.ndarray and x.dtype.kind == "f")


def _with_arrays(args: tuple[Any, ...], where: slice) -> tuple[Any, ...]:
    """The arguments with arrays for the lists and tuples in some places."""
    arrays = [array_of(x, args) if _is_converted(x) else x for x in args[where]]
    return (*args[: where.start], *arrays, *args[where.start + len(arrays) :])


def accepts_array_likes(function: F, *, all_arrays: bool = False) -> F:
    """Decorates a function of arrays to accept lists and tuples (array_like).

    With ``all_arrays`` all positional-only parameters are arrays. Raises `DtypeError`, which names the argument, if an
    argument is not an array and lacks an attribute of arrays.
    """
    where = slice(0, _count_positional_only(function)) if all_arrays else _array_positions(function)
    if where is None:
        return function

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        for arg in args[where]:
            if _is_converted(arg):
                args = _with_arrays(args, where)
                break
        try:
            return function(*args, **named)
        except AttributeError:
            _require_arrays(function, args, where)
            raise
        except RAW_ERRORS as error:
            if isinstance(error, UnbatchedError):
                return one_by_one(called, args, named, error)
            if isinstance(error, TypeError) and _is_of_call(error):
                return _numpy_calls[0](function, args, named, error)
            if has_variable(args):
                explain(function.__name__, function, args, named, error)
            raise

    return cast(F, called)


def _is_converted(value: Any) -> bool:
    """Whether a value is no array, and not a matrix of SciPy, whose products are its own."""
    return value.__class__ in _CONVERTED or (is_foreign(value) and not is_matrix(value))


def _count_positional_only(function: Callable[..., Any]) -> int:
    return sum(kind is inspect.Parameter.POSITIONAL_ONLY for kind in parameter_kinds(function).values())


def _array_positions(function: Callable[..., Any]) -> slice | None:
    """The positions of the array parameters of a function; None without any, or if one is a list of arrays."""
    parameters = list(parameter_kinds(function).items())
    positions = [
        i
        for i, (name, kind) in enumerate(parameters)
        if name in _ARRAY_PARAMETERS and kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    if not positions:
        return None
    (first, kind), (_, last) = parameters[positions[0]], parameters[positions[-1]]
    if first == "arrays" and kind <= _POSITIONAL:
        return None
    return slice(positions[0], None if last is inspect.Parameter.VAR_POSITIONAL else positions[-1] + 1)


def _require_arrays(function: Callable[..., Any], args: tuple[Any, ...], where: slice) -> None:
    """Raises `DtypeError` for the first argument that should be an array and is not."""
    for at, arg in enumerate(args[where], where.start):
        if not is_array(arg) or str(arg.dtype) == "object":
            what = f"{type(arg).__name__} {arg!r}"
            raise DtypeError(
                f"{function.__name__}: argument {at}: found {what}, expected an array of numbers"
            ) from None
