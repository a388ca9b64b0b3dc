"""The distributions of counts, named as in SciPy.

Logarithms of probabilities of large counts are sums of logarithms of Poisson probabilities by their deviance.
"""

import math
from typing import Any

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.xp import special
from oxigrad.xp._scipy import guarded
from oxigrad.xp._scipy.guarded import branch, power_exp
from oxigrad.xp._scipy.stats.deviance import LARGE, is_deviant, log_poisson
from oxigrad.xp._scipy.stats.distribution import Discrete
from oxigrad.xp._scipy.stats.incomplete import beta, gamma

__all__ = ["bernoulli", "binom", "boltzmann", "dlaplace", "geom", "nbinom", "planck", "poisson", "randint"]


def _is_chance(p: Array) -> Array:
    return ops.logical_and(p >= 0.0, p <= 1.0)


def is_whole(x: Array) -> Array:
    """Whether a number is finite, and whole."""
    return ops.logical_and(x == ops.floor(x * 1.0), ops.abs(x) < math.inf)


def log_choose(n: Array, k: Array) -> Array:
    """The logarithm of a binomial coefficient."""
    return -special.betaln(k + 1.0, n - k + 1.0) - ops.log1p(n * 1.0)


def _powers(p: Array, k: Array, rest: Array, constant: Array) -> Array:
    """``p**k * (1 - p)**rest * exp(constant)``, by the power of the smaller one."""
    low = lambda p, k, rest: power_exp(p, k, rest * ops.log1p(-p) + constant)  # noqa: E731
    high = lambda p, k, rest: power_exp(1.0 - p, rest, k * ops.log(p) + constant)  # noqa: E731
    return branch(p < 0.5, low, high, (p, 0.25, 0.75), (k, 1.0, 1.0), (rest, 1.0, 1.0))


def log_binomial(k: Array, rest: Array, p: Array, constant: Array) -> Array:
    """The logarithm of a binomial probability for real ``k`` successes and ``rest`` failures.

    ``constant`` is the logarithm of the binomial coefficient.
    """

    def large(k: Array, rest: Array, p: Array, _: Any) -> Array:
        n = k + rest
        return log_poisson(k, n * p) + log_poisson(rest, n * (1.0 - p)) - log_poisson(n, n)

    few = lambda k, rest, p, constant: special.xlogy(k, p) + special.xlog1py(rest, -p) + constant  # noqa: E731
    return _by_size(large, few, k, rest, p, constant)


def _by_size(many: Function, few: Function, k: Array, rest: Array, p: Array, constant: Array) -> Array:
    args = (k, 20.0, 1.0), (rest, 20.0, 1.0), (p, 0.5, 0.5), (constant, 0.0, 0.0)
    return branch(_is_many(k, rest, p), many, few, *args)


def _is_many(k: Array, rest: Array, p: Array) -> Array:
    inside = ops.logical_and(p > 0.0, p < 1.0)
    return ops.logical_and(inside, ops.logical_and(k > LARGE, rest > LARGE))


def _binomial(k: Array, rest: Array, p: Array, constant: Array) -> Array:
    """The probability itself, with derivatives at chances of zero and one."""
    many = lambda k, rest, p, constant: ops.exp(log_binomial(k, rest, p, constant))  # noqa: E731
    few = lambda k, rest, p, constant: _powers(p, k, rest, constant)  # noqa: E731
    return _by_size(many, few, k, rest, p, constant)


def _left(n: Array, k: Array) -> Array:
    """The number of trials but ``k``; 1 where none are left, as without trials: its value is not used."""
    return ops.where(plain(n) > plain(k), n - k, 1.0)


binom: Discrete = Discrete(
    "binom",
    "n p",
    lambda k, n, p: log_binomial(k, n - k, p, log_choose(n, k)),
    lambda k, n, p: _binomial(k, n - k, p, log_choose(n, k)),
    lambda k, n, p: beta.upper(p, k + 1.0, _left(n, k)),
    lambda k, n, p: beta.lower(p, k + 1.0, _left(n, k)),
    lambda n, p: ops.logical_and(ops.logical_and(n >= 0.0, is_whole(n)), _is_chance(p)),
    lambda k, n, p: beta.log_upper(p, k + 1.0, _left(n, k)),  # pyright: ignore[reportOptionalCall]
    lambda k, n, p: beta.log_lower(p, k + 1.0, _left(n, k)),  # pyright: ignore[reportOptionalCall]
    high=lambda n, p: n,
)
bernoulli: Discrete = Discrete(
    "bernoulli",
    "p",
    lambda k, p: special.xlogy(k, p) + special.xlog1py(1.0 - k, -p),
    lambda k, p: ops.where(k == 0.0, 1.0 - p, p),
    lambda k, p: 1.0 - p + 0.0 * k,
    lambda k, p: p + 0.0 * k,
    _is_chance,
    lambda k, p: ops.log1p(-p) + 0.0 * k,
    lambda k, p: ops.log(p) + 0.0 * k,
    high=lambda p: 1.0,
)


def _of_chance(small: Function, large: Function) -> Function:
    """A function of a count and a chance, which is small or may be one."""
    return lambda k, p: branch(p < 0.5, lambda p: small(k, p), lambda p: large(k, 1.0 - p), (p, 0.25, 0.75))


def _log_geometric(k: Array, p: Array) -> Array:
    hazard = -k * ops.log1p(-p)
    return guarded.log1mexp(hazard, ops.log(hazard))


geom: Discrete = Discrete(
    "geom",
    "p",
    lambda k, p: special.xlog1py(k - 1.0, -p) + ops.log(p),
    lambda k, p: _powers(p, 1.0 + 0.0 * k, k - 1.0, 0.0 * k),
    _of_chance(lambda k, p: -guarded.expm1_of(k * ops.log1p(-p)), lambda k, rest: 1.0 - ops.pow(rest, k)),
    _of_chance(lambda k, p: ops.exp(k * ops.log1p(-p)), lambda k, rest: ops.pow(rest, k)),
    lambda p: ops.logical_and(p > 0.0, p <= 1.0),
    _of_chance(_log_geometric, lambda k, rest: ops.log1p(-ops.pow(rest, k))),
    lambda k, p: k * ops.log1p(-p),
    low=1,
)


def _log_ways(k: Array, n: Array) -> Array:
    """The logarithm of ``gamma(n + k) / (gamma(k + 1) * gamma(n))``."""
    return -special.betaln(n * 1.0, k + 1.0) - ops.log(n + k)


def _log_share(k: Array, n: Array) -> Array:
    return ops.log(n / (n + k))


nbinom: Discrete = Discrete(
    "nbinom",
    "n p",
    lambda k, n, p: log_binomial(n * 1.0, k, p, _log_ways(k, n) - _log_share(k, n)) + _log_share(k, n),
    lambda k, n, p: _binomial(n * 1.0, k, p, _log_ways(k, n) - _log_share(k, n)) * (n / (n + k)),
    lambda k, n, p: beta.lower(p, n * 1.0, k + 1.0),
    lambda k, n, p: beta.upper(p, n * 1.0, k + 1.0),
    lambda n, p: ops.logical_and(ops.logical_and(n > 0.0, n < math.inf), ops.logical_and(p > 0.0, p <= 1.0)),
    lambda k, n, p: beta.log_lower(p, n * 1.0, k + 1.0),  # pyright: ignore[reportOptionalCall]
    lambda k, n, p: beta.log_upper(p, n * 1.0, k + 1.0),  # pyright: ignore[reportOptionalCall]
)


def _poisson(k: Array, mu: Array) -> Array:
    """The probability, with a derivative at a mean of zero."""
    many = lambda k, mu: ops.exp(log_poisson(k, mu))  # noqa: E731
    few = lambda k, mu: power_exp(mu, k, -mu - special.gammaln(k + 1.0))  # noqa: E731
    return branch(is_deviant(k, mu), many, few, (k, 16.0, 0.0), (mu, 16.0, 1.0))


poisson: Discrete = Discrete(
    "poisson",
    "mu",
    log_poisson,
    _poisson,
    lambda k, mu: special.gammaincc(k + 1.0, mu),
    lambda k, mu: special.gammainc(k + 1.0, mu),
    lambda mu: ops.logical_and(mu >= 0.0, mu < math.inf),
    lambda k, mu: gamma.log_upper(mu, k + 1.0),  # pyright: ignore[reportOptionalCall]
    lambda k, mu: gamma.log_lower(mu, k + 1.0),  # pyright: ignore[reportOptionalCall]
)


# --- of exponentials --------------------------------------------------------------------------------------------------


def _log_rise(x: Array) -> Array:
    """``log(1 - exp(-x))`` for positive ``x``."""
    return guarded.log1mexp(x, ops.log(x))


def _rise(x: Array) -> Array:
    return -guarded.expm1_of(-x)


planck: Discrete = Discrete(
    "planck",
    "lambda_",
    lambda k, rate: _log_rise(rate) - rate * k,
    lambda k, rate: _rise(rate) * ops.exp(-rate * k),
    lambda k, rate: _rise(rate * (k + 1.0)),
    lambda k, rate: ops.exp(-rate * (k + 1.0)),
    lambda rate: ops.logical_and(rate > 0.0, rate < math.inf),
    lambda k, rate: _log_rise(rate * (k + 1.0)),
    lambda k, rate: -rate * (k + 1.0),
)


def _truncated(rate: Array, k: Array, n: Array) -> Array:
    """``(1 - exp(-rate * k)) / (1 - exp(-rate * n))``, which has all digits for small rates."""
    n = ops.where(n > 0.0, n, math.nan)
    return k / n * (special.exprel(-rate * k) / special.exprel(-rate * n))


def _log_boltzmann(k: Array, rate: Array, n: Array) -> Array:
    few = lambda rate: ops.log(_truncated(rate, 1.0, n))  # noqa: E731
    return branch(rate < 1.0, few, lambda rate: _log_rise(rate) - _log_rise(rate * n), (rate, 0.5, 2.0)) - rate * k


def _log_boltzmann_upper(k: Array, rate: Array, n: Array) -> Array:
    share, rest = _truncated(rate, k + 1.0, n), _truncated(rate, n - k - 1.0, n)
    far = lambda share, rest: ops.log(rest) - rate * (k + 1.0)  # noqa: E731
    return branch(share < 0.5, lambda share, _: ops.log1p(-share), far, (share, 0.25, 0.75), (rest, 0.5, 0.5))


boltzmann: Discrete = Discrete(
    "boltzmann",
    "lambda_ N",
    _log_boltzmann,
    lambda k, rate, n: _truncated(rate, 1.0, n) * ops.exp(-rate * k),
    lambda k, rate, n: _truncated(rate, k + 1.0, n),
    lambda k, rate, n: _truncated(rate, n - k - 1.0, n) * ops.exp(-rate * (k + 1.0)),
    lambda rate, n: ops.logical_and(
        rate > 0.0, ops.logical_and(rate < math.inf, ops.logical_and(n > 0.0, n < math.inf))
    ),
    log_upper=_log_boltzmann_upper,
    high=lambda rate, n: n - 1.0,
)


def _log_rest_of_laplace(k: Array, a: Array) -> Array:
    """The logarithm of the probability of more than ``k`` of at least zero."""
    return -a * (k + 1.0) - ops.log1p(ops.exp(-a))


def _laplace(low: Function, high: Function) -> Function:
    """A function of a count by its logarithm of both tails, the lower one of negative counts."""

    def of(k: Array, a: Array) -> Array:
        below = lambda k: low(_log_rest_of_laplace(-k - 1.0, a))  # noqa: E731
        return branch(k < 0.0, below, lambda k: high(_log_rest_of_laplace(k, a)), (k, -1.0, 0.0))

    return of


def _share_beside(log_p: Array) -> Array:
    return 1.0 - ops.exp(log_p)


def _log_beside(log_p: Array) -> Array:
    return ops.log1p(-ops.exp(log_p))


def _log_laplace(k: Array, a: Array) -> Array:
    return _log_rise(a) - ops.log1p(ops.exp(-a)) - a * ops.abs(k)


dlaplace: Discrete = Discrete(
    "dlaplace",
    "a",
    _log_laplace,
    lambda k, a: ops.exp(_log_laplace(k, a)),
    _laplace(ops.exp, _share_beside),
    _laplace(_share_beside, ops.exp),
    lambda a: ops.logical_and(a > 0.0, a < math.inf),
    _laplace(lambda log_p: log_p, _log_beside),
    _laplace(_log_beside, lambda log_p: log_p),
    low=-math.inf,
)


def _count_of(low: Array, high: Array) -> Array:
    """The number of integers of `randint`, or NaN for an empty range."""
    return ops.where(plain(high) > plain(low), (high - low) * 1.0, math.nan)


randint: Discrete = Discrete(
    "randint",
    "low high",
    lambda k, low, high: -ops.log(_count_of(low, high) + 0.0 * k),
    lambda k, low, high: 1.0 / (_count_of(low, high) + 0.0 * k),
    lambda k, low, high: (k - low + 1.0) / _count_of(low, high),
    lambda k, low, high: (high - 1.0 - k) / _count_of(low, high),
    lambda low, high: ops.logical_and(high > low, ops.logical_and(is_whole(low), is_whole(high))),
    low=lambda low, high: low,
    high=lambda low, high: high - 1.0,
)
