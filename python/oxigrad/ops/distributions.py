"""Continuous and discrete distributions, defined by their functions of a number and of the shape parameters.

At the places where a formula has no derivative of its own: an edge of the support belongs to it, and derivatives there are the limits
from inside, infinite where those are; beyond the support, and at infinity, functions are constant. Where a parameter is not positive,
or not between 0 and 1 if it is a probability, results are NaN, as SciPy's.
"""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from oxigrad._core import DerivativeError, Variable, plain
from oxigrad._typing import Array
from oxigrad.ops import guarded
from oxigrad.ops import primitives as ops
from oxigrad.ops.guarded import log_of

LOG_2_PI = math.log(2.0 * math.pi)
# Of the logarithm of a density: below, the density is zero, and so are all its derivatives.
_LEAST = -1e3


def _positive(parameter: Any) -> Any:
    return ops.where(parameter > 0.0, parameter, math.nan)


def _probability(q: Any) -> Any:
    return ops.where(ops.logical_or(q < 0.0, q > 1.0), math.nan, q)


def _by_name(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method of a distribution to take its shape parameters, `loc` and `scale` by their names too, as SciPy's."""
    first, has_scale = list(inspect.signature(method).parameters)[1], "scale" in inspect.signature(method).parameters

    @functools.wraps(method)
    def called(self: Any, *args: Any, **named: Any) -> Any:
        if named and not (len(args) == self.shapes + 1 and named.keys() <= {"loc", "scale"}):
            shapes = _shape_names(self.name, self.log_density if has_scale else self.log_mass)
            names = [first, *shapes, "loc", *["scale"] * has_scale]
            args, named = _in_order(f"{self.name}.{method.__name__}", names, args, named)
        return method(self, *args, **named)

    return called


# The names of shape parameters of which the functions of a distribution take any number.
_NAMES = {"fisk": ["c"], "gompertz": ["c"], "lomax": ["c"], "pareto": ["b"], "weibull_max": ["c"], "weibull_min": ["c"]}


@functools.lru_cache(maxsize=256)
def _shape_names(name: str, function: Callable[..., Any]) -> list[str]:
    """The names of the shape parameters of a distribution: those of a function of the number and them."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return _NAMES.get(name, [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL])


def _in_order(name: str, names: list[str], args: Any, named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments without a default by position, and the others by name. Raises `TypeError` for one that is given twice, unknown or missing."""
    given = dict(zip(names, args, strict=False))
    for key in named:
        if key in given or key not in names:
            what = "found twice" if key in given else f"unknown: expected {', '.join(names)}"
            raise TypeError(f"{name}: {key} is {what}")
    given |= named
    required = names[: names.index("loc")]
    if missing := [key for key in required if key not in given]:
        raise TypeError(f"{name}: {', '.join(missing)} is missing: expected {', '.join(names)}")
    if len(args) > len(names):
        raise TypeError(f"{name}: found {len(args)} arguments, expected {', '.join(names)}")
    return tuple(given.pop(key) for key in required), given


@dataclasses.dataclass(frozen=True)
class Continuous:
    """A continuous distribution, defined by its functions of the standardized ``z`` and of the shape parameters.

    The functions are called inside of the support, whose edges are ``low`` and ``high``, and smooth at ``inner``. ``density`` is written
    where the density has derivatives at a lower edge of zero that its logarithm has not; at numbers above one it may be the exponential.
    """

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
    density: Callable[..., Any] | None = None
    low: float = -math.inf
    high: float = math.inf
    inner: float = 0.0
    # Whether the functions are constant at the lower edge too, as where all derivatives tend to zero.
    is_open: bool = False

    def __reduce__(self) -> str:
        return self.name

    def _parameters(self, args: tuple[Any, ...], loc: Array, scale: Array) -> tuple[tuple[Any, ...], Any, Any]:
        """The shape parameters, ``loc`` and ``scale``."""
        shapes, rest = args[: self.shapes], args[self.shapes :]
        if len(shapes) < self.shapes or len(rest) > 2:
            raise TypeError(
                f"{self.name}: found {len(args)} arguments, expected {self.shapes} shape parameters, then loc and scale"
            )
        scale = rest[1] if len(rest) > 1 else scale
        return tuple(map(_positive, shapes)), rest[0] if rest else loc, _positive(scale)

    def _values(self, x: Any, args: tuple[Any, ...], loc: Any, scale: Any, f: Any, ends: tuple[float, float]) -> Any:
        """``f`` of the standardized ``x`` inside of the support, and constants on both sides; and the scale."""
        shapes, loc, scale = self._parameters(args, loc, scale)
        z = (x - loc) / scale
        below = z <= self.low if self.is_open or math.isinf(self.low) else z < self.low
        above = z >= self.high if math.isinf(self.high) else z > self.high
        inner = plain(loc) + plain(scale) * self.inner
        x = ops.where(ops.logical_or(below, above), inner, x)
        if isinstance(scale, Variable) and 0.0 in (self.low, self.high):
            # At an edge of zero, where the derivative by z may be infinite, that of z by the scale is zero.
            at_edge = lambda x: f((x - loc) / plain(scale), *shapes)  # noqa: E731
            value = guarded.branch(x == loc, at_edge, lambda x: f((x - loc) / scale, *shapes), (x, inner, inner))
        else:
            value = f((x - loc) / scale, *shapes)
        return ops.where(below, ends[0], ops.where(above, ends[1], value)), scale

    def _density(self, z: Array, *shapes: Any) -> Array:
        """The density, which is zero with all its derivatives where its logarithm is below `_LEAST`."""
        is_zero = self.log_density(z, *shapes) < _LEAST
        density = self.density or (lambda z, *shapes: ops.exp(self.log_density(z, *shapes)))
        if self.density:  # which is smooth near the edge, however small the density
            is_zero = ops.logical_and(is_zero, ops.abs(z) > 1.0)
        return guarded.unless(is_zero, 0.0, lambda z: density(z, *shapes), z, self.inner)

    @_by_name
    def logpdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of the density."""
        value, scale = self._values(x, args, loc, scale, self.log_density, (-math.inf, -math.inf))
        return value - ops.log(scale)

    @_by_name
    def pdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The density."""
        value, scale = self._values(x, args, loc, scale, self._density, (0.0, 0.0))
        return value / scale

    @_by_name
    def cdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The cumulative distribution function: the probability of at most ``x``."""
        return self._values(x, args, loc, scale, self.lower, (0.0, 1.0))[0]

    @_by_name
    def logcdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `cdf`."""
        lower = self.log_lower or (lambda z, *shapes: log_of(self.lower(z, *shapes), self.upper(z, *shapes)))
        return self._values(x, args, loc, scale, lower, (-math.inf, 0.0))[0]

    @_by_name
    def sf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The survival function: the probability of more than ``x``, accurate where it is small."""
        return self._values(x, args, loc, scale, self.upper, (1.0, 0.0))[0]

    @_by_name
    def logsf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `sf`."""
        upper = self.log_upper or (lambda z, *shapes: log_of(self.upper(z, *shapes), self.lower(z, *shapes)))
        return self._values(x, args, loc, scale, upper, (0.0, -math.inf))[0]

    @_by_name
    def ppf(self, q: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The percent point function, the inverse of `cdf`, for ``q`` between 0 and 1."""
        if self.quantile is None:
            raise DerivativeError(
                f"{self.name}.ppf has no derivative here: expected a distribution with a quantile function"
            )
        shapes, loc, scale = self._parameters(args, loc, scale)
        return loc + scale * self._quantile(_probability(q), *shapes)

    def _quantile(self, q: Array, *shapes: Any) -> Array:
        """The quantile; where its derivative is infinite at an edge, plus or minus a root of zero, which has that derivative."""
        quantile: Any = self.quantile
        at_zero = ops.logical_and(q == 0.0, self.is_open or math.isinf(self.low))
        at_one = ops.logical_and(q == 1.0, math.isinf(self.high))
        inside = quantile(ops.where(ops.logical_or(at_zero, at_one), 0.5, q), *shapes)
        low = self.low + ops.sqrt(ops.where(at_zero, q, 1.0))
        high = self.high - ops.sqrt(ops.where(at_one, 1.0 - q, 1.0))
        return ops.where(at_zero, low, ops.where(at_one, high, inside))


@dataclasses.dataclass(frozen=True)
class Discrete:
    """A distribution of the whole numbers from ``low`` to ``high(*shapes)``, by its functions of the count and the parameters."""

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.ops.stats"

    name: str
    shapes: int
    log_mass: Callable[..., Any]
    mass: Callable[..., Any]
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

    def _is_one(self, count: Any, shapes: tuple[Any, ...]) -> Any:
        """Whether the count is one of the distribution's."""
        is_within = ops.logical_and(count >= self.low, count <= self.high(*shapes))
        return ops.logical_and(is_within, count == ops.floor(count))

    @_by_name
    def logpmf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """Logarithm of the probability of ``k``."""
        count, shapes = self._count(k, args, loc)
        is_one = self._is_one(count, shapes)
        return ops.where(is_one, self.log_mass(ops.where(is_one, count, float(self.low)), *shapes), -math.inf)

    @_by_name
    def pmf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """The probability of ``k``, with derivatives at the edges of the parameters' domains too."""
        count, shapes = self._count(k, args, loc)
        is_one = self._is_one(count, shapes)
        return ops.where(is_one, self.mass(ops.where(is_one, count, float(self.low)), *shapes), 0.0)

    def _distribution(self, which: Callable[..., Any], ends: tuple[float, float], k: Any, args: Any, loc: Any) -> Array:
        count, shapes = self._count(k, args, loc)
        count, high = ops.floor(count), self.high(*shapes)
        inside = ops.logical_and(count >= self.low, count < high)
        value = which(ops.where(inside, count, float(self.low)), *shapes)
        return ops.where(inside, value, ops.where(count < self.low, ends[0], ends[1]))

    @_by_name
    def cdf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """The probability of at most ``k``."""
        return self._distribution(self.lower, (0.0, 1.0), k, args, loc)

    @_by_name
    def sf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """The probability of more than ``k``."""
        return self._distribution(self.upper, (1.0, 0.0), k, args, loc)

    @_by_name
    def logcdf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """Logarithm of `cdf`."""
        return ops.log(self._distribution(self.lower, (0.0, 1.0), k, args, loc))

    @_by_name
    def logsf(self, k: Any, *args: Any, loc: Any = 0) -> Array:
        """Logarithm of `sf`."""
        return ops.log(self._distribution(self.upper, (1.0, 0.0), k, args, loc))
