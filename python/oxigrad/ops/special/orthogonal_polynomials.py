"""Rows of the orthogonal polynomials."""

from typing import Any

from oxigrad._typing import Array
from oxigrad.ops.core.primitives import where
from oxigrad.ops.special.rows import INTEGER, NO_FORM, Row, f


def _previous(name: str, *parameters: Any, n: Any, x: Array) -> Array:
    """The polynomial of degree ``n - 1``, zero for ``n = 0``."""
    return where(n == 0, 0.0, getattr(f, name)(n - (n > 0), *parameters, x))


ROWS: dict[str, Row] = {
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
