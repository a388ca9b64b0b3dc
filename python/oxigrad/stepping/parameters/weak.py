"""Weak references to optimizers, by which their parts refer to them without a cycle."""

import weakref
from typing import TypeVar

_T = TypeVar("_T")


def alive(reference: "weakref.ref[_T]") -> _T:
    """The referent; raises `ReferenceError` if it no longer exists."""
    if (referent := reference()) is None:
        raise ReferenceError("the optimizer of this object no longer exists")
    return referent
