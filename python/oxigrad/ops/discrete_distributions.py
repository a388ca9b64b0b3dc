"""The distributions of counts, named as in SciPy."""

import math
from typing import Any

from oxigrad._typing import Array
from oxigrad.ops import primitives as ops
from oxigrad.ops import special
from oxigrad.ops.distributions import Discrete
from oxigrad.ops.guarded import branch, power_exp


def _log_choose(n: Any, k: Any) -> Any:
    return special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)


def _powers(p: Any, k: Any, rest: Any, constant: Any) -> Any:
    """``p**k * (1 - p)**rest * exp(constant)``, by the power of the smaller one."""
    low = lambda p, k, rest: power_exp(p, k, rest * ops.log1p(-p) + constant)  # noqa: E731
    high = lambda p, k, rest: power_exp(1.0 - p, rest, k * ops.log(p) + constant)  # noqa: E731
    return branch(p < 0.5, low, high, (p, 0.25, 0.75), (k, 1.0, 1.0), (rest, 1.0, 1.0))


binom = Discrete(
    "binom",
    2,
    lambda k, n, p: _log_choose(n, k) + special.xlogy(k, p) + special.xlog1py(n - k, -p),
    lambda k, n, p: _powers(p, k, n - k, _log_choose(n, k)),
    lambda k, n, p: special.betainc(n - k, k + 1.0, 1.0 - p),
    lambda k, n, p: special.betainc(k + 1.0, n - k, p),
    high=lambda n, p: n,
)
bernoulli = Discrete(
    "bernoulli",
    1,
    lambda k, p: special.xlogy(k, p) + special.xlog1py(1.0 - k, -p),
    lambda k, p: ops.where(k == 0.0, 1.0 - p, p),
    lambda k, p: 1.0 - p + 0.0 * k,
    lambda k, p: p + 0.0 * k,
    high=lambda p: 1.0,
)
geom = Discrete(
    "geom",
    1,
    lambda k, p: special.xlog1py(k - 1.0, -p) + ops.log(p),
    lambda k, p: _powers(p, 1.0 + 0.0 * k, k - 1.0, 0.0 * k),
    lambda k, p: -ops.expm1(k * ops.log1p(-p)),
    lambda k, p: ops.exp(k * ops.log1p(-p)),
    low=1,
)
nbinom = Discrete(
    "nbinom",
    2,
    lambda k, n, p: (
        special.gammaln(n + k)
        - special.gammaln(k + 1.0)
        - special.gammaln(n * 1.0)
        + n * ops.log(p)
        + special.xlog1py(k, -p)
    ),
    lambda k, n, p: _powers(
        p, n * 1.0, k, special.gammaln(n + k) - special.gammaln(k + 1.0) - special.gammaln(n * 1.0)
    ),
    lambda k, n, p: special.betainc(n * 1.0, k + 1.0, p),
    lambda k, n, p: special.betainc(k + 1.0, n * 1.0, 1.0 - p),
)


class _Poisson:
    """The Poisson distribution of counts ``k``, with mean ``mu``."""

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.ops.stats"

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
        count = k - loc * 1.0
        is_one = ops.logical_and(count >= 0.0, count == ops.floor(count))
        safe = ops.where(is_one, count, 1.0)
        return ops.where(is_one, power_exp(mu, safe, -mu - special.gammaln(safe + 1.0)), 0.0)

    def cdf(self, k: Any, mu: Array, loc: Array = 0.0) -> Array:
        """The probability of at most ``k``."""
        count = ops.floor(k - loc * 1.0)
        safe = ops.maximum(count, 0.0)
        return ops.where(count < 0.0, 0.0, special.gammaincc(safe + 1.0, mu))


poisson = _Poisson()
