# Printed by make generated.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array

from oxigrad.xp._scipy.special.composed import (
    cosm1 as cosm1, entr as entr, exprel as exprel, gammasgn as gammasgn, huber as huber, jn as jn, kl_div as kl_div,
    logit as logit, pseudo_huber as pseudo_huber, rel_entr as rel_entr, rgamma as rgamma, xlog1py as xlog1py, yn as yn,
)
from oxigrad.xp._scipy.special.elliptic_integrals import (agm as agm)

def airy(x: Array, /) -> Array:
    """Airy functions: Ai, its derivative, Bi, its derivative."""
def bdtr(k: Array, n: Array, p: Array, /) -> Array:
    """Probability of at most ``k`` successes in ``n`` trials."""
def bdtrc(k: Array, n: Array, p: Array, /) -> Array:
    """Probability of more than ``k`` successes in ``n`` trials."""
def bdtri(k: Array, n: Array, p: Array, /) -> Array:
    """Inverse of `bdtr` in the probability of a success."""
def bei(x: Array, /) -> Array:
    """Kelvin function bei."""
def beip(x: Array, /) -> Array:
    """Derivative of the Kelvin function bei."""
def ber(x: Array, /) -> Array:
    """Kelvin function ber."""
def berp(x: Array, /) -> Array:
    """Derivative of the Kelvin function ber."""
def beta(x1: Array, x2: Array, /) -> Array:
    """The beta function of each pair of elements. Recorded on the tape of its arguments."""
def betainc(x1: Array, x2: Array, x3: Array, /) -> Array:
    """The regularized incomplete beta function of parameters ``x1`` and ``x2`` at ``x3``. Recorded on the tape of
    its arguments.
    """
def betaincc(a: Array, b: Array, x: Array, /) -> Array:
    """Complement of `betainc`."""
def betainccinv(a: Array, b: Array, p: Array, /) -> Array:
    """Inverse of `betaincc`."""
def betaincinv(a: Array, b: Array, p: Array, /) -> Array:
    """Inverse of `betainc`."""
def betaln(x1: Array, x2: Array, /) -> Array:
    """The logarithm of the beta function of each pair of elements. Recorded on the tape of its arguments."""
def binom(n: Array, k: Array, /) -> Array:
    """Binomial coefficient of real numbers."""
def boxcox(x: Array, lmbda: Array, /) -> Array:
    """The Box-Cox transformation ``(x**lmbda - 1) / lmbda``; the logarithm where ``lmbda`` is zero."""
def boxcox1p(x: Array, lmbda: Array, /) -> Array:
    """`boxcox` of ``1 + x``, accurate for small ``x``."""
def cbrt(x: Array, /) -> Array:
    """The cube root of each element. Recorded on the tape of its arguments."""
def chdtr(v: Array, x: Array, /) -> Array:
    """Cumulative distribution function of the chi-square distribution."""
def chdtrc(v: Array, x: Array, /) -> Array:
    """Survival function of the chi-square distribution."""
def chdtri(v: Array, p: Array, /) -> Array:
    """Inverse of `chdtrc` in its second argument."""
def comb(N: Any, k: Any, *, exact: _bool = False, repetition: _bool = False) -> Array:
    """The number of ways to choose ``k`` of ``N`` things; with ``repetition`` each may be chosen again."""
def cosdg(x: Array, /) -> Array:
    """Cosine of an angle in degrees."""
def cotdg(x: Array, /) -> Array:
    """Cotangent of an angle in degrees."""
def dawsn(x: Array, /) -> Array:
    """Dawson's integral."""
def digamma(x: Array, /) -> Array:
    """The derivative of the logarithm of the gamma function at each element. Recorded on the tape of its arguments."""
def ellipe(m: Array, /) -> Array:
    """Complete elliptic integral of the second kind."""
def ellipeinc(phi: Array, m: Array, /) -> Array:
    """Incomplete elliptic integral of the second kind."""
def ellipk(m: Array, /) -> Array:
    """Complete elliptic integral of the first kind, of the parameter ``m``."""
def ellipkinc(phi: Array, m: Array, /) -> Array:
    """Incomplete elliptic integral of the first kind."""
def ellipkm1(p: Array, /) -> Array:
    """``ellipk(1 - p)``, accurate for small ``p``."""
def erf(x: Array, /) -> Array:
    """The error function of each element. Recorded on the tape of its arguments."""
def erfc(x: Array, /) -> Array:
    """The complementary error function ``1 - erf(x)`` of each element. Recorded on the tape of its arguments."""
def erfcinv(x: Array, /) -> Array:
    """The inverse of the complementary error function of each element. Recorded on the tape of its arguments."""
def erfcx(x: Array, /) -> Array:
    """Scaled complementary error function, ``exp(x**2) * erfc(x)``."""
def erfi(x: Array, /) -> Array:
    """Imaginary error function, ``-i erf(ix)``."""
def erfinv(x: Array, /) -> Array:
    """The inverse of the error function of each element. Recorded on the tape of its arguments."""
def eval_chebyt(n: Array, x: Array, /) -> Array:
    """Chebyshev polynomial of the first kind."""
def eval_chebyu(n: Array, x: Array, /) -> Array:
    """Chebyshev polynomial of the second kind."""
def eval_gegenbauer(n: Array, alpha: Array, x: Array, /) -> Array:
    """Gegenbauer polynomial."""
def eval_genlaguerre(n: Array, alpha: Array, x: Array, /) -> Array:
    """Generalized Laguerre polynomial."""
def eval_hermite(n: Array, x: Array, /) -> Array:
    """Hermite polynomial, the physicist's."""
def eval_hermitenorm(n: Array, x: Array, /) -> Array:
    """Hermite polynomial, the probabilist's."""
def eval_jacobi(n: Array, alpha: Array, beta: Array, x: Array, /) -> Array:
    """Jacobi polynomial."""
def eval_laguerre(n: Array, x: Array, /) -> Array:
    """Laguerre polynomial."""
def eval_legendre(n: Array, x: Array, /) -> Array:
    """Legendre polynomial."""
def exp1(x: Array, /) -> Array:
    """Exponential integral E1."""
def exp10(x: Array, /) -> Array:
    """``10**x``."""
def exp2(x: Array, /) -> Array:
    """``2**x``."""
def expi(x: Array, /) -> Array:
    """Exponential integral Ei."""
def expit(x: Array, /) -> Array:
    """The logistic function ``1 / (1 + exp(-x))`` of each element. Recorded on the tape of its arguments."""
def expm1(x: Array, /) -> Array:
    """``exp(x) - 1`` of each element, accurate near zero. Recorded on the tape of its arguments."""
def expn(n: Array, x: Array, /) -> Array:
    """Exponential integral of integer order."""
def factorial(n: Any, exact: _bool = False, extend: str = 'zero') -> Array:
    """The gamma function of ``n + 1``; zero for negative numbers."""
def fdtr(dfn: Array, dfd: Array, x: Array, /) -> Array:
    """Cumulative distribution function of the F distribution."""
def fdtrc(dfn: Array, dfd: Array, x: Array, /) -> Array:
    """Survival function of the F distribution."""
def fdtri(dfn: Array, dfd: Array, p: Array, /) -> Array:
    """Inverse of `fdtr`."""
def fresnel(x: Array, /) -> Array:
    """Fresnel integrals: the pair S, C."""
def gamma(x: Array, /) -> Array:
    """The gamma function of each element. Recorded on the tape of its arguments."""
def gammainc(x1: Array, x2: Array, /) -> Array:
    """The regularized lower incomplete gamma function with the parameter ``x1``, from 0 to ``x2``. Recorded on the
    tape of its arguments.
    """
def gammaincc(x1: Array, x2: Array, /) -> Array:
    """The regularized upper incomplete gamma function with the parameter ``x1``, from ``x2`` to infinity. Recorded
    on the tape of its arguments.
    """
def gammainccinv(a: Array, p: Array, /) -> Array:
    """Inverse of `gammaincc` in its second argument."""
def gammaincinv(a: Array, p: Array, /) -> Array:
    """Inverse of `gammainc` in its second argument."""
def gammaln(x: Array, /) -> Array:
    """The logarithm of the absolute value of the gamma function of each element. Recorded on the tape of its
    arguments.
    """
def gdtr(a: Array, b: Array, x: Array, /) -> Array:
    """Cumulative distribution function of the gamma distribution of rate ``a`` and shape ``b``."""
def gdtrc(a: Array, b: Array, x: Array, /) -> Array:
    """Survival function of the gamma distribution of rate ``a`` and shape ``b``."""
def hyp0f1(v: Array, z: Array, /) -> Array:
    """Confluent hypergeometric limit function."""
def hyp1f1(a: Array, b: Array, x: Array, /) -> Array:
    """Kummer's function M."""
def hyp2f1(a: Array, b: Array, c: Array, z: Array, /) -> Array:
    """Gauss' hypergeometric function."""
def hyperu(a: Array, b: Array, x: Array, /) -> Array:
    """Tricomi's function U."""
def i0(x: Array, /) -> Array:
    """Modified Bessel function of the first kind and order 0."""
def i0e(x: Array, /) -> Array:
    """``exp(-abs(x)) * i0(x)``."""
def i1(x: Array, /) -> Array:
    """Modified Bessel function of the first kind and order 1."""
def i1e(x: Array, /) -> Array:
    """``exp(-abs(x)) * i1(x)``."""
def inv_boxcox(x: Array, lmbda: Array, /) -> Array:
    """The inverse of `boxcox`."""
def inv_boxcox1p(x: Array, lmbda: Array, /) -> Array:
    """The inverse of `boxcox1p`."""
def iv(x1: Array, x2: Array, /) -> Array:
    """The modified Bessel function of the first kind of order ``x1`` at each element of ``x2``. Recorded on the tape
    of its arguments.
    """
def ive(v: Array, x: Array, /) -> Array:
    """``exp(-abs(x)) * iv(v, x)``."""
def j0(x: Array, /) -> Array:
    """Bessel function of the first kind and order 0."""
def j1(x: Array, /) -> Array:
    """Bessel function of the first kind and order 1."""
def jv(v: Array, x: Array, /) -> Array:
    """Bessel function of the first kind and real order."""
def jve(v: Array, x: Array, /) -> Array:
    """`jv` of a real argument."""
def k0(x: Array, /) -> Array:
    """Modified Bessel function of the second kind and order 0."""
def k0e(x: Array, /) -> Array:
    """``exp(x) * k0(x)``."""
def k1(x: Array, /) -> Array:
    """Modified Bessel function of the second kind and order 1."""
def k1e(x: Array, /) -> Array:
    """``exp(x) * k1(x)``."""
def kei(x: Array, /) -> Array:
    """Kelvin function kei."""
def keip(x: Array, /) -> Array:
    """Derivative of the Kelvin function kei."""
def ker(x: Array, /) -> Array:
    """Kelvin function ker."""
def kerp(x: Array, /) -> Array:
    """Derivative of the Kelvin function ker."""
def kn(n: Array, x: Array, /) -> Array:
    """Modified Bessel function of the second kind and integer order."""
def kv(v: Array, x: Array, /) -> Array:
    """Modified Bessel function of the second kind and real order."""
def kve(v: Array, x: Array, /) -> Array:
    """``exp(x) * kv(v, x)``."""
def lambertw(z: Any, k: Any = 0, tol: Any = 1e-08) -> Array:
    """Lambert's function, complex: the solution ``w`` of ``w * exp(w) = z`` on branch ``k``."""
def log1p(x: Array, /) -> Array:
    """``log(1 + x)`` of each element, accurate near zero. Recorded on the tape of its arguments."""
def log_expit(x: Array, /) -> Array:
    """``log(expit(x))``, which does not underflow."""
def log_ndtr(x: Array, /) -> Array:
    """Logarithm of `ndtr`."""
def log_softmax(x: Any, axis: Any = None) -> Array:
    """Logarithm of ``softmax``, which does not underflow."""
def loggamma(x: Array, /) -> Array:
    """Principal branch of the logarithm of the gamma function."""
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: _bool = False, return_sign: _bool = False) -> Array:
    """``log(sum(b * exp(x)))``, which does not overflow; NaN where the sum is negative."""
def modstruve(v: Array, x: Array, /) -> Array:
    """Modified Struve function."""
def multigammaln(a: Any, d: Any) -> Array:
    """Logarithm of the multivariate gamma function of ``d`` dimensions."""
def nbdtr(k: Array, n: Array, p: Array, /) -> Array:
    """Probability of at most ``k`` failures before ``n`` successes."""
def nbdtrc(k: Array, n: Array, p: Array, /) -> Array:
    """Probability of more than ``k`` failures before ``n`` successes."""
def ndtr(x: Array, /) -> Array:
    """Cumulative distribution function of the standard normal distribution."""
def ndtri(p: Array, /) -> Array:
    """Inverse of `ndtr`."""
def ndtri_exp(p: Array, /) -> Array:
    """Inverse of `log_ndtr`."""
def owens_t(h: Array, a: Array, /) -> Array:
    """Owen's T function."""
def pdtr(k: Array, m: Array, /) -> Array:
    """Probability that a Poisson number of mean ``m`` is at most ``k``."""
def pdtrc(k: Array, m: Array, /) -> Array:
    """Probability that a Poisson number of mean ``m`` is more than ``k``."""
def pdtri(k: Array, p: Array, /) -> Array:
    """Inverse of `pdtr` in the mean."""
def perm(N: Any, k: Any, exact: _bool = False) -> Array:
    """The number of orders of ``k`` of ``N`` things; zero for ``k > N`` and negative numbers."""
def poch(z: Array, m: Array, /) -> Array:
    """Pochhammer symbol ``gamma(z + m) / gamma(z)``."""
def polygamma(n: Any, x: Any) -> Array:
    """The ``n``-th derivative of `digamma`, with ``n`` a whole number."""
def powm1(x1: Array, x2: Array, /) -> Array:
    """``x1**x2 - 1``, accurate near zero."""
def psi(x: Array, /) -> Array:
    """The derivative of the logarithm of the gamma function at each element. Recorded on the tape of its arguments."""
def radian(d: Array, m: Array, s: Array, /) -> Array:
    """An angle of degrees, minutes and seconds in radians."""
def shichi(x: Array, /) -> Array:
    """Hyperbolic sine and cosine integrals: the pair Shi, Chi."""
def sici(x: Array, /) -> Array:
    """Sine and cosine integrals: the pair Si, Ci."""
def sindg(x: Array, /) -> Array:
    """Sine of an angle in degrees."""
def softmax(x: Any, axis: Any = None) -> Array:
    """``exp(x)`` divided by its sum over ``axis``, or over everything."""
def softplus(x: Any, **kwargs: Any) -> Array:
    """``log(1 + exp(x))``, which does not overflow."""
def spence(x: Array, /) -> Array:
    """Spence's function, the dilogarithm of ``1 - x``."""
def stdtr(df: Array, t: Array, /) -> Array:
    """Cumulative distribution function of Student's t distribution."""
def stdtrit(df: Array, p: Array, /) -> Array:
    """Inverse of `stdtr` in its second argument."""
def struve(v: Array, x: Array, /) -> Array:
    """Struve function."""
def tandg(x: Array, /) -> Array:
    """Tangent of an angle in degrees."""
def voigt_profile(x: Array, sigma: Array, gamma: Array, /) -> Array:
    """Voigt profile: the density of a normal number of deviation ``sigma`` plus a Cauchy number of scale ``gamma``."""
def wofz(z: Array, /) -> Array:
    """Faddeeva function ``exp(-z**2) * erfc(-iz)``, complex."""
def wrightomega(z: Array, /) -> Array:
    """Wright's omega function: the solution of ``y + log(y) = z``."""
def xlogy(x: Array, y: Array, /) -> Array:
    """``x * log(y)``, and zero where ``x`` is zero and the logarithm is not finite, as SciPy's."""
def y0(x: Array, /) -> Array:
    """Bessel function of the second kind and order 0."""
def y1(x: Array, /) -> Array:
    """Bessel function of the second kind and order 1."""
def yv(v: Array, x: Array, /) -> Array:
    """Bessel function of the second kind and real order."""
def yve(v: Array, x: Array, /) -> Array:
    """`yv` of a real argument."""
def zeta(x: Any, q: Any = None, out: Any = None) -> Array:
    """Hurwitz' zeta function; Riemann's without ``q``. The derivative by the exponent ``x`` assumes positive ``q``."""
def zetac(x: Array, /) -> Array:
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
