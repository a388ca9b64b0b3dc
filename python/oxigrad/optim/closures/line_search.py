"""Line search for the strong Wolfe conditions (Nocedal and Wright 2006, 3.5, 3.6), with minFunc's constants.

A step satisfies the curvature condition where ``abs(slope) <= 0.9 * abs(initial slope)``, and the sufficient decrease
condition where ``value <= initial value + 1e-4 * length * initial slope``.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from oxigrad._typing import Array

_DECREASE = 1e-4
_CURVATURE = 0.9


class Point(NamedTuple):
    """A step along the direction: its length, and the value, slope along the direction and gradient after it."""

    length: float
    value: float
    slope: float
    gradient: Array


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, length: float, *, evaluations: int, width: float
) -> Point:
    """A step that satisfies the conditions, or else the best found in ``evaluations`` plus one evaluations.

    ``evaluate`` returns the point of a length; ``start`` is the point of length 0, ``length`` the first trial length.
    The search stops where the interval is narrower than ``width``. A value that is not finite counts as infinity.

    >>> parabola = lambda t: Point(t, (t - 3.0) ** 2, 2 * (t - 3.0), None)
    >>> strong_wolfe(parabola, parabola(0.0), 1.0, evaluations=10, width=1e-9).length
    1.0
    """
    search = _Search(evaluate, start, evaluations)
    interval = search.bracket(length)
    return interval[0] if len(interval) == 1 else search.zoom(*interval, width)


class _Search:
    def __init__(self, evaluate: Callable[[float], Point], start: Point, evaluations: int) -> None:
        self._evaluate = evaluate
        self._start = start
        self._left = evaluations

    def _falls(self, point: Point) -> bool:
        return point.value <= self._start.value + _DECREASE * point.length * self._start.slope

    def _is_flat(self, point: Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * self._start.slope

    def bracket(self, length: float) -> tuple[Point] | tuple[Point, Point]:
        """A step that satisfies the conditions, or two that bracket one, the second of them tried last."""
        last, new = self._start, self._evaluate(length)
        tried = 0
        while self._left > 0:
            if not self._falls(new) or (tried > 1 and new.value >= last.value):
                return last, new
            if self._is_flat(new):
                return (new,)
            if new.slope >= 0:
                return last, new
            length = _cubic_minimum(last, new, new.length + 0.01 * (new.length - last.length), 10 * new.length)
            last, new = new, self._evaluate(length)
            self._left -= 1
            tried += 1
        return self._start, new

    def zoom(self, first: Point, second: Point, width: float) -> Point:
        """A step between two points that satisfies the conditions."""
        low, high = (first, second) if first.value <= second.value else (second, first)
        was_near_an_end = False
        while self._left > 0 and low.length != high.length and abs(high.length - low.length) >= width:
            left, right = sorted((low.length, high.length))
            length = _cubic_minimum(low, high, left, right)
            margin = 0.1 * (right - left)
            is_near_an_end = min(right - length, length - left) < margin
            if is_near_an_end and (was_near_an_end or not left < length < right):
                length = right - margin if right - length < length - left else left + margin
                is_near_an_end = False
            was_near_an_end = is_near_an_end
            new = self._evaluate(length)
            self._left -= 1
            if not self._falls(new) or new.value >= low.value:
                low, high = (low, new) if low.value <= new.value else (new, low)
                continue
            if self._is_flat(new):
                return new
            if new.slope * (high.length - low.length) >= 0:
                high = low
            low = new
        return low


def _cubic_minimum(a: Point, b: Point, lower: float, upper: float) -> float:
    """The minimizer of the cubic through two points and their slopes, clipped to the bounds; else their midpoint."""
    a, b = (a, b) if a.length <= b.length else (b, a)
    slope = a.slope + b.slope - 3 * (a.value - b.value) / (a.length - b.length)
    discriminant = slope * slope - a.slope * b.slope
    if not (math.isfinite(discriminant) and discriminant >= 0):
        return (lower + upper) / 2
    root = math.sqrt(discriminant)
    bend = b.slope - a.slope + 2 * root
    if bend == 0:
        return (lower + upper) / 2
    return min(max(b.length - (b.length - a.length) * (b.slope + root - slope) / bend, lower), upper)
