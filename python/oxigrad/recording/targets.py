"""The functions that the entries of a recording call, as data: a kind and a name each."""

import builtins
import functools
import importlib
import inspect
import operator
import re
import types
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from oxigrad import _core


class Target(NamedTuple):
    """A function of an entry: its kind, one of `KINDS`, and its name within the kind."""

    kind: str
    name: str

    def __str__(self) -> str:
        return self.name if self.kind == "op" else f"{self.kind}.{self.name}"


# Operators of Python that give a new value.
OPERATORS = set(
    """abs add and_ eq floordiv ge getitem gt invert le lshift lt matmul mod mul ne neg or_ pos pow rshift sub truediv
    xor""".split()
)
# The elementwise ops of the core that have an operator of Python.
OPS_OF_OPERATORS = dict(_core.operators())
_UNARY = {"abs", "invert", "neg", "pos"}
_ARITIES = dict(_core.ops())
ELEMENTWISE = {function.__name__ for function in _core.elementwise_functions()}
# Functions that copy an array with other elements at a key.
_ARITIES_OF_CORE = {"scatter_into": 4, "assigned": 3}
METHODS = set(
    """all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum
    diagonal dot flatten max mean min nonzero prod ravel repeat reshape round searchsorted squeeze std sum swapaxes
    take trace transpose var item view""".split()
)
ATTRIBUTES = {"T", "mT", "real", "imag"}
BUILTINS = {"float", "int", "bool", "complex", "divmod", "round"}
# Functions of NumPy whose results have their shapes and dtypes by these of their arguments, and by integers.
_SHAPED = set(
    """all any max min amax amin ptp sum prod mean std var median average percentile quantile argmax argmin
    count_nonzero nansum nanprod nanmean nanstd nanvar nanmax nanmin nanmedian nanpercentile nanquantile
    nancumsum nancumprod nanargmax nanargmin cumsum cumprod cumulative_sum cumulative_prod sort argsort
    partition argpartition searchsorted digitize lexsort diff ediff1d gradient trapezoid cross dot vdot inner
    outer matmul vecdot tensordot einsum kron convolve correlate cov corrcoef interp reshape ravel flatten
    transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to
    broadcast_arrays concatenate concat stack vstack hstack dstack column_stack unstack atleast_1d atleast_2d
    atleast_3d tile roll rot90 flip fliplr flipud append meshgrid where select choose clip take
    take_along_axis diag diagflat diagonal trace tril triu vander round around fix nan_to_num real imag angle
    conj conjugate isclose allclose array_equal isreal iscomplex isneginf isposinf iscomplexobj shape sinc i0
    unwrap isin zeros_like ones_like full_like empty_like copy astype asarray array asanyarray full ones zeros
    eye linspace logspace geomspace isdtype polyval polyfit norm det slogdet inv solve pinv cholesky qr svd
    svdvals eigh eigvalsh matrix_norm vector_norm matrix_rank cond matrix_power multi_dot tensorinv
    tensorsolve item view""".split()
)
# Modules whose functions have no effect but their result, apart from those of `_IMPURE`.
_STANDARD = "array_api_compat.numpy"
MODULES = {"numpy", "numpy.linalg", "numpy.fft", "scipy.special", _STANDARD, f"{_STANDARD}.linalg", f"{_STANDARD}.fft"}
_IMPURE = set(
    """copyto fromregex fromstring frombuffer test info fill_diagonal fromfile fromfunction frompyfunc
    genfromtxt load loadtxt may_share_memory memmap nditer piecewise place put put_along_axis putmask random
    save savetxt savez savez_compressed seterr seterrcall setbufsize set_printoptions shares_memory shuffle
    apply_along_axis apply_over_axes vectorize""".split()
)

# Functions of SciPy that write to memory which is not theirs, or end the process, for large orders: no file names them.
_UNSAFE = re.compile("(mathieu|obl|pro)_|pb[dv]v$")

# Functions of arrays that NumPy's protocol does not know, or of the standard's namespace.
_CREATION = set(
    """arange array asarray astype eye full linspace ones zeros matrix_transpose permute_dims concat vecdot unstack
    isdtype cumulative_sum cumulative_prod svdvals vector_norm matrix_norm""".split()
)


# What NumPy does at a floating-point error, in a call whose settings a recording states.
_HOW = {"ignore", "warn", "raise"}


def watched(target: Target) -> Target | None:
    """The same call under NumPy's present settings for errors, some of which raise; None where no file states them."""
    how = [str(each) for each in np.geterr().values()]
    return Target("errstate", ":".join([*how, *target])) if "raise" in how and _HOW.issuperset(how) else None


def _unwatched(name: str) -> tuple[dict[Any, Any], Target]:
    """The settings and the target of a call that `watched` names; raises `ValueError` for other text."""
    kinds = [*np.geterr()]
    *how, kind, of = name.split(":")
    if len(how) != len(kinds) or not _HOW.issuperset(how) or kind == "errstate":
        raise ValueError(f"found the settings {name!r}")
    return dict(zip(kinds, how, strict=True)), Target(kind, of)


@functools.lru_cache(maxsize=1024)
def function_of(target: Target) -> Callable[..., Any]:
    """The function of a target; raises `ValueError` for one that no recording has."""
    kind, name = target
    ops = {op for op, _ in _core.ops()}
    kinds = {
        "op": (ops - {"call"}, lambda op: lambda *args, **named: _core.record(op, list(args), named or None)),
        "rule": (ops, lambda op: lambda *args: _core.compute_in_rule(op, list(args))),
        "operator": (OPERATORS, functools.partial(getattr, operator)),
        "method": (METHODS, lambda method: lambda x, *args, **named: getattr(x, method)(*args, **named)),
        "attribute": (ATTRIBUTES, operator.attrgetter),
        "core": (_ARITIES_OF_CORE, functools.partial(getattr, _core)),
        "python": (BUILTINS, functools.partial(getattr, builtins)),
    }
    if kind in kinds and name in kinds[kind][0]:
        return kinds[kind][1](name)
    if kind == "errstate":
        settings, of = _unwatched(name)
        return np.errstate(**settings)(function_of(of))
    if kind in MODULES:
        function = in_module(kind, name)
        if function is not None:
            return function
    raise ValueError(f"found the function {name!r} of {kind!r}, expected one that a recording may call")


@functools.lru_cache(maxsize=1024)
def is_shaped(target: Target) -> bool:
    """Whether the shapes and dtypes of results follow from these of arguments and from integers, not from elements."""
    kind, name = target
    if kind not in MODULES:
        return name in _SHAPED if kind == "method" else name != "eig"
    return kind == "numpy.fft" or name in _SHAPED or "." in name or isinstance(in_module(kind, name), np.ufunc)


# The most arguments by position of functions and methods, itself among them, before ``out``.
_MOST = {
    **dict.fromkeys("all any argmax argmin choose dot max min round conj conjugate".split(), 2),
    **dict.fromkeys("clip compress cumprod cumsum mean prod std sum take var".split(), 3),
    "trace": 4,
}
_OF_METHODS = {"reduce": 1, "accumulate": 1, "outer": 2, "reduceat": 2}
_NAMES_OF_UFUNCS = set("axis casting dtype initial keepdims order subok where".split())


def check_arguments(target: Target, count: int, names: Collection[str]) -> None:
    """Raises `ValueError` for a number of arguments by position, or for ones by name, that no call of a target has."""
    kind, name = _unwatched(target.name)[1] if target.kind == "errstate" else target
    names_fit = not {"out", "file", "like", "overwrite_input"} & set(names)
    if kind in ("op", "rule"):
        names_fit = names_fit and (not names or name not in ELEMENTWISE)
        fits = count == _ARITIES[name] if _ARITIES[name] is not None else count > 0
    elif kind in ("operator", "attribute"):
        names_fit, fits = not names, count == (1 if kind == "attribute" or name in _UNARY else 2)
    elif kind == "method":
        fits = 0 < count <= _MOST.get(name, 8)
    elif kind == "core":
        names_fit, fits = not names, count == _ARITIES_OF_CORE[name]
    else:
        first, _, method = name.partition(".")
        function = getattr(_module(kind), first, None)
        if isinstance(function, np.ufunc):
            names_fit = names_fit and _NAMES_OF_UFUNCS.issuperset(names)
            fits = count == (_OF_METHODS[method] if method else function.nin)
        else:
            fits = count <= _MOST.get(name, _before_out(function))
    if not fits or not names_fit:
        by_name = f", and {', '.join(names)} by name" if names else ""
        raise ValueError(f"found {count} arguments of {target}{by_name}")


def _before_out(function: Any) -> int:
    """The number of parameters of a function before ``out``."""
    try:
        names = [*inspect.signature(function).parameters]
    except (TypeError, ValueError):
        return 3
    return names.index("out") if "out" in names else 32


def in_module(module: str, name: str) -> Callable[..., Any] | None:
    """The function of an array library's module; None where there is none, or it does more than to return a result."""
    first, _, method = name.partition(".")
    if (
        first in _IMPURE
        or (module == "scipy.special" and _UNSAFE.match(first))
        or first.startswith("_")
        or (method and method not in ("reduce", "accumulate", "outer", "reduceat"))
    ):
        return None
    function = getattr(_module(module), first, None)
    if method:
        function = getattr(function, method, None) if isinstance(function, np.ufunc) else None
    is_known = isinstance(function, np.ufunc) or method or hasattr(function, "_implementation") or first in _CREATION
    is_known = is_known or (
        isinstance(function, types.FunctionType)
        and function.__module__.startswith("array_api_compat")
        and module.startswith(_STANDARD)
    )
    return function if is_known and callable(function) else None


@functools.lru_cache(maxsize=16)
def _module(name: str) -> Any:
    """One of `MODULES`; None where its library is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@functools.lru_cache(maxsize=1024)
def target_of(function: Any, method: str = "__call__") -> Target | None:
    """The target of a function of NumPy or SciPy; None for one that no file can name."""
    name = getattr(function, "__name__", "")
    name = name if method == "__call__" else f"{name}.{method}"
    for module in sorted(MODULES, key=lambda each: each != getattr(function, "__module__", None)):
        candidate = in_module(module, name)
        if candidate is not None and (
            candidate is function or (method != "__call__" and candidate == getattr(function, method, None))
        ):
            return Target(module, name)
    return None
