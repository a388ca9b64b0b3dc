"""Combinatorial functions, named as in SciPy: of real numbers, and exact ones of integers, which have no derivative."""

from typing import Any

from oxigrad import DerivativeError, Variable
from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import gamma
from oxigrad.xp._scipy.guarded import branch
from oxigrad.xp._scipy.special.rows import f

__all__ = ["comb", "factorial", "perm"]


def _exact(name: str, *args: Any, **named: Any) -> Array:
    """SciPy's exact integers."""
    if any(isinstance(arg, Variable) for arg in args):
        raise DerivativeError(f"{name} is not differentiable with exact=True, of integers: expected exact=False")
    return of_scipy("special", name)(*args, exact=True, **named)


def _inside(condition: Array, function: Function, *args: tuple[Array, float]) -> Array:
    """The function where the condition holds, and zero elsewhere; each argument with a value for which it does."""
    return branch(condition, function, lambda *_: 0.0, *((arg, safe, safe) for arg, safe in args))


def _is_choice(n: Array, k: Array) -> Array:
    n, k = plain(n), plain(k)
    return ops.logical_and(k <= n, ops.logical_and(n >= 0.0, k >= 0.0))


@scipy_signature("N, k, *, exact=False, repetition=False")
def comb(n: Array, k: Array, /, exact: bool, repetition: bool) -> Array:
    """The number of ways to choose ``k`` of ``N`` things; with ``repetition`` each may be chosen again.

    It is zero for ``k > N`` and negative numbers. For real numbers it is a binomial coefficient of gamma functions,
    with their derivatives.

    >>> comb(5, 2), comb(30, 15, exact=True)
    (10.0, 155117520)
    """
    if exact:
        return _exact("comb", n, k, repetition=repetition)
    n, k = 1.0 * n, 1.0 * k
    if not repetition:
        return _inside(_is_choice(n, k), f.binom, (n, 2.0), (k, 1.0))
    is_none = ops.logical_and(plain(k) == 0.0, plain(n) >= 0.0)
    return branch(is_none, lambda *_: 1.0, f.binom, (n + k - 1.0, 2.0, 2.0), (k, 1.0, 1.0))


@scipy_signature("N, k, exact=False")
def perm(n: Array, k: Array, /, exact: bool) -> Array:
    """The number of orders of ``k`` of ``N`` things; zero for ``k > N`` and negative numbers.

    >>> perm(5, 2), perm(5, 2, exact=True)
    (20.0, 20)
    """
    if exact:
        return _exact("perm", n, k)
    n, k = 1.0 * n, 1.0 * k
    return _inside(_is_choice(n, k), lambda n, k: f.poch(n - k + 1.0, k), (n, 2.0), (k, 1.0))


@scipy_signature("n, exact=False, extend='zero'")
def factorial(n: Array, /, exact: bool, extend: str) -> Array:
    """The gamma function of ``n + 1``; zero for negative numbers.

    >>> factorial(5), factorial(20, exact=True)
    (120.0, 2432902008176640000)
    """
    if extend != "zero":
        raise NotImplementedError(f"factorial: extend is {extend!r}: expected 'zero': other values are not implemented")
    return _exact("factorial", n) if exact else _inside(plain(n) >= 0.0, lambda n: gamma(n + 1.0), (1.0 * n, 1.0))
