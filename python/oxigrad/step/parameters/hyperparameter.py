"""A hyperparameter of a rule, declared: its default, its domain, and its values; the versions of settings."""

import itertools
import math
import os
from collections.abc import Iterable
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np

from oxigrad._core import BatchLevel, ShapeError, Variable
from oxigrad.ops.backends import beneath, fetched, is_array
from oxigrad.rules.core.ranges import Domain, scalar
from oxigrad.rules.core.rule import is_flag
from oxigrad.schedules.base import number_at, term
from oxigrad.schedules.numbers import is_traced

_Read = TypeVar("_Read")
_Set = TypeVar("_Set")
_NUMBERS = itertools.count(1)


class Version:
    """The version of an optimizer's settings, which each change raises.

    ``number`` changes whenever anything does; ``structure`` only with changes that require a new plan: of options,
    groups of hyperparameters, and assigned slots. No two changes in a process have the same number, whichever threads
    make them.

    >>> version = Version()
    >>> before = version.number
    >>> version.raise_number()
    >>> version.number > before, version.structure < version.number
    (True, True)
    """

    number: int
    structure: int

    __slots__ = ("number", "structure")

    def __init__(self) -> None:
        self.number = self.structure = next(_NUMBERS)

    def raise_number(self) -> None:
        """Marks a change that keeps the plan valid, such as that of a hyperparameter."""
        self.number = next(_NUMBERS)

    def raise_structure(self) -> None:
        """Marks a change that requires a new plan."""
        self.structure = next(_NUMBERS)
        self.number = next(_NUMBERS)


#: The version of the process, which a fork raises: the core may have been in the middle of another thread's step.
PROCESS = Version()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.raise_structure)


class Hyperparameter(Generic[_Read, _Set]):
    """Descriptor of a hyperparameter. It is validated when it is set, and takes effect on the next step.

    ``domain`` is the set of its values (see `oxigrad.rules.core.ranges`). None admits any flag, and any number where
    the default is None.
    """

    def __init__(self, name: str, default: Any, domain: Domain | None = None) -> None:
        self.name = name
        self.is_flag: bool = is_flag(default)
        self.domain = domain
        self.default: Any = default  # which the check of a flag reads
        self.default = self.check(default)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # immutable

    @overload
    def __get__(self, part: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, part: Any, owner: type | None = None) -> _Read: ...
    def __get__(self, part: Any, owner: type | None = None) -> Any:
        return self if part is None else part._hyperparameters[self.name]

    def __set__(self, part: Any, value: _Set) -> None:
        part._hyperparameters[self.name] = self.check(value)
        part._version.raise_number()

    def check(self, value: Any) -> Any:
        """The value.

        Raises `TypeError` where its type is not that of the default, `ValueError` where it is out of range.
        """
        if self.is_flag:
            return self._checked_flag(value)
        try:
            if type(value) is not float:
                if is_traced(value):
                    return value  # whose number, and range, are known only when the traced program runs
                value = term(value)
        except TypeError:
            hint = "; the parameters are an argument of opt.update(model, grads)" if _is_collection(value) else ""
            message = f"{self.name} is {value!r}: expected a number or a schedule, a function of the step{hint}"
            raise TypeError(message) from None
        return value if callable(value) or self.domain is None else self.domain.check(self.name, value)

    def check_argument(self, value: Any) -> Any:
        """As `check`, for an argument of `apply`: a variable is checked by its value and kept, for derivatives.

        Raises `TypeError` for a function of the step, and for a variable in place of a whole number, which has no
        derivative.
        """
        if callable(value):
            raise TypeError(f"{self.name} is {value!r}: expected a number or an array without axes")
        if not isinstance(value, (Variable, BatchLevel)):
            return self.check(value)
        if shape := tuple(getattr(value, "shape", ())):
            raise ShapeError(f"{self.name} has shape {shape}: expected a number or an array without axes")
        if self.domain is not None:
            self._check_variable(value, self.domain)
        return value

    def _check_variable(self, value: Any, domain: Domain) -> None:
        if domain.is_whole:
            raise TypeError(f"{self.name} is a variable: expected {domain.expected()}, which has no derivative")
        below = beneath(value)
        if not (is_array(below) and is_traced(below[(0,) * below.ndim])):
            for number in np.asarray(fetched(below)).ravel().tolist():
                domain.check(self.name, number)

    def _checked_flag(self, value: Any) -> Any:
        value = scalar(value)
        if self.domain is not None:
            return self.domain.check(self.name, value)
        if not (is_flag(value) or (self.default is None and isinstance(value, (int, float)))):
            raise TypeError(f"{self.name} is {value!r}: expected a flag of the type of {self.default!r}")
        return value

    def interior(self) -> tuple[float, float]:
        """Two numbers between which all are valid; NaN where there are none."""
        return (-math.inf, math.inf) if self.domain is None else self.domain.interior

    def at(self, value: Any, step: Any) -> Any:
        """The number, or that of a schedule at ``step``; raises `ValueError` where a schedule leaves the domain."""
        if not callable(value):
            return value
        result = number_at(value, step, self.name)
        if self.domain is None or type(result) not in (float, int):
            return result
        if not self.domain.admits(result):
            raise ValueError(f"{self.name} at step {step} is {result!r}: expected {self.domain.expected()}")
        return self.domain.typed(result) if self.domain.is_whole else result


def _is_collection(value: Any) -> bool:
    """Whether a value may be a model, or parameters: a container, an iterator, or an array with axes."""
    return isinstance(value, Iterable) and not isinstance(value, str)
