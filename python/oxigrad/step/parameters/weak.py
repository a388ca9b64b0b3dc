"""Weak references to the methods of an optimizer, which its stepper calls without a cycle."""

import weakref
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def weakly(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that calls a method of an object that it refers to weakly.

    It raises `ReferenceError` once the object no longer exists.
    """
    reference = weakref.WeakMethod(method)

    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        if (bound := reference()) is None:
            raise ReferenceError("the optimizer of this object no longer exists")
        return bound(*args, **named)

    return call
