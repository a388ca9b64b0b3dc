"""Rows of the hypergeometric functions, of the orthogonal polynomials among them, and of Wright's omega function."""

import math
from typing import Any

from oxigrad._typing import Array
from oxigrad.xp import where
from oxigrad.xp._scipy.guarded import unless
from oxigrad.xp._scipy.special.rows import INTEGER, NO_FORM, A, B, Row, f


def _previous(name: str, *parameters: Any, n: Array, x: Array) -> Array:
    """The polynomial of degree ``n - 1``, zero for ``n = 0``."""
    return where(n == 0, 0.0, getattr(f, name)(n - (n > 0), *parameters, x))


ROWS: dict[str, Row] = {
    "hyp0f1": (
        "v z",
        "Confluent hypergeometric limit function.",
        NO_FORM.format("parameter v"),
        lambda v, z: f.hyp0f1(v + 1.0, z) / v,
    ),
    "hyp1f1": ("a b x", "Kummer's function M.", A, B, lambda a, b, x: a / b * f.hyp1f1(a + 1.0, b + 1.0, x)),
    "hyperu": ("a b x", "Tricomi's function U.", A, B, lambda a, b, x: -a * f.hyperu(a + 1.0, b + 1.0, x)),
    "hyp2f1": (
        "a b c z",
        "Gauss' hypergeometric function.",
        A,
        B,
        NO_FORM.format("parameter c"),
        lambda a, b, c, z: a * b / c * f.hyp2f1(a + 1.0, b + 1.0, c + 1.0, z),
    ),
    "wrightomega": (
        "z",
        "Wright's omega function: the solution of ``y + log(y) = z``.",
        lambda y: unless(y == math.inf, 1.0, lambda y: y / (1.0 + y), y, 1.0),
    ),
    "eval_legendre": (
        "n x",
        "Legendre polynomial.",
        INTEGER,
        lambda n, x: _previous("eval_gegenbauer", 1.5, n=n, x=x),
    ),
    "eval_jacobi": (
        "n alpha beta x",
        "Jacobi polynomial.",
        INTEGER,
        NO_FORM.format("parameter alpha"),
        NO_FORM.format("parameter beta"),
        lambda n, alpha, beta, x: (
            0.5 * (n + alpha + beta + 1.0) * _previous("eval_jacobi", alpha + 1.0, beta + 1.0, n=n, x=x)
        ),
    ),
    "eval_chebyt": (
        "n x",
        "Chebyshev polynomial of the first kind.",
        INTEGER,
        lambda n, x: n * _previous("eval_chebyu", n=n, x=x),
    ),
    "eval_chebyu": (
        "n x",
        "Chebyshev polynomial of the second kind.",
        INTEGER,
        lambda n, x: 2.0 * _previous("eval_gegenbauer", 2.0, n=n, x=x),
    ),
    "eval_gegenbauer": (
        "n alpha x",
        "Gegenbauer polynomial.",
        INTEGER,
        NO_FORM.format("parameter alpha"),
        lambda n, alpha, x: 2.0 * alpha * _previous("eval_gegenbauer", alpha + 1.0, n=n, x=x),
    ),
    "eval_hermite": (
        "n x",
        "Hermite polynomial, the physicist's.",
        INTEGER,
        lambda n, x: 2.0 * n * _previous("eval_hermite", n=n, x=x),
    ),
    "eval_hermitenorm": (
        "n x",
        "Hermite polynomial, the probabilist's.",
        INTEGER,
        lambda n, x: n * _previous("eval_hermitenorm", n=n, x=x),
    ),
    "eval_laguerre": (
        "n x",
        "Laguerre polynomial.",
        INTEGER,
        lambda n, x: -_previous("eval_genlaguerre", 1.0, n=n, x=x),
    ),
    "eval_genlaguerre": (
        "n alpha x",
        "Generalized Laguerre polynomial.",
        INTEGER,
        NO_FORM.format("parameter alpha"),
        lambda n, alpha, x: -_previous("eval_genlaguerre", alpha + 1.0, n=n, x=x),
    ),
}
