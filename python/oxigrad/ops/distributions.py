"""Continuous and discrete distributions, defined by their functions of a number and of the shape parameters."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from oxigrad._core import DerivativeError
from oxigrad._typing import Array
from oxigrad.ops import primitives as ops

LOG_2_PI = math.log(2.0 * math.pi)


def log_of(p: Array, rest: Any) -> Array:
    """``log(p)`` given ``p`` and ``rest = 1 - p``, accurate near 0 and 1."""
    high = p > 0.5
    return ops.where(high, ops.log1p(-ops.where(high, rest, 0.5)), ops.log(ops.where(high, 0.5, p)))


@dataclasses.dataclass(frozen=True)
class Continuous:
    """A continuous distribution, defined by its functions of the standardized ``z`` and of the shape parameters."""

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.ops.stats"

    name: str
    shapes: int
    log_density: Callable[..., Any]
    lower: Callable[..., Any]
    upper: Callable[..., Any]
    log_lower: Callable[..., Any] | None = None
    log_upper: Callable[..., Any] | None = None
    quantile: Callable[..., Any] | None = None

    def __reduce__(self) -> str:
        return self.name

    def _parameters(self, args: tuple[Any, ...], loc: Array, scale: Array) -> tuple[tuple[Any, ...], Any, Any]:
        """The shape parameters, ``loc`` and ``scale``."""
        shapes, rest = args[: self.shapes], args[self.shapes :]
        if len(shapes) < self.shapes or len(rest) > 2:
            raise TypeError(
                f"{self.name}: found {len(args)} arguments, expected {self.shapes} shape parameters, then loc and scale"
            )
        return shapes, rest[0] if rest else loc, rest[1] if len(rest) > 1 else scale

    def _split(self, x: Array, args: tuple[Any, ...], loc: Array, scale: Array) -> tuple[Any, tuple[Any, ...], Any]:
        """The standardized ``x``, the shape parameters, and the scale."""
        shapes, loc, scale = self._parameters(args, loc, scale)
        return (x - loc) / scale, shapes, scale

    def logpdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of the density."""
        z, shapes, scale = self._split(x, args, loc, scale)
        return self.log_density(z, *shapes) - ops.log(scale)

    def pdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, *args, loc=loc, scale=scale))

    def cdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The cumulative distribution function: the probability of at most ``x``."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.lower(z, *shapes)

    def logcdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `cdf`."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.log_lower(z, *shapes) if self.log_lower else log_of(self.lower(z, *shapes), self.upper(z, *shapes))

    def sf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The survival function: the probability of more than ``x``, accurate where it is small."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.upper(z, *shapes)

    def logsf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `sf`."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.log_upper(z, *shapes) if self.log_upper else log_of(self.upper(z, *shapes), self.lower(z, *shapes))

    def ppf(self, q: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The percent point function, the inverse of `cdf`, for ``q`` between 0 and 1."""
        if self.quantile is None:
            raise DerivativeError(
                f"{self.name}.ppf has no derivative here: expected a distribution with a quantile function"
            )
        shapes, loc, scale = self._parameters(args, loc, scale)
        return loc + scale * self.quantile(q, *shapes)


@dataclasses.dataclass(frozen=True)
class Discrete:
    """A distribution of the whole numbers from ``low`` to ``high(*shapes)``, by its functions of the count and the parameters."""

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.ops.stats"

    name: str
    shapes: int
    log_mass: Callable[..., Any]
    lower: Callable[..., Any]
    upper: Callable[..., Any]
    low: int = 0
    high: Callable[..., Any] = lambda *shapes: math.inf

    def __reduce__(self) -> str:
        return self.name

    def _count(self, k: Any, args: tuple[Any, ...], loc: Any) -> tuple[Any, tuple[Any, ...]]:
        """The count, and the shape parameters."""
        shapes, rest = args[: self.shapes], args[self.shapes :]
        if len(shapes) < self.shapes or len(rest) > 1:
            raise TypeError(
                f"{self.name}: found {len(args)} arguments, expected {self.shapes} shape parameters, then loc"
            )
        return k - (rest[0] if rest else loc) * 1.0, shapes

    def logpmf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """Logarithm of the probability of ``k``."""
        count, shapes = self._count(k, args, loc)
        is_one = ops.logical_and(
            ops.logical_and(count >= self.low, count <= self.high(*shapes)), count == ops.floor(count)
        )
        return ops.where(is_one, self.log_mass(ops.where(is_one, count, float(self.low)), *shapes), -math.inf)

    def pmf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """The probability of ``k``."""
        return ops.exp(self.logpmf(k, *args, loc=loc))

    def _distribution(self, which: Callable[..., Any], ends: tuple[float, float], k: Any, args: Any, loc: Any) -> Array:
        count, shapes = self._count(k, args, loc)
        count, high = ops.floor(count), self.high(*shapes)
        inside = ops.logical_and(count >= self.low, count < high)
        value = which(ops.where(inside, count, float(self.low)), *shapes)
        return ops.where(inside, value, ops.where(count < self.low, ends[0], ends[1]))

    def cdf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """The probability of at most ``k``."""
        return self._distribution(self.lower, (0.0, 1.0), k, args, loc)

    def sf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """The probability of more than ``k``."""
        return self._distribution(self.upper, (1.0, 0.0), k, args, loc)

    def logcdf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """Logarithm of `cdf`."""
        return ops.log(self.cdf(k, *args, loc=loc))

    def logsf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """Logarithm of `sf`."""
        return ops.log(self.sf(k, *args, loc=loc))
