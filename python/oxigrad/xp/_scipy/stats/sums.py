"""The distributions of counts whose distribution functions are sums without a closed form, named as in SciPy."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import array_of, is_array
from oxigrad.ops.core.array_like import values
from oxigrad.ops.core.host_calls import Elementwise
from oxigrad.xp import special
from oxigrad.xp._scipy import guarded
from oxigrad.xp._scipy.guarded import branch
from oxigrad.xp._scipy.special.composed import exprel, log1prel
from oxigrad.xp._scipy.special.gamma_functions import BERNOULLI, DIRECT
from oxigrad.xp._scipy.stats.discrete import is_whole, log_binomial, log_choose
from oxigrad.xp._scipy.stats.distribution import Discrete

__all__ = ["betabinom", "hypergeom", "logser", "zipf"]


# --- of powers --------------------------------------------------------------------------------------------------------


def _after(w: Array, a: Array) -> Array:
    """The sum of the powers ``-a`` from ``w`` on less its integral (DLMF 25.11.28), to rounding for ``w`` above 12."""
    power: Array = 1.0 / w
    rest, product = 0.5 + 0.0 * power, a
    for k, number in enumerate(BERNOULLI):
        rest = rest + number * product * power
        product, power = product * (a + (2.0 * k + 1.0)) * (a + (2.0 * k + 2.0)), power / (w * w)
    return ops.pow(w, -a) * rest


def _power_sum(k: Array, a: Array) -> Array:
    """The sum of the powers ``-a`` of the numbers from one to ``k``."""
    total: Array = 0.0
    for n in range(1, DIRECT + 1):
        total = total + ops.where(plain(k) >= n, ops.pow(float(n), -a), 0.0)
    first = DIRECT + 1.0

    def further(k: Array) -> Array:
        log_ratio = ops.log((k + 1.0) / first)
        integral = ops.pow(first, 1.0 - a) * log_ratio * exprel((1.0 - a) * log_ratio)
        return integral + _after(first, a) - _after(k + 1.0, a)

    return total + guarded.unless(plain(k) <= DIRECT, 0.0, further, k, 2.0 * first)


def _zipf_shares(k: Array, a: Array) -> tuple[Array, Array]:
    """The probabilities up to ``k`` and above."""
    whole = special.zeta(a, 1.0)
    return guarded.complementary(_power_sum(k, a) / whole, special.zeta(a, k + 1.0) / whole)


zipf: Discrete = Discrete(
    "zipf",
    "a",
    lambda k, a: -a * ops.log(k) - ops.log(special.zeta(a, 1.0)),
    lambda k, a: ops.pow(k, -a) / special.zeta(a, 1.0),
    lambda k, a: _zipf_shares(k, a)[0],
    lambda k, a: _zipf_shares(k, a)[1],
    lambda a: a > 1.0,
    low=1,
)


# --- of logarithms ----------------------------------------------------------------------------------------------------


def _log_series(k: Array, p: Array, factor: Array) -> Array:
    """The logarithm of ``p**k * factor / -log(1 - p)``."""
    return (k - 1.0) * ops.log(p) + ops.log(factor) - ops.log(log1prel(-p))


def _log_series_tail(k: Array, p: Array) -> Array:
    # The sum of p**j / j for j above k (DLMF 15.2.1).
    return _log_series(k + 1.0, p, special.hyp2f1(1.0, k + 1.0, k + 2.0, p) / (k + 1.0))


logser: Discrete = Discrete(
    "logser",
    "p",
    lambda k, p: _log_series(k, p, 1.0 / k),
    lambda k, p: ops.exp(_log_series(k, p, 1.0 / k)),
    lambda k, p: 1.0 - ops.exp(_log_series_tail(k, p)),
    lambda k, p: ops.exp(_log_series_tail(k, p)),
    lambda p: ops.logical_and(p > 0.0, p < 1.0),
    log_upper=_log_series_tail,
    low=1,
)


# --- without replacement ----------------------------------------------------------------------------------------------


def _log_hypergeometric(k: Array, size: Array, good: Array, draws: Array) -> Array:
    """By binomial probabilities of the share that is drawn (Loader 2000)."""
    p = draws / (size * 1.0)
    bad = size - good
    return (
        log_binomial(k, good - k, p, log_choose(good, k))
        + log_binomial(draws - k, bad - draws + k, p, log_choose(bad, draws - k))
        - log_binomial(draws * 1.0, size - draws, p, log_choose(size, draws))
    )


def _fraction(k: Array, ratio: Callable[[Array], Array], step: float) -> Array:
    """The sum of the probabilities from ``k`` on, relative to the first one, by ratios of neighbours."""
    total, term = np.ones_like(k), np.ones_like(k)
    while np.any(term > 1e-17 * total):
        term = term * ratio(k)
        total, k = total + term, k + step
    return total


def _hypergeometric_logs(k: Array, size: Array, good: Array, draws: Array) -> tuple[Array, Array]:
    """The logarithms of the probabilities of at most and of more than ``k``, for NumPy arrays.

    Sums run over the smaller tail.
    """
    k, size, good, draws = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (k, size, good, draws)))
    bad = size - good - draws
    down = lambda k: k * (bad + k) / ((good - k + 1.0) * (draws - k + 1.0))  # noqa: E731
    up = lambda k: (good - k) * (draws - k) / ((k + 1.0) * (bad + k + 1.0))  # noqa: E731
    is_low = k * size < good * draws
    at = np.where(is_low, k, k + 1.0)
    low = _fraction(at, lambda k: np.where(is_low, down(k), 0.0), -1.0)
    high = _fraction(at, lambda k: np.where(is_low, 0.0, up(k)), 1.0)
    tail = _log_hypergeometric(at, size, good, draws) + np.log(np.where(is_low, low, high))
    rest = np.log1p(-np.exp(tail))
    return np.where(is_low, tail, rest)[()], np.where(is_low, rest, tail)[()]


def _log_tail(side: int) -> Elementwise:
    def computed(*args: Any) -> Array:
        with np.errstate(all="ignore"):
            return _hypergeometric_logs(*args)[side]

    names = ["k", "M", "n", "N"]
    reasons = ["its count k", *(f"its whole number {name}" for name in names[1:])]
    return Elementwise(f"hypergeom.{('logcdf', 'logsf')[side]}", lambda: computed, names, reasons)


_log_below, _log_beyond = _log_tail(0), _log_tail(1)


def _is_urn(size: Array, good: Array, draws: Array) -> Array:
    size, good, draws = 1.0 * size, 1.0 * good, 1.0 * draws
    are_whole = functools.reduce(ops.logical_and, map(is_whole, (size, good, draws)))
    is_within = ops.logical_and(
        ops.logical_and(good >= 0.0, draws >= 0.0), ops.logical_and(good <= size, draws <= size)
    )
    return ops.logical_and(are_whole, ops.logical_and(is_within, size > 0.0))


hypergeom: Discrete = Discrete(
    "hypergeom",
    "M n N",
    _log_hypergeometric,
    lambda k, *s: ops.exp(_log_hypergeometric(k, *s)),
    lambda k, *s: ops.exp(_log_below(k, *s)),
    lambda k, *s: ops.exp(_log_beyond(k, *s)),
    _is_urn,
    _log_below,
    _log_beyond,
    low=lambda size, good, draws: ops.maximum(0.0, 1.0 * draws + good - size),
    high=lambda size, good, draws: ops.minimum(1.0 * plain(good), 1.0 * plain(draws)),
)


# --- with a beta-distributed probability -----------------------------------------------------------------------------


def _log_rise(x: Array, m: Array) -> Array:
    """``log(gamma(x + m) / gamma(x))``, by the beta function if both are large."""
    few = lambda x, m: special.gammaln(x + m) - special.gammaln(x)  # noqa: E731
    many = lambda x, m: special.gammaln(m) - special.betaln(x, m)  # noqa: E731
    return branch(ops.logical_or(x < 1.0, m < 1.0), few, many, (x, 0.5, 2.0), (m, 0.5, 2.0))


def _log_beta_binomial(k: Array, n: Array, a: Array, b: Array) -> Array:
    return log_choose(n, k) + _log_rise(1.0 * a, k) + _log_rise(1.0 * b, n - k) - _log_rise(a + 1.0 * b, n + 0.0 * k)


_trials = Elementwise("betabinom.cdf", lambda: lambda n: n * 1.0, ["n"], ["its number n of trials"])


def _log_sum(is_in: Function) -> Function:
    """The logarithm of the sum of the probabilities of those ``j`` from zero to ``n`` that are in."""

    def of(k: Array, n: Array, a: Array, b: Array) -> Array:
        k, n, a, b = (ops.expand_dims(x, axis=-1) if is_array(x) else x for x in (k, _trials(n), a, b))
        bare = np.asarray(values(n))
        counts = [float(j) for j in range(int(np.max(bare, initial=0.0, where=np.isfinite(bare))) + 1)]
        j = array_of(counts, (k, n, a, b))
        mask = ops.logical_and(is_in(j, plain(k)), j <= plain(n))
        terms = _log_beta_binomial(ops.where(mask, j, 0.0), n, a, b)
        return special.logsumexp(ops.where(mask, terms, -math.inf), axis=-1)

    return of


_log_up_to, _log_above = _log_sum(lambda j, k: j <= k), _log_sum(lambda j, k: j > k)


def _beta_binomial_shares(k: Array, *s: Array) -> tuple[Array, Array]:
    return guarded.complementary(ops.exp(_log_up_to(k, *s)), ops.exp(_log_above(k, *s)))


def _log_smaller(log_p: Array, log_rest: Array) -> Array:
    """``log_p``, computed from its complement if it is the larger one."""
    is_small = plain(log_p) < plain(log_rest)
    return branch(
        is_small, lambda p, _: p, lambda _, rest: ops.log1p(-ops.exp(rest)), (log_p, 0.0, 0.0), (log_rest, 0.0, -1.0)
    )


betabinom: Discrete = Discrete(
    "betabinom",
    "n a b",
    _log_beta_binomial,
    lambda k, *s: ops.exp(_log_beta_binomial(k, *s)),
    lambda k, *s: _beta_binomial_shares(k, *s)[0],
    lambda k, *s: _beta_binomial_shares(k, *s)[1],
    lambda n, a, b: ops.logical_and(ops.logical_and(n >= 0.0, is_whole(n)), ops.logical_and(a > 0.0, b > 0.0)),
    lambda k, *s: _log_smaller(_log_up_to(k, *s), _log_above(k, *s)),
    lambda k, *s: _log_smaller(_log_above(k, *s), _log_up_to(k, *s)),
    high=lambda n, a, b: plain(n),
)
