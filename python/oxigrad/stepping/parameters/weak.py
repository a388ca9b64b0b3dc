"""Weak references to optimizers, by which their parts refer to them without a cycle."""

import weakref
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class WeakAttribute(Generic[_T]):
    """An attribute that refers to its value weakly. Reading it raises `ReferenceError` once that no longer exists."""

    def __init__(self, documentation: str = "") -> None:
        self.__doc__ = documentation

    def __set_name__(self, owner: type, name: str) -> None:
        # The reference is an attribute of another name: CPython 3.11 and 3.12 read attributes of an instance more
        # slowly for good once its ``__dict__`` was used.
        self._name = f"{name}_reference"

    def __get__(self, instance: Any, owner: type | None = None) -> _T:
        if instance is None:
            return self  # pyright: ignore[reportReturnType] - as properties do for their class
        if (referent := getattr(instance, self._name)()) is None:
            raise ReferenceError("the optimizer of this object no longer exists")
        return referent

    def __set__(self, instance: Any, value: _T) -> None:
        setattr(instance, self._name, weakref.ref(value))
