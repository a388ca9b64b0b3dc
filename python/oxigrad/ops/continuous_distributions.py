"""The continuous distributions of numbers, named as in SciPy."""

import math
from collections.abc import Callable
from typing import Any, cast

from oxigrad._typing import Array
from oxigrad.ops import primitives as ops
from oxigrad.ops import special
from oxigrad.ops.distributions import LOG_2_PI, Continuous, log_of

# --- of numbers --------------------------------------------------------------------------------------------------------

# Below, the series is accurate in float64; above, `erfc` is in float32.
_FAR = -12.0


def _normal_density(z: Array) -> Array:
    return -0.5 * z * z - 0.5 * LOG_2_PI


def _normal(z: Array) -> Array:
    return 0.5 * special.erfc(z * -math.sqrt(0.5))


def _log_normal(z: Array) -> Array:
    near, far = ops.where(z < _FAR, _FAR, z), ops.where(z < _FAR, z, _FAR)
    # Abramowitz and Stegun 26.2.12.
    down, series = -1.0 / (far * far), 1.0
    for odd in range(19, 0, -2):
        series = 1.0 + odd * down * series
    below = _normal_density(far) - ops.log(-far) + ops.log(series)
    return ops.where(z < _FAR, below, log_of(_normal(near), _normal(-near)))


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


norm = Continuous(
    "norm", 0, _normal_density, _normal, lambda z: _normal(-z), _log_normal, lambda z: _log_normal(-z), special.ndtri
)
beta = Continuous("beta", 2, _beta_density, _beta, lambda z, a, b: _beta(1.0 - z, b, a), quantile=_beta_quantile)
gamma = Continuous("gamma", 1, _gamma_density, _gamma, _gamma_above, quantile=_gamma_quantile)
t = Continuous("t", 1, _t_density, _t, lambda z, df: _t(-z, df), quantile=lambda q, df: special.stdtrit(df, q))
chi2 = Continuous(
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
) -> Continuous:
    """A distribution on the numbers above ``low``, by its cumulative hazard ``-log(sf)``, the logarithm of its derivative, and its inverse."""

    def inside(z: Array, outside: float, f: Callable[[Any], Any]) -> Array:
        above = z >= low
        return ops.where(above, f(ops.where(above, z, max(low, 0.0) + 1.0)), outside)

    def log_lower(z: Array, *shape: Any) -> Array:
        above = z > low
        safe = ops.where(above, z, max(low, 0.0) + 1.0)
        return ops.where(above, _log1mexp(hazard(safe, *shape)), -math.inf)

    return Continuous(
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


def _mirrored(name: str, base: Continuous) -> Continuous:
    """The distribution of the negative of a number."""
    lower, upper, quantile = map(cast, (Any, Any, Any), (base.log_lower, base.log_upper, base.quantile))
    return Continuous(
        name,
        base.shapes,
        lambda z, *s: base.log_density(-z, *s),
        lambda z, *s: base.upper(-z, *s),
        lambda z, *s: base.lower(-z, *s),
        lambda z, *s: upper(-z, *s),
        lambda z, *s: lower(-z, *s),
        lambda q, *s: -quantile(1.0 - q, *s),
    )


def _symmetric(name: str, log_density: Any, lower: Any, log_lower: Any, quantile: Any) -> Continuous:
    return Continuous(name, 0, log_density, lower, lambda z: lower(-z), log_lower, lambda z: log_lower(-z), quantile)


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
uniform = Continuous(
    "uniform",
    0,
    lambda z: _within(z, 1.0, lambda z: 0.0 * z),
    lambda z: ops.minimum(ops.maximum(z, 0.0), 1.0),
    lambda z: ops.minimum(ops.maximum(1.0 - z, 0.0), 1.0),
    quantile=lambda q: q,
)
powerlaw = Continuous(
    "powerlaw",
    1,
    lambda z, a: _within(z, 1.0, lambda z: ops.log(a * 1.0) + special.xlogy(a - 1.0, z)),
    lambda z, a: ops.pow(ops.minimum(ops.maximum(z, 0.0), 1.0), a),
    lambda z, a: 1.0 - ops.pow(ops.minimum(ops.maximum(z, 0.0), 1.0), a),
    quantile=lambda q, a: ops.pow(q, 1.0 / a),
)
lognorm = Continuous(
    "lognorm",
    1,
    _above(lambda z, s: norm.logpdf(ops.log(z) / s) - ops.log(s * z), -math.inf),
    _above(lambda z, s: _normal(ops.log(z) / s), 0.0),
    _above(lambda z, s: _normal(-ops.log(z) / s), 1.0),
    _above(lambda z, s: _log_normal(ops.log(z) / s), -math.inf),
    _above(lambda z, s: _log_normal(-ops.log(z) / s), 0.0),
    lambda q, s: ops.exp(s * special.ndtri(q)),
)
halfnorm = Continuous(
    "halfnorm",
    0,
    lambda z: _within(z, math.inf, lambda z: _normal_density(z) + math.log(2.0)),
    _above(lambda z: special.erf(z * math.sqrt(0.5)), 0.0),
    _above(lambda z: special.erfc(z * math.sqrt(0.5)), 1.0),
    quantile=lambda q: special.ndtri(0.5 * (1.0 + q)),
)
halfcauchy = Continuous(
    "halfcauchy",
    0,
    lambda z: _within(z, math.inf, lambda z: math.log(2.0 / math.pi) - ops.log1p(z * z)),
    _above(lambda z: 2.0 / math.pi * ops.atan(z), 0.0),
    _above(lambda z: 2.0 / math.pi * ops.atan(1.0 / z), 1.0),
    quantile=lambda q: ops.tan(0.5 * math.pi * q),
)
maxwell = Continuous(
    "maxwell",
    0,
    _above(lambda z: 2.0 * ops.log(z) - 0.5 * z * z + 0.5 * math.log(2.0 / math.pi), -math.inf),
    _above(lambda z: special.gammainc(1.5, 0.5 * z * z), 0.0),
    _above(lambda z: special.gammaincc(1.5, 0.5 * z * z), 1.0),
    quantile=lambda q: ops.sqrt(2.0 * special.gammaincinv(1.5, q)),
)
chi = Continuous(
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
invgamma = Continuous(
    "invgamma",
    1,
    _above(lambda z, a: -(a + 1.0) * ops.log(z) - special.gammaln(a) - 1.0 / z, -math.inf),
    _above(lambda z, a: special.gammaincc(a, 1.0 / z), 0.0),
    _above(lambda z, a: special.gammainc(a, 1.0 / z), 1.0),
    quantile=lambda q, a: 1.0 / special.gammainccinv(a, q),
)
levy = Continuous(
    "levy",
    0,
    _above(lambda z: -0.5 * LOG_2_PI - 1.5 * ops.log(z) - 0.5 / z, -math.inf),
    _above(lambda z: special.erfc(ops.sqrt(0.5 / z)), 0.0),
    _above(lambda z: special.erf(ops.sqrt(0.5 / z)), 1.0),
    quantile=lambda q: 1.0 / ops.square(special.ndtri(0.5 * q)),
)
moyal = Continuous(
    "moyal",
    0,
    lambda z: -0.5 * (z + ops.exp(-z) + LOG_2_PI),
    lambda z: special.erfc(ops.exp(-0.5 * z) * math.sqrt(0.5)),
    lambda z: special.erf(ops.exp(-0.5 * z) * math.sqrt(0.5)),
    quantile=lambda q: -ops.log(2.0 * ops.square(special.erfcinv(q))),
)


def _f_density(z: Array, dfn: Array, dfd: Array) -> Array:
    ratio = dfn * z / dfd
    half = 0.5 * (dfn + dfd)
    return special.xlogy(0.5 * dfn, ratio) - ops.log(z) - half * ops.log1p(ratio) - special.betaln(0.5 * dfn, 0.5 * dfd)


f = Continuous(
    "f",
    2,
    _above(_f_density, -math.inf),
    _above(lambda z, n, d: special.betainc(0.5 * n, 0.5 * d, n * z / (n * z + d)), 0.0),
    _above(lambda z, n, d: special.betainc(0.5 * d, 0.5 * n, d / (n * z + d)), 1.0),
    quantile=lambda q, n, d: special.fdtri(n, d, q),
)
