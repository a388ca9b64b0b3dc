"""The differentiable Array API namespace: the standard's functions, recorded on the tape of their arguments.

Some of NumPy's other functions and, as `xp.special`, the special functions are differentiable too. Any other function of
the standard is passed on to the arguments' array library, and gives plain values.

>>> from oxigrad import xp
>>> xp.log(1.0)
0.0
"""

import functools
import opcode
import sys
from types import ModuleType
from typing import Any

import numpy as np

from oxigrad import _core, libraries, protocols, updates
from oxigrad import fft as fft
from oxigrad import integrate as integrate
from oxigrad import linalg as linalg
from oxigrad import primitives as ops
from oxigrad import special as special
from oxigrad import stats as stats
from oxigrad._core import DtypeError, ShapeError
from oxigrad._core import is_inexact as is_inexact
from oxigrad._core import plain as plain
from oxigrad.beyond import *
from oxigrad.functions import *
from oxigrad.libraries import array_of as array_of
from oxigrad.libraries import device_of as device_of
from oxigrad.libraries import dtype_of as dtype_of
from oxigrad.libraries import fetched as fetched
from oxigrad.libraries import fingerprint as fingerprint
from oxigrad.libraries import implementation as implementation
from oxigrad.libraries import is_array, is_complex, standard_namespace
from oxigrad.libraries import is_smooth as is_smooth
from oxigrad.libraries import namespace as namespace
from oxigrad.libraries import on_host as on_host
from oxigrad.libraries import size_of as size_of
from oxigrad.primitives import *
from oxigrad.products import *
from oxigrad.protocols import op_of_ufunc as op_of_ufunc
from oxigrad.sets import *
from oxigrad.tangents import in_dtype as in_dtype
from oxigrad.tangents import like_cotangent as like_cotangent
from oxigrad.tangents import part as part
from oxigrad.tangents import spread as spread
from oxigrad.tangents import stack_parts as stack_parts
from oxigrad.tangents import zero_cotangent as zero_cotangent
from oxigrad.tangents import zero_tangent as zero_tangent

__array_api_version__ = np.__array_api_version__
at = updates.At
assigned, fitted_in_place = updates.assigned, updates.fitted_in_place

for _function in _core.elementwise_functions():
    globals()[_function.__name__] = getattr(ops, _function.__name__)


def __array_namespace_info__() -> Any:
    """What the namespace can do: as NumPy, and as the arguments' library where they are arrays of another."""
    return np.__array_namespace_info__()


# Functions without a derivative that have been asked for: the names of the module itself are those with one.
_plain_functions: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    """Any other name of the standard: a constant, a dtype, or a function that gives plain values."""
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(np, name, None)
    if found is None and name not in ("newaxis",):
        raise AttributeError(libraries.no_name("oxigrad.xp", name, [*globals(), *dir(np)]), name=name)
    if not callable(found) or isinstance(found, type):
        return found
    if name in _plain_functions:
        return _plain_functions[name]

    def function(*args: Any, **named: Any) -> Any:
        def of_library(*args: Any, **named: Any) -> Any:
            return getattr(standard_namespace(*args), name)(*args, **named)

        return protocols.undifferentiated(of_library, f"xp.{name}", args, named)

    function.__name__ = function.__qualname__ = name
    return _plain_functions.setdefault(name, function)


# --- what the core asks of this module ---------------------------------------------------------------------------------


def namespace_module(api_version: str | None) -> ModuleType:
    """The module itself, for ``__array_namespace__``."""
    if api_version is not None and api_version > np.__array_api_version__:
        raise ValueError(f"version {api_version!r} of the Array API standard is not supported")
    return sys.modules[__name__]


def seed(value: Any, cotangent: Any) -> Any:
    """What a replay starts from: ``cotangent``, or one where the value is a scalar."""
    shape, expected = tuple(getattr(cotangent, "shape", ())), tuple(getattr(value, "shape", ()))
    if cotangent is None and expected != ():
        raise ShapeError(f"the target has shape {expected}: expected a scalar, or a cotangent of that shape")
    if cotangent is not None and shape != expected:
        raise ShapeError(f"the cotangent has shape {shape}, the target {expected}")
    if cotangent is None:
        require_real(value, "the target")
    if not is_array(plain(value)):
        return 1.0 if cotangent is None else cotangent
    if cotangent is None:
        return type(value)(1) if isinstance(value, np.generic) else ones_like(value)
    return cotangent if is_array(plain(cotangent)) else ones_like(value) * cotangent


def require_real(value: Any, what: str) -> None:
    """Raises `DtypeError` where a value that a gradient is asked of is complex."""
    if not isinstance(value, float) and is_complex(value):
        raise DtypeError(
            f"{what} is complex, and only a real value has a gradient: take its real part, imaginary part or absolute "
            "value, or use ox.jacobian for the derivative of a holomorphic function, or ox.vjp with a cotangent"
        )


def fit(g: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The cotangent ``g`` summed over what broadcasting repeated, in the dtype of the argument."""
    added = len(g.shape) - len(shape)
    axes = [axis for axis, size in enumerate(g.shape) if axis < added or shape[axis - added] != size]
    if axes:
        g = reshape(sum(g, axis=tuple(axes)), tuple(shape))
    return cast(g, dtype)


def cast(g: Any, dtype: Any) -> Any:
    """The cotangent ``g`` in the dtype of the argument; its real part where that is real."""
    if g.dtype == dtype:
        return g
    if is_complex(g) and not namespace(g).isdtype(dtype, "complex floating"):
        g = ops.real(g)
    return g if g.dtype == dtype else astype(g, dtype)


def complex_number(value: complex) -> Any:
    """A Python complex number as NumPy's, which has a shape and a dtype."""
    return np.complex128(value)


def fit_number(g: Any) -> Any:
    """The cotangent ``g`` summed to one number."""
    total = sum(g) if len(getattr(g, "shape", ())) else g
    total = ops.real(total) if is_complex(total) else total
    return total if isinstance(total, _core.Variable) else float(total)


def transpose(x: Any) -> Any:
    """The dimensions in reverse order, as NumPy has it: the transpose of a matrix."""
    return permute_dims(x)


def formatted(value: Any, spec: str) -> str:
    """A number as text, for ``f"{x:.3f}"`` of a variable with this plain value."""
    if shape := tuple(getattr(value, "shape", ())):
        raise TypeError(
            f"the format {spec!r} is for one number, and the variable has shape {shape}: format its elements"
        )
    if is_array(value):
        value = fetched(value)
        value = complex(value) if is_complex(value) else float(value) if is_inexact(value) else int(value)
    return format(value, spec)


def is_formatting() -> bool:
    """Whether what asks for a float is the operator ``%`` of a text, which has no other way to read a number.

    Numbers and arrays leave ``%`` to variables, so that only text, and bytes, ask for a float in the course of it.
    """
    frame = sys._getframe(1)
    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) and tuple(code[at : at + 2]) in _remainders()


@functools.cache
def _remainders() -> frozenset[tuple[int, int]]:
    """The instructions of ``a % b`` and ``a %= b``."""
    wanted = opcode.opmap["BINARY_OP"]
    codes = [compile(text, "", "exec").co_code for text in ("a % b", "a %= b")]
    pairs = [zip(code[::2], code[1::2], strict=True) for code in codes]
    return frozenset(pair for found in pairs for pair in found if pair[0] == wanted)


def rounded(x: Any, digits: int | None) -> Any:
    """What ``round(x, digits)`` of a variable is: a plain value, since the derivative is zero."""
    return ops.round(x) if digits is None else np.round(x, digits)


def iterate(x: Any) -> Any:
    """The items along the first axis."""
    if x.ndim == 0:
        raise TypeError("a variable without dimensions cannot be iterated over")
    return (index(x, ops.along(0, i)) for i in range(x.shape[0]))


def iterate_reversed(x: Any) -> Any:
    """The items along the first axis, the last one first."""
    return iterate(flip(x, axis=0) if x.ndim else x)


def array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
    """NumPy's protocol: ``np.sin(x)`` of a variable is ``xp.sin(x)``."""
    return protocols.array_ufunc(sys.modules[__name__], ufunc, method, inputs, named or {})


def array_function(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """NumPy's protocol: ``np.sum(x)`` of a variable is ``xp.sum(x)``."""
    return protocols.array_function(sys.modules[__name__], function, args, named)
