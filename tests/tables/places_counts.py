"""Special places of the distributions of counts, and their functions in mpmath; and of the distributions of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mpmath import mp, mpf

from places import Function, Row, beta_i, gamma_p, gamma_q


class Counted(NamedTuple):
    """A distribution of counts: its functions for a count and parameters inside of their domains, and parameters and counts to try.

    ``fixed`` are the places of the parameters by which its distribution functions refuse a derivative.
    """

    low: int
    mass: Function
    lower: Function
    upper: Function
    shapes: Sequence[tuple[tuple[float, ...], tuple[float, ...]]]
    fixed: tuple[int, ...] = ()
    # Values of the last parameter of which there is no distribution.
    invalid: tuple[float, ...] = (-0.1, 1.1)


def _log_choose(n: Any, k: Any) -> Any:
    return mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)


_SMALL = (0.0, 1.0, 2.0, 4.0)
COUNTED: dict[str, Counted] = {
    "binom": Counted(
        0,
        lambda k, n, p: mp.exp(_log_choose(n, k)) * p**k * (1 - p) ** (n - k),
        lambda k, n, p: beta_i(n - k, k + 1, 1 - p, p),
        lambda k, n, p: beta_i(k + 1, n - k, p, 1 - p),
        (
            ((5.0, 0.3), (*_SMALL, 5.0)),
            ((5.0, 0.0), (*_SMALL, 5.0)),
            ((5.0, 1.0), (*_SMALL, 5.0)),
            ((5.0, 1e-9), _SMALL),
            ((5.0, 1.0 - 2.0**-30), _SMALL),
            ((60.0, 0.5), (0.0, 15.0, 16.0, 30.0, 59.0, 60.0)),
            ((1e6, 0.25), (2.48e5, 2.5e5, 3e5)),
            ((1e6, 3e-6), (0.0, 4.0, 20.0, 300.0)),
        ),
    ),
    "bernoulli": Counted(
        0,
        lambda k, p: p if k else 1 - p,
        lambda k, p: 1 - p,
        lambda k, p: p,
        tuple(((p,), (0.0, 1.0)) for p in (0.0, 1e-300, 0.3, 1.0 - 2.0**-53, 1.0)),
    ),
    "geom": Counted(
        1,
        lambda k, p: p * (1 - p) ** (k - 1),
        lambda k, p: -mp.expm1(k * mp.log1p(-p)),
        lambda k, p: (1 - p) ** k,
        (
            *(((p,), (1.0, 2.0, 3.0, 50.0)) for p in (1e-300, 1e-9, 0.3, 0.7, 1.0 - 2.0**-30, 1.0)),
            ((1e-6,), (1.0, 5e5, 1e10)),
        ),
    ),
    "nbinom": Counted(
        0,
        lambda k, n, p: mp.exp(mp.loggamma(n + k) - mp.loggamma(k + 1) - mp.loggamma(n)) * p**n * (1 - p) ** k,
        lambda k, n, p: beta_i(n, k + 1, p, 1 - p),
        lambda k, n, p: beta_i(k + 1, n, 1 - p, p),
        (
            *(((n, p), _SMALL) for n in (0.5, 2.0) for p in (1e-9, 0.3, 1.0 - 2.0**-30, 1.0)),
            ((2.5, 0.01), (16.0, 300.0)),
            ((40.5, 0.3), (0.0, 15.0, 16.0, 90.0, 300.0)),
            ((1e5, 0.25), (2.97e5, 3e5)),
        ),
    ),
    "poisson": Counted(
        0,
        lambda k, mu: mp.exp(k * mp.log(mu) - mu - mp.loggamma(k + 1)),
        lambda k, mu: gamma_q(k + 1, mu),
        lambda k, mu: gamma_p(k + 1, mu),
        (
            ((0.0,), _SMALL),
            ((1e-300,), _SMALL),
            ((2.5,), (*_SMALL, 15.0, 16.0, 50.0, 1000.0)),
            ((800.0,), (0.0, 3.0, 700.0, 800.0, 900.0)),
            ((1e6,), (9.97e5, 1e6)),
        ),
        invalid=(-0.1, mp.inf),
    ),
}


def _log_hypergeometric(k: Any, size: Any, good: Any, draws: Any) -> Any:
    return _log_choose(good, k) + _log_choose(size - good, draws - k) - _log_choose(size, draws)


def _log_beta_binomial(k: Any, n: Any, a: Any, b: Any) -> Any:
    return _log_choose(n, k) + mp.log(mp.beta(k + a, n - k + b) / mp.beta(a, b))


def _sum(log_mass: Function, first: Any, last: Any, s: Any) -> Any:
    return mp.fsum(mp.exp(log_mass(mpf(j), *s)) for j in range(int(first), int(last) + 1))


def _rise(x: Any) -> Any:
    return -mp.expm1(-x)


def _laplace(k: Any, a: Any) -> Any:
    return mp.exp(a * (k + 1)) / (mp.exp(a) + 1) if k < 0 else 1 - mp.exp(-a * k) / (mp.exp(a) + 1)


def _log_series(k: Any, p: Any) -> Any:
    with mp.extraprec(1000):
        return 1 - mp.fsum(p**j / j for j in range(1, int(k) + 1)) / -mp.log1p(-p)


_FURTHER: dict[str, Counted] = {
    "planck": Counted(
        0,
        lambda k, rate: _rise(rate) * mp.exp(-rate * k),
        lambda k, rate: _rise(rate * (k + 1)),
        lambda k, rate: mp.exp(-rate * (k + 1)),
        (((0.7,), _SMALL), ((1e-9,), (*_SMALL, 3e8)), ((30.0,), _SMALL)),
        invalid=(-0.1, 0.0, mp.inf),
    ),
    "boltzmann": Counted(
        0,
        lambda k, rate, n: _rise(rate) * mp.exp(-rate * k) / _rise(rate * n),
        lambda k, rate, n: _rise(rate * (k + 1)) / _rise(rate * n),
        lambda k, rate, n: mp.exp(-rate * (k + 1)) * _rise(rate * (n - k - 1)) / _rise(rate * n),
        (((0.7, 7.0), _SMALL), ((1e-9, 8.0), _SMALL), ((0.4, 4.0), _SMALL[:3]), ((30.0, 1e4), (*_SMALL, 5e3))),
        invalid=(-0.1, 0.0),
    ),
    "dlaplace": Counted(
        0,
        lambda k, a: mp.tanh(a / 2) * mp.exp(-a * abs(k)),
        _laplace,
        lambda k, a: _laplace(-k - 1, a),
        (((0.7,), (*_SMALL, -1.0, -5.0)), ((1e-9,), (*_SMALL, -3e8)), ((100.0,), (*_SMALL, -1.0, -5.0))),
        invalid=(-0.1, 0.0, mp.inf),
    ),
    "randint": Counted(
        0,
        lambda k, low, high: 1 / (high - low),
        lambda k, low, high: (k - low + 1) / (high - low),
        lambda k, low, high: (high - 1 - k) / (high - low),
        (((-1.0, 4.0), _SMALL[:3]), ((-1e9, 7.0), _SMALL)),
        invalid=(-2.0, 1.5),
    ),
    "zipf": Counted(
        1,
        lambda k, a: k**-a / mp.zeta(a),
        lambda k, a: mp.fsum(mpf(j) ** -a for j in range(1, int(k) + 1)) / mp.zeta(a),
        lambda k, a: mp.zeta(a, k + 1) / mp.zeta(a),
        tuple(((a,), (1.0, 2.0, 12.0, 13.0, 14.0, 900.0)) for a in (2.5, 1.0 + 2.0**-30, 1.4, 30.0)),
        invalid=(1.0, 0.5, -0.1),
    ),
    "logser": Counted(
        1,
        lambda k, p: p**k / (-mp.log1p(-p) * k),
        lambda k, p: 1 - _log_series(k, p),
        _log_series,
        tuple(((p,), (1.0, 2.0, 4.0, 40.0)) for p in (0.3, 1e-9, 0.9, 1.0 - 2.0**-40)),
    ),
    "hypergeom": Counted(
        0,
        lambda k, *s: mp.exp(_log_hypergeometric(k, *s)),
        lambda k, *s: _sum(_log_hypergeometric, max(0, s[1] + s[2] - s[0]), k, s),
        lambda k, *s: _sum(_log_hypergeometric, k + 1, min(s[1:]), s),
        (
            ((20.0, 7.0, 12.0), (0.0, 1.0, 4.0, 6.0)),
            ((20.0, 17.0, 4.0), (1.0, 2.0, 3.0)),
            ((2e3, 700.0, 120.0), (0.0, 42.0, 119.0)),
        ),
        (0, 1, 2),
        (-1.0, 1.5, 40.0),
    ),
    "betabinom": Counted(
        0,
        lambda k, *s: mp.exp(_log_beta_binomial(k, *s)),
        lambda k, *s: _sum(_log_beta_binomial, 0, k, s),
        lambda k, *s: _sum(_log_beta_binomial, k + 1, mp.nint(s[0]), s),
        (
            ((6.0, 1.7, 0.6), _SMALL),
            ((6.0, 1e-3, 2.0), _SMALL),
            ((5.0, 40.0, 900.0), _SMALL),
            ((60.0, 2.5, 7.0), (0.0, 20.0, 58.0)),
        ),
        (0,),
        (-1.0, 0.0),
    ),
}
COUNTED |= _FURTHER


def _proportions(xp: Any, x: Any) -> Any:
    return xp.stack([x, 1.0 - x])


def _correlated(xp: Any, r: Any) -> Any:
    one = xp.ones_like(r)
    return xp.stack([xp.stack([one, r], axis=-1), xp.stack([r, 4.0 * one], axis=-1)], axis=-2)


def _normal(xp: Any, x: Any, y: Any, mean: Any, r: Any) -> Any:
    """The logarithm of the density for each covariance."""
    of, pairs = xp.stats.multivariate_normal, xp.stack([x - mean, y], axis=-1)
    return xp.stack([of.logpdf(pairs[at], None, _correlated(xp, r)[at]) for at in range(x.shape[0])])


def _log_normal(x: Any, y: Any, mean: Any, r: Any) -> Any:
    x, left = x - mean, 4 - r * r
    return -mp.log(2 * mp.pi) - mp.log(left) / 2 - (4 * x * x - 2 * r * x * y + y * y) / (2 * left)


VECTORS: dict[str, Row] = {
    "dirichlet": Row(
        lambda x, a: (a - 1) * mp.log(x) + 2 * mp.log1p(-x) - mp.log(mp.beta(a, 3)),
        ((0.3, 2.5), (1e-9, 1.0), (1e-300, 0.5), (0.5, 1e3)),
        call=lambda xp, x, a: xp.stack(
            [
                xp.stats.dirichlet.logpdf(_proportions(xp, x[at]), xp.stack([a[at], 3.0 + 0.0 * a[at]]))
                for at in range(4)
            ]
        ),
    ),
    "multivariate_normal": Row(
        _log_normal,
        ((0.3, -1.0, 0.5, 0.7), (1e9, 1.0, 1.0, 0.0), (0.5, 1.0, 0.5, -1.9), (40.0, -30.0, 1e-9, 2.0 - 2.0**-10)),
        call=_normal,
    ),
}
