"""The differentiable Array API namespace: functions of the standard and NumPy, recorded on their arguments' tape.

`xp.linalg` and `xp.fft` are the standard's extensions; `xp.polynomial` has functions of `numpy.polynomial`;
`xp.special`, `xp.stats`, `xp.integrate`, `xp.interpolate`, `xp.ndimage`, `xp.signal` and `xp.spatial` have functions
under SciPy's names. A function of the standard or of NumPy that has no derivative here is passed on to its arguments'
array library, and returns plain values. Functions that make arrays, such as `xp.zeros`, make variables that take
assignments inside of a transform.

>>> from oxigrad import xp
>>> xp.log(1.0)
0.0
"""

import functools as _functools
import importlib as _importlib
import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any

import numpy as _np

from oxigrad._core import assignable as _assignable
from oxigrad._core import elementwise_functions as _elementwise_functions
from oxigrad._names import unknown_name as _unknown_name
from oxigrad.ops.core import dtypes as _dtypes
from oxigrad.ops.core import indexed_update as _indexed_update
from oxigrad.ops.core import primitives as _primitives
from oxigrad.ops.core import products as _products
from oxigrad.ops.core import sets as _sets
from oxigrad.ops.core import standard as _standard
from oxigrad.ops.numpy import extras as _extras
from oxigrad.ops.numpy import padding as _padding
from oxigrad.ops.numpy.moves import Concatenator as _Concatenator
from oxigrad.ops.protocols import arguments as _arguments
from oxigrad.ops.protocols import passthrough as _passthrough
from oxigrad.ops.protocols import undifferentiated as _undifferentiated
from oxigrad.ops.protocols.other_libraries import FUNCTIONS as _FUNCTIONS
from oxigrad.xp import fft as fft
from oxigrad.xp import linalg as linalg

__array_api_version__ = "2025.12"  # of the functions; NumPy's own may be older


def __array_namespace_info__() -> _Any:
    """The capabilities of NumPy; another library's own namespace reports its capabilities."""
    info: _Any = _np.__array_namespace_info__()
    devices = tuple(info.devices())  # NumPy returns a list, as in an earlier version
    info.devices = lambda: devices
    return info


# Namespaces that are imported when they are first asked for, since few programs have functions of several.
_LAZY = {"integrate", "interpolate", "ndimage", "polynomial", "signal", "spatial", "special", "stats"}

# NumPy's submodules, which are no part of this namespace. NumPy imports some when they are first asked for: not here.
_SUBMODULES = {name for name in _np.__all__ if isinstance(vars(_np).get(name, _np), _ModuleType)} - {
    "fft",
    "linalg",
    "polynomial",
}

# By a loop, since editors that complete names take all names of a module for imported by a star. They read the stub.
for _module in (_dtypes, _primitives, _products, _sets, _standard, _extras, _padding):
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})

r_, c_ = _Concatenator("r_"), _Concatenator("c_")

# Functions that neither the standard nor NumPy has, which update rules call by these names too and `dir` does not list:
# `xp.erf` is `xp.special.erf`; `xp.at(x)[key]` is `x.at[key]`, for variables and plain arrays alike.
_unlisted: dict[str, _Any] = {"at": _indexed_update.At}
for _function in _elementwise_functions():
    _name = _function.__name__
    (globals() if hasattr(_np, _name) else _unlisted)[_name] = getattr(_primitives, _name)

for _name in [_name for _name in globals() if isinstance(getattr(_np, _name, None), _np.ufunc)]:
    _passthrough.add_ufunc_methods(globals()[_name], getattr(_np, _name))

# Functions that make arrays: inside of a transform these are variables that take assignments.
_CREATION = "array empty empty_like eye full full_like identity ones ones_like tri zeros zeros_like".split()


def _created(function: _Any) -> _Any:
    """A function that makes an array; what this package itself makes is plain."""

    @_functools.wraps(function)
    def created(*args: _Any, **named: _Any) -> _Any:
        array = function(*args, **named)
        is_ours = _sys._getframe(1).f_globals.get("__name__", "").startswith("oxigrad.")
        return array if is_ours else _assignable(array)

    created.__module__ = __name__
    return created


_arguments.document("xp", _undifferentiated, vars(_undifferentiated))
for _name in _CREATION:
    _function = globals().get(_name) or _passthrough.passthrough(_name)
    globals()[_name] = _created(_function)

_public = {_name for _name in (*globals(), *_LAZY, *_np.__all__) if not _name.startswith("_")}
__all__: list[str] = []
__all__.extend(sorted(_public - _SUBMODULES))  # pyright: ignore[reportUnsupportedDunderAll]

_arguments.document("xp", _sys.modules[__name__], [*globals()])


def __dir__() -> list[str]:
    return ["__array_api_version__", "__array_namespace_info__", *__all__]


def __getattr__(name: str) -> _Any:
    """A constant or dtype, a function of the standard or NumPy without derivative here, or a namespace of SciPy's."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _unlisted:
        return _unlisted[name]
    if name in _LAZY:
        return _importlib.import_module(f"oxigrad.xp.{name}")
    if not hasattr(_np, name):
        raise _unknown_name("oxigrad.xp", name, [*__all__, *_unlisted], _FUNCTIONS)
    value = getattr(_np, name)
    return value if not callable(value) or isinstance(value, type) else _passthrough.passthrough(name)
