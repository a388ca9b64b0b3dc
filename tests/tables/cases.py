"""The table of functions: each row is tested by all tests of the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp
from oxigrad.ops.backends import device_of, namespace


@dataclasses.dataclass(frozen=True)
class Case:
    """A differentiable function at a point away from its kinks; what is beyond the standard need not do in every library."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    is_standard: bool = True

    def __str__(self) -> str:
        return self.name


def like(x: Any, values: Any) -> Any:
    """The values as a plain array of the library of ``x``."""
    library = namespace(x)
    return library.asarray(np.array(values), device=device_of(x))


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal numbers of a shape, float64."""
    return np.random.default_rng(seed + 7 * len(shape)).standard_normal(shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers from 0.5 to 2.5, away from zero."""
    return np.random.default_rng(seed + 100).uniform(0.5, 2.5, shape)


def apart(*shape: int, seed: int = 0) -> np.ndarray:
    """Distinct numbers, at least 0.1 from each other and from zero, in random order."""
    size = int(np.prod(shape))
    values = (np.arange(size) - size / 2 + 0.25) * 0.2
    return np.random.default_rng(seed + 200).permutation(values).reshape(shape)


def inside(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers between -0.9 and 0.9."""
    return np.random.default_rng(seed + 300).uniform(-0.9, 0.9, shape)


def fraction(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers between 0.1 and 0.9."""
    return np.random.default_rng(seed + 400).uniform(0.1, 0.9, shape)


_DOMAINS: dict[str, Callable[..., np.ndarray]] = {
    "log": positive,
    "log1p": positive,
    "sqrt": positive,
    "reciprocal": positive,
    "abs": apart,
    "asin": inside,
    "acos": inside,
    "atanh": inside,
    "acosh": lambda *shape, seed: 1.0 + positive(*shape, seed=seed),
    "log2": positive,
    "log10": positive,
    "erfinv": inside,
    "erfcinv": lambda *shape, seed: 1.0 + inside(*shape, seed=seed),
    "cbrt": apart,
    "gamma": positive,
    "gammaln": positive,
    "digamma": positive,
}
_UNARY = """negative positive abs square sqrt reciprocal exp expm1 log log1p log2 log10 sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh erf erfc erfinv erfcinv cbrt expit gamma gammaln digamma""".split()
_BINARY: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    "add": (normal, normal),
    "subtract": (normal, normal),
    "multiply": (normal, normal),
    "divide": (normal, positive),
    "pow": (positive, normal),
    "atan2": (normal, positive),
    "maximum": (normal, lambda *shape, seed: normal(*shape, seed=seed) + 0.01),
    "minimum": (normal, lambda *shape, seed: normal(*shape, seed=seed) + 0.01),
    "hypot": (normal, positive),
    "logaddexp": (normal, normal),
    "logaddexp2": (normal, normal),
    "beta": (positive, positive),
    "betaln": (positive, positive),
    "remainder": (lambda *shape, seed=0: apart(*shape, seed=seed) * 3, positive),
}


def _unary(name: str) -> list[Case]:
    f, domain = getattr(xp, name), _DOMAINS.get(name, normal)
    values = domain(3, 4, seed=1)
    return [
        Case(f"{name}", f, (values,)),
        Case(f"{name}-scalar", f, (float(values[0, 1]),)),
        Case(f"{name}-0d", f, (values[0, 0].reshape(()),)),
        Case(f"{name}-empty", f, (values[:0],)),
        Case(f"{name}-strided", f, (values[::-2, ::3].T,)),
    ]


def _binary(name: str) -> list[Case]:
    f, (left, right) = getattr(xp, name), _BINARY[name]
    a, b = left(3, 4, seed=1), right(3, 4, seed=2)
    row, column = right(4, seed=3), left(3, 1, seed=4)
    x, y = float(a[1, 1]), float(b[1, 1])
    return [
        Case(f"{name}", f, (a, b)),
        Case(f"{name}-scalars", f, (x, y)),
        Case(f"{name}-broadcast-right", f, (a, row)),
        Case(f"{name}-broadcast-left", f, (column, b)),
        Case(f"{name}-broadcast-both", f, (column, row)),
        Case(f"{name}-array-scalar", f, (a, y)),
        Case(f"{name}-scalar-array", f, (x, b)),
        Case(f"{name}-constant-right", lambda u: f(u, like(u, row)), (a,)),
        Case(f"{name}-constant-left", lambda u: f(like(u, a), u), (row,)),
        Case(f"{name}-number-right", lambda u: f(u, y), (a,)),
        Case(f"{name}-number-left", lambda u: f(x, u), (b,)),
    ]


X, V, M = apart(3, 4), apart(4, seed=5), normal(4, 2, seed=6)
MASK = X > 0
INDICES = np.array([2, 0, 2, 1])

ELEMENTWISE = [
    *[case for name in _UNARY for case in _unary(name)],
    *[case for name in _BINARY for case in _binary(name)],
    Case("where", lambda a, b: xp.where(like(a, MASK), a, b), (X, V)),
    Case("where-number", lambda a: xp.where(like(a, MASK), a, 2.0), (X,)),
    Case("where-scalars", lambda a, b: xp.where(a > b, a, b), (1.0, 2.0)),
    Case("pow-square", lambda a: a**2, (normal(3),)),
    Case("pow-whole", lambda a: a**3, (normal(3),)),
    Case("pow-zero", lambda a: a**0, (normal(3),)),
    Case("pow-at-zero", lambda a: a**3 + a**1, (np.zeros(3),)),
    Case("rpow", lambda a: 2.0**a, (normal(3),)),
]

special = xp.special
F = fraction(3, 4)
P = positive(3, 4)

SPECIAL = [
    Case("polygamma", lambda a: special.polygamma(1, a), (P,)),
    Case("polygamma-scalar", lambda a: special.polygamma(2, a), (1.5,)),
    Case("jn", lambda a: special.jn(2, a), (P,)),
    Case("yn", lambda a: special.yn(1, a), (P,)),
    Case("iv", lambda a: special.iv(2, a), (P,)),
    Case("gammainc", lambda a: special.gammainc(like(a, P), a), (positive(3, 4, seed=8),)),
    Case("gammainc-scalar", lambda a: special.gammainc(2.5, a), (1.5,)),
    Case("gammainc-far", lambda a: special.gammainc(like(a, 3.0 * P), a), (4.0 + 20.0 * F,)),
    Case("gammaincc", lambda a: special.gammaincc(like(a, P), a), (positive(3, 4, seed=8),)),
    Case("gammaincc-broadcast", lambda a: special.gammaincc(1.0, a), (P,)),
    Case("gammainc_a", lambda a: xp.gammainc_a(like(a, P), a), (positive(3, 4, seed=8),), False),
    Case("root_or_zero", xp.root_or_zero, (P,)),
    Case("modulus_slope", lambda a: xp.modulus_slope(like(a, P), a, like(a, P)), (F,)),
    Case("modulus_slope-divisor", lambda a: xp.modulus_slope(1.5, like(a, P), a), (P,)),
    Case("betainc", lambda a: special.betainc(like(a, P), like(a, positive(4, seed=3)), a), (F,)),
    *[
        Case(name, lambda a, name=name: getattr(xp, name)(like(a, P), like(a, positive(4, seed=3)), a), (F,), False)
        for name in ("betainc_a", "betainc_b")
    ],
    Case("betainc-scalar", lambda a: special.betainc(1.0, 2.5, a), (0.3,)),
    Case("iv-orders", lambda a: special.iv(like(a, np.arange(4.0)), a), (P,)),
    *[Case(name, getattr(special, name), (P,)) for name in "j0 j1 y0 y1 i0 i1 entr".split()],
    Case("logit", special.logit, (F,)),
    Case("log_expit", special.log_expit, (X,)),
    Case("softplus", special.softplus, (X,)),
    Case("multigammaln", lambda a: special.multigammaln(a, 3), (P + 1.0,)),
    Case("rgamma", special.rgamma, (P,)),
    Case("xlogy", special.xlogy, (X, P)),
    Case("xlogy-at-zero", lambda y: special.xlogy(like(y, np.zeros(4)), y), (V**2,)),
    Case("xlog1py", special.xlog1py, (X, P)),
    Case("rel_entr", special.rel_entr, (P, F)),
    Case("logsumexp", special.logsumexp, (X,)),
    Case("logsumexp-axis", lambda a: special.logsumexp(a, axis=1), (X,)),
    Case("logsumexp-keepdims", lambda a: special.logsumexp(a, axis=(0, 1), keepdims=True), (X,)),
    Case("softmax", lambda a: special.softmax(a, axis=-1), (X,)),
    Case("log_softmax", lambda a: special.log_softmax(a, axis=-1), (X,)),
]

stats = xp.stats
COVARIANCE = np.array([[2.0, 0.3], [0.3, 1.0]])

# Densities and distribution functions, named by function and distribution.
STATS = [
    *[
        Case(f"{f}-norm", lambda x, loc, scale, f=f: getattr(stats.norm, f)(x, loc, scale), (X, V, positive(4)))
        for f in "logpdf pdf cdf logcdf sf logsf".split()
    ],
    Case("logcdf-norm-far", stats.norm.logcdf, (np.array([-40.0, -12.5, -11.5, 9.0]),)),
    *[Case(f"{f}-t", lambda x, f=f: getattr(stats.t, f)(x, 3.5, 0.1, 1.3), (X,)) for f in "cdf logcdf".split()],
    Case("logpdf-t", lambda x, df: stats.t.logpdf(x, df, loc=0.1), (X, positive(4))),
    Case("logpdf-beta", stats.beta.logpdf, (F, positive(4), 2.5)),
    *[Case(f"{f}-beta", lambda x, f=f: getattr(stats.beta, f)(x, 2.5, 0.7), (F,)) for f in "pdf cdf sf".split()],
    Case(
        "logpdf-gamma", lambda x, a, scale: stats.gamma.logpdf(x, a, scale=scale), (P, positive(4), positive(4, seed=9))
    ),
    *[Case(f"{f}-gamma", lambda x, f=f: getattr(stats.gamma, f)(x, 2.5), (P,)) for f in "pdf cdf sf".split()],
    Case("logpdf-chi2", stats.chi2.logpdf, (P, positive(4))),
    *[Case(f"{f}-chi2", lambda x, f=f: getattr(stats.chi2, f)(x, 2.5), (P,)) for f in "pdf cdf sf".split()],
    *[
        Case(f"{f}-poisson", lambda mu, f=f: getattr(stats.poisson, f)(like(mu, np.arange(4.0)), mu), (P,))
        for f in "pmf logpmf cdf".split()
    ],
    Case("logpdf-dirichlet", stats.dirichlet.logpdf, (fraction(3, 4), positive(3))),
    Case("pdf-dirichlet", stats.dirichlet.pdf, (fraction(3), positive(3))),
    Case(
        "logpdf-multivariate-normal",
        lambda x, mean, a: stats.multivariate_normal.logpdf(x, mean, a @ a.T + like(a, COVARIANCE)),
        (normal(5, 2), normal(2), normal(2, 2, seed=3)),
    ),
    Case(
        "pdf-multivariate-normal",
        lambda x: stats.multivariate_normal.pdf(x, like(x, V[:2]), like(x, COVARIANCE)),
        (V[2:],),
    ),
    Case("entropy-multivariate-normal", lambda a: stats.multivariate_normal.entropy(None, a @ a.T), (normal(2, 2),)),
    Case(
        "odeint",
        lambda y, rate: xp.integrate.odeint(lambda y, t, r: r * y * (1.0 - y) + t, y, like(y, V**2), (rate,)),
        (0.2 * V, 0.7),
    ),
]

# Functions composed of ops: one of the standard's name each, then NumPy's.
COMPOSED = [
    Case("clip", lambda a: xp.clip(a, -0.5, 0.5), (X,)),
    Case("clip-min", lambda a: xp.clip(a, min=-0.5), (X,)),
    Case("clip-arrays", lambda a, b, c: xp.clip(a, b, c), (X, normal(4) - 0.5, normal(4) + 0.8)),
    Case("copysign", lambda a: xp.copysign(a, like(a, V)), (X,)),
    Case("copysign-scalars", lambda a: xp.copysign(a, -1.0), (2.0,)),
    Case("var", lambda a: xp.var(a), (X,)),
    Case("var-axis", lambda a: xp.var(a, axis=0, correction=1, keepdims=True), (X,)),
    Case("var-axes", lambda a: xp.var(a, axis=(0, -1)), (normal(2, 3, 4),)),
    Case("std", lambda a: xp.std(a), (X,)),
    Case("std-axis", lambda a: xp.std(a, axis=1, correction=1.0), (X,)),
    Case("prod", lambda a: xp.prod(a), (V,)),
    Case("prod-axis", lambda a: xp.prod(a, axis=0, keepdims=True), (X,)),
    Case("prod-axes", lambda a: xp.prod(a, axis=(0, 2)), (normal(2, 3, 5),)),
    Case("prod-zero", lambda a: xp.prod(a), (np.array([2.0, 0.0, 3.0]),)),
    Case("prod-zeros", lambda a: xp.prod(a), (np.array([2.0, 0.0, 3.0, 0.0, 1.0]),)),
    Case("prod-empty", lambda a: xp.prod(a, axis=0), (X[:0],)),
    Case("cumulative_sum", lambda a: xp.cumulative_sum(a), (V,)),
    Case("cumulative_sum-axis", lambda a: xp.cumulative_sum(a, axis=0, include_initial=True), (X,)),
    Case("cumulative_prod", lambda a: xp.cumulative_prod(a), (V,)),
    Case("cumulative_prod-zero", lambda a: xp.cumulative_prod(a), (np.array([2.0, 0.0, 3.0, 0.0, 1.0]),)),
    Case("cumulative_prod-axis", lambda a: xp.cumulative_prod(a, axis=1, include_initial=True), (X,)),
    Case("diff", lambda a: xp.diff(a), (X,)),
    Case("diff-n", lambda a: xp.diff(a, axis=0, n=2), (X,)),
    Case("diff-ends", lambda a, b: xp.diff(a, prepend=b, append=like(a, X[:, :2])), (X, X[:, :1])),
    Case("flip", lambda a: xp.flip(a), (X,)),
    Case("flip-axis", lambda a: xp.flip(a, axis=1), (X,)),
    Case("moveaxis", lambda a: xp.moveaxis(a, (0, 1), (-1, 0)), (normal(2, 3, 4),)),
    Case("roll", lambda a: xp.roll(a, 5), (X,)),
    Case("roll-axes", lambda a: xp.roll(a, (1, -2), axis=(0, 1)), (X,)),
    Case("repeat", lambda a: xp.repeat(a, 2), (X,)),
    Case("repeat-axis", lambda a: xp.repeat(a, like(a, [1, 0, 2]), axis=0), (X,)),
    Case("tile", lambda a: xp.tile(a, (2, 1, 3)), (X,)),
    Case("tile-fewer", lambda a: xp.tile(a, (2,)), (X,)),
    Case("unstack", lambda a: list(xp.unstack(a, axis=1)), (X,)),
    Case("broadcast_arrays", lambda a, b: xp.broadcast_arrays(a, b), (X[:1], X[:, :1])),
    Case("meshgrid", lambda a, b: xp.meshgrid(a, b), (V, V[:3])),
    Case("meshgrid-ij", lambda a, b, c: xp.meshgrid(a, b, c, indexing="ij"), (V, V[:3], V[:2])),
    Case("tril", lambda a: xp.tril(a, k=-1), (normal(2, 3, 4),)),
    Case("triu", lambda a: xp.triu(a, k=1), (X,)),
    Case("take", lambda a: xp.take(a, like(a, [2, 0, 2]), axis=0), (X,)),
    Case("take-flat", lambda a: xp.take(a, like(a, [3, 0])), (V,)),
    Case("sort", lambda a: xp.sort(a), (X,)),
    Case("sort-axis", lambda a: xp.sort(a, axis=0, descending=True), (X,)),
    Case("unique_all", lambda a: xp.unique_all(a)[0], (X,)),
    Case("unique_counts", lambda a: xp.unique_counts(a)[0], (X,)),
    Case("unique_inverse", lambda a: xp.unique_inverse(a)[0], (X,)),
    Case("unique_values", xp.unique_values, (X,)),
    Case("full", lambda a: xp.full((2, 3), a), (1.5,)),
    Case("full-0d", lambda a: xp.full(3, a), (np.array(2.0),)),
    Case("full_like", lambda a: xp.full_like(like(a, X), a), (np.array(2.0),)),
    Case("linspace", lambda a, b: xp.linspace(a, b, 5), (1.0, 2.5)),
    Case("linspace-open", lambda a: xp.linspace(a, 3.0, 4, endpoint=False), (np.array(2.0),)),
    Case("asarray", lambda a, b: xp.asarray([[a, b], [b, a * b]]), (np.array(1.5), np.array(2.5))),
    Case("asarray-numbers", lambda a, b: xp.asarray([[a, 2.0], [b, a * b]]), (1.5, 2.5)),
    Case("exp2", xp.exp2, (X,)),
    Case("sinc", xp.sinc, (X,)),
    Case("fabs", xp.fabs, (X,)),
    Case("fmax", xp.fmax, (X, normal(3, 4))),
    Case("fmin", xp.fmin, (X, normal(3, 4))),
    Case("nan_to_num", xp.nan_to_num, (X,)),
    Case("deg2rad", xp.deg2rad, (X,)),
    Case("rad2deg", xp.rad2deg, (X,)),
    Case("cumsum", lambda a: xp.cumsum(a), (X,)),
    Case("cumprod", lambda a: xp.cumprod(a, axis=0), (X,)),
    Case("gradient", lambda a: xp.gradient(a, 0.5), (X,)),
    Case("gradient-axis", lambda a: xp.gradient(a, axis=0), (X,)),
    Case("swapaxes", lambda a: xp.swapaxes(a, 0, -1), (X,)),
    Case("rollaxis", lambda a: xp.rollaxis(a, 2, 0), (normal(2, 3, 4),)),
    Case("rot90", lambda a: xp.rot90(a), (X,)),
    Case("fliplr", xp.fliplr, (X,)),
    Case("flipud", xp.flipud, (X,)),
    Case("atleast_1d", xp.atleast_1d, (np.array(2.0),)),
    Case("atleast_2d", xp.atleast_2d, (V,)),
    Case("atleast_3d", xp.atleast_3d, (X,)),
    Case("vstack", lambda a, b: xp.vstack([a, b]), (X, V)),
    Case("hstack", lambda a, b: xp.hstack([a, b]), (X, X)),
    Case("dstack", lambda a, b: xp.dstack([a, b]), (X, X)),
    Case("column_stack", lambda a, b: xp.column_stack([a, b]), (X, V[:3])),
    Case("split", lambda a: xp.split(a, 2, axis=1), (X,)),
    Case("array_split", lambda a: xp.array_split(a, 3, axis=1), (X,)),
    Case("vsplit", lambda a: xp.vsplit(a, [1]), (X,)),
    Case("hsplit", lambda a: xp.hsplit(a, 2), (X,)),
    Case("dsplit", lambda a: xp.dsplit(a, 2), (normal(2, 3, 4),)),
    Case("pad", lambda a: xp.pad(a, 1, constant_values=2.0), (X,)),
    *[
        Case(f"pad-{mode}", lambda a, mode=mode: xp.pad(a, ((1, 2), (0, 2)), mode=mode), (X,))
        for mode in "edge reflect symmetric wrap".split()
    ],
    Case("partition", lambda a: xp.partition(a, 1), (X,)),
    Case("real_if_close", xp.real_if_close, (X,)),
]

STRUCTURED = [
    Case("sum", lambda a: xp.sum(a), (X,)),
    Case("sum-axis", lambda a: xp.sum(a, axis=0), (X,)),
    Case("sum-axes", lambda a: xp.sum(a, axis=(0, -1)), (normal(2, 3, 4),)),
    Case("sum-keepdims", lambda a: xp.sum(a, axis=1, keepdims=True), (X,)),
    Case("sum-0d", lambda a: xp.sum(a), (np.array(2.0),)),
    Case("mean", lambda a: xp.mean(a), (X,)),
    Case("mean-axis", lambda a: xp.mean(a, axis=-1), (X,)),
    Case("max", lambda a: xp.max(a), (X,)),
    Case("max-axis", lambda a: xp.max(a, axis=1), (X,)),
    Case("max-keepdims", lambda a: xp.max(a, axis=(0, 1), keepdims=True), (X,)),
    Case("min", lambda a: xp.min(a), (X,)),
    Case("min-axis", lambda a: xp.min(a, axis=0), (X,)),
    Case("matmul", lambda a, b: a @ b, (X, M)),
    Case("matmul-vector", lambda a, b: a @ b, (X, V)),
    Case("vector-matmul", lambda a, b: a @ b, (V, M)),
    Case("matmul-vectors", lambda a, b: a @ b, (V, normal(4))),
    Case("matmul-stack", lambda a, b: a @ b, (normal(5, 3, 4), normal(5, 4, 2))),
    Case("matmul-broadcast", lambda a, b: a @ b, (normal(5, 1, 3, 4), normal(2, 4, 2))),
    Case("matmul-stack-vector", lambda a, b: a @ b, (normal(5, 3, 4), V)),
    Case("vector-matmul-stack", lambda a, b: a @ b, (V, normal(5, 4, 2))),
    Case("matmul-constant", lambda a: xp.matmul(like(a, X), a), (M,)),
    Case("reshape", lambda a: xp.reshape(a, (2, -1)), (X,)),
    Case("ravel", lambda a: xp.reshape(a, -1), (X,)),
    Case("permute_dims", lambda a: xp.permute_dims(a, (2, 0, 1)), (normal(2, 3, 4),)),
    Case("transpose", lambda a: a.T, (X,)),
    Case("matrix_transpose", lambda a: a.mT, (normal(2, 3, 4),)),
    Case("expand_dims", lambda a: xp.expand_dims(a, axis=1), (X,)),
    Case("squeeze", lambda a: xp.squeeze(a, axis=0), (X[:1],)),
    Case("broadcast_to", lambda a: xp.broadcast_to(a, (2, 3, 4)), (X,)),
    Case("broadcast_to-row", lambda a: xp.broadcast_to(a, (3, 4)), (X[:1],)),
    Case("concat", lambda a, b: xp.concat([a, b], axis=0), (X, X[:2] * 2)),
    Case("concat-axis", lambda a, b: xp.concat([a, like(a, X), b], axis=-1), (X, X[:, :1])),
    Case("concat-flat", lambda a, b: xp.concat([a, b], axis=None), (X, V)),
    Case("stack", lambda a, b: xp.stack([a, b]), (X, X * 2)),
    Case("stack-last", lambda a, b: xp.stack([a, b, a], axis=-1), (X, X * 2)),
    Case("astype", lambda a: xp.astype(a, a.dtype), (X,)),
    Case("take_along_axis", lambda a: xp.take_along_axis(a, like(a, [[1, 1], [0, 3], [2, 2]]), axis=1), (X,)),
    Case("index-item", lambda a: a[1, 2], (X,)),
    Case("index-row", lambda a: a[1, ...], (X,)),
    Case("index-slice", lambda a: a[::-1, 1:3], (X,)),
    Case("index-newaxis", lambda a: a[..., None, 0], (X,)),
    Case("index-fewer", lambda a: a[1], (X,), False),
    Case("index-integers", lambda a: a[:, like(a, INDICES)], (X,), False),
    Case("index-pairs", lambda a: a[like(a, [0, 0, 2]), like(a, [1, 1, 3])], (X,)),
    Case("index-mask", lambda a: a[like(a, MASK)], (X,)),
    Case("iterate", lambda a: sum(row * row for row in a), (X,)),
    Case("index-apart", lambda a: a[0, :, like(a, [1, 1, 0])], (normal(2, 3, 4),), False),
    Case("stack-many", lambda a: xp.stack([a[0] * i for i in range(40)]), (V,)),
    Case("stack-constant", lambda a: xp.stack([like(a, V), a, like(a, V * 2)]), (V,)),
    Case("call", ox.checkpoint(lambda a, b: xp.sin(a) @ b), (X, M)),
    Case("unused", lambda a, b: a * 2.0, (X, V)),
    Case("twice", lambda a: a * a + a, (X,)),
]

CASES = [*ELEMENTWISE, *SPECIAL, *STATS, *COMPOSED, *STRUCTURED]
