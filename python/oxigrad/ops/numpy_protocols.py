"""NumPy's protocols: dispatch of NumPy's functions, called on variables, to the functions of ``xp``."""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import DerivativeError, Variable, is_inexact, plain
from oxigrad._typing import Array
from oxigrad.ops import in_place, special
from oxigrad.ops.backends import has_variable

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
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
_ACCUMULATIONS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}
_FUNCTIONS = {"amax": "max", "amin": "min", "concatenate": "concat", "transpose": "permute_dims"}
_PARAMETERS = {"a_max": "max", "a_min": "min", "ddof": "correction"}
# Keywords without effect on the elements of a result: the algorithm, the memory layout.
_IGNORED = {"sort": {"kind"}, "copy": {"order"}, "full_like": {"order"}}
# Functions with a derivative of zero, or that ignore the elements: their results are plain values. (`nextafter` is not among
# them: its derivative is not zero. As in JAX and PyTorch, it has no derivative.)
_CONSTANT = {"zeros_like", "ones_like", "empty_like", "fix", "round", "around", "spacing", "can_cast", "result_type"}
# Modules of NumPy with a public name.
_PATHS = {"numpy.lib.scimath": "numpy.emath"}
# The modules of NumPy whose functions have counterparts in ``xp``.
_PARTS = {"numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}


def array_ufunc(xp: ModuleType, ufunc: Any, method: str, inputs: Sequence[Any], named: dict[str, Any]) -> Any:
    """A ufunc, or its method ``reduce``, ``accumulate`` or ``at``, called on variables."""
    called = f"np.{ufunc.__name__}" if method == "__call__" else f"np.{ufunc.__name__}.{method}"
    found = _of_ufunc(ufunc.__name__, method)
    given = {key: value for key, value in named.items() if not _is_absent(value)}
    if method == "at":
        return in_place.ufunc_at(called, ufunc, *inputs)
    out = given.pop("out", None)
    if out is not None:
        if ufunc is np.matmul:  # `a @= x` passes arguments that ours does not have
            in_place.check_target(f"{called} with out=", out, inputs)
        where = given.pop("where", True) if method == "__call__" and len(out) == 1 else True
        if where is not True:
            return in_place.written_where(called, functools.partial(ufunc, **given), inputs, where, out)
        others = {key: value for key, value in named.items() if key != "out"}
        result = getattr(ufunc, method)(*inputs, **others)
        return in_place.written(called, result, out, broadcasts=method == "__call__")
    if method in ("reduce", "accumulate") and found is not None:
        axis = inputs[1] if len(inputs) > 1 else named.get("axis", 0)
        given = {**given, "axis": axis}
        return _call(vars(xp)[found], called, inputs[:1], given)
    if method != "__call__":
        raise DerivativeError(f"{called} of a variable has no derivative: use np.{ufunc.__name__} itself")
    if found in vars(xp) and _is_meant(ufunc):
        return _call(vars(xp)[found], called, inputs, given)
    scipys = special.of_ufunc(ufunc)
    if scipys is not None:
        return _call(scipys, f"scipy.special.{ufunc.__name__}", inputs, given)
    return undifferentiated(ufunc, called, inputs, given)


_ARITIES = dict(_core.ops())


def _is_meant(ufunc: np.ufunc) -> bool:
    """Whether a ufunc is NumPy's or SciPy's, and not a user's of the same name."""
    return any(getattr(sys.modules.get(module), ufunc.__name__, None) is ufunc for module in _MODULES_OF_UFUNCS)


def op_of_ufunc(ufunc: np.ufunc) -> str | None:
    """The name of the op of a NumPy ufunc; None where it is not an op, or not a ufunc of NumPy."""
    name = _of_ufunc(ufunc.__name__, "__call__")
    return name if getattr(np, ufunc.__name__, None) is ufunc and _ARITIES.get(name or "") == ufunc.nin else None


def _of_ufunc(name: str, method: str) -> str | None:
    tables = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}
    return tables[method].get(name) if method in tables else _UFUNCS.get(name, name)


def name_of_ufunc(ufunc: np.ufunc, method: str) -> str | None:
    """The name in ``xp`` of a ufunc, or of its method ``reduce`` or ``accumulate``; None where it has none."""
    return _of_ufunc(ufunc.__name__, method) if method in ("__call__", "reduce", "accumulate") else None


def name_of_function(function: Any) -> str:
    """The name in ``xp`` of a function of NumPy."""
    name = str(function.__name__)
    return _FUNCTIONS.get(name, name)


def array_function(xp: ModuleType, function: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """A NumPy function that is not a ufunc, called on variables."""
    path, name = str(function.__module__), str(function.__name__)
    called = f"{_PATHS.get(path, path).replace('numpy', 'np', 1)}.{name}"
    writes = in_place.writing(function)
    if writes is not None:
        return writes(*args, **named)
    out, args, named = _without_out(function, args, named)
    if out is not None:
        return in_place.written(called, function(*args, **named), out)
    part = path.rpartition(".")[2]
    is_known = getattr(_PARTS.get(path), name, None) is function
    xp = vars(xp)[part] if part in ("linalg", "fft") else xp
    name = _FUNCTIONS.get(name, name)
    if not is_known or name not in vars(xp) or name in _CONSTANT:
        return undifferentiated(function, called, args, named)
    ours = vars(xp)[name]
    args, named = _bound(function, ours, args, named)
    return _call(ours, called, args, named)


# The position of ``out`` in functions that have no signature in some versions of NumPy.
_OUT = {"concatenate": 2, "dot": 2}


def _without_out(
    function: Any, args: Sequence[Array], named: dict[str, Any]
) -> tuple[Any, Sequence[Any], dict[str, Any]]:
    """The argument ``out`` (None where absent), then the other arguments."""
    if named.get("out") is not None:
        return named["out"], args, {key: value for key, value in named.items() if key != "out"}
    parameters = list(_parameters(function))
    place = parameters.index("out") if "out" in parameters else _OUT.get(function.__name__, len(args))
    if "out" in named or place >= len(args) or function.__name__ == "einsum":
        return None, args, {key: value for key, value in named.items() if key != "out"}
    after = dict(zip(parameters[place + 1 :], args[place + 1 :], strict=False))
    return args[place], args[:place], {**after, **named}


def _is_absent(value: Any) -> bool:
    return value is None or value is np._NoValue


def _call(ours: Callable[..., Any], called: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    unknown = named.keys() - _parameters(ours).keys()
    if unknown:
        raise DerivativeError(f"{called} of a variable does not take {', '.join(sorted(unknown))}")
    return ours(*args, **named)


@functools.lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _bound(
    function: Callable[..., Any], ours: Callable[..., Any], args: Sequence[Array], named: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a NumPy function as arguments of oxigrad's: the first by position, the others by name."""
    theirs, own = _parameters(function), _parameters(ours)
    variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in (*theirs.values(), *own.values()))
    if not theirs or not own or variadic:
        return args, {key: value for key, value in named.items() if key in own or not _is_absent(value)}
    given = {**dict(zip(theirs, args, strict=False)), **named}
    count = sum(
        p.kind is p.POSITIONAL_ONLY or (p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in theirs)
        for p in own.values()
    )
    names = [name for name in theirs if name in given]
    positional = [given[name] for name in names[:count]]
    rest: dict[str, Any] = {}
    for name in given:
        own_name = _PARAMETERS.get(name, name)
        if name in names[:count] or (own_name in rest and _is_absent(given[name])):
            continue
        if not _is_absent(rest.get(own_name)):
            raise TypeError(f"np.{function.__name__}: found {own_name} twice")
        rest[own_name] = given[name]
    ignored = _IGNORED.get(ours.__name__, set())
    return positional, {
        name: value
        for name, value in rest.items()
        if name in own or not (name in ignored or _is_absent(value) or _is_default(theirs.get(name), value))
    }


def _is_default(parameter: inspect.Parameter | None, value: Any) -> bool:
    """Whether an argument is the parameter's default."""
    default = None if parameter is None else parameter.default
    return isinstance(default, (bool, int, float, str)) and type(value) is type(default) and value == default


def undifferentiated(function: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """Calls a function that has no derivative on plain values.

    Raises `DerivativeError` where the result is of floating-point dtype, so that a derivative would be lost.
    """
    try:
        result = function(*map(_read_only, args), **{key: _read_only(value) for key, value in named.items()})
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise DerivativeError(
            f"{name} would write to the array of a variable: pass a copy, ox.stop_gradient(x).copy()"
        ) from error
    lost = has_variable((*args, *named.values()))
    if lost and name.rpartition(".")[2] not in _CONSTANT and _has_inexact(result):
        raise DerivativeError(f"{name} has no derivative: use another function, or ox.stop_gradient on its arguments")
    return result


def _read_only(value: Any) -> Any:
    """The value with read-only plain arrays in place of variables, in lists and tuples too."""
    if type(value) in (list, tuple):
        return type(value)(map(_read_only, value))
    array = plain(value)
    if isinstance(value, Variable) and isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array


def _has_inexact(result: Any) -> bool:
    """Whether a result has floating-point numbers, or objects, which may be floating-point numbers."""
    if isinstance(result, (list, tuple)):
        return any(map(_has_inexact, result))
    is_number = isinstance(result, (float, complex)) or is_inexact(result)
    return is_number or getattr(getattr(result, "dtype", None), "hasobject", False)
