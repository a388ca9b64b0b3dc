"""Variables by the names of `autograd.tracer`."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from oxigrad._core import Variable
from oxigrad._core import plain as getval
from oxigrad.autograd.primitives import primitive


class _Makers(dict[type, Callable[..., Any]]):
    """Functions from values of a class to the values that variables hold.

    Arithmetic of arrays of such a class takes variables.
    """

    def __setitem__(self, value_type: type, maker: Callable[..., Any]) -> None:
        super().__setitem__(value_type, maker)
        overridden = vars(value_type).get("__array_ufunc__")
        if overridden is not None and issubclass(value_type, np.ndarray):
            value_type.__array_ufunc__ = _taking_variables(overridden)
            setattr(value_type, "__oxigrad_converts__", True)  # noqa: B010 (a mark, of no class's attributes)


def _taking_variables(array_ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """`__array_ufunc__` of a subclass of arrays, which computes with variables as plain arrays do.

    ``a += x`` gives a variable.
    """

    @functools.wraps(array_ufunc)
    def wrapped(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(map(isbox, inputs)):
            options = {key: value for key, value in kwargs.items() if key != "out"}
            return getattr(ufunc, method)(*map(plain_array, inputs), **options)
        return array_ufunc(self, ufunc, method, *inputs, **kwargs)

    return wrapped


def plain_array(value: Any) -> Any:
    """Array of NumPy's own class for one of a subclass; other values unchanged."""
    return np.asarray(value) if isinstance(value, np.ndarray) else value


class _BoxType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Variable)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Variable) or type.__subclasscheck__(cls, subclass)


class Box(metaclass=_BoxType):
    """Class whose instances are variables, for ``isinstance``.

    Called with an array, the array that a variable holds.
    """

    #: Classes of values that a library has registered, with functions to what variables hold. They may raise an error.
    type_mappings: ClassVar[dict[type, Callable[..., Any]]] = _Makers()

    def __new__(cls, value: Any, *_: Any) -> Any:
        """Array that a variable holds: of NumPy's own class."""
        return plain_array(value)

    @classmethod
    def register(cls, value_type: type) -> None:
        """Declares the values of a class differentiable, like the values of any registered tree or array library."""
        Box.type_mappings[value_type] = cls


def isbox(x: Any) -> bool:
    """Whether a value is a variable of a derivative that is being computed."""
    return isinstance(x, Variable)


def notrace_primitive(f_raw: Any) -> Any:
    """Function that is called with plain values, and whose result has no derivative."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    return wrapped


def register_notrace(trace_type: type, primitive_fun: Any) -> None:
    """Does nothing: functions of NumPy without a derivative are known."""


class Node:
    """Part of autograd's graph, without instances here."""

    def __init__(self, *_: Any) -> None:
        raise NotImplementedError(
            "found a use of autograd's graph or its sparse cotangents, which oxigrad.Tape replaces"
        )

    @classmethod
    def new_root(cls, *_: Any) -> "Node":
        return cls()

    new_trace = new_root


VJPNode = JVPNode = SparseObject = new_box = trace = trace_stack = Node

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace"]
