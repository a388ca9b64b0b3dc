"""Densities and distribution functions, named as in SciPy and composed of differentiable functions.

`scipy.stats` itself does not accept variables: call ``xp.stats.norm.logpdf(x)`` in place of ``scipy.stats.norm.logpdf(x)``.

Arguments are ``x``, an array or a number; then the shape parameters of the distribution; then ``loc`` and ``scale``. All are
broadcast. The derivatives are those of the functions: `xp.special.betainc` has none with respect to its first two arguments,
and raises `DerivativeError`.

>>> import oxigrad as ox
>>> round(ox.grad(norm.logpdf)(0.5), 6)
-0.5
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, cast

from oxigrad._core import DerivativeError
from oxigrad._typing import Array
from oxigrad.ops import linalg, special
from oxigrad.ops import primitives as ops
from oxigrad.ops.backends import is_array
from oxigrad.ops.primitives import sum

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "cauchy",
    "chi",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "fisk",
    "gamma",
    "geom",
    "gompertz",
    "gumbel_l",
    "gumbel_r",
    "halfcauchy",
    "halflogistic",
    "halfnorm",
    "invgamma",
    "laplace",
    "levy",
    "logistic",
    "lognorm",
    "lomax",
    "maxwell",
    "moyal",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "powerlaw",
    "rayleigh",
    "t",
    "uniform",
    "weibull_max",
    "weibull_min",
]


def __dir__() -> list[str]:
    return list(__all__)


_LOG_2_PI = math.log(2.0 * math.pi)


def _log(p: Array, rest: Any) -> Array:
    """``log(p)`` given ``p`` and ``rest = 1 - p``, accurate near 0 and 1."""
    high = p > 0.5
    return ops.where(high, ops.log1p(-ops.where(high, rest, 0.5)), ops.log(ops.where(high, 0.5, p)))


@dataclasses.dataclass(frozen=True)
class _Continuous:
    """A continuous distribution, defined by its functions of the standardized ``z`` and of the shape parameters."""

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
        return self.log_lower(z, *shapes) if self.log_lower else _log(self.lower(z, *shapes), self.upper(z, *shapes))

    def sf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The survival function: the probability of more than ``x``, accurate where it is small."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.upper(z, *shapes)

    def logsf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `sf`."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.log_upper(z, *shapes) if self.log_upper else _log(self.upper(z, *shapes), self.lower(z, *shapes))

    def ppf(self, q: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The percent point function, the inverse of `cdf`, for ``q`` between 0 and 1."""
        if self.quantile is None:
            raise DerivativeError(
                f"{self.name}.ppf has no derivative here: expected a distribution with a quantile function"
            )
        shapes, loc, scale = self._parameters(args, loc, scale)
        return loc + scale * self.quantile(q, *shapes)


# --- of numbers --------------------------------------------------------------------------------------------------------

# Below, the series is accurate in float64; above, `erfc` is in float32.
_FAR = -12.0


def _normal_density(z: Array) -> Array:
    return -0.5 * z * z - 0.5 * _LOG_2_PI


def _normal(z: Array) -> Array:
    return 0.5 * special.erfc(z * -math.sqrt(0.5))


def _log_normal(z: Array) -> Array:
    near, far = ops.where(z < _FAR, _FAR, z), ops.where(z < _FAR, z, _FAR)
    # Abramowitz and Stegun 26.2.12.
    down, series = -1.0 / (far * far), 1.0
    for odd in range(19, 0, -2):
        series = 1.0 + odd * down * series
    below = _normal_density(far) - ops.log(-far) + ops.log(series)
    return ops.where(z < _FAR, below, _log(_normal(near), _normal(-near)))


def _within(z: Array, high: float, f: Callable[[Any], Any]) -> Array:
    """The logarithm of a density that is zero below zero and above ``high``."""
    inside = ops.logical_and(z >= 0.0, z <= high)
    return ops.where(inside, f(ops.where(inside, z, 0.5)), -math.inf)


def _beta_density(z: Array, a: Array, b: Array) -> Array:
    constant = special.betaln(a, b)
    return _within(z, 1.0, lambda z: special.xlogy(a - 1.0, z) + special.xlog1py(b - 1.0, -z) - constant)


def _beta(z: Array, a: Array, b: Array) -> Array:
    return special.betainc(a, b, ops.minimum(ops.maximum(z, 0.0), 1.0))


def _gamma_density(z: Array, a: Array) -> Array:
    return _within(z, math.inf, lambda z: special.xlogy(a - 1.0, z) - z - special.gammaln(a))


def _gamma(z: Array, a: Array) -> Array:
    return special.gammainc(a, ops.maximum(z, 0.0))


def _beta_quantile(q: Array, a: Array, b: Array) -> Array:
    return special.betaincinv(a, b, q)


def _gamma_quantile(q: Array, a: Array) -> Array:
    return special.gammaincinv(a, q)


def _gamma_above(z: Array, a: Array) -> Array:
    return special.gammaincc(a, ops.maximum(z, 0.0))


def _t_density(z: Array, df: Array) -> Array:
    half = 0.5 * (df + 1.0)
    constant = special.gammaln(half) - special.gammaln(0.5 * df) - 0.5 * ops.log(math.pi * df)
    return constant - half * ops.log1p(z * z / df)


def _t(z: Array, df: Array) -> Array:
    # By the beta function of equal arguments, which is smooth at zero; the formula DLMF 26.5.27 is not.
    root = ops.sqrt(z * z + df)
    share = ops.where(z < 0.0, df / (root - z), root + z) / (2.0 * root)
    return special.betainc(0.5 * df, 0.5 * df, share)


norm = _Continuous(
    "norm", 0, _normal_density, _normal, lambda z: _normal(-z), _log_normal, lambda z: _log_normal(-z), special.ndtri
)
beta = _Continuous("beta", 2, _beta_density, _beta, lambda z, a, b: _beta(1.0 - z, b, a), quantile=_beta_quantile)
gamma = _Continuous("gamma", 1, _gamma_density, _gamma, _gamma_above, quantile=_gamma_quantile)
t = _Continuous("t", 1, _t_density, _t, lambda z, df: _t(-z, df), quantile=lambda q, df: special.stdtrit(df, q))
chi2 = _Continuous(
    "chi2",
    1,
    lambda z, df: gamma.logpdf(z, 0.5 * df, scale=2.0),
    lambda z, df: gamma.cdf(z, 0.5 * df, scale=2.0),
    lambda z, df: gamma.sf(z, 0.5 * df, scale=2.0),
    quantile=lambda q, df: 2.0 * special.gammaincinv(0.5 * df, q),
)


# --- by their hazard ---------------------------------------------------------------------------------------------------


def _log1mexp(h: Array) -> Array:
    """``log(1 - exp(-h))`` for positive ``h``."""
    small = h < 0.7
    return ops.where(
        small, ops.log(-ops.expm1(-ops.where(small, h, 0.5))), ops.log1p(-ops.exp(-ops.where(small, 1.0, h)))
    )


def _hazard(
    name: str,
    shapes: int,
    low: float,
    hazard: Callable[..., Any],
    log_rate: Callable[..., Any],
    inverse: Callable[..., Any],
) -> _Continuous:
    """A distribution on the numbers above ``low``, by its cumulative hazard ``-log(sf)``, the logarithm of its derivative, and its inverse."""

    def inside(z: Array, outside: float, f: Callable[[Any], Any]) -> Array:
        above = z >= low
        return ops.where(above, f(ops.where(above, z, max(low, 0.0) + 1.0)), outside)

    def log_lower(z: Array, *shape: Any) -> Array:
        above = z > low
        safe = ops.where(above, z, max(low, 0.0) + 1.0)
        return ops.where(above, _log1mexp(hazard(safe, *shape)), -math.inf)

    return _Continuous(
        name,
        shapes,
        lambda z, *shape: inside(z, -math.inf, lambda z: log_rate(z, *shape) - hazard(z, *shape)),
        lambda z, *shape: inside(z, 0.0, lambda z: -ops.expm1(-hazard(z, *shape))),
        lambda z, *shape: inside(z, 1.0, lambda z: ops.exp(-hazard(z, *shape))),
        log_lower,
        lambda z, *shape: inside(z, 0.0, lambda z: -hazard(z, *shape)),
        lambda q, *shape: inverse(-ops.log1p(-q), *shape),
    )


expon = _hazard("expon", 0, 0.0, lambda z: z, lambda z: 0.0 * z, lambda h: h)
rayleigh = _hazard("rayleigh", 0, 0.0, lambda z: 0.5 * z * z, lambda z: ops.log(z), lambda h: ops.sqrt(2.0 * h))
weibull_min = _hazard(
    "weibull_min",
    1,
    0.0,
    lambda z, c: ops.pow(z, c),
    lambda z, c: ops.log(c * 1.0) + special.xlogy(c - 1.0, z),
    lambda h, c: ops.pow(h, 1.0 / c),
)
pareto = _hazard(
    "pareto", 1, 1.0, lambda z, b: b * ops.log(z), lambda z, b: ops.log(b / z), lambda h, b: ops.exp(h / b)
)
lomax = _hazard(
    "lomax",
    1,
    0.0,
    lambda z, c: c * ops.log1p(z),
    lambda z, c: ops.log(c * 1.0) - ops.log1p(z),
    lambda h, c: ops.expm1(h / c),
)
gompertz = _hazard(
    "gompertz",
    1,
    0.0,
    lambda z, c: c * ops.expm1(z),
    lambda z, c: ops.log(c * 1.0) + z,
    lambda h, c: ops.log1p(h / c),
)
gumbel_l = _hazard("gumbel_l", 0, -math.inf, lambda z: ops.exp(z), lambda z: z, lambda h: ops.log(h))
fisk = _hazard(
    "fisk",
    1,
    0.0,
    lambda z, c: ops.log1p(ops.pow(z, c)),
    lambda z, c: ops.log(c * 1.0) + special.xlogy(c - 1.0, z) - ops.log1p(ops.pow(z, c)),
    lambda h, c: ops.pow(ops.expm1(h), 1.0 / c),
)
halflogistic = _hazard(
    "halflogistic",
    0,
    0.0,
    lambda z: ops.logaddexp(z, 0.0) - math.log(2.0),
    lambda z: -ops.logaddexp(0.0, -z),
    lambda h: ops.log(2.0 * ops.expm1(h) + 1.0),
)


# --- of other shapes ---------------------------------------------------------------------------------------------------


def _above(f: Callable[..., Any], outside: float) -> Callable[..., Any]:
    """A function of positive numbers, and a constant below."""

    def of(z: Array, *shape: Any) -> Array:
        is_in = z > 0.0
        return ops.where(is_in, f(ops.where(is_in, z, 1.0), *shape), outside)

    return of


def _mirrored(name: str, base: _Continuous) -> _Continuous:
    """The distribution of the negative of a number."""
    lower, upper, quantile = map(cast, (Any, Any, Any), (base.log_lower, base.log_upper, base.quantile))
    return _Continuous(
        name,
        base.shapes,
        lambda z, *s: base.log_density(-z, *s),
        lambda z, *s: base.upper(-z, *s),
        lambda z, *s: base.lower(-z, *s),
        lambda z, *s: upper(-z, *s),
        lambda z, *s: lower(-z, *s),
        lambda q, *s: -quantile(1.0 - q, *s),
    )


def _symmetric(name: str, log_density: Any, lower: Any, log_lower: Any, quantile: Any) -> _Continuous:
    return _Continuous(name, 0, log_density, lower, lambda z: lower(-z), log_lower, lambda z: log_lower(-z), quantile)


def _laplace(z: Array) -> Array:
    tail = 0.5 * ops.exp(-ops.abs(z))
    return ops.where(z < 0.0, tail, 1.0 - tail)


def _cauchy(z: Array) -> Array:
    return ops.atan2(1.0 + 0.0 * z, -z) / math.pi


def _log_laplace(z: Array) -> Array:
    low = z < 0.0
    return ops.where(low, z - math.log(2.0), ops.log1p(-0.5 * ops.exp(-ops.where(low, 0.0, z))))


gumbel_r = _mirrored("gumbel_r", gumbel_l)
weibull_max = _mirrored("weibull_max", weibull_min)
laplace = _symmetric(
    "laplace",
    lambda z: -ops.abs(z) - math.log(2.0),
    _laplace,
    _log_laplace,
    lambda q: ops.where(q < 0.5, ops.log(2.0 * q), -ops.log(2.0 - 2.0 * q)),
)
logistic = _symmetric(
    "logistic",
    lambda z: -z - 2.0 * ops.logaddexp(0.0, -z),
    special.expit,
    special.log_expit,
    special.logit,
)
cauchy = _symmetric(
    "cauchy",
    lambda z: -ops.log1p(z * z) - math.log(math.pi),
    _cauchy,
    lambda z: ops.log(_cauchy(z)),
    lambda q: ops.tan(math.pi * (q - 0.5)),
)
uniform = _Continuous(
    "uniform",
    0,
    lambda z: _within(z, 1.0, lambda z: 0.0 * z),
    lambda z: ops.minimum(ops.maximum(z, 0.0), 1.0),
    lambda z: ops.minimum(ops.maximum(1.0 - z, 0.0), 1.0),
    quantile=lambda q: q,
)
powerlaw = _Continuous(
    "powerlaw",
    1,
    lambda z, a: _within(z, 1.0, lambda z: ops.log(a * 1.0) + special.xlogy(a - 1.0, z)),
    lambda z, a: ops.pow(ops.minimum(ops.maximum(z, 0.0), 1.0), a),
    lambda z, a: 1.0 - ops.pow(ops.minimum(ops.maximum(z, 0.0), 1.0), a),
    quantile=lambda q, a: ops.pow(q, 1.0 / a),
)
lognorm = _Continuous(
    "lognorm",
    1,
    _above(lambda z, s: norm.logpdf(ops.log(z) / s) - ops.log(s * z), -math.inf),
    _above(lambda z, s: _normal(ops.log(z) / s), 0.0),
    _above(lambda z, s: _normal(-ops.log(z) / s), 1.0),
    _above(lambda z, s: _log_normal(ops.log(z) / s), -math.inf),
    _above(lambda z, s: _log_normal(-ops.log(z) / s), 0.0),
    lambda q, s: ops.exp(s * special.ndtri(q)),
)
halfnorm = _Continuous(
    "halfnorm",
    0,
    lambda z: _within(z, math.inf, lambda z: _normal_density(z) + math.log(2.0)),
    _above(lambda z: special.erf(z * math.sqrt(0.5)), 0.0),
    _above(lambda z: special.erfc(z * math.sqrt(0.5)), 1.0),
    quantile=lambda q: special.ndtri(0.5 * (1.0 + q)),
)
halfcauchy = _Continuous(
    "halfcauchy",
    0,
    lambda z: _within(z, math.inf, lambda z: math.log(2.0 / math.pi) - ops.log1p(z * z)),
    _above(lambda z: 2.0 / math.pi * ops.atan(z), 0.0),
    _above(lambda z: 2.0 / math.pi * ops.atan(1.0 / z), 1.0),
    quantile=lambda q: ops.tan(0.5 * math.pi * q),
)
maxwell = _Continuous(
    "maxwell",
    0,
    _above(lambda z: 2.0 * ops.log(z) - 0.5 * z * z + 0.5 * math.log(2.0 / math.pi), -math.inf),
    _above(lambda z: special.gammainc(1.5, 0.5 * z * z), 0.0),
    _above(lambda z: special.gammaincc(1.5, 0.5 * z * z), 1.0),
    quantile=lambda q: ops.sqrt(2.0 * special.gammaincinv(1.5, q)),
)
chi = _Continuous(
    "chi",
    1,
    _above(
        lambda z, df: (
            special.xlogy(df - 1.0, z) - 0.5 * z * z - (0.5 * df - 1.0) * math.log(2.0) - special.gammaln(0.5 * df)
        ),
        -math.inf,
    ),
    _above(lambda z, df: special.gammainc(0.5 * df, 0.5 * z * z), 0.0),
    _above(lambda z, df: special.gammaincc(0.5 * df, 0.5 * z * z), 1.0),
    quantile=lambda q, df: ops.sqrt(2.0 * special.gammaincinv(0.5 * df, q)),
)
invgamma = _Continuous(
    "invgamma",
    1,
    _above(lambda z, a: -(a + 1.0) * ops.log(z) - special.gammaln(a) - 1.0 / z, -math.inf),
    _above(lambda z, a: special.gammaincc(a, 1.0 / z), 0.0),
    _above(lambda z, a: special.gammainc(a, 1.0 / z), 1.0),
    quantile=lambda q, a: 1.0 / special.gammainccinv(a, q),
)
levy = _Continuous(
    "levy",
    0,
    _above(lambda z: -0.5 * _LOG_2_PI - 1.5 * ops.log(z) - 0.5 / z, -math.inf),
    _above(lambda z: special.erfc(ops.sqrt(0.5 / z)), 0.0),
    _above(lambda z: special.erf(ops.sqrt(0.5 / z)), 1.0),
    quantile=lambda q: 1.0 / ops.square(special.ndtri(0.5 * q)),
)
moyal = _Continuous(
    "moyal",
    0,
    lambda z: -0.5 * (z + ops.exp(-z) + _LOG_2_PI),
    lambda z: special.erfc(ops.exp(-0.5 * z) * math.sqrt(0.5)),
    lambda z: special.erf(ops.exp(-0.5 * z) * math.sqrt(0.5)),
    quantile=lambda q: -ops.log(2.0 * ops.square(special.erfcinv(q))),
)


def _f_density(z: Array, dfn: Array, dfd: Array) -> Array:
    ratio = dfn * z / dfd
    half = 0.5 * (dfn + dfd)
    return special.xlogy(0.5 * dfn, ratio) - ops.log(z) - half * ops.log1p(ratio) - special.betaln(0.5 * dfn, 0.5 * dfd)


f = _Continuous(
    "f",
    2,
    _above(_f_density, -math.inf),
    _above(lambda z, n, d: special.betainc(0.5 * n, 0.5 * d, n * z / (n * z + d)), 0.0),
    _above(lambda z, n, d: special.betainc(0.5 * d, 0.5 * n, d / (n * z + d)), 1.0),
    quantile=lambda q, n, d: special.fdtri(n, d, q),
)


# --- of counts ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Discrete:
    """A distribution of the whole numbers from ``low`` to ``high(*shapes)``, by its functions of the count and the parameters."""

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


def _log_choose(n: Any, k: Any) -> Any:
    return special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)


binom = _Discrete(
    "binom",
    2,
    lambda k, n, p: _log_choose(n, k) + special.xlogy(k, p) + special.xlog1py(n - k, -p),
    lambda k, n, p: special.betainc(n - k, k + 1.0, 1.0 - p),
    lambda k, n, p: special.betainc(k + 1.0, n - k, p),
    high=lambda n, p: n,
)
bernoulli = _Discrete(
    "bernoulli",
    1,
    lambda k, p: special.xlogy(k, p) + special.xlog1py(1.0 - k, -p),
    lambda k, p: 1.0 - p + 0.0 * k,
    lambda k, p: p + 0.0 * k,
    high=lambda p: 1.0,
)
geom = _Discrete(
    "geom",
    1,
    lambda k, p: special.xlog1py(k - 1.0, -p) + ops.log(p),
    lambda k, p: -ops.expm1(k * ops.log1p(-p)),
    lambda k, p: ops.exp(k * ops.log1p(-p)),
    low=1,
)
nbinom = _Discrete(
    "nbinom",
    2,
    lambda k, n, p: (
        special.gammaln(n + k)
        - special.gammaln(k + 1.0)
        - special.gammaln(n * 1.0)
        + n * ops.log(p)
        + special.xlog1py(k, -p)
    ),
    lambda k, n, p: special.betainc(n * 1.0, k + 1.0, p),
    lambda k, n, p: special.betainc(k + 1.0, n * 1.0, 1.0 - p),
)


class _Poisson:
    """The Poisson distribution of counts ``k``, with mean ``mu``."""

    def __reduce__(self) -> str:
        return "poisson"

    def logpmf(self, k: Any, mu: Array, loc: Array = 0.0) -> Array:
        """Logarithm of the probability of ``k``."""
        count = k - loc * 1.0
        is_one = ops.logical_and(count >= 0.0, count == ops.floor(count))
        safe = ops.where(is_one, count, 1.0)
        return ops.where(is_one, special.xlogy(safe, mu) - special.gammaln(safe + 1.0) - mu, -math.inf)

    def pmf(self, k: Any, mu: Array, loc: Array = 0.0) -> Array:
        """The probability of ``k``."""
        return ops.exp(self.logpmf(k, mu, loc))

    def cdf(self, k: Any, mu: Array, loc: Array = 0.0) -> Array:
        """The probability of at most ``k``."""
        count = ops.floor(k - loc * 1.0)
        safe = ops.maximum(count, 0.0)
        return ops.where(count < 0.0, 0.0, special.gammaincc(safe + 1.0, mu))


class _Dirichlet:
    """The Dirichlet distribution, of proportions that sum to one."""

    def __reduce__(self) -> str:
        return "dirichlet"

    def logpdf(self, x: Array, alpha: Array) -> Array:
        """Logarithm of the density of proportions ``x`` of shape (n, ...), with ``alpha`` of shape (n,)."""
        constant = sum(special.gammaln(alpha)) - special.gammaln(sum(alpha))
        alpha = ops.reshape(alpha, (*alpha.shape, *(1,) * (len(x.shape) - 1)))
        return sum(special.xlogy(alpha - 1.0, x), axis=0) - constant

    def pdf(self, x: Array, alpha: Array) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, alpha))


class _MultivariateNormal:
    """The normal distribution of vectors of ``d`` numbers; ``cov`` (d, d) is positive definite."""

    def __reduce__(self) -> str:
        return "multivariate_normal"

    def logpdf(self, x: Array, mean: Array, cov: Array) -> Array:
        """Logarithm of the density of vectors ``x`` of shape (..., d)."""
        apart = ops.expand_dims(x - mean, axis=-1)
        factor = linalg.cholesky(cov)
        white = linalg.solve_triangular(ops.broadcast_to(factor, (*apart.shape[:-2], *cov.shape)), apart, lower=True)
        return -0.5 * sum(white * white, axis=(-2, -1)) - self._half_logdet(factor) - 0.5 * cov.shape[-1] * _LOG_2_PI

    def pdf(self, x: Array, mean: Array, cov: Array) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, mean, cov))

    def entropy(self, mean: Array = None, cov: Array = 1.0) -> Array:
        """The differential entropy, in nats."""
        if not is_array(cov):
            return 0.5 * (1.0 + _LOG_2_PI) + 0.5 * ops.log(cov)
        return self._half_logdet(linalg.cholesky(cov)) + 0.5 * cov.shape[-1] * (1.0 + _LOG_2_PI)

    def _half_logdet(self, factor: Any) -> Any:
        return sum(ops.log(linalg.diagonal(factor)), axis=-1)


poisson, dirichlet, multivariate_normal = _Poisson(), _Dirichlet(), _MultivariateNormal()
