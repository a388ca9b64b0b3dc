"""NumPy's protocols: dispatch of NumPy's functions, called on variables, to the functions of ``xp``."""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from oxigrad import _core
from oxigrad._core import DerivativeError, Variable, assignable, is_inexact, plain
from oxigrad._typing import Array
from oxigrad.ops.backends import (
    UnbatchedError,
    batched_of,
    device_of,
    dtype_in,
    has_derivative,
    has_variable,
    namespace,
    one_by_one,
)
from oxigrad.ops.core import composite, in_place
from oxigrad.ops.core.aliasing import read_only
from oxigrad.ops.core.array_like import NO_VALUE, array
from oxigrad.ops.core.shapes import RAW_ERRORS, explain
from oxigrad.ops.numpy import ufuncs
from oxigrad.ops.protocols import constants

# Ufuncs of NumPy with another name in ``xp``.
_UFUNCS = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "degrees": "rad2deg",
    "power": "pow",
    "radians": "deg2rad",
    "rint": "round",
    "true_divide": "divide",
}
_MODULES_OF_UFUNCS = ("numpy", "numpy._core.umath", "scipy.special", "scipy.special._ufuncs")
# Ufuncs with boolean, integer or piecewise constant results; the results of their methods are the same.
_UNSMOOTH = {
    *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.gcd, np.lcm),
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.logical_and, np.logical_or, np.logical_xor, np.floor_divide, np.nextafter),
}
_FUNCTIONS = {"amax": "max", "amin": "min", "concatenate": "concat", "row_stack": "vstack", "transpose": "permute_dims"}
_PARAMETERS = {"a_max": "max", "a_min": "min", "ddof": "correction"}
# Keywords without effect on the elements of a result: the algorithm, the memory layout.
_IGNORED = {"sort": {"kind"}, "copy": {"order"}, "full_like": {"order"}}
# Functions with a zero derivative, or that ignore the elements: their results are plain values. (`nextafter` is not
# included: its derivative is not zero. As in JAX and PyTorch, it has no derivative.)
_CONSTANT = {"fix", "round", "around", "spacing", "can_cast", "result_type"}
# Functions of shapes and dtypes: their results are equal for all examples of a batch, and in each replay of a
# recording.
OF_TYPES = set(
    """can_cast common_type diag_indices_from iscomplexobj isrealobj ndim result_type shape size tril_indices_from
    triu_indices_from""".split()
)
_CONSTANT |= {"floor_divide.outer", "empty", "eye", "identity", "ones", "tri", "zeros"}
# Functions that create arrays; floating-point results take assignments of variables.
CREATION = {
    *(
        np.arange,
        np.array,
        np.asanyarray,
        np.asarray,
        np.empty,
        np.eye,
        np.full,
        np.identity,
        np.ones,
        np.tri,
        np.zeros,
    ),
    *(np.empty_like, np.full_like, np.ones_like, np.zeros_like),
}
# Keywords of ufuncs whose default is no None: given as that, they are as absent.
_UFUNC_DEFAULTS = {"casting": "same_kind", "order": "K", "subok": True, "where": True}
# Modules of NumPy with a public name.
_PATHS = {"numpy.lib.scimath": "numpy.emath"}
# The modules of NumPy whose functions have counterparts in ``xp``.
_PARTS = {"numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}


def array_ufunc(xp: ModuleType, ufunc: Any, method: str, inputs: Sequence[Any], named: dict[str, Any]) -> Any:
    """A ufunc, or its method ``reduce``, ``accumulate`` or ``at``, called on variables."""
    try:
        return _array_ufunc(xp, ufunc, method, inputs, named)
    except RAW_ERRORS as error:
        if isinstance(error, UnbatchedError) and method != "at" and "out" not in named:
            return one_by_one(getattr(ufunc, method), inputs, named, error)
        explain(ufunc.__name__, ufunc, inputs, named, error)
        raise


def _array_ufunc(xp: ModuleType, ufunc: Any, method: str, inputs: Sequence[Any], named: dict[str, Any]) -> Any:
    module = _module_of(ufunc)
    called = f"{module}.{ufunc.__name__}".removeprefix(".")
    called = called if method == "__call__" else f"{called}.{method}"
    name = _UFUNCS.get(ufunc.__name__, str(ufunc.__name__))
    named = {key: value for key, value in named.items() if not _is_same(value, _UFUNC_DEFAULTS.get(key))}
    keywords = {key: value for key, value in named.items() if key == "axis" or not _is_default(None, value)}
    if method == "at":
        return in_place.ufunc_at(called, ufunc, *inputs)
    out = keywords.pop("out", None)
    if out is not None:
        out = out if isinstance(out, tuple) else (out,)  # as NumPy passes it, but callers of `xp` need not
        if ufunc is np.matmul:  # `a @= x` passes arguments that ours does not have
            in_place.check_target(f"{called} with out=", out, inputs)
        where = keywords.pop("where", True) if method == "__call__" and len(out) == 1 else True
        if where is not True:
            return in_place.written_where(called, functools.partial(ufunc, **keywords), inputs, where, out)
        others = {key: value for key, value in named.items() if key != "out"}
        result = getattr(ufunc, method)(*inputs, **others)
        return in_place.written(called, result, out, broadcasts=method == "__call__")
    if method != "__call__":
        if ufunc in _UNSMOOTH or (ufunc.nout > 1 and method != "outer"):
            return undifferentiated(getattr(ufunc, method), called, inputs, keywords)
        return ufuncs.method(ufunc, method, inputs, keywords)
    if "dtype" in keywords:
        dtype = np.dtype(keywords.pop("dtype"))
        if dtype.kind not in "fc":
            return undifferentiated(ufunc, called, inputs, {**keywords, "dtype": dtype})
        cast = inputs[:1] if ufunc is np.ldexp else inputs  # whose second argument is a whole number
        inputs = [*(array(x, dtype) for x in cast), *inputs[len(cast) :]]
    ours = (vars(xp).get(name) or _forms().form_of(ufunc)) if module else None
    if ours is None and module == "scipy.special" and ufunc.__name__ in xp.special.__all__:
        ours = getattr(xp.special, ufunc.__name__)
    return undifferentiated(ufunc, called, inputs, keywords) if ours is None else _call(ours, called, inputs, keywords)


_ARITIES = dict(_core.ops())


def _forms() -> ModuleType:
    """The functions with NumPy's signatures, imported on first use: most programs only call functions of ``xp``."""
    return importlib.import_module("oxigrad.ops.numpy.forms")


def _module_of(ufunc: np.ufunc) -> str:
    """The public module of a ufunc of NumPy or SciPy; empty for a user's, which may have the name of one of theirs."""
    modules = (each for each in _MODULES_OF_UFUNCS if getattr(sys.modules.get(each), ufunc.__name__, None) is ufunc)
    return next(modules, "").partition("._")[0].replace("numpy", "np")


def numpy_ufunc(name: str) -> Any:
    """The NumPy function, a ufunc except for `numpy.round`, with the name of an op, or None."""
    function = getattr(np, name, None)
    return function if callable(function) else None


def op_of_ufunc(ufunc: np.ufunc) -> str | None:
    """The op of a NumPy ufunc; None if there is no such op or the ufunc is not NumPy's."""
    name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
    return name if getattr(np, ufunc.__name__, None) is ufunc and _ARITIES.get(name or "") == ufunc.nin else None


class _Route(NamedTuple):
    """The functions that a NumPy function, called on variables, leads to."""

    called: str
    writes: Callable[..., None] | None  # of a function that writes to its first argument
    form: Callable[..., Any] | None  # with NumPy's signature, instead of a function of xp
    ours: Callable[..., Any] | None  # the function of xp
    keywords: Callable[..., Any] | None  # with NumPy's signature, for arguments that ours does not have
    out: int  # the position of the argument out, or one that no call has


@functools.lru_cache(maxsize=1024)
def _route(xp: ModuleType, function: Any) -> _Route:
    path, name = str(function.__module__), str(function.__name__)
    called = f"{_PATHS.get(path, path).replace('numpy', 'np', 1)}.{name}"
    part = path.rpartition(".")[2]
    is_known = getattr(_PARTS.get(path), name, None) is function
    space = vars(vars(xp)[part] if part in ("linalg", "fft") else xp)
    own_name = name_of_function(function)
    ours = space.get(own_name) if is_known and own_name not in _CONSTANT else None
    parameters = list(parameters_of(function))
    out = parameters.index("out") if "out" in parameters and name != "einsum" else _OUT.get(name, 1 << 30)
    return _Route(
        called,
        in_place.writing(function),
        _forms().form_of(function),
        ours,
        _forms().with_keywords(function),
        out,
    )


def name_of_ufunc(ufunc: np.ufunc, method: str) -> str | None:
    """The name in ``xp`` of a ufunc, or of its method ``reduce`` or ``accumulate``, or None."""
    if method == "__call__":
        return _UFUNCS.get(ufunc.__name__, ufunc.__name__)
    function = ufuncs.own_method(ufunc, method)
    return None if function is None else function.__name__


def name_of_function(function: Any) -> str:
    """The name in ``xp`` of a function of NumPy."""
    name = str(function.__name__)
    return _FUNCTIONS.get(name, name)


def array_function(xp: ModuleType, function: Any, args: Sequence[Any], named: dict[str, Any], like: Any = None) -> Any:
    """A NumPy function that is not a ufunc, called on variables; arrays created like ``like`` take assignments."""
    try:
        if (result := constants.call(function, args, named)) is not NotImplemented:
            return result
        if function not in CREATION:
            return _array_function(xp, function, args, named)
        if like is not None and not has_variable(args) and namespace(plain(like)) is not np:
            return assignable(_created_in_library(function, args, named, plain(like)))
        return assignable(_array_function(xp, function, args, named))
    except RAW_ERRORS as error:
        if isinstance(error, UnbatchedError) and not _writes(_route(xp, function), args, named):
            return one_by_one(_dispatched(xp, function), args, named, error)
        explain(function.__name__, function, args, named, error)
        raise


def _dispatched(xp: ModuleType, function: Any) -> Callable[..., Any]:
    """The function, of arguments on which NumPy does not dispatch it too, as without ``like``."""

    def called(*args: Any, **named: Any) -> Any:
        return array_function(xp, function, args, named)

    return functools.update_wrapper(called, function)


def _created_in_library(function: Any, args: Sequence[Any], named: dict[str, Any], like: Any) -> Any:
    """The array that a NumPy function creates, in the library, device and default dtype of ``like``."""
    array = function(*args, **named)
    is_stated = "dtype" in named or array.dtype.kind not in "fc"
    return namespace(like).asarray(
        array, dtype=dtype_in(namespace(like), array.dtype) if is_stated else like.dtype, device=device_of(like)
    )


def _array_function(xp: ModuleType, function: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    route = _route(xp, function)
    called, ours = route.called, route.ours
    if route.writes is not None:
        return route.writes(*args, **named)
    if _has_out(route, args, named):
        out, args, named = _without_out(function, args, named, route.out)
        if out is not None:
            return in_place.written(called, function(*args, **named), out)
    if route.form is not None:
        return route.form(*args, **named)
    if ours is None:
        return undifferentiated(function, called, args, named)
    if len(args) == 1 and not named:
        return ours(args[0])
    positional, others = _bound(function, ours, args, named)
    if others.keys() <= parameters_of(ours).keys():
        return ours(*positional, **others)
    return _call(ours, called, positional, others) if route.keywords is None else route.keywords(*args, **named)


def _has_out(route: _Route, args: Sequence[Any], named: dict[str, Any]) -> bool:
    return "out" in named or len(args) > route.out


def _writes(route: _Route, args: Sequence[Any], named: dict[str, Any]) -> bool:
    """Whether a call writes to an array, so that it is not called for each example of a batch."""
    return route.writes is not None or _has_out(route, args, named)


def differentiable(xp: ModuleType, function: Any) -> Callable[..., Any] | None:
    """A function or ufunc of NumPy as a function of variables, if differentiable; names in ``xp`` may differ."""
    is_ufunc = isinstance(function, np.ufunc)
    name = name_of_ufunc(function, "__call__") if is_ufunc else name_of_function(function)

    def called(*args: Any, **named: Any) -> Any:
        return (
            array_ufunc(xp, function, "__call__", args, named)
            if is_ufunc
            else array_function(xp, function, args, named)
        )

    is_known = name in vars(xp) or _forms().form_of(function) or (not is_ufunc and in_place.writing(function))
    return called if is_known else None


def _with_numpy_arguments(
    function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any], error: TypeError | None
) -> Any:
    """A function of ``xp`` called with arguments of its NumPy namesake: see `composite.install_numpy_call`."""
    rooms = function.__module__.split(".")
    part = next((part for part in ("linalg", "fft") if part in rooms), "")
    numpys = getattr(_PARTS.get(f"numpy.{part}", np), function.__name__, None)
    named = {key: value for key, value in named.items() if key != "like"}
    if isinstance(numpys, np.ufunc) and len(args) == numpys.nin:
        return array_ufunc(sys.modules["oxigrad.xp"], numpys, "__call__", args, named)
    try:
        if isinstance(numpys, np.ufunc):
            raise TypeError
        inspect.signature(numpys).bind(*args, **named)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        if "b" in named and (form := _forms().form_of(numpys)) is not None:  # with SciPy's generalized problem
            return form(*args, **named)
        if error is None:
            return NotImplemented
        raise error from None
    return array_function(sys.modules["oxigrad.xp"], numpys, args, named)


composite.install_numpy_call(_with_numpy_arguments)


# The position of ``out`` in functions that have no signature in some versions of NumPy.
_OUT = {"concatenate": 2, "dot": 2}


def _without_out(
    function: Any, args: Sequence[Array], named: dict[str, Any], place: int
) -> tuple[Any, Sequence[Any], dict[str, Any]]:
    """The argument ``out``, which is at ``place`` if not by keyword (None where absent), then the other arguments."""
    if "out" in named or place >= len(args):
        return named.get("out"), args, {key: value for key, value in named.items() if key != "out"}
    after = dict(zip(list(parameters_of(function))[place + 1 :], args[place + 1 :], strict=False))
    return args[place], args[:place], {**after, **named}


def _call(ours: Callable[..., Any], called: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    unknown = named.keys() - parameters_of(ours).keys()
    if unknown:
        raise DerivativeError(f"{called} of a variable does not take {', '.join(sorted(unknown))}")
    return ours(*args, **named)


@functools.lru_cache(maxsize=1024)
def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name; empty if it has no signature."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


@functools.lru_cache(maxsize=1024)
def _count_of_positional(function: Callable[..., Any], ours: Callable[..., Any]) -> int | None:
    """The number of arguments that ours takes by position; None if all are passed on as they come."""
    theirs, parameters = parameters_of(function), parameters_of(ours).values()
    if not theirs or not parameters or any(p.kind is p.VAR_POSITIONAL for p in (*theirs.values(), *parameters)):
        return None
    by_place = (p for p in parameters if p.kind is p.POSITIONAL_ONLY or p.name not in theirs)
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in by_place)


def _bound(
    function: Callable[..., Any], ours: Callable[..., Any], args: Sequence[Array], named: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a NumPy function as arguments of oxigrad's: the first by position, the others by name."""
    theirs, our_parameters = parameters_of(function), parameters_of(ours)
    if (count := _count_of_positional(function, ours)) is None:
        return args, {
            key: value
            for key, value in named.items()
            if key in our_parameters or not _is_default(theirs.get(key), value)
        }
    if not named and len(args) <= count:
        return args, {}
    arguments, rest = {**dict(zip(theirs, args, strict=False)), **named}, dict[str, Any]()
    first = [name for name in theirs if name in arguments][:count]
    for name in arguments:
        own_name = _PARAMETERS.get(name, name)
        if name in first or _is_default(theirs.get(name), arguments[name]):
            continue
        if own_name in rest:
            raise TypeError(f"np.{function.__name__}: found {own_name} twice")
        rest[own_name] = arguments[name]
    ignored = _IGNORED.get(ours.__name__, set())
    positional = [arguments[name] for name in first]
    return positional, {name: value for name, value in rest.items() if name in our_parameters or name not in ignored}


def _is_default(parameter: inspect.Parameter | None, value: Any) -> bool:
    """Whether an argument has its default value."""
    if value is None or value is NO_VALUE:
        return parameter is None or parameter.default is value or parameter.default is NO_VALUE
    return _is_same(value, None if parameter is None else parameter.default)


def _is_same(value: Any, default: Any) -> bool:
    return isinstance(default, (bool, int, float, str)) and type(value) is type(default) and value == default


def undifferentiated(
    function: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    named: dict[str, Any],
    again: Callable[..., Any] | None = None,
) -> Any:
    """Calls a function without a derivative on plain values; ``again`` is the fallback for each example of a batch.

    Raises `DerivativeError` if the result has a floating-point dtype, so that a derivative would be lost.
    """
    lost = has_derivative((*args, *named.values()))
    args, keywords = [*map(_read_only, args)], {key: _read_only(value) for key, value in named.items()}
    batched = batched_of((*args, *keywords.values()))
    try:
        if batched is None:
            result = function(*args, **keywords)
        else:
            result = batched.undifferentiated(again or function, args, keywords)
    except RAW_ERRORS as error:
        if lost:
            explain(name.rpartition(".")[2], function, args, keywords, error)
        if not isinstance(error, ValueError) or "read-only" not in str(error):
            raise
        raise DerivativeError(
            f"{name} would write to the array of a variable: pass a copy, ox.stop_gradient(x).copy()"
        ) from error
    is_constant = name.rpartition(".")[2] in _CONSTANT or name.removeprefix("np.") in _CONSTANT
    if lost and not is_constant and _has_inexact(result):
        raise DerivativeError(f"{name} has no derivative: use another function, or ox.stop_gradient on its arguments")
    return result


def _read_only(value: Any) -> Any:
    """The value with variables replaced by read-only plain arrays, also inside lists and tuples."""
    if type(value) in (list, tuple):
        return type(value)(map(_read_only, value))
    # Of a constant too, whose memory is the tape's.
    return read_only(plain(value)) if isinstance(value, Variable) else plain(value)


def _has_inexact(result: Any) -> bool:
    """Whether a result has floating-point numbers, or objects, which may be floating-point numbers."""
    if isinstance(result, (list, tuple)):
        return any(map(_has_inexact, result))
    is_number = isinstance(result, (float, complex)) or is_inexact(result)
    return is_number or getattr(getattr(result, "dtype", None), "hasobject", False)
