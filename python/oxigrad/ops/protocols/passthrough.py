"""Functions of NumPy by their names in ``xp``: NumPy's own on variables, the array library's on plain arrays."""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._typing import Namespace
from oxigrad.ops.backends import adapter_of_library, array_of, dtype_in, has_variable, is_array, standard_namespace
from oxigrad.ops.core.array_like import array
from oxigrad.ops.protocols import numpy_protocols, undifferentiated
from oxigrad.ops.protocols.numpy_protocols import parameters_of

# Functions of the shape of an array alone, which a library need not have.
_OF_SHAPES = {"ndim", "shape", "size"}


@functools.cache  # bounded by the number of NumPy's functions; one object for each name
def passthrough(name: str) -> Callable[..., Any]:
    """The function ``xp.<name>``, with the signature and docstring of the standard's, or NumPy's.

    On variables it is NumPy's function. On plain arrays it is the array library's function, if that follows NumPy or
    the standard, or else a composition of the library's functions. Raises `DerivativeError` if the function has no
    derivative and its result has a floating-point dtype.
    """
    numpys = getattr(np, name)
    stated = undifferentiated.stated(name)
    described, is_standard = stated or numpys, stated is not None

    def function(*args: Any, **named: Any) -> Any:
        if name in _OF_SHAPES and args:
            of_shape = lambda x, *args, **named: numpys(  # noqa: E731
                np.broadcast_to(0, array(x).shape), *args, **named
            )
            return numpy_protocols.undifferentiated(of_shape, f"xp.{name}", args, named)

        library = standard_namespace(*args, *named.values())
        is_theirs = hasattr(library, name) and (is_standard or adapter_of_library(library).follows_numpy)
        if not is_theirs or has_variable(args) or has_variable(named.values()):
            form = numpy_protocols.differentiable(sys.modules["oxigrad.xp"], numpys)
            if form is not None:
                return form(*args, **named)

        if is_standard and len(args) > 1:
            args, named = _by_name(described, numpys, args, named, takes_all=adapter_of_library(library).follows_numpy)
        if "dtype" in named:
            named["dtype"] = dtype_in(library, named["dtype"])

        def of_library(*args: Any, **named: Any) -> Any:
            if not hasattr(library, name):
                raise NotImplementedError(
                    f"xp.{name}: {library.__name__} has no function {name}: expected arrays of NumPy, or of a "
                    "library that has it"
                )
            try:
                return getattr(library, name)(*args, **named)
            except (TypeError, ValueError):
                if library is np or (again := _with_array_likes(numpys, library, args, named)) is None:
                    raise
                return again()

        return numpy_protocols.undifferentiated(of_library, f"xp.{name}", args, named, function)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "oxigrad.xp", described.__doc__
    if isinstance(numpys, np.ufunc):
        add_ufunc_methods(function, numpys)
    with contextlib.suppress(ValueError):  # a few of NumPy's functions have no signature
        function.__signature__ = inspect.signature(described)
    return function


def _with_array_likes(numpys: Any, library: Namespace, args: Any, named: Any) -> Callable[[], Any] | None:
    """A new call of a function whose library rejected numbers, lists or tuples beside arrays, or None."""
    is_listed = any(isinstance(arg, (list, tuple)) for arg in named.values())
    if not is_listed and not any(isinstance(arg, (list, tuple, int, float, complex)) for arg in args[:2]):
        return None
    form = numpy_protocols.differentiable(sys.modules["oxigrad.xp"], numpys)
    if form is not None:
        return functools.partial(form, *args, **named)
    whole = [array_of(arg, args) if isinstance(arg, (list, tuple, int, float, complex)) else arg for arg in args[:2]]
    if not all(map(is_array, whole)):
        return None
    if len({x.dtype for x in whole}) > 1:
        common = library.result_type(*whole)
        whole = [library.astype(x, common) for x in whole]
    return functools.partial(getattr(library, numpys.__name__), *whole, *args[2:], **named)


def _by_name(
    stated: Any, numpys: Any, args: tuple[Any, ...], named: dict[str, Any], *, takes_all: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with those after the array renamed to NumPy's keywords.

    The standard takes further arguments by keyword only if it takes one by position. The arguments are unchanged unless
    the library has all of the keywords: the standard's, or with ``takes_all`` NumPy's.
    """
    parameters, theirs = parameters_of(stated), [*parameters_of(numpys).values()]
    if sum(p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters.values()) != 1 or len(args) > len(theirs):
        return args, named
    further = {
        p.name: arg
        for p, arg in zip(theirs[1:], args[1:], strict=False)
        if p.name in parameters or arg is not p.default
    }
    if further.keys() & named.keys() or not (takes_all or further.keys() <= parameters.keys()):
        return args, named
    return args[:1], {**further, **named}


def add_ufunc_methods(function: Any, ufunc: np.ufunc) -> None:
    """Gives a function of Python's the methods of NumPy's ufunc of its name, which take variables too."""
    if inspect.isfunction(function):
        for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
            setattr(function, method, getattr(ufunc, method))
