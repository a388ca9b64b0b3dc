"""Continuous and discrete distributions, defined by functions of the value and of the shape parameters.

These rules hold where a formula has no derivative. An edge of the support belongs to it, and derivatives there are the
limits from inside, which may be infinite. Beyond the support, and at infinity, functions are constant. If a parameter
is not positive or not finite, or a probability is not between 0 and 1, results are NaN, as SciPy's, and so are
derivatives. A row with parameters that may be negative states the valid ones.
"""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import array_of, holds_variable, is_array, without_variables
from oxigrad.xp._scipy import guarded
from oxigrad.xp._scipy.guarded import log_of

LOG_2_PI = math.log(2.0 * math.pi)
# Of the logarithm of a density: below, the density is zero, and so are all its derivatives.
_LEAST = -1e3


def _if(valid: Array, value: Array, factor: float = 1.0) -> Array:
    """``factor * value``, and NaN if it is not valid: a product, as the derivative of a constant would be zero."""
    bare = plain(value)
    return ops.multiply(value, ops.where(valid, ops.full_like(bare, factor) if is_array(bare) else factor, math.nan))


def _positive(parameter: Array) -> Array:
    bare = plain(parameter)
    return _if(ops.logical_and(bare > 0.0, bare < math.inf), parameter)


def _probability(q: Array) -> Array:
    return _if(ops.logical_not(ops.logical_or(q < 0.0, q > 1.0)), q)


def _standardized(x: Array, loc: Array, scale: Array) -> Array:
    # By functions: arrays of some libraries have operators that refuse a variable on their right.
    return ops.divide(ops.subtract(x, loc), scale)


# A place of a distribution: a number, or a function of the shape parameters.
Edge = float | Callable[..., Any]


def at(edge: Edge, shapes: tuple[Array, ...]) -> Array:
    """The place for these shape parameters."""
    return edge(*map(plain, shapes)) if callable(edge) else edge


def _by_place_or_name(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method of a distribution to take shape parameters, `loc` and `scale` by position or by name."""
    first, _, *further = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def called(self: Any, *args: Any, **named: Any) -> Array:
        shapes = self.shapes.split()
        arguments = _named(f"{self.name}.{method.__name__}", [first, *shapes, *further], len(shapes) + 1, args, named)
        arguments = dict(zip(arguments, of_array_likes(*arguments.values()), strict=True))
        arguments[first] = guarded.array_beside(*arguments.values())
        return method(self, *(arguments.pop(name) for name in (first, *shapes)), **arguments)

    return called


def of_array_likes(*arguments: Any) -> list[Any]:
    """The arguments, with lists and tuples converted to arrays."""
    return [array_of(each, arguments) if isinstance(each, (list, tuple)) else each for each in arguments]


def _named(name: str, names: list[str], required: int, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name. Raises `TypeError` for a duplicate, unknown or missing argument."""
    expected = f"expected {', '.join(names)}"
    if len(args) > len(names):
        raise TypeError(f"{name}: found {len(args)} arguments, {expected}")
    arguments = dict(zip(names, args, strict=False))
    for key in named:
        if key in arguments:
            raise TypeError(f"{name}: {key} is found twice")
        if key not in names:
            raise TypeError(f"{name}: {key} is unknown: {expected}")
    arguments |= named
    if missing := [key for key in names[:required] if key not in arguments]:
        raise TypeError(f"{name}: {', '.join(missing)} is missing: {expected}")
    return arguments


class FrozenDistribution:
    """A distribution with the values of its parameters: its methods take the first argument alone.

    ``distribution`` is the distribution, and ``parameters`` the values by name.
    """

    def __init__(self, distribution: "Distribution", parameters: dict[str, Any]) -> None:
        self.distribution = distribution
        self.parameters = parameters

    def __repr__(self) -> str:
        return f"{self.distribution}({', '.join(f'{name}={value}' for name, value in self.parameters.items())})"

    def __dir__(self) -> list[str]:
        names = dir(self.distribution)
        return [*super().__dir__(), *(name for name in names if inspect.ismethod(getattr(self.distribution, name)))]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            method = None if name.startswith("_") else getattr(vars(self).get("distribution"), name, None)
            if not inspect.ismethod(method):
                raise AttributeError(
                    f"a frozen distribution of xp.stats has no attribute {name!r}", name=name, obj=self
                )
            return functools.partial(method, **self.parameters)

    else:

        def __getattr__(self, name: str) -> Callable[[Any], Any]: ...


class Distribution:
    """Base class of distributions: errors for names that they lack, such as ``rvs``."""

    name: str

    def __repr__(self) -> str:
        return f"xp.stats.{self.name}"

    def _parameter_names(self) -> tuple[list[str], int]:
        """The names of the parameters, and how many of them have no default."""
        raise NotImplementedError

    def __call__(self, *args: Any, **named: Any) -> FrozenDistribution:
        """The distribution with these parameters, as SciPy's frozen distributions.

        Parameters are taken by position or by name, in the order of the methods. The parameters may be variables.
        Raises `TypeError` for a duplicate, unknown or missing parameter.
        """
        return FrozenDistribution(self, _named(self.name, *self._parameter_names(), args, named))

    if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error

        def __getattr__(self, name: str) -> Any:
            hint = "" if name.startswith("_") else f": scipy.stats.{self.name} has further functions of numbers"
            raise AttributeError(f"xp.stats.{self.name} has no attribute {name!r}{hint}", name=name, obj=self)


@dataclasses.dataclass(frozen=True, repr=False)
class Continuous(Distribution):
    """A continuous distribution, defined by functions of the standardized ``z`` and of the shape parameters.

    The functions are called inside of the support, whose edges are ``low`` and ``high``, and are smooth at ``inner``.
    These three are numbers, or functions of the shape parameters. ``density`` is defined if the density, but not its
    logarithm, is differentiable at a lower edge of zero. For numbers above one it may be the exponential of the
    logarithm. ``is_valid`` is the mask of valid shape parameters; by default, all must be positive.
    """

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.xp.stats"

    name: str
    shapes: str
    log_density: Function
    lower: Function
    upper: Function
    log_lower: Function | None = None
    log_upper: Function | None = None
    quantile: Function | None = None
    density: Function | None = None
    low: Edge = -math.inf
    high: Edge = math.inf
    inner: Edge = 0.0
    # Whether the functions are constant at the lower edge, as when all derivatives tend to zero; and at the upper edge.
    is_open: bool = False
    is_open_above: bool = False
    # The inverse of ``upper``; by default the quantile of ``1 - q``, if that is accurate.
    upper_quantile: Function | None = None
    is_valid: Function | None = None

    def __reduce__(self) -> str:
        return self.name

    def _parameter_names(self) -> tuple[list[str], int]:
        shapes = self.shapes.split()
        return [*shapes, "loc", "scale"], len(shapes)

    def _checked(self, shapes: tuple[Array, ...], scale: Array) -> tuple[tuple[Any, ...], Any]:
        """The shape parameters, with invalid ones replaced by NaN, and the scale: NaN where one of them is invalid.

        With it, values beyond the support are NaN too.
        """
        if self.is_valid is None:
            shapes = tuple(map(_positive, shapes))
        else:
            valid = self.is_valid(*map(plain, shapes))
            shapes = tuple(_if(valid, guarded.array_beside(shape, *shapes)) for shape in shapes)
        is_right = plain(scale) > 0.0
        for bare in map(plain, shapes):
            is_right = ops.logical_and(is_right, bare == bare)
        return shapes, _if(is_right, guarded.array_beside(scale, *shapes) if shapes else scale)

    def _values(
        self, x: Array, shapes: tuple[Array, ...], loc: Array, scale: Array, f: Function, ends: tuple[float, float]
    ) -> tuple[Array, Array]:
        """``f`` of the standardized ``x`` inside of the support, and constants on both sides; and the scale."""
        shapes, scale = self._checked(shapes, scale)
        z = _standardized(x, loc, scale)
        low, high, inner = (at(edge, shapes) for edge in (self.low, self.high, self.inner))
        below = z <= low if self.is_open else ops.logical_or(z < low, z == -math.inf)
        above = z >= high if self.is_open_above else ops.logical_or(z > high, z == math.inf)
        inner = plain(loc) + plain(scale) * inner
        x = ops.where(ops.logical_or(below, above), inner, x)
        if holds_variable(scale) and 0.0 in (self.low, self.high):
            # At an edge of zero, where the derivative by z may be infinite, the derivative of z by the scale is zero.
            at_edge = lambda x: f(_standardized(x, loc, without_variables(scale)), *shapes)  # noqa: E731
            value = guarded.branch(
                x == loc, at_edge, lambda x: f(_standardized(x, loc, scale), *shapes), (x, inner, inner)
            )
        else:
            value = f(_standardized(x, loc, scale), *shapes)
        return ops.where(below, ends[0], ops.where(above, ends[1], value)), scale

    def _density(self, z: Array, *shapes: Array) -> Array:
        """The density, which is zero with all its derivatives where its logarithm is below `_LEAST`."""
        is_zero = self.log_density(z, *shapes) < _LEAST
        density = self.density or (lambda z, *shapes: ops.exp(self.log_density(z, *shapes)))
        if self.density:  # which is smooth near the edge, however small the density
            is_zero = ops.logical_and(is_zero, ops.abs(z) > 1.0)
        return guarded.unless(is_zero, 0.0, lambda z: density(z, *shapes), z, at(self.inner, shapes))

    @_by_place_or_name
    def logpdf(self, x: Array, *shapes: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of the density."""
        value, scale = self._values(x, shapes, loc, scale, self.log_density, (-math.inf, -math.inf))
        return value - ops.log(scale)

    @_by_place_or_name
    def pdf(self, x: Array, *shapes: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The density."""
        value, scale = self._values(x, shapes, loc, scale, self._density, (0.0, 0.0))
        return value / scale

    @_by_place_or_name
    def cdf(self, x: Array, *shapes: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The cumulative distribution function: the probability of at most ``x``."""
        return self._values(x, shapes, loc, scale, self.lower, (0.0, 1.0))[0]

    @_by_place_or_name
    def logcdf(self, x: Array, *shapes: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `cdf`."""
        lower = self.log_lower or (lambda z, *shapes: log_of(self.lower(z, *shapes), self.upper(z, *shapes)))
        return self._values(x, shapes, loc, scale, lower, (-math.inf, 0.0))[0]

    @_by_place_or_name
    def sf(self, x: Array, *shapes: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The survival function: the probability of values above ``x``, accurate for small probabilities."""
        return self._values(x, shapes, loc, scale, self.upper, (1.0, 0.0))[0]

    @_by_place_or_name
    def logsf(self, x: Array, *shapes: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `sf`."""
        upper = self.log_upper or (lambda z, *shapes: log_of(self.upper(z, *shapes), self.lower(z, *shapes)))
        return self._values(x, shapes, loc, scale, upper, (0.0, -math.inf))[0]

    @_by_place_or_name
    def ppf(self, q: Array, *shapes: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The percent point function, the inverse of `cdf`, for ``q`` between 0 and 1."""
        return self._inverted("ppf", self.quantile, q, (q, 1.0 - q), shapes, loc, scale)

    @_by_place_or_name
    def isf(self, q: Array, *shapes: Array, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The inverse survival function, the inverse of `sf`, for ``q`` in [0, 1]; accurate for small ``q``."""
        by_complement = self.quantile and (lambda q, *shapes: cast(Any, self.quantile)(1.0 - q, *shapes))
        return self._inverted("isf", self.upper_quantile or by_complement, q, (1.0 - q, q), shapes, loc, scale)

    def _inverted(
        self,
        name: str,
        inverse: Function | None,
        q: Array,
        shares: tuple[Array, Array],
        shapes: tuple[Array, ...],
        loc: Array,
        scale: Array,
    ) -> Array:
        """The value with the ``shares`` of probability below and above, by the ``inverse`` of ``q``.

        If its derivative is infinite at an edge, it is plus or minus a root of zero, which has that derivative.
        """
        if inverse is None:
            raise NotImplementedError(
                f"{self.name}.{name} is not implemented: its inverse has no closed form: expected pdf, cdf, sf or "
                "their logarithms"
            )
        q = _probability(q)
        parameters, scale = self._checked(shapes, scale)
        low, high = (at(edge, parameters) for edge in (self.low, self.high))
        at_low = ops.logical_and(shares[0] == 0.0, ops.logical_or(self.is_open, low == -math.inf))
        is_flat = self.is_open_above and not callable(self.high)  # an inverse holds at an edge that moves
        at_high = ops.logical_and(shares[1] == 0.0, ops.logical_or(is_flat, high == math.inf))
        inside = inverse(ops.where(ops.logical_or(at_low, at_high), 0.5, q), *parameters)
        for edge, share in ((self.low, shares[0]), (self.high, shares[1])):
            if callable(edge):  # without the rounding of the inverse
                inside = inside + ops.where(share == 0.0, at(edge, parameters) - without_variables(inside), 0.0)
        low = low + ops.sqrt(ops.where(at_low, shares[0], 1.0))
        high = high - ops.sqrt(ops.where(at_high, shares[1], 1.0))
        return loc + scale * ops.where(at_low, low, ops.where(at_high, high, inside))


@dataclasses.dataclass(frozen=True, repr=False)
class Discrete(Distribution):
    """A distribution of the integers from ``low`` to ``high(*shapes)``, defined by functions of the count.

    The functions also take the shape parameters. ``low`` is a number, minus infinity, or a function of the parameters.
    ``is_valid`` is the mask of valid parameters.
    """

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.xp.stats"

    name: str
    shapes: str
    log_mass: Function
    mass: Function
    lower: Function
    upper: Function
    is_valid: Function
    log_lower: Function | None = None
    log_upper: Function | None = None
    low: Edge = 0
    high: Function = lambda *shapes: math.inf

    def __reduce__(self) -> str:
        return self.name

    def _parameter_names(self) -> tuple[list[str], int]:
        shapes = self.shapes.split()
        return [*shapes, "loc"], len(shapes)

    def _count(self, k: Array, shapes: tuple[Array, ...], loc: Array) -> Array:
        """The count, or NaN for invalid parameters."""
        return _if(self.is_valid(*map(plain, shapes)), k - loc * 1.0)

    def _checked(self, shapes: tuple[Array, ...]) -> tuple[Array, ...]:
        """The shape parameters; NaN for numbers that are invalid, by which Python's arithmetic might raise."""
        is_refused = self.is_valid(*map(plain, shapes)) is False
        return tuple(_if(False, shape) for shape in shapes) if is_refused else shapes

    def _of_one(self, f: Function, constant: float, k: Array, shapes: tuple[Array, ...], loc: Array) -> Array:
        """``f`` of a count that is one of the distribution's, and a constant of other numbers."""
        count, shapes = self._count(k, shapes, loc), self._checked(shapes)
        low, safe = self._lowest(shapes)
        is_one = ops.logical_and(count >= low, count <= self.high(*shapes))
        is_one = ops.logical_and(is_one, ops.logical_and(count == ops.floor(count), ops.abs(count) < math.inf))
        value = f(ops.where(is_one, count, safe), *shapes)
        return ops.where(is_one, value, self._constant(constant, count, shapes))

    def _constant(self, constant: float, count: Array, shapes: tuple[Array, ...]) -> Array:
        """A constant, and NaN for a count of NaN."""
        valid = plain(count) == plain(count)
        return ops.where(valid, constant, functools.reduce(ops.add, (_if(valid, shape, 0.0) for shape in shapes)))

    def _lowest(self, shapes: tuple[Array, ...]) -> tuple[Array, Array]:
        """The least count, and one that is finite."""
        low = at(self.low, shapes)
        return low, 0.0 if self.low == -math.inf else low * 1.0

    @_by_place_or_name
    def logpmf(self, k: Array, *shapes: Array, loc: Array = 0) -> Array:
        """Logarithm of the probability of ``k``."""
        return self._of_one(self.log_mass, -math.inf, k, shapes, loc)

    @_by_place_or_name
    def pmf(self, k: Array, *shapes: Array, loc: Array = 0) -> Array:
        """The probability of ``k``, with derivatives at the edges of the parameters' domains too."""
        return self._of_one(self.mass, 0.0, k, shapes, loc)

    def _up_to(self, f: Function, ends: tuple[float, float], k: Array, shapes: tuple[Array, ...], loc: Array) -> Array:
        """``f`` of the count rounded down, and constants below and above all counts."""
        count, shapes = self._count(k, shapes, loc), self._checked(shapes)
        low, safe = self._lowest(shapes)
        count, high = ops.floor(count), self.high(*shapes)
        below = ops.logical_or(count < low, count == -math.inf)
        inside = ops.logical_and(ops.logical_not(below), count < high)
        value = f(ops.where(inside, count, safe), *shapes)
        return ops.where(inside, value, ops.where(below, ends[0], self._constant(ends[1], count, shapes)))

    @_by_place_or_name
    def cdf(self, k: Array, *shapes: Array, loc: Array = 0) -> Array:
        """The probability of at most ``k``."""
        return self._up_to(self.lower, (0.0, 1.0), k, shapes, loc)

    @_by_place_or_name
    def sf(self, k: Array, *shapes: Array, loc: Array = 0) -> Array:
        """The probability of more than ``k``."""
        return self._up_to(self.upper, (1.0, 0.0), k, shapes, loc)

    @_by_place_or_name
    def logcdf(self, k: Array, *shapes: Array, loc: Array = 0) -> Array:
        """Logarithm of `cdf`."""
        lower = self.log_lower or (lambda k, *shapes: log_of(self.lower(k, *shapes), self.upper(k, *shapes)))
        return self._up_to(lower, (-math.inf, 0.0), k, shapes, loc)

    @_by_place_or_name
    def logsf(self, k: Array, *shapes: Array, loc: Array = 0) -> Array:
        """Logarithm of `sf`."""
        upper = self.log_upper or (lambda k, *shapes: log_of(self.upper(k, *shapes), self.lower(k, *shapes)))
        return self._up_to(upper, (0.0, -math.inf), k, shapes, loc)
