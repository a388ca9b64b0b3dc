"""Flattening of containers, recorded graphs, optimizers and fixed points, by the names of `autograd.misc`."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from oxigrad.autograd.misc.flatten import flatten
from oxigrad.autograd.modules import made
from oxigrad.recording.function import record


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Function whose calls replay the first one: `oxigrad.record` of ``fun`` with ``args`` and ``kwargs`` bound."""
    return record(lambda *others: fun(*args, *others, **kwargs))


tracers: ModuleType = made(f"{__name__}.tracers", {"const_graph": const_graph})

__all__ = ["const_graph", "flatten"]
