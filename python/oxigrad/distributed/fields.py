"""Fields of the state of wrappers: the attributes that a state file has, and how each is written and read.

A wrapper declares them in ``_fields``; `Wrapper` writes, checks and restores all of them together.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from oxigrad import StateError
from oxigrad.extend import Domain
from oxigrad.optim import Interval

_FLAG = Domain((True, False))

WHOLE = Domain(interval=Interval("[0, inf)"), is_whole=True)
"""The domain of a count that may be zero."""

FACTOR = Domain(interval=Interval("[0, inf)"))
"""The domain of a factor."""

BOUND = Domain((None,), Interval("(0, inf]"))
"""The domain of a positive number, or None for no bound."""

Plain: TypeAlias = Mapping[str, Any]
"""Plain data by name."""

Arrays: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Arrays by key path and name."""


def check_flags(**flags: Any) -> list[bool]:
    """The flags by name, in this order; raises `TypeError`, with the name, for anything but True and False."""
    return [_FLAG.check(name, value) for name, value in flags.items()]


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of the state of a wrapper: the attribute ``attribute``.

    ``write(wrapper, value)`` gives a value as plain data and arrays. ``read(wrapper, plain, arrays)`` returns it; it
    changes nothing, and raises `StateError`, or any error that malformed data causes. ``slots(wrapper)`` are the names
    of its arrays. A field of this worker alone has a function ``joined``, which returns the value that a worker which
    joins begins with.
    """

    attribute: str
    write: Callable[[Any, Any], tuple[Plain, Arrays]]
    read: Callable[[Any, Plain, Arrays], Any]
    slots: Callable[[Any], Iterable[str]] = lambda wrapper: ()
    joined: Callable[[], Any] | None = None


def integer(attribute: str, key: str, least: int = 0, joined: Callable[[], int] | None = None) -> Field:
    """A field that is an integer, under the name ``key``."""

    def read(wrapper: Any, plain: Plain, arrays: Arrays) -> int:
        value = plain[key]
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{key} is {value!r}: expected an integer, at least {least}")
        return value

    return Field(attribute, lambda wrapper, value: ({key: value}, {}), read, joined=joined)


def arrays(attribute: str, slot: str) -> Field:
    """A field that is a dict of arrays by key path, under the name ``slot``."""
    return Field(
        attribute,
        lambda wrapper, value: ({}, {path: {slot: array} for path, array in value.items()}),
        lambda wrapper, plain, arrays: array_by_path(arrays, slot),
        lambda wrapper: (slot,),
    )


def written(
    wrapper: Any, fields: Iterable[Field], *, for_others: bool = False
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The fields of a wrapper as plain data and arrays; ``for_others`` as a worker that joins receives them."""
    plain: dict[str, Any] = {}
    arrays: dict[str, dict[str, Any]] = {}
    for field in fields:
        value = field.joined() if field.joined and for_others else getattr(wrapper, field.attribute)
        data, by_path = field.write(wrapper, value)
        plain |= data
        for path, named in by_path.items():
            arrays.setdefault(path, {}).update(named)
    return plain, arrays


def restored(wrapper: Any, fields: Iterable[Field], plain: Plain, arrays: Arrays) -> dict[str, Any]:
    """The values of attributes in a state. Raises `StateError` for a malformed one."""
    try:
        return {field.attribute: field.read(wrapper, plain, arrays) for field in fields}
    except StateError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StateError(f"its state is malformed: {error}") from error


def array_by_path(arrays: Arrays, name: str) -> dict[str, np.ndarray]:
    """The arrays of one name by key path, as copies in host memory."""
    return {path: np.array(named[name]) for path, named in arrays.items() if name in named}
