"""Functions that read variables of a transform, as functions of the values of these variables."""

import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from oxigrad._core import Variable, plain

# Classes of values that read none, which most arguments are.
_LEAVES = frozenset({bool, float, int, np.float64, np.ndarray, str, type(None)})


def without_variables(f: Any) -> Any:
    """A copy of ``f`` that reads plain values instead of variables in its closure and defaults.

    Functions and containers there are copied too. Variables in globals and in attributes of objects stay.
    """
    return _plain(f, {})


def _parts(value: Any) -> list[Any]:
    """The values that a function or a container reads."""
    if isinstance(value, types.FunctionType):
        return [*_contents(value), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, dict):
        return [*value.values()]
    return [*value] if isinstance(value, (list, tuple)) else []


def _contents(f: types.FunctionType) -> Iterator[Any]:
    for cell in f.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def reads_variables(value: Any, kinds: type | tuple[type, ...] = Variable) -> bool:
    """Whether a value has a variable within, or a function there reads one; or any value of ``kinds``."""
    seen, values = set[int](), [value]
    while values:
        each = values.pop()
        if type(each) in _LEAVES:
            continue
        if isinstance(each, kinds):
            return True
        if id(each) not in seen:
            seen.add(id(each))
            values += _parts(each)
    return False


def _plain(value: Any, copies: dict[int, Any]) -> Any:
    """The value with plain values for variables; ``copies`` maps ids of functions to copies, for recursive ones."""
    if isinstance(value, Variable):
        return plain(value)
    if id(value) in copies:
        return copies[id(value)]
    if not reads_variables(value):
        return value
    if isinstance(value, types.FunctionType):
        return _copy(value, copies)
    parts = [_plain(part, copies) for part in _parts(value)]
    if isinstance(value, functools.partial):
        function, *others = parts
        args, named = others[: len(value.args)], others[len(value.args) :]
        return functools.partial(function, *args, **dict(zip(value.keywords, named, strict=True)))
    if isinstance(value, dict):
        return dict(zip(value, parts, strict=True))
    return value._make(parts) if hasattr(value, "_make") else type(value)(parts)


def _copy(f: types.FunctionType, copies: dict[int, Any]) -> types.FunctionType:
    cells = tuple(types.CellType() for _ in f.__closure__ or ())
    copy = types.FunctionType(f.__code__, f.__globals__, f.__name__, None, cells)
    copies[id(f)] = copy
    copy.__dict__.update(f.__dict__)
    copy.__defaults__, copy.__kwdefaults__ = _plain(f.__defaults__, copies), _plain(f.__kwdefaults__, copies)
    for cell, original in zip(cells, f.__closure__ or (), strict=True):
        try:
            contents = original.cell_contents
        except ValueError:
            continue
        cell.cell_contents = _plain(contents, copies)
    return copy
