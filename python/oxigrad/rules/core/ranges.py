"""Domains of hyperparameters: declared as annotations, and checked wherever a value is set.

A rule annotates its hyperparameters with the aliases here, or with ``Annotated[float, Interval("[0, 1)")]``, where
``int`` stands for integers and ``| None`` allows None. Names are annotated with ``Literal["a", "b"]``, and flags with
``bool``. Without an annotation, a number may have any value except NaN, and a flag may be True, False, None or a
string. A text within ``Annotated`` describes the hyperparameter in one sentence.
"""

import dataclasses
import functools
import math
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

# The relative tolerance, for rounding in float32, by which a schedule may leave a closed interval.
_ROUNDING = 1e-7
_INTERVAL = re.compile(r"([\[(])([^,]+),([^,]+)([\])])")


class Interval:
    """An interval of numbers, written as in mathematics: a square bracket includes its end, a round one does not.

    Args:
        text: interval as in mathematics, such as ``[0, 1)``.

    NaN is in no interval, and an infinite number only if a square bracket includes it. Raises `ValueError` for a text
    that is not an interval.

    >>> 0.0 in Interval("[0, 1)"), 1.0 in Interval("[0, 1)"), math.inf in Interval("(0, inf]")
    (True, False, True)
    """

    text: str
    low: float
    high: float

    def __init__(self, text: str) -> None:
        read = _INTERVAL.fullmatch(text)
        try:
            low, high = (float(read[2]), float(read[3])) if read else (math.nan, math.nan)
        except ValueError:
            low = high = math.nan
        if read is None or not low <= high:
            raise ValueError(f"the interval is {text!r}: expected two ascending numbers, as in '[0, 1)'")
        self.text, self.low, self.high = text, low, high
        self._has_low, self._has_high = read[1] == "[", read[4] == "]"

    def __contains__(self, value: float) -> bool:
        above = value >= self.low if self._has_low else value > self.low
        return above and (value <= self.high if self._has_high else value < self.high)

    def nearly_contains(self, value: float) -> bool:
        """Whether a computed number is in the interval, up to a rounding error at an included end."""
        if value in self:
            return True
        return (self._has_low and 0 <= self.low - value <= _ROUNDING) or (
            self._has_high and 0 <= value - self.high <= _ROUNDING
        )

    def __repr__(self) -> str:
        return f"Interval({self.text!r})"


NonNegative = Annotated[float, Interval("[0, inf)")]
Positive = Annotated[float, Interval("(0, inf)")]
NonPositive = Annotated[float, Interval("(-inf, 0]")]
# A bound; infinity means unbounded.
Limit = Annotated[float, Interval("[0, inf]")]
# The decay of a moving mean; with bias correction it must be below 1.
Share = Annotated[float, Interval("[0, 1]")]
Decay = Annotated[float, Interval("[0, 1)")]
Count = Annotated[int, Interval("[1, inf)")]
CountOrZero = Annotated[int, Interval("[0, inf)")]

_ANY = Interval("[-inf, inf]")


def scalar(value: Any) -> Any:
    """A scalar of NumPy as Python's, which a bool of NumPy is not; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


@dataclasses.dataclass(frozen=True)
class Domain:
    """A domain: ``choices``, or the numbers of an ``interval``, if there is one."""

    choices: tuple[Any, ...] | None = None
    interval: Interval | None = None
    is_whole: bool = False

    def expected(self) -> str:
        """The expected values in words, for error messages."""
        words = [] if self.choices is None else [repr(choice) for choice in self.choices]
        if self.interval is not None:
            within = "" if self.interval is _ANY else f" in {self.interval.text}"
            words.append(f"a {'whole ' if self.is_whole else ''}number{within}")
        return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)

    @functools.cached_property
    def interior(self) -> tuple[float, float]:
        """Two numbers between which each float is a value as rules take it; NaN where there are none."""
        interval = None if self.is_whole else self.interval
        return (math.nan, math.nan) if interval is None else (interval.low, interval.high)

    def check(self, name: str, value: Any) -> Any:
        """The value as rules take it: NumPy scalars become Python numbers, and integral values become ints.

        Raises `ValueError`, with ``name``, for a value outside of the domain, and `TypeError` for a value of the wrong
        type.
        """
        low, high = self.interior
        if type(value) is float and low < value < high:
            return value
        if isinstance(value, np.generic):
            value = value.item()
        if self.choices is not None:
            for choice in self.choices:
                if type(choice) is type(value) and choice == value:
                    return choice
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if self.interval is not None and is_number and self._has(value, value in self.interval):
            return self.typed(value)
        kinds = {type(choice) for choice in self.choices or ()}
        is_of_kind = self.interval is not None if is_number else type(value) in kinds
        raise (ValueError if is_of_kind else TypeError)(f"{name} is {value!r}: expected {self.expected()}")

    def typed(self, value: float) -> float:
        """A number of the domain as rules take it: an int where the domain is of whole numbers, such as 4 for 4.0."""
        return int(value) if self.is_whole and math.isfinite(value) else value

    def admits(self, value: float) -> bool:
        """Whether a number that a schedule computed is in the domain, up to a rounding error."""
        low, high = self.interior
        if self.interval is None or low < value < high:
            return True  # without further calls: schedules come here in each step
        return self._has(value, self.interval.nearly_contains(value))

    def _has(self, value: float, is_within: bool) -> bool:
        return is_within and (not self.is_whole or math.isinf(value) or value == math.floor(value))


COUNT = Domain(interval=Interval("[1, inf)"), is_whole=True)
"""The domain of a number of things, at least one."""

_FLAGS = (bool, str, type(None))


def domain(annotation: Any, default: Any) -> Domain | None:
    """The domain that an annotation states for a hyperparameter with this default; None admits any flag."""
    optional = False
    if typing.get_origin(annotation) is Annotated:
        kind, *notes = typing.get_args(annotation)
        for note in notes:
            if isinstance(note, str) and _INTERVAL.fullmatch(note):
                raise TypeError(f"the annotation {note!r} is a text, which checks nothing: expected Interval({note!r})")
        annotation = annotation if any(isinstance(note, Interval) for note in notes) else kind
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [each for each in typing.get_args(annotation) if each is not type(None)]
        optional = len(members) < len(typing.get_args(annotation))
        annotation = members[0] if len(members) == 1 else None
    none = (None,) if optional or default is None else ()
    if typing.get_origin(annotation) is Literal:
        return Domain((*typing.get_args(annotation), *none[: optional or 0]))
    if typing.get_origin(annotation) is Annotated:
        kind, *notes = typing.get_args(annotation)
        none = none or ((None,) if type(None) in typing.get_args(kind) else ())
        for note in notes:
            if isinstance(note, Interval):
                return Domain(none or None, note, kind is int or int in typing.get_args(kind))
    if annotation is bool or isinstance(default, bool):
        return Domain((True, False, *none))
    return None if isinstance(default, _FLAGS) else Domain(none or None, _ANY)


def domains(function: Callable[..., Any], defaults: typing.Mapping[str, Any]) -> dict[str, Domain | None]:
    """The domain of each of the hyperparameters of a function, by its annotations.

    String annotations that cannot be evaluated are ignored.
    """
    written = getattr(function, "__annotations__", {})
    return {name: domain(_evaluated(function, written.get(name)), default) for name, default in defaults.items()}


def sentence(function: Callable[..., Any], name: str) -> str:
    """The sentence in the annotation of a hyperparameter; empty without one."""
    annotation = _evaluated(function, getattr(function, "__annotations__", {}).get(name))
    return next((note for note in getattr(annotation, "__metadata__", ()) if isinstance(note, str)), "")


def _evaluated(function: Callable[..., Any], annotation: Any) -> Any:
    if not isinstance(annotation, str):
        return annotation
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, getattr(function, "__globals__", {}), include_extras=True)["it"]
    except (NameError, AttributeError, TypeError, SyntaxError):
        return None
