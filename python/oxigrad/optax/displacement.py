"""The change that a rule makes to a parameter, computed without the rounding of the new parameter."""

import dataclasses
import functools
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oxigrad import xp
from oxigrad._core import RuleError
from oxigrad.ops.core.aliasing import read_only
from oxigrad.rules.core.rule import Rule, Stages


def _of_value(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a displaced parameter that is an operation on values."""
    return lambda self, *others: operation(self.value, *map(plain, others))


class Displaced:
    """A displaced parameter: its ``value``, as the rule computes it, and its ``offset`` from the parameter.

    Sums and products with arrays keep track of the ``offset``, which is computed when it is read. Any other operation
    uses the value.
    """

    value: Any

    __slots__ = ("_offset", "_parameter", "value")

    __array_ufunc__ = None  # so that arithmetic of NumPy's arrays and numbers defers to this class

    def __init__(self, parameter: Any, value: Any, offset: Callable[[], Any]) -> None:
        self._parameter, self.value, self._offset = parameter, value, offset

    @classmethod
    def of(cls, parameter: Any) -> "Displaced":
        """The parameter with offset zero."""
        return cls(parameter, parameter, lambda: 0.0)

    @property
    def offset(self) -> Any:
        """The value minus the parameter."""
        return self._offset()

    def _moved(self, value: Any, offset: Callable[[], Any]) -> "Displaced":
        return Displaced(self._parameter, value, offset)

    def __add__(self, other: Any) -> "Displaced":
        other = plain(other)
        return self._moved(self.value + other, lambda: self.offset + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Displaced":
        other = plain(other)
        return self._moved(self.value - other, lambda: self.offset - other)

    def __rsub__(self, other: Any) -> Any:
        return other - self.value

    def __mul__(self, other: Any) -> "Displaced":
        other = plain(other)
        return self._moved(self.value * other, lambda: (other - 1.0) * self._parameter + other * self.offset)

    def __rmul__(self, other: Any) -> "Displaced":
        return self._moved(other * self.value, lambda: (other - 1.0) * self._parameter + other * self.offset)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.value

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.value

    __truediv__: Callable[..., Any] = _of_value(operator.truediv)
    __pow__: Callable[..., Any] = _of_value(operator.pow)
    __matmul__: Callable[..., Any] = _of_value(operator.matmul)
    __neg__: Callable[..., Any] = _of_value(operator.neg)
    __abs__: Callable[..., Any] = _of_value(abs)
    __getitem__: Callable[..., Any] = _of_value(operator.getitem)

    @property
    def dtype(self) -> Any:
        """The dtype of the value. Raises `AttributeError` for a symbol, which has none."""
        try:
            return self.value.dtype
        except RuleError as error:  # which operators of other symbols look for
            raise AttributeError(str(error)) from error

    #: The shape and other attributes of the value.
    shape: Any = property(operator.attrgetter("value.shape"))
    ndim: Any = property(operator.attrgetter("value.ndim"))
    size: Any = property(operator.attrgetter("value.size"))
    device: Any = property(operator.attrgetter("value.device"))
    mT: Any = property(operator.attrgetter("value.mT"))


def plain(value: Any) -> Any:
    """The value of a displaced parameter; anything else unchanged."""
    return value.value if isinstance(value, Displaced) else value


class _Namespace:
    """A namespace whose functions read the values of displaced parameters."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._library, name)
        if isinstance(value, types.ModuleType):
            value = _Namespace(value)
        elif callable(value) and not isinstance(value, type):
            value = functools.partial(_called, value)
        setattr(self, name, value)
        return value


def _called(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The result of a function for the values of displaced parameters."""
    return function(*map(_read, args), **{key: _read(value) for key, value in named.items()})


def _read(argument: Any) -> Any:
    """An argument of a function, in which values replace displaced parameters."""
    return [plain(each) for each in argument] if isinstance(argument, list) else plain(argument)


_XP = _Namespace(xp)


def displacement(rule: Rule) -> Rule:
    """The rule that returns the change ``new - p`` instead of the new parameter, and is called on arrays.

    A rule most often ends in ``p - move``, or in ``(1 - rate) * p - move``: the change is then ``-move``, or ``-rate *
    p - move``, which keeps the bits that rounding the new parameter loses. For other rules, the change is the
    difference.
    """

    def call(xp: Any, p: Any, g: Any, *slots: Any, **named: Any) -> Stages:
        change, *after = yield from _change(rule, p, g, slots, named)
        return [xp.zeros_like(p) + change, *after]

    return dataclasses.replace(rule, call=call, is_staged=True, elementwise=False)


def displacement_of_kernel(rule: Rule) -> Rule:
    """As `displacement`, for rules that are traced into kernels where they are elementwise."""
    if not rule.elementwise:
        return displacement(rule)

    def call(xp: Any, p: Any, g: Any, *slots: Any, **named: Any) -> Stages:
        return (yield from _change(rule, p, g, slots, named))

    return dataclasses.replace(rule, call=call, is_staged=True)


def _change(rule: Rule, p: Any, g: Any, slots: Sequence[Any], named: Mapping[str, Any]) -> Stages:
    """The change of the parameter, and the new slots."""
    named = {key: functools.partial(_called, value) if callable(value) else value for key, value in named.items()}
    new, *after = yield from rule.stages(_XP, Displaced.of(read_only(p)), g, slots, named)
    return [new.offset if isinstance(new, Displaced) else new - p, *map(plain, after)]
