"""Special places of the special functions, and the functions in mpmath: origins, edges of domains, tails, places where terms cancel."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from places import Function, Point, Row, at


def _erfcx(x: Any) -> Any:
    if x > 1e3:
        u, total = 1 / (2 * x * x), mpf(1)
        for odd in range(41, -1, -2):
            total = 1 - odd * u * total
        return total / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def _dawsn(x: Any) -> Any:
    if abs(x) > 1e3:
        u, total = 1 / (2 * x * x), mpf(1)
        for odd in range(41, -1, -2):
            total = 1 + odd * u * total
        return total / (2 * x)
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def _phi(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _log_phi(x: Any) -> Any:
    return mp.log(_phi(x)) if x < 0 else mp.log1p(-_phi(-x))


def _softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(-abs(x))) + max(x, 0)


_LARGE = (7.9, 8.1, 29.0, 31.0, 1e3, 1e6)


def _huber(delta: Any, r: Any) -> Any:
    return r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)


def _multigamma(a: Any) -> Any:
    return sum(mp.loggamma(a - mpf(j) / 2) for j in range(3)) + 3 * mp.log(mp.pi) / 2


def _of_two(name: str) -> Function:
    """The first element, or the only one, of a function of an array, of two arguments."""

    def of(xp: Any, x: Any, y: Any) -> Any:
        pair = xp.stack([x, y])
        found = getattr(xp.special, name)(pair, axis=0)
        return found[0] if name != "logsumexp" else found

    return of


_PAIRS = ((0.0, 0.0), (1e3, 1001.0), (1e3, -1e3), (-800.0, 1.0), (-1e300, 1e300))

ROWS: dict[str, Row] = {
    "erf": Row(mp.erf, at(0.0, 1e-300, 6.0, -20.0)),
    "erfc": Row(mp.erfc, at(0.0, 26.0, -20.0, 30.0)),
    "erfcx": Row(_erfcx, at(0.0, -20.0, *_LARGE, 1e5, 1e7, 1e20)),
    "dawsn": Row(_dawsn, at(0.0, *_LARGE, *(-x for x in _LARGE), 1e20)),
    "ndtr": Row(_phi, at(0.0, -30.0, 8.0)),
    "log_ndtr": Row(_log_phi, at(0.0, -30.0, -300.0, 8.0, 30.0)),
    "expit": Row(lambda x: 1 / (1 + mp.exp(-x)), at(0.0, 40.0, -40.0, 700.0, -700.0)),
    "log_expit": Row(lambda x: -_softplus(-x), at(0.0, 40.0, -40.0, 800.0, -800.0)),
    "softplus": Row(_softplus, at(0.0, 40.0, -40.0, 800.0, -700.0)),
    "logit": Row(lambda p: mp.log(p) - mp.log1p(-p), at(0.5, 1e-300, 1.0 - 2.0**-53, 0.25, 0.75)),
    "entr": Row(lambda x: -x * mp.log(x), at(1e-300, 1.0, 1e200)),
    "rel_entr": Row(lambda x, y: x * mp.log(x / y), ((1e-200, 1.0), (1.0, 1.0), (1.0, 1e-200), (3.0, 2.999))),
    "kl_div": Row(lambda x, y: x * mp.log(x / y) - x + y, ((1e-200, 1.0), (1.0, 1e-200), (3.0, 1.0))),
    "exprel": Row(lambda x: mp.expm1(x) / x if x else mpf(1), at(1e-8, 0.49, 0.51, -0.51, 700.0, -1e3)),
    "cosm1": Row(lambda x: -2 * mp.sin(x / 2) ** 2, at(0.0, 1e-9, 3.0)),
    "boxcox": Row(
        lambda x, p: mp.expm1(p * mp.log(x)) / p if p else mp.log(x), ((1.0, 2.0), (1e-9, 2.0), (2.0, 1e-9), (1e9, 0.5))
    ),
    "boxcox1p": Row(lambda x, p: mp.expm1(p * mp.log1p(x)) / p, ((1e-12, 2.0), (1e-12, 1e-9), (2.0, 1e-9))),
    "inv_boxcox": Row(lambda x, p: (1 + p * x) ** (1 / p), ((1e-9, 2.0), (-0.4999, 2.0), (2.0, 1e-9), (-3.0, 0.33), (1e140, 0.5))),
    "digamma": Row(mp.digamma, at(1e-9, 1.0, 1e3, 1e9)),
    "gammaln": Row(mp.loggamma, at(1e-300, 1.0, 2.0, 1e3, 1e100)),
    "gamma": Row(mp.gamma, at(1e-9, 1.0, 170.0)),
    "rgamma": Row(mp.rgamma, at(1e-9, -1e-9, 0.0, -1.0, -2.0, -3.0 + 1e-9, 1.0, 90.0, 172.0)),
    "beta": Row(mp.beta, ((200.5, -0.5), (0.5, 1e-20), (10.0, 0.019), (10.0, 0.021), (1e10, 2.1e7), (1e-9, 1e-9), (1e9, 2.0), (2.0, 1e9), (300.0, 300.0))),
    "betaln": Row(lambda a, b: mp.log(mp.beta(a, b)), ((1e10, 3.0), (1e10, 0.5), (3.0, 1e10), (1e-9, 1e9), (999.0, 2.0))),
    "binom": Row(mp.binomial, ((5.5, 2.0), (1e4, 3.0), (5.5, 1e-9)), 1e-9, "SciPy multiplies the factors, and reads beta functions"),
    "poch": Row(mp.rf, ((1e4, 0.5), (2.0, 3.0), (1e9, 0.5)), 1e-7, "SciPy's exponential of a difference of gammaln"),
    "ndtri": Row(lambda p: -mp.sqrt(2) * mp.erfinv(1 - 2 * p), at(0.5, 1e-20, 0.02, 1.0 - 2.0**-40)),
    "erfinv": Row(mp.erfinv, at(0.0, 1e-300, 1.0 - 2.0**-40)),
    "erfcinv": Row(lambda y: mp.erfinv(1 - y), at(1.0, 1e-20, 1e-60)),
    "spence": Row(lambda x: mp.polylog(2, 1 - x), at(1e-9, 1.0, 0.94, 1.06, 1.9)),
    "powm1": Row(lambda x, p: mp.expm1(p * mp.log(x)), ((1.0, 3.0), (1.0 + 1e-9, 1e-3), (1e-200, 1.0))),
    "log1p": Row(mp.log1p, at(0.0, 1e-300, -0.5, -1.0 + 2.0**-50, 1e300)),
    "expm1": Row(mp.expm1, at(0.0, 1e-300, 0.7, -0.7, -800.0, 700.0)),
    "exp2": Row(lambda x: mpf(2) ** x, at(0.0, -1000.0, 1000.5)),
    "exp10": Row(lambda x: mpf(10) ** x, at(0.0, -300.5, 300.5)),
    "cbrt": Row(lambda x: mp.sign(x) * mp.cbrt(abs(x)), at(1e-300, -1e-9, 1.0, -1e300)),
    "psi": Row(mp.digamma, at(1e-9, 1.0, 1.5, -0.3, 1e3, 1e9)),
    "loggamma": Row(mp.loggamma, at(1e-300, 1.0, 2.0, 1e3, 1e100)),
    "gammasgn": Row(lambda x: mp.sign(mp.gamma(x)), at(1e-9, -0.5, -1.5, 3.0)),
    "multigammaln": Row(_multigamma, at(1.0 + 1e-9, 2.0, 1e6), call=lambda xp, a: xp.special.multigammaln(a, 3)),
    "huber": Row(_huber, ((1.0, 0.0), (1.0, 0.5), (1.0, -2.0), (2.0, 1e200))),
    "pseudo_huber": Row(
        lambda delta, r: delta**2 * (mp.sqrt(1 + (r / delta) ** 2) - 1),
        ((1.0, 0.0), (1.0, 1e-9), (1e9, 1e-3), (1e-9, 3.0), (2.0, -0.5), (2.0, 1e150)),
    ),
    "inv_boxcox1p": Row(lambda x, p: mp.expm1(mp.log1p(p * x) / p), ((1e-9, 2.0), (-0.4999, 2.0), (2.0, 1e-9), (-3.0, 0.33), (1e140, 0.5))),
    "xlogy": Row(lambda x, y: x * mp.log(y), ((1e-300, 1e-300), (1e300, 1.0), (2.0, 0.5))),
    "xlog1py": Row(lambda x, y: x * mp.log1p(y), ((1e-300, -0.5), (1e300, 1e-300), (2.0, 1e-9))),
    "logsumexp": Row(lambda x, y: x + _softplus(y - x), _PAIRS, call=_of_two("logsumexp")),
    "softmax": Row(lambda x, y: 1 / (1 + mp.exp(y - x)), _PAIRS, call=_of_two("softmax")),
    "log_softmax": Row(lambda x, y: -_softplus(y - x), _PAIRS, call=_of_two("log_softmax")),
}  # fmt: skip
# At the edges of domains, where SciPy has a value: arguments, then the value and the derivatives, one-sided limits. None is not compared.
NAN = float("nan")
INF = float("inf")
EDGES: list[tuple[str, Point, tuple[float | None, ...]]] = [
    ("entr", (0.0,), (0.0, INF)),
    ("entr", (-1.0,), (-INF, 0.0)),
    ("rel_entr", (0.0, 2.0), (0.0, -INF, 0.0)),
    ("kl_div", (0.0, 2.0), (2.0, -INF, 1.0)),
    ("xlogy", (0.0, 2.0), (0.0, 0.6931471805599453, 0.0)),
    ("xlogy", (0.0, 0.0), (0.0, 0.0, 0.0)),  # by convention, as PyTorch's
    ("xlog1py", (0.0, -1.0), (0.0, 0.0, 0.0)),
    ("xlogy", (0.0, INF), (0.0, None, 0.0)),
    ("xlogy", (0.0, -1.0), (0.0, None, None)),
    ("xlog1py", (0.0, INF), (0.0, None, 0.0)),
    ("xlog1py", (0.0, -2.0), (0.0, None, None)),
    ("rel_entr", (-1.0, 2.0), (INF, None, None)),
    ("rel_entr", (0.0, -2.0), (INF, None, None)),
    ("kl_div", (2.0, -1.0), (INF, None, None)),
    ("kl_div", (-2.0, 1.0), (INF, None, None)),
    ("logit", (0.0,), (-INF, INF)),
    ("logit", (1.0,), (INF, INF)),
    ("boxcox", (0.0, 2.0), (-0.5, 0.0, 0.25)),
    ("boxcox", (0.0, 1.0), (-1.0, 1.0, 1.0)),
    ("boxcox", (0.0, 0.5), (-2.0, INF, 4.0)),
    ("boxcox1p", (-1.0, 2.0), (-0.5, 0.0, 0.25)),
    ("gammainc", (0.5, 0.0), (0.0, 0.0, INF)),
    ("gammainc", (1.0, 0.0), (0.0, 0.0, 1.0)),
    ("gammainc", (2.0, 0.0), (0.0, 0.0, 0.0)),
    ("gammainc", (2.0, INF), (1.0, 0.0, 0.0)),
    ("gammaincc", (1.0, 0.0), (1.0, 0.0, -1.0)),
    ("gammaincc", (2.0, INF), (0.0, 0.0, 0.0)),
    ("betainc", (1.0, 2.0, 0.0), (0.0, None, None, 2.0)),
    ("betainc", (2.0, 1.0, 1.0), (1.0, None, None, 2.0)),
    ("betainc", (0.5, 2.0, 0.0), (0.0, None, None, INF)),
    ("betaincc", (1.0, 2.0, 0.0), (1.0, None, None, -2.0)),
    ("gammaincinv", (2.0, 0.0), (0.0, 0.0, INF)),
    ("gammaincinv", (0.5, 0.0), (0.0, 0.0, 0.0)),
    ("gammainccinv", (2.0, 1.0), (0.0, 0.0, -INF)),
    ("ndtri", (0.0,), (-INF, INF)),
    ("ndtri", (1.0,), (INF, INF)),
    ("erfinv", (1.0,), (INF, INF)),
    ("erfcinv", (0.0,), (INF, -INF)),
    ("ndtr", (-INF,), (0.0, 0.0)),
    ("ndtr", (INF,), (1.0, 0.0)),
    ("erf", (INF,), (1.0, 0.0)),
    ("erfc", (INF,), (0.0, 0.0)),
    ("expit", (INF,), (1.0, 0.0)),
    ("expit", (-INF,), (0.0, 0.0)),
    ("ellipk", (1.0,), (INF, INF)),
    ("ellipkm1", (0.0,), (INF, -INF)),
    ("ellipe", (1.0,), (1.0, -INF)),
    ("spence", (0.0,), (1.6449340668482264, -INF)),
    ("berp", (0.0,), (0.0, 0.0)),
    ("beip", (0.0,), (0.0, 0.5)),
    ("struve", (0.0, 0.0), (0.0, None, 0.6366197723675814)),
    ("modstruve", (0.0, 0.0), (0.0, None, 0.6366197723675814)),
    ("powm1", (0.0, 2.0), (-1.0, 0.0, 0.0)),
    ("lambertw", (0.0,), (0.0, 1.0)),
    ("exprel", (0.0,), (1.0, 0.5)),
    ("agm", (1.0, 1.0), (1.0, 0.5, 0.5)),
    ("agm", (0.0, 2.0), (0.0, INF, 0.0)),
    ("agm", (-2.0, 0.0), (0.0, 0.0, INF)),
    ("agm", (0.0, 0.0), (0.0, 0.0, 0.0)),
    ("agm", (INF, 1.0), (INF, None, None)),
    ("beta", (0.0, 0.0), (INF, None, None)),
    ("beta", (-0.0, 0.5), (INF, None, None)),
    ("beta", (INF, 2.0), (0.0, 0.0, None)),
    ("beta", (1e308, 1.0), (1e-308, 0.0, None)),
    ("beta", (1.0, -3.0), (-1.0 / 3.0, None, None)),
    ("beta", (0.5, -3.0), (INF, None, None)),
    ("beta", (-0.5, -0.5), (0.0, None, None)),
    ("beta", (-0.5, INF), (-INF, None, None)),
    ("betaln", (0.0, INF), (INF, None, None)),
    ("betaln", (INF, 2.0), (-INF, 0.0, -INF)),
    ("betaln", (2.0, -3.0), (-1.791759469228055, None, None)),
    ("betaln", (1e308, -0.5), (355.8636164445677, None, None)),
    ("betainc", (0.0, 2.0, 0.3), (1.0, None, None, 0.0)),
    ("betainc", (2.0, 0.0, 0.3), (0.0, None, None, 0.0)),
    ("betainc", (2.0, INF, 0.3), (1.0, None, None, None)),
    ("betainc", (INF, 2.0, 0.3), (0.0, None, None, None)),
    ("huber", (INF, 2.0), (2.0, 0.0, 2.0)),
    ("rgamma", (INF,), (0.0, 0.0)),
    ("rgamma", (-180.0,), (0.0, INF)),
    ("i0e", (0.0,), (1.0, 0.0)),
    ("huber", (1.0, 1.0), (0.5, 0.0, 1.0)),
    ("pseudo_huber", (1.0, 0.0), (0.0, 0.0, 0.0)),
    ("sici", (0.0,), (0.0, 1.0)),
]
