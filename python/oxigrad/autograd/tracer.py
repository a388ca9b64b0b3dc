"""Variables by the names of `autograd.tracer`."""

from typing import Any

from oxigrad._core import Variable
from oxigrad.autograd.primitives import primitive


class _BoxType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Variable)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Variable) or type.__subclasscheck__(cls, subclass)


class Box(metaclass=_BoxType):
    """Class whose instances are variables, for ``isinstance``. ``register`` declares the values of a class differentiable."""

    @classmethod
    def register(cls, value_type: type) -> None:
        """Does nothing: values of any registered tree or array library are differentiable."""


def isbox(x: Any) -> bool:
    """Whether a value is a variable of a derivative that is being computed."""
    return isinstance(x, Variable)


def getval(x: Any) -> Any:
    """Value of a variable, in the enclosing derivative; other values unchanged."""
    return x.value if isinstance(x, Variable) else x


def notrace_primitive(f_raw: Any) -> Any:
    """Function that is called with plain values, and whose result has no derivative."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        while any(map(isbox, args)):
            args = tuple(map(getval, args))
        return f_raw(*args, **kwargs)

    return wrapped


def register_notrace(trace_type: type, primitive_fun: Any) -> None:
    """Does nothing: functions of NumPy without a derivative are known."""


__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace"]
