"""The differentiable Array API namespace: functions of the standard and of NumPy, recorded on the tape of their arguments.

`xp.linalg` and `xp.fft` are the standard's extensions. `xp.special`, `xp.stats` and `xp.integrate` have functions that SciPy
names so. A function of the standard or of NumPy that has no derivative here is passed on to the arguments' array library,
and gives plain values.

>>> from oxigrad import xp
>>> xp.log(1.0)
0.0
"""

from types import ModuleType as _ModuleType
from typing import Any as _Any

import numpy as _np

from oxigrad._core import elementwise_functions as _elementwise_functions
from oxigrad.ops import backends as _backends
from oxigrad.ops import fft as fft
from oxigrad.ops import indexed_update as _indexed_update
from oxigrad.ops import integrate as integrate
from oxigrad.ops import linalg as linalg
from oxigrad.ops import numpy_protocols as _numpy_protocols
from oxigrad.ops import primitives as _primitives
from oxigrad.ops import special as special
from oxigrad.ops import stats as stats
from oxigrad.ops.numpy_extras import *
from oxigrad.ops.primitives import *
from oxigrad.ops.products import *
from oxigrad.ops.sets import *
from oxigrad.ops.standard import *

__array_api_version__ = _np.__array_api_version__


def __array_namespace_info__() -> _Any:
    """The namespace's capabilities: those of NumPy, and of the arguments' library where they are arrays of another."""
    return _np.__array_namespace_info__()


# NumPy's own submodules, which are no part of this namespace.
_NOT_OURS = {name for name in _np.__all__ if isinstance(getattr(_np, name), _ModuleType)} - {"fft", "linalg"}

# Functions that neither the standard nor NumPy has, which update rules call by these names too: `xp.erf` is
# `xp.special.erf`; `xp.at(x)[key]` is `x.at[key]` for a variable and for a plain array alike.
_more: dict[str, _Any] = {"at": _indexed_update.At}
for _function in _elementwise_functions():
    _name = _function.__name__
    (globals() if hasattr(_np, _name) else _more)[_name] = getattr(_primitives, _name)

__all__: list[str] = []
__all__.extend(sorted({_name for _name in (*globals(), *_np.__all__) if not _name.startswith("_")} - _NOT_OURS))


def __dir__() -> list[str]:
    return ["__array_api_version__", "__array_namespace_info__", *__all__]


# --- everything else of NumPy ------------------------------------------------------------------------------------------


def _no_name(module: str, name: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, [own for own in known if not own.startswith("_")], n=1)
    return f"module {module!r} has no function {name!r}" + (f": did you mean {near[0]!r}?" if near else "")


# Functions without a derivative, made when they are first asked for.
_passed_on: dict[str, _Any] = {}


def __getattr__(name: str) -> _Any:
    """A constant or dtype of the standard, or a function of it or of NumPy that has no derivative here."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _more:
        return _more[name]
    found = getattr(_np, name, None)
    if found is None and name not in ("newaxis",):
        raise AttributeError(_no_name("oxigrad.xp", name, [*__all__, *_more]), name=name)
    if not callable(found) or isinstance(found, type):
        return found
    if name in _passed_on:
        return _passed_on[name]

    def function(*args: _Any, **named: _Any) -> _Any:
        def of_library(*args: _Any, **named: _Any) -> _Any:
            return getattr(_backends.standard_namespace(*args), name)(*args, **named)

        return _numpy_protocols.undifferentiated(of_library, f"xp.{name}", args, named)

    function.__name__ = function.__qualname__ = name
    return _passed_on.setdefault(name, function)
