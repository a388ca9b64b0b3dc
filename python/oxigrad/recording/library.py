"""Array libraries for traced values: the functions of a library, which append an entry where they are called with one."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from oxigrad.ops.backends import namespace, standard_namespace
from oxigrad.recording import targets
from oxigrad.recording.deferred import Deferred
from oxigrad.recording.traced import Recorder, Traced, TracedArray, UnrecordableError


def traced_in(value: Any) -> Traced | None:
    """The first traced value among arguments, in lists, tuples, dicts and slices too."""
    if isinstance(value, Traced):
        return value
    if isinstance(value, (list, tuple)):
        parts: Any = value
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
    else:
        return None
    return next((traced for part in parts if (traced := traced_in(part)) is not None), None)


class _Library:
    """The functions of a module of an array library."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self.__name__ = module.__name__

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._module, name)
        if isinstance(attribute, ModuleType):
            return library(attribute)
        if isinstance(attribute, type) or not callable(attribute):
            return attribute
        return _function(attribute)


@functools.lru_cache(maxsize=64)
def library(module: Any) -> Any:
    """The module for traced values."""
    return _Library(module)


@functools.lru_cache(maxsize=1024)
def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        traced = traced_in((args, named))
        if traced is None:
            return function(*args, **named)
        target = targets.target_of(function)
        if target is None or named.get("out") is not None:
            raise UnrecordableError(f"{function.__name__} is not a function without effects")
        return traced.recorder.apply(target, function, args, named)

    return called


@functools.cache
def _class_of_numpy() -> type[TracedArray]:
    return _class_of(standard_namespace(np.zeros(0)))


@functools.lru_cache(maxsize=64)
def _class_of(module: Any) -> type[TracedArray]:
    """The class of traced arrays of a library, since a namespace belongs to a class."""

    def namespace_of(self: TracedArray, *, api_version: str | None = None) -> Any:
        return library(module)

    return type(
        "TracedArray", (TracedArray,), {"__array_namespace__": namespace_of, "__slots__": (), "__module__": __name__}
    )


def traced_array(trace: Recorder, identifier: int, value: Any, *, is_in_rule: bool = False) -> TracedArray:
    """A traced array; raises `UnrecordableError` for one of a library that is not NumPy."""
    if type(value) is Deferred:
        return _class_of_numpy()(trace, identifier, value, is_in_rule=is_in_rule)
    if not isinstance(value, (np.ndarray, np.generic)):
        raise UnrecordableError(f"found an array of {namespace(value).__name__}: recordings hold arrays of NumPy")
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        raise UnrecordableError(f"found a {type(value).__name__}: recordings hold plain arrays")
    return _class_of_numpy()(trace, identifier, value, is_in_rule=is_in_rule)
