"""Adapters of array libraries that other packages register."""

import types
from collections.abc import Callable
from typing import Any

from oxigrad import _core
from oxigrad._names import nearest
from oxigrad.ops.backends import dispatch
from oxigrad.ops.backends.generic import Adapter


def register_adapter(
    library: str, adapter: type[Adapter], *, namespace: Callable[[Any], Any] | None = None
) -> type[Adapter]:
    """Registers the adapter of an array library that differs from the Array API standard, and returns it.

    Args:
        library: name of the library's top-level module.
        adapter: subclass of `Adapter`.
        namespace: function that returns the standard's namespace for the library's own, where signatures differ; by
            default the library's own.

    Raises `ValueError` for a library that has another adapter, and `TypeError` for anything but a subclass of
    `Adapter`, and for a method ``op_<name>`` of which there is no op.

    >>> class Ledger(Adapter):
    ...     is_immutable = True
    >>> register_adapter("ledger", Ledger).is_immutable
    True
    """
    if not (isinstance(library, str) and library.isidentifier()):
        raise ValueError(f"library is {library!r}: expected the name of a top-level module")
    if not (isinstance(adapter, type) and issubclass(adapter, Adapter)):
        raise TypeError(f"adapter is {adapter!r}: expected a subclass of Adapter")
    ops = [f"op_{name}" for name, _ in _core.ops()]
    for name in dir(adapter):
        if name.startswith("op_") and name not in ops:
            hint = f" (did you mean {near}?)" if (near := nearest(name, ops)) else ""
            raise TypeError(f"adapter {adapter.__name__} has {name}, and no op has this name{hint}")
    before = dispatch.adapter_class(library)
    if before is not Adapter and before.__qualname__ != adapter.__qualname__:
        raise ValueError(f"library is {library!r}, which has the adapter {before.__name__}: expected another library")
    file = types.SimpleNamespace(ADAPTER=adapter)
    dispatch.REGISTERED[library] = (
        file if namespace is None else types.SimpleNamespace(ADAPTER=adapter, complete=namespace)
    )
    dispatch.forget_library(library)
    return adapter
