"""Weak references to optimizers, by which their parts refer to them without a cycle."""

import weakref
from typing import TypeVar

_T = TypeVar("_T")


def alive(reference: "weakref.ref[_T]") -> _T:
    """The object that is referred to; raises `ReferenceError` where it is gone."""
    if (found := reference()) is None:
        raise ReferenceError("the optimizer is gone that this is a part of")
    return found
