"""Methods and attributes of arrays on variables: ``x.sum(axis=0)`` is the library's function ``sum``, recorded.

A table maps each method to its function: below for NumPy's arrays and for libraries with NumPy's methods, and in the
adapter for other libraries. A variable has the methods of the array that it wraps.
"""

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from oxigrad._core import Variable, is_constant, is_inexact, plain
from oxigrad._typing import Array, Device, Dtype
from oxigrad.ops.backends import adapter_of, beneath, is_array, is_complex
from oxigrad.ops.core.aliasing import stopped
from oxigrad.ops.protocols.other_libraries import METHODS

# Methods that call NumPy's function of the same name, which dispatches variables to ``xp``, with the same arguments.
_SAME = set(
    """all any argmax argmin argpartition argsort choose clip conjugate copy cumprod cumsum diagonal dot max mean min
    nonzero prod ptp put ravel repeat round searchsorted squeeze std sum swapaxes take trace var""".split()
)


def _shaped(function: Callable[..., Any], parameter: str) -> Callable[..., Any]:
    """A method that takes a tuple as several arguments too."""

    def method(x: Array, *sizes: Any, **named: Any) -> Any:
        called = functools.partial(function, **named)
        return called(x) if sizes in ((), (None,)) else _call_with_tuple(called, parameter, x, *sizes)

    return method


def _astype(
    x: Array,
    dtype: Dtype,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
    **named: Any,
) -> Array:
    """NumPy's method, whose parameters have names, unlike the standard's function. No order has an effect on values."""
    if casting != "unsafe" and not np.can_cast(x.dtype, dtype, casting):
        allowed = f"expected a cast that casting={casting!r} allows"
        raise TypeError(f"astype: found an array of dtype {x.dtype} for dtype {np.dtype(dtype)}, {allowed}")
    return np.astype(x, dtype, copy=copy, **named)


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not getattr(value, "shape", ())


def _in_place(function: Callable[..., Any]) -> Callable[..., None]:
    """A method that changes the array: the result is assigned to the variable."""

    def method(x: Array, *args: Any, **named: Any) -> None:
        x[...] = function(x, *args, **named)

    return method


def _item(x: Array, *index: Any) -> Any:
    """The element as a Python number; raises `TypeError` while it is recorded, since the derivative would be lost."""
    if index:
        position = index[0] if len(index) == 1 else index
        x = x[position] if isinstance(position, tuple) else np.ravel(x)[position]
    elif x.size != 1:
        raise ValueError(f"item: found an array of {x.size} elements, expected one")
    number = plain(x)
    if is_array(number) and not is_inexact(number):
        return number.item()
    return float(np.reshape(x, ()) if x.shape else x)


def _tolist(x: Array) -> Any:
    if is_constant(x):
        return np.asarray(x).tolist()
    raise TypeError(
        "tolist: a variable does not turn into a list of numbers, since that would lose its derivative: list(x) is a "
        "list of variables, and ox.stop_gradient(x).tolist() one of numbers"
    )


_RAVEL: Callable[..., Any] = np.ravel
_NUMPY: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME},
    "astype": _astype,
    "compress": lambda x, condition, axis=None, out=None: np.compress(condition, x, axis=axis, out=out),
    "conj": np.conjugate,
    "fill": lambda x, value: x.__setitem__(..., value),
    "flatten": lambda x, order="C": np.copy(_RAVEL(x, order=order)),
    "item": _item,
    "partition": _in_place(np.partition),
    "reshape": _shaped(np.reshape, "shape"),
    "sort": _in_place(np.sort),
    "tolist": _tolist,
    "transpose": _shaped(np.transpose, "axes"),
}
# Attributes that are functions of the array, and attributes that do not depend on the recorded values.
_ATTRIBUTES = {"real": np.real, "imag": np.imag}
_PLAIN = {"itemsize", "nbytes"}


def attribute(xp: ModuleType, x: Array, name: str) -> Any:
    """The attribute ``name`` of a variable that its class lacks.

    Raises `AttributeError` if the array lacks the attribute, or if it is not recorded.
    """
    value = plain(x)
    if type(value) is np.ndarray and name in _NUMPY:  # what the lines below come to, for most variables
        return functools.partial(_NUMPY[name], x)
    if hasattr(type(x), name):
        return getattr(type(x), name).__get__(x)  # raises again what led here
    if name == "to_device":  # of the standard, whether or not the array has it
        return functools.partial(_to_device, xp, x)
    methods = _methods(beneath(value))
    if name in methods and (not is_array(value) or hasattr(value, name)):
        return functools.partial(_bound(xp, methods[name]), x)
    if name in _PLAIN and hasattr(value, name):
        return getattr(value, name)
    hint = f": {METHODS[name]}" if name in METHODS else ""
    if hasattr(value, name):
        kind = type(value)
        hint = (
            f": {kind.__module__.partition('.')[0]}'s {kind.__name__}.{name} is not recorded; use a function of xp, "
            "or ox.stop_gradient(x) for the array itself"
        )
    raise AttributeError(f"a variable has no attribute {name!r}{hint}", name=name, obj=x)


def _part(name: str, instead: str) -> property:
    """The real or imaginary part of a variable, to which nothing is assigned."""

    def refuse(_: Variable, value: Any) -> NoReturn:
        raise AttributeError(f"z.{name} = v of a variable z is not recorded: expected {instead}", name=name)

    return property(_ATTRIBUTES[name], refuse)


def install() -> None:
    """Installs the real and imaginary parts in `Variable`."""
    variable: Any = Variable
    variable.real = _part("real", "z = v + 1j * xp.imag(z)")
    variable.imag = _part("imag", "z = xp.real(z) + 1j * v")


def method(xp: ModuleType, x: Array, like: Any, name: str) -> Any:
    """The method or attribute ``name`` of arrays such as ``like``, bound to ``x``, or None."""
    methods = _methods(like)
    if name in methods:
        return functools.partial(_bound(xp, methods[name]), x)
    return _ATTRIBUTES[name](x) if name in _ATTRIBUTES else None


def _to_device(xp: ModuleType, x: Array, device: Device, /, *, stream: Any = None) -> Array:
    """The variable itself; raises `ValueError` for another device, since a copy to it has no derivative."""
    return xp.asarray(x, device=device)


def names(x: Array) -> list[str]:
    """The names of all attributes of a variable, for ``dir(x)``."""
    value = plain(x)
    methods = [name for name in (*_methods(beneath(value)), *_PLAIN) if not is_array(value) or hasattr(value, name)]
    return sorted({*dir(type(x)), *methods, *_ATTRIBUTES, "to_device"})


def _methods(value: Any) -> Mapping[str, Any]:
    methods = adapter_of(value).methods if is_array(value) else None
    return _NUMPY if methods is None else methods


# Methods that are no function of ``xp``.
_OWN: dict[str, Callable[..., Any]] = {"item": _item, "stop_gradient": stopped, "tolist": _tolist}
# The names of keywords of PyTorch in the standard.
_KEYWORDS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "other": "x2"}


def _bound(xp: ModuleType, method: Any) -> Callable[..., Any]:
    """A method of a table as a function of the variable and its arguments: see `Adapter.methods`."""
    if callable(method):
        return method
    name, *parameters = method.split()
    if name in _OWN:
        return _OWN[name]
    function: Any = functools.reduce(getattr, name.split("."), xp)
    if parameters == ["-"]:
        return functools.partial(_call_alone, function)
    if parameters and parameters[0].endswith("*"):
        return functools.partial(_call_with_tuple, function, parameters[0].removesuffix("*"))
    return functools.partial(_call, function, dict(part.partition("=")[::2] for part in parameters))


def _call_with_tuple(function: Callable[..., Any], parameter: str, x: Array, *items: Any) -> Any:
    """Calls a function with a tuple that may be given as several arguments, as in ``x.reshape(2, -1)``."""
    value = tuple(items[0] if len(items) == 1 and not _is_integer(items[0]) else items)
    return function(x, **{parameter: value}) if parameter else function(x, value)


def _call_alone(function: Callable[..., Any], x: Array, *args: Any, **named: Any) -> Any:
    """Calls a function without further arguments."""
    if args or named:
        name = function.__name__
        raise TypeError(f"{name} of a dimension gives indices too, which are not recorded: use xp.{name}")
    return function(x)


def _call(function: Callable[..., Any], parameters: dict[str, str], x: Array, *args: Any, **named: Any) -> Any:
    """Calls a function of ``xp``; positional arguments have the names of ``parameters``, which may have defaults."""
    arguments = {name: float(value) for name, value in parameters.items() if value}
    arguments |= {_KEYWORDS.get(name, name): value for name, value in named.items()}
    if parameters:
        if len(args) > len(parameters):
            raise TypeError(f"{function.__name__}: found {len(args)} arguments, expected at most {len(parameters)}")
        arguments |= dict(zip(parameters, args, strict=False))
        args = ()
    elif "x2" in arguments:
        args = (*args, arguments.pop("x2"))
    return function(x, *args, **arguments)


def html(x: Array) -> str:
    """A variable as HTML, for notebooks: its name, shape and dtype, and its value."""
    value = plain(x)
    facts = [f"<b>{_escaped(x.name)}</b>"]
    if is_array(value):
        facts += [f"shape {_escaped(tuple(value.shape))}", f"dtype {_escaped(value.dtype)}"]
    kind = "complex variable" if is_array(value) and is_complex(value) else "variable"
    return f"<div>{kind} {', '.join(facts)}<pre>{_escaped(value)}</pre></div>"


def _escaped(value: Any) -> str:
    return str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
