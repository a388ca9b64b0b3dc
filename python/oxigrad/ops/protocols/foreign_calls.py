"""Errors for functions of SciPy, PyTorch and JAX called on variables, which name the alternatives."""

import ast
import itertools
import linecache
import operator
import sys
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from oxigrad._core import DerivativeError, DtypeError, Variable, is_constant, plain
from oxigrad._typing import Dtype
from oxigrad.ops.core.aliasing import read_only

_LOSS = "a variable does not turn into a plain array by itself, since that would lose its derivative: "
_REMEDY = "xp.asarray or xp.stack makes one array of several variables, and ox.stop_gradient(x) gives the plain array"
# Replacements of NumPy's functions that its protocols do not reach.
_ARRAY = "np.array([v, w], like=v), or xp.asarray([v, w])"
_LINES = (
    ", makes one array of several variables; y = np.zeros(n, like=v) takes assignments; np.float64(v) is v, and "
    "np.int64(v), whose derivative is 0, int(v); ox.stop_gradient(v) gives the plain array"
)
# The parts of SciPy that `oxigrad.xp` has too.
_PARTS = ("fft", "linalg", "ndimage", "signal", "spatial.distance", "special", "stats", "integrate", "interpolate")

# Modules of SciPy whose wrappers convert arguments, with the name of the function there.
_DECORATORS = {"scipy._lib._util": "f", "scipy.stats._axis_nan_policy": "hypotest_fun_in"}

# Calls of functions of `xp.linalg` whose defaults are not SciPy's.
_DEFAULTS_OF_SCIPY = {"cholesky": "cholesky(a, upper=True)", "qr": 'qr(a, mode="complete")'}


# Above the numbers of pandas' classes, which leave operators to a class with a larger one.
PANDAS_PRIORITY = 10_000


def array_of_variable(x: Variable, dtype: Dtype = None, copy: bool | None = None) -> np.ndarray:
    """Implements ``__array__`` of a variable, which NumPy's and SciPy's functions call.

    Returns the array of a constant, read-only unless it is a copy. Raises `TypeError`, which names the function, for
    any other variable.
    """
    if (left := left_to_variable(x)) is not None:
        return left
    if is_constant(x):
        array = np.array(plain(x), dtype=dtype, copy=copy)  # NumPy casts, and raises for copy=False
        return array if copy else read_only(array)
    frame = sys._getframe(1)
    if _module(frame).startswith("numpy.ma"):
        raise DtypeError(
            "an array x that is combined with a variable v is a MaskedArray, whose mask would be ignored: expected "
            "x.data[~x.mask] and v[~x.mask], or np.where(x.mask, 0, r) of a result r of x.data"
        )
    call = None if _module(frame).startswith("scipy.") else _call_in_source(frame)
    called = _called_of_scipy(frame) or _called_of_arrays(frame) or _dot(call)
    raise TypeError(_LOSS + ((_array(call, frame) or _ARRAY) + _LINES if called is None else f"{called}; {_REMEDY}"))


def left_to_variable(x: Any) -> np.ndarray | None:
    """An array that holds ``x`` itself, for operators of SciPy's sparse arrays, which then defer to the variable.

    None for other callers. Raises `TypeError`, which names the function to call, for linear operators, and for methods
    that are not operators.
    """
    frame: FrameType | None = sys._getframe(2)
    if frame is None or not _module(frame).startswith("scipy.sparse."):
        return None
    name, is_of_linalg = frame.f_code.co_name, _module(frame).startswith("scipy.sparse.linalg.")
    while frame is not None and _module(frame).startswith("scipy.sparse.") and not name.startswith("__"):
        name, frame = frame.f_code.co_name, frame.f_back
    if is_of_linalg:
        raise TypeError(
            f"{_LOSS}xp.matmul(L, x) is L @ x and L.matvec(x) for a variable x and a linear operator L; a solver "
            "takes none: a rule by oxigrad.custom_vjp or oxigrad.implicit differentiates it"
        )
    if not name.startswith("__"):
        raise TypeError(
            f"{_LOSS}A.{name}(x) of a sparse array A takes none: xp.{name}(A, x) does, or an operator such as A * x"
        )
    left = np.empty((), dtype=object)
    left[()] = x
    return left


def refuse_float_of_scipy(frame: FrameType) -> None:
    """Raises `TypeError`, which names the function, if the ``frame`` that calls ``float(x)`` is of SciPy."""
    # SciPy's C code of `brentq`, `brenth`, `bisect` and `ridder` ignores this error, as one of any ``__float__``, and
    # calls the function again with the exception set: then a builtin raises `SystemError`, whose cause is this error.
    if _module(frame).startswith("scipy.") and (called := _called_of_scipy(frame)):
        raise TypeError(
            "a variable does not turn into a float by itself, since that would lose its derivative: "
            f"{called}; ox.stop_gradient(x) gives the number"
        )


def _called_of_scipy(frame: FrameType | None) -> str | None:
    """The function to call instead of the called SciPy function, if any: the outermost of the innermost calls."""
    while frame is not None and not _module(frame).startswith("scipy."):
        frame = frame.f_back
    outermost = None
    while frame is not None and (_module(frame).startswith("scipy.") or "decorator" in frame.f_code.co_filename):
        outermost = frame if _module(frame).startswith("scipy.") and _names(frame) else outermost
        frame = frame.f_back
    if outermost is None:
        return None
    part, name = _names(outermost) or ("", "")
    function = f"scipy.{part}.{name}"
    if part in _PARTS and _is_of_xp(f"{part}.{name}"):
        return f"xp.{part}.{_DEFAULTS_OF_SCIPY.get(name, name)} is {function} for variables"
    if part == "optimize" and name in ("curve_fit", "least_squares", "minimize", "root"):
        return f"oxigrad.scipy.{name} is {function} for variables"
    if part == "optimize":
        return (
            f"{function} takes none: oxigrad.implicit differentiates a solution by its equations, and "
            "oxigrad.scipy.root and oxigrad.scipy.minimize take variables"
        )
    standard = (
        "; with SCIPY_ARRAY_API=1 in the environment, functions of SciPy that are written to the Array API take "
        "variables"
    )
    return f"{function} takes none{standard}"


def _is_of_xp(path: str) -> bool:
    """Whether `oxigrad.xp` has a name with dots."""
    try:
        operator.attrgetter(path)(sys.modules["oxigrad.xp"])
    except AttributeError:
        return False
    return True


def _called_of_arrays(frame: FrameType | None) -> str | None:
    """The function to call instead of the called NumPy or pandas function, if any."""
    root = "" if frame is None else _module(frame).partition(".")[0]
    if root == "pandas":
        return "operators and methods of pandas take none: x.to_numpy() is the array of an object x of pandas"
    outermost = None
    while frame is not None and _module(frame).partition(".")[0] == root == "numpy":
        outermost, frame = frame, frame.f_back
    if outermost is None:
        return None
    xp: Any = sys.modules["oxigrad.xp"]
    if isinstance(outermost.f_locals.get("self"), np.vectorize):
        return (
            "np.vectorize(f)(x) takes none: f(x) does, if f is written in functions of xp, or xp.stack([f(v) for v "
            "in x])"
        )
    name = outermost.f_code.co_name
    if not name.startswith("_") and hasattr(np, name) and hasattr(xp, name):
        return f"np.{name} takes none in nested lists: xp.{name} does, or xp.asarray makes one array of a list"
    return None


def _call_in_source(frame: FrameType) -> ast.Call | None:
    """The call that a frame is in, with arguments; None where its source is not of that form."""
    line, end, start, stop = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if line is None or end is None or _module(frame).startswith("numpy."):
        return None
    lines = [linecache.getline(frame.f_code.co_filename, each).encode() for each in range(line, end + 1)]
    lines[-1] = lines[-1][:stop]
    try:
        call = ast.parse(b"".join(lines)[start:], mode="eval").body
    except SyntaxError:
        return None
    return call if isinstance(call, ast.Call) and call.args else None


def _dot(call: ast.Call | None) -> str | None:
    """The function to call instead of the method ``dot`` of a plain array."""
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "dot":
        return None
    written, arguments = ast.unparse(call), f"{ast.unparse(call.func.value)}, {ast.unparse(call.args[0])}"
    return f"{written} takes none: np.dot({arguments}) does"


def _array(call: ast.Call | None, frame: FrameType) -> str | None:
    """A call of `np.array` or `np.asarray` as it takes variables."""
    if call is None or not ast.unparse(call.func).endswith(("array", "asarray")):
        return None
    names = (node.id for node in ast.walk(call.args[0]) if isinstance(node, ast.Name))
    like = next((name for name in names if isinstance(frame.f_locals.get(name), Variable)), None)
    if like is None:
        return None
    call.keywords.append(ast.keyword("like", ast.Name(like)))
    return f"{ast.unparse(call)}, or xp.asarray({ast.unparse(call.args[0])})"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _names(frame: FrameType) -> tuple[str, str] | None:
    """The SciPy module and public name of the function or class that a frame runs; None if it is internal."""
    path, name = _module(frame), frame.f_code.co_name
    if (argument := _DECORATORS.get(path)) and callable(function := frame.f_locals.get(argument)):
        path, name = function.__module__, function.__name__
    part = path.removeprefix("scipy.").partition("._")[0]
    module, owner = sys.modules.get(f"scipy.{part}"), frame.f_locals.get("self")
    distribution = getattr(owner, "name", type(owner).__name__.removesuffix("_gen"))
    if part == "stats" and isinstance(distribution, str) and hasattr(module, distribution) and not name.startswith("_"):
        return part, f"{distribution}.{name}"
    name = type(owner).__name__ if name in ("__init__", "__call__") else name
    return (part, name) if hasattr(module, name) and not name.startswith("_") else None


def refused_by_torch(cls: type, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
    """Implements ``__torch_function__``: raises `DerivativeError`, a `TypeError`.

    After it, operators of tensors try the variable's operator.
    """
    name = getattr(function, "__name__", "function")
    raise DerivativeError(
        f"torch.{name} takes tensors, and found {_traced(cls)}: {_twin(name)}"
        "oxigrad.interop.torch.from_torch(f) is a function f of tensors for variables; a module of PyTorch is "
        "trained by its own backward and the optimizers of oxigrad.torch"
    )


def _twin(name: str) -> str:
    xp: Any = sys.modules["oxigrad.xp"]
    return f"xp.{name} takes variables over tensors, and " if hasattr(xp, name) and not name.startswith("_") else ""


def _traced(cls: type) -> str:
    """The values of a class that functions of other libraries do not take, for errors."""
    return "a variable" if issubclass(cls, Variable) else "a batched value"


class JAXArray:
    """The attribute ``__jax_array__``, which raises `NotImplementedError` if a function of JAX reads it.

    JAX replaces a `TypeError`. The attribute is absent for other readers, and for the operators of JAX's arrays, which
    then defer to the value.
    """

    def __get__(self, x: Any, owner: type) -> NoReturn:
        module = _module(sys._getframe(1))
        if not module.startswith("jax.") or module.endswith(".array_methods"):
            raise AttributeError("__jax_array__")
        raise NotImplementedError(
            f"a function of JAX got {_traced(owner)} of oxigrad: expected the function of oxigrad.xp with its name, or "
            "oxigrad.interop.jax.from_jax(f), which makes a function f of JAX's arrays accept variables"
        )


def install() -> None:
    """Installs the protocols in `Variable`."""
    variable: Any = Variable
    variable.__array__ = array_of_variable
    variable.__pandas_priority__ = PANDAS_PRIORITY
    variable.__torch_function__ = classmethod(refused_by_torch)
    variable.__jax_array__ = JAXArray()
