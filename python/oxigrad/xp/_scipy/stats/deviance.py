"""Poisson probabilities of large numbers by their deviance (Loader 2000).

Differences of `gammaln` would lose the digits that the logarithms of factorials have before the point.
"""

from oxigrad import xp as ops
from oxigrad._typing import Array
from oxigrad.xp import special
from oxigrad.xp._scipy.guarded import branch
from oxigrad.xp._scipy.stats.distribution import LOG_2_PI

# Numbers above are large: Stirling's series is exact.
LARGE = 15.5


def log_poisson(k: Array, mu: Array) -> Array:
    """``k * log(mu) - mu - gammaln(k + 1)`` for a real ``k``."""

    def large(k: Array, mu: Array) -> Array:
        u = 1.0 / (k * k)
        rest = (((u / 1188.0 - 1.0 / 1680.0) * u + 1.0 / 1260.0) * u - 1.0 / 360.0) * u + 1.0 / 12.0
        return -special.kl_div(k, mu) - rest / k - 0.5 * (LOG_2_PI + ops.log(k))

    small = lambda k, mu: special.xlogy(k, mu) - mu - special.gammaln(k + 1.0)  # noqa: E731
    return branch(is_deviant(k, mu), large, small, (k, 16.0, 0.0), (mu, 16.0, 1.0))


def is_deviant(k: Array, mu: Array) -> Array:
    """Whether `log_poisson` is by the deviance."""
    return ops.logical_and(k > LARGE, mu > 0.5)
