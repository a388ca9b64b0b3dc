"""A registry of classes and functions by name, for configurations."""

import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Callable[..., object])


class Registry(Generic[T]):
    """A weak mapping of names to classes and functions; of several with one name, the latest that is alive.

    >>> registry = Registry()
    >>> class A: ...
    >>> registry["A"] = A
    >>> registry.get("A") is A, registry.get("B"), list(registry)
    (True, None, ['A'])
    """

    def __init__(self) -> None:
        self._by_name: dict[str, list[weakref.ref[T]]] = {}

    def __setitem__(self, name: str, made: T) -> None:
        self._by_name.setdefault(name, []).append(weakref.ref(made, lambda gone: self._forget(name, gone)))

    def _forget(self, name: str, gone: "weakref.ref[T]") -> None:
        kept = [known for known in self._by_name.get(name, ()) if known is not gone]
        if kept:
            self._by_name[name] = kept
        else:
            self._by_name.pop(name, None)

    def get(self, name: str | None) -> T | None:
        """The latest object registered under a name that is alive; None where there is none."""
        known = self._by_name.get(name, ()) if name is not None else ()
        return next((made for made in (ref() for ref in reversed(known)) if made is not None), None)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._by_name))
