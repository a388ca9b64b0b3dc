# Printed by tools/stubs.py.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array

from oxigrad.ops.special.composed import (
    boxcox as boxcox, boxcox1p as boxcox1p, chdtr as chdtr, chdtrc as chdtrc, cosm1 as cosm1, entr as entr,
    exp10 as exp10, exp2 as exp2, exprel as exprel, gammasgn as gammasgn, gdtr as gdtr, gdtrc as gdtrc, huber as huber,
    i0 as i0, i1 as i1, inv_boxcox as inv_boxcox, inv_boxcox1p as inv_boxcox1p, j0 as j0, j1 as j1, jn as jn,
    kl_div as kl_div, log_expit as log_expit, logit as logit, pdtr as pdtr, pdtrc as pdtrc,
    pseudo_huber as pseudo_huber, radian as radian, rel_entr as rel_entr, rgamma as rgamma, xlog1py as xlog1py,
    y0 as y0, y1 as y1, yn as yn,
)
from oxigrad.ops.special.elliptic_integrals import (agm as agm)

def airy(x: Any, /) -> Array:
    """Airy functions: Ai, its derivative, Bi, its derivative."""
def bdtr(k: Any, n: Any, p: Any, /) -> Array:
    """Probability of at most ``k`` successes in ``n`` trials."""
def bdtrc(k: Any, n: Any, p: Any, /) -> Array:
    """Probability of more than ``k`` successes in ``n`` trials."""
def bdtri(k: Any, n: Any, p: Any, /) -> Array:
    """Inverse of `bdtr` in the probability of a success."""
def bei(x: Any, /) -> Array:
    """Kelvin function bei."""
def beip(x: Any, /) -> Array:
    """Derivative of the Kelvin function bei."""
def ber(x: Any, /) -> Array:
    """Kelvin function ber."""
def berp(x: Any, /) -> Array:
    """Derivative of the Kelvin function ber."""
def beta(x1: Any, x2: Any, /) -> Array:
    """The beta function of each pair of elements. Recorded on the tape of its arguments."""
def betainc(x1: Any, x2: Any, x3: Any, /) -> Array:
    """The regularized incomplete beta function of parameters ``x1`` and ``x2`` at ``x3``. Recorded on the tape of
    its arguments.
    """
def betaincc(a: Any, b: Any, x: Any, /) -> Array:
    """Complement of `betainc`."""
def betainccinv(a: Any, b: Any, p: Any, /) -> Array:
    """Inverse of `betaincc`."""
def betaincinv(a: Any, b: Any, p: Any, /) -> Array:
    """Inverse of `betainc`."""
def betaln(x1: Any, x2: Any, /) -> Array:
    """The logarithm of the beta function of each pair of elements. Recorded on the tape of its arguments."""
def binom(n: Any, k: Any, /) -> Array:
    """Binomial coefficient of real numbers."""
def cbrt(x: Any, /) -> Array:
    """The cube root of each element. Recorded on the tape of its arguments."""
def chdtri(v: Any, p: Any, /) -> Array:
    """Inverse of `chdtrc` in its second argument."""
def comb(N: Any, k: Any, *, exact: _bool = False, repetition: _bool = False) -> Array:
    """The number of ways to choose ``k`` of ``N`` things; with ``repetition`` each may be chosen again."""
def cosdg(x: Any, /) -> Array:
    """Cosine of an angle in degrees."""
def cotdg(x: Any, /) -> Array:
    """Cotangent of an angle in degrees."""
def dawsn(x: Any, /) -> Array:
    """Dawson's integral."""
def digamma(x: Any, /) -> Array:
    """The derivative of the logarithm of the gamma function at each element. Recorded on the tape of its arguments."""
def ellipe(m: Any, /) -> Array:
    """Complete elliptic integral of the second kind."""
def ellipeinc(phi: Any, m: Any, /) -> Array:
    """Incomplete elliptic integral of the second kind."""
def ellipk(m: Any, /) -> Array:
    """Complete elliptic integral of the first kind, of the parameter ``m``."""
def ellipkinc(phi: Any, m: Any, /) -> Array:
    """Incomplete elliptic integral of the first kind."""
def ellipkm1(p: Any, /) -> Array:
    """``ellipk(1 - p)``, accurate for small ``p``."""
def erf(x: Any, /) -> Array:
    """The error function of each element. Recorded on the tape of its arguments."""
def erfc(x: Any, /) -> Array:
    """The complementary error function ``1 - erf(x)`` of each element. Recorded on the tape of its arguments."""
def erfcinv(x: Any, /) -> Array:
    """The inverse of the complementary error function of each element. Recorded on the tape of its arguments."""
def erfcx(x: Any, /) -> Array:
    """Scaled complementary error function, ``exp(x**2) * erfc(x)``."""
def erfi(x: Any, /) -> Array:
    """Imaginary error function, ``-i erf(ix)``."""
def erfinv(x: Any, /) -> Array:
    """The inverse of the error function of each element. Recorded on the tape of its arguments."""
def eval_chebyt(n: Any, x: Any, /) -> Array:
    """Chebyshev polynomial of the first kind."""
def eval_chebyu(n: Any, x: Any, /) -> Array:
    """Chebyshev polynomial of the second kind."""
def eval_gegenbauer(n: Any, alpha: Any, x: Any, /) -> Array:
    """Gegenbauer polynomial."""
def eval_genlaguerre(n: Any, alpha: Any, x: Any, /) -> Array:
    """Generalized Laguerre polynomial."""
def eval_hermite(n: Any, x: Any, /) -> Array:
    """Hermite polynomial, the physicist's."""
def eval_hermitenorm(n: Any, x: Any, /) -> Array:
    """Hermite polynomial, the probabilist's."""
def eval_jacobi(n: Any, alpha: Any, beta: Any, x: Any, /) -> Array:
    """Jacobi polynomial."""
def eval_laguerre(n: Any, x: Any, /) -> Array:
    """Laguerre polynomial."""
def eval_legendre(n: Any, x: Any, /) -> Array:
    """Legendre polynomial."""
def exp1(x: Any, /) -> Array:
    """Exponential integral E1."""
def expi(x: Any, /) -> Array:
    """Exponential integral Ei."""
def expit(x: Any, /) -> Array:
    """The logistic function ``1 / (1 + exp(-x))`` of each element. Recorded on the tape of its arguments."""
def expm1(x: Any, /) -> Array:
    """``exp(x) - 1`` of each element, accurate near zero. Recorded on the tape of its arguments."""
def expn(n: Any, x: Any, /) -> Array:
    """Exponential integral of integer order."""
def factorial(n: Any, exact: _bool = False, extend: str = 'zero') -> Array:
    """The gamma function of ``n + 1``; zero for negative numbers."""
def fdtr(dfn: Any, dfd: Any, x: Any, /) -> Array:
    """Cumulative distribution function of the F distribution."""
def fdtrc(dfn: Any, dfd: Any, x: Any, /) -> Array:
    """Survival function of the F distribution."""
def fdtri(dfn: Any, dfd: Any, p: Any, /) -> Array:
    """Inverse of `fdtr`."""
def fresnel(x: Any, /) -> Array:
    """Fresnel integrals: the pair S, C."""
def gamma(x: Any, /) -> Array:
    """The gamma function of each element. Recorded on the tape of its arguments."""
def gammainc(x1: Any, x2: Any, /) -> Array:
    """The regularized lower incomplete gamma function with the parameter ``x1``, from 0 to ``x2``. Recorded on the
    tape of its arguments.
    """
def gammaincc(x1: Any, x2: Any, /) -> Array:
    """The regularized upper incomplete gamma function with the parameter ``x1``, from ``x2`` to infinity. Recorded
    on the tape of its arguments.
    """
def gammainccinv(a: Any, p: Any, /) -> Array:
    """Inverse of `gammaincc` in its second argument."""
def gammaincinv(a: Any, p: Any, /) -> Array:
    """Inverse of `gammainc` in its second argument."""
def gammaln(x: Any, /) -> Array:
    """The logarithm of the absolute value of the gamma function of each element. Recorded on the tape of its
    arguments.
    """
def hyp0f1(v: Any, z: Any, /) -> Array:
    """Confluent hypergeometric limit function."""
def hyp1f1(a: Any, b: Any, x: Any, /) -> Array:
    """Kummer's function M."""
def hyp2f1(a: Any, b: Any, c: Any, z: Any, /) -> Array:
    """Gauss' hypergeometric function."""
def hyperu(a: Any, b: Any, x: Any, /) -> Array:
    """Tricomi's function U."""
def i0e(x: Any, /) -> Array:
    """``exp(-abs(x)) * i0(x)``."""
def i1e(x: Any, /) -> Array:
    """``exp(-abs(x)) * i1(x)``."""
def iv(x1: Any, x2: Any, /) -> Array:
    """The modified Bessel function of the first kind of order ``x1`` at each element of ``x2``. Recorded on the tape
    of its arguments.
    """
def ive(v: Any, x: Any, /) -> Array:
    """``exp(-abs(x)) * iv(v, x)``."""
def jv(v: Any, x: Any, /) -> Array:
    """Bessel function of the first kind and real order."""
def jve(v: Any, x: Any, /) -> Array:
    """`jv` of a real argument."""
def k0(x: Any, /) -> Array:
    """Modified Bessel function of the second kind and order 0."""
def k0e(x: Any, /) -> Array:
    """``exp(x) * k0(x)``."""
def k1(x: Any, /) -> Array:
    """Modified Bessel function of the second kind and order 1."""
def k1e(x: Any, /) -> Array:
    """``exp(x) * k1(x)``."""
def kei(x: Any, /) -> Array:
    """Kelvin function kei."""
def keip(x: Any, /) -> Array:
    """Derivative of the Kelvin function kei."""
def ker(x: Any, /) -> Array:
    """Kelvin function ker."""
def kerp(x: Any, /) -> Array:
    """Derivative of the Kelvin function ker."""
def kn(n: Any, x: Any, /) -> Array:
    """Modified Bessel function of the second kind and integer order."""
def kv(v: Any, x: Any, /) -> Array:
    """Modified Bessel function of the second kind and real order."""
def kve(v: Any, x: Any, /) -> Array:
    """``exp(x) * kv(v, x)``."""
def lambertw(z: Any, k: Any = 0, tol: Any = 1e-08) -> Array:
    """Lambert's function, complex: the solution ``w`` of ``w * exp(w) = z`` on branch ``k``."""
def log1p(x: Any, /) -> Array:
    """``log(1 + x)`` of each element, accurate near zero. Recorded on the tape of its arguments."""
def log_ndtr(x: Any, /) -> Array:
    """Logarithm of `ndtr`."""
def log_softmax(x: Any, axis: Any = None) -> Array:
    """Logarithm of ``softmax``, which does not underflow."""
def loggamma(x: Any, /) -> Array:
    """Principal branch of the logarithm of the gamma function."""
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: _bool = False, return_sign: _bool = False) -> Array:
    """``log(sum(b * exp(x)))``, which does not overflow; NaN where the sum is negative."""
def modstruve(v: Any, x: Any, /) -> Array:
    """Modified Struve function."""
def multigammaln(a: Any, d: Any) -> Array:
    """Logarithm of the multivariate gamma function of ``d`` dimensions."""
def nbdtr(k: Any, n: Any, p: Any, /) -> Array:
    """Probability of at most ``k`` failures before ``n`` successes."""
def nbdtrc(k: Any, n: Any, p: Any, /) -> Array:
    """Probability of more than ``k`` failures before ``n`` successes."""
def ndtr(x: Any, /) -> Array:
    """Cumulative distribution function of the standard normal distribution."""
def ndtri(p: Any, /) -> Array:
    """Inverse of `ndtr`."""
def ndtri_exp(p: Any, /) -> Array:
    """Inverse of `log_ndtr`."""
def of_ufunc(ufunc: Any) -> Array:
    """The function of this module for a ufunc of SciPy, or None."""
def owens_t(h: Any, a: Any, /) -> Array:
    """Owen's T function."""
def pdtri(k: Any, p: Any, /) -> Array:
    """Inverse of `pdtr` in the mean."""
def perm(N: Any, k: Any, exact: _bool = False) -> Array:
    """The number of orders of ``k`` of ``N`` things; zero for ``k > N`` and negative numbers."""
def poch(z: Any, m: Any, /) -> Array:
    """Pochhammer symbol ``gamma(z + m) / gamma(z)``."""
def polygamma(n: Any, x: Any) -> Array:
    """The ``n``-th derivative of `digamma`, with ``n`` a whole number."""
def powm1(x1: Any, x2: Any, /) -> Array:
    """``x1**x2 - 1``, accurate near zero."""
def psi(x: Any, /) -> Array:
    """The derivative of the logarithm of the gamma function at each element. Recorded on the tape of its arguments."""
def shichi(x: Any, /) -> Array:
    """Hyperbolic sine and cosine integrals: the pair Shi, Chi."""
def sici(x: Any, /) -> Array:
    """Sine and cosine integrals: the pair Si, Ci."""
def sindg(x: Any, /) -> Array:
    """Sine of an angle in degrees."""
def softmax(x: Any, axis: Any = None) -> Array:
    """``exp(x)`` divided by its sum over ``axis``, or over everything."""
def softplus(x: Any, **kwargs: Any) -> Array:
    """``log(1 + exp(x))``, which does not overflow."""
def spence(x: Any, /) -> Array:
    """Spence's function, the dilogarithm of ``1 - x``."""
def stdtr(df: Any, t: Any, /) -> Array:
    """Cumulative distribution function of Student's t distribution."""
def stdtrit(df: Any, p: Any, /) -> Array:
    """Inverse of `stdtr` in its second argument."""
def struve(v: Any, x: Any, /) -> Array:
    """Struve function."""
def tandg(x: Any, /) -> Array:
    """Tangent of an angle in degrees."""
def voigt_profile(x: Any, sigma: Any, gamma: Any, /) -> Array:
    """Voigt profile: the density of a normal number of deviation ``sigma`` plus a Cauchy number of scale ``gamma``."""
def wofz(z: Any, /) -> Array:
    """Faddeeva function ``exp(-z**2) * erfc(-iz)``, complex."""
def wrightomega(z: Any, /) -> Array:
    """Wright's omega function: the solution of ``y + log(y) = z``."""
def xlogy(x: Any, y: Any, /) -> Array:
    """``x * log(y)``, and zero where ``x`` is zero and the logarithm is not finite, as SciPy's."""
def yv(v: Any, x: Any, /) -> Array:
    """Bessel function of the second kind and real order."""
def yve(v: Any, x: Any, /) -> Array:
    """`yv` of a real argument."""
def zeta(x: Any, q: Any = None, out: Any = None) -> Array:
    """Hurwitz' zeta function; Riemann's without ``q``. The derivative by the exponent ``x`` assumes positive ``q``."""
def zetac(x: Any, /) -> Array:
    """Riemann's zeta function less one."""

__all__ = [
    'agm', 'airy', 'bdtr', 'bdtrc', 'bdtri', 'bei', 'beip', 'ber', 'berp', 'beta', 'betainc', 'betaincc', 'betainccinv',
    'betaincinv', 'betaln', 'binom', 'boxcox', 'boxcox1p', 'cbrt', 'chdtr', 'chdtrc', 'chdtri', 'comb', 'cosdg',
    'cosm1', 'cotdg', 'dawsn', 'digamma', 'ellipe', 'ellipeinc', 'ellipk', 'ellipkinc', 'ellipkm1', 'entr', 'erf',
    'erfc', 'erfcinv', 'erfcx', 'erfi', 'erfinv', 'eval_chebyt', 'eval_chebyu', 'eval_gegenbauer', 'eval_genlaguerre',
    'eval_hermite', 'eval_hermitenorm', 'eval_jacobi', 'eval_laguerre', 'eval_legendre', 'exp1', 'exp10', 'exp2',
    'expi', 'expit', 'expm1', 'expn', 'exprel', 'factorial', 'fdtr', 'fdtrc', 'fdtri', 'fresnel', 'gamma', 'gammainc',
    'gammaincc', 'gammainccinv', 'gammaincinv', 'gammaln', 'gammasgn', 'gdtr', 'gdtrc', 'huber', 'hyp0f1', 'hyp1f1',
    'hyp2f1', 'hyperu', 'i0', 'i0e', 'i1', 'i1e', 'inv_boxcox', 'inv_boxcox1p', 'iv', 'ive', 'j0', 'j1', 'jn', 'jv',
    'jve', 'k0', 'k0e', 'k1', 'k1e', 'kei', 'keip', 'ker', 'kerp', 'kl_div', 'kn', 'kv', 'kve', 'lambertw', 'log1p',
    'log_expit', 'log_ndtr', 'log_softmax', 'loggamma', 'logit', 'logsumexp', 'modstruve', 'multigammaln', 'nbdtr',
    'nbdtrc', 'ndtr', 'ndtri', 'ndtri_exp', 'owens_t', 'pdtr', 'pdtrc', 'pdtri', 'perm', 'poch', 'polygamma', 'powm1',
    'pseudo_huber', 'psi', 'radian', 'rel_entr', 'rgamma', 'shichi', 'sici', 'sindg', 'softmax', 'softplus', 'spence',
    'stdtr', 'stdtrit', 'struve', 'tandg', 'voigt_profile', 'wofz', 'wrightomega', 'xlog1py', 'xlogy', 'y0', 'y1', 'yn',
    'yv', 'yve', 'zeta', 'zetac',
]
