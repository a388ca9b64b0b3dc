"""The table of linear algebra, products and Fourier transforms: rows as in `cases`, joined to its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cases import Case, like, normal, positive
from oxigrad import xp
from oxigrad._core import record
from oxigrad.ops.core import primitives

la, fft = xp.linalg, xp.fft


def complex_normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal complex numbers."""
    return normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 50)


def regular(*shape: int, seed: int = 0) -> np.ndarray:
    """Square matrices far from singular, with singular values far from each other."""
    n = shape[-1]
    return 0.3 * normal(*shape, seed=seed) + np.diag(np.arange(1.0, n + 1))


def symmetric(x: Any) -> Any:
    """The Hermitian part, so that a change in any direction stays Hermitian."""
    return (x + xp.matrix_transpose(xp.conjugate(x))) * 0.5


def definite(x: Any) -> Any:
    """A Hermitian positive definite matrix."""
    return x @ xp.matrix_transpose(xp.conjugate(x)) + primitives.eye_like(x)


def both(name: str, f: Callable[..., Any], *args: np.ndarray, seed: int = 70) -> list[Case]:
    """A row for real arguments, and one for complex ones."""
    turned = tuple(x + 0.3j * normal(*x.shape, seed=seed + i) for i, x in enumerate(args))
    return [Case(name, f, args), Case(f"{name}-complex", f, turned)]


def named(module: Any, name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    """A function of a module, with all but its first argument."""
    return lambda x: getattr(module, name)(x, *args, **options)


def signless_svd(x: Any) -> tuple[Any, ...]:
    """The sign-invariant results of a singular value decomposition: the values, and products of pairs of vectors."""
    u, s, vh = la.svd(x, full_matrices=False)
    weights = like(s, np.arange(1.0, s.shape[-1] + 1))
    return (
        s,
        (u * weights) @ vh,
        (u * weights) @ la.matrix_transpose(xp.conjugate(u)),
        (vh.mT * weights) @ xp.conjugate(vh),
    )


def signless_eigh(x: Any) -> tuple[Any, ...]:
    """The sign-invariant results of a Hermitian eigendecomposition."""
    w, v = la.eigh(symmetric(x))
    return w, (v * like(w, np.arange(1.0, w.shape[-1] + 1))) @ la.matrix_transpose(xp.conjugate(v))


def signless_eig(x: Any) -> tuple[Any, ...]:
    """The phase-invariant results of a general eigendecomposition with unit eigenvectors."""
    w, v = la.eig(x)
    return w, (v * w * w) @ la.inv(v), (v * w) @ la.matrix_transpose(xp.conjugate(v))


A, S = regular(3, 3), regular(2, 3, 3, seed=1)
TALL, WIDE = regular(5, 5)[:, :3], regular(2, 5, 5)[:, :3]
B, V = normal(3, 2, seed=2), normal(3, seed=3)
Z, Z3 = complex_normal(6), complex_normal(2, 4, 3)
# One Jordan block, turned: large enough for its Schur form, and without an eigendecomposition.
TURN = np.linalg.qr(normal(9, 9, seed=5))[0]
DEFECTIVE = TURN @ (2.0 * np.eye(9) + np.eye(9, k=1)) @ TURN.T
# Two diagonals above the main one, and one below.
BAND = normal(4, 5) + 3.0 * np.eye(4)[:, [2]]

COMPLEX = [
    Case("real", lambda z: xp.real(z) ** 2, (Z,)),
    Case("imag", lambda z: xp.imag(z) ** 2, (Z,)),
    Case("conj", lambda z: xp.conj(z) * z * z, (Z,)),
    Case("real-of-real", lambda x: np.real(x) * x, (V,)),
    Case("abs-complex", xp.abs, (Z,)),
    Case("angle", xp.angle, (Z,)),
    Case("multiply-complex", lambda a, b: a * b, (Z, complex_normal(6, seed=1))),
    Case("multiply-real-complex", lambda a, b: a * b, (normal(4, 6), Z)),
    Case("divide-complex", lambda a, b: a / b, (Z, complex_normal(6, seed=1))),
    Case("divide-real-complex", lambda a, b: a / b, (normal(6, seed=4), Z)),
    Case("add-real-complex", lambda a, b: a + 2j * b, (normal(6, seed=4), 3.0)),
    Case("pow-complex", lambda z: z**3 + z**1.5, (Z,)),
    *[Case(f"{f}-complex", getattr(xp, f), (Z,)) for f in "exp log sqrt sin cos tan tanh square reciprocal".split()],
    Case("matmul-complex", lambda a, b: a @ b, (complex_normal(2, 3), complex_normal(3, 2))),
    Case("matmul-real-complex", lambda a, b: a @ b, (normal(2, 3), complex_normal(3, 2))),
    Case("stack-real-complex", lambda a, b: xp.stack([a, b]), (normal(6), Z)),
    Case("var-complex", lambda z: xp.var(z, axis=1, correction=1), (Z3[0],), False),
    Case("std-complex", lambda z: np.std(z, axis=0), (Z3[0],), False),
    Case("number-complex", lambda x: abs(x * 1j + 2.0), (3.0,)),
]

PRODUCTS = [
    *both("tensordot", lambda a, b: xp.tensordot(a, b, axes=2), normal(2, 3, 4), normal(3, 4, 2)),
    Case("tensordot-axes", lambda a, b: np.tensordot(a, b, axes=([0, 2], [1, 0])), (normal(2, 3, 4), normal(4, 2, 2))),
    Case("tensordot-outer", lambda a, b: xp.tensordot(a, b, axes=0), (V, B)),
    *both("vecdot", lambda a, b: xp.vecdot(a, b), normal(2, 3), normal(3)),
    Case("vecdot-axis", lambda a, b: la.vecdot(a, b, axis=0), (normal(2, 3), normal(2, 1))),
    *both("outer", lambda a, b: np.outer(a, b), V, normal(4)),
    *both("vdot", lambda a, b: np.vdot(a, b), B, B * 2),
    *both("inner", lambda a, b: np.inner(a, b), normal(2, 3), normal(4, 3)),
    Case("dot", lambda a, b: np.dot(a, b), (normal(2, 3), normal(4, 3, 2))),
    Case("dot-vectors", lambda a, b: np.dot(a, b), (V, V * 2)),
    Case("dot-numbers", lambda a, b: xp.dot(a, b), (2.0, 3.0)),
    *both("kron", lambda a, b: np.kron(a, b), normal(2, 3), normal(3, 2)),
    Case("kron-unequal", lambda a, b: np.kron(a, b), (V, B)),
    *both("cross", lambda a, b: la.cross(a, b), normal(2, 3), normal(3)),
    Case("cross-axis", lambda a, b: np.cross(a, b, axis=0), (B, B * 2 + 1)),
    *[
        Case(f"convolve-{mode}-{n}", lambda a, b, mode=mode: np.convolve(a, b, mode), (normal(5), normal(n, seed=2)))
        for mode, n in (("full", 3), ("same", 4), ("same", 3), ("valid", 3), ("full", 7))
    ],
    *both("diagonal", lambda a: np.diagonal(a), normal(3, 4)),
    *[Case(f"diagonal-{k}", lambda a, k=k: la.diagonal(a, offset=k), (normal(2, 3, 4),)) for k in (-3, -1, 1, 3)],
    Case("diagonal-axes", lambda a: np.diagonal(a, 1, 2, 0), (normal(2, 3, 4),)),
    Case("trace", lambda a: np.trace(a), (normal(3, 4),)),
    Case("trace-stack", lambda a: la.trace(a, offset=1), (normal(2, 3, 4),)),
    *[Case(f"diag-{k}", lambda a, k=k: np.diag(a, k), (V,)) for k in (-2, 0, 1)],
    Case("diag-matrix", lambda a: np.diag(a), (B,)),
    *both("einsum", lambda a, b: np.einsum("ij,jk->ki", a, b), normal(2, 3), normal(3, 2)),
    *[
        Case(f"einsum-{terms}", lambda *args, terms=terms: np.einsum(terms, *args), args)
        for terms, args in {
            "ii": (normal(3, 3),),
            "iij->ji": (normal(3, 3, 2),),
            "ij": (normal(3, 2),),
            "ba": (normal(3, 2),),
            "i,i": (V, V + 1),
            "i,i->i": (V, V + 1),
            "i,j->ij": (V, V + 1),
            "...ij,jk": (normal(2, 3, 4), normal(4, 2)),
            "...i,...i->...": (normal(2, 1, 3), normal(4, 3)),
            "ij,jk,kl->il": (normal(2, 3), normal(3, 4), normal(4, 2, seed=3)),
            "bij,bjk,b->ik": (normal(2, 3, 4), normal(2, 4, 3), normal(2)),
            "ij,kl->": (normal(2, 3), normal(3, 2)),
        }.items()
    ],
]

LINALG = [
    *both("inv", la.inv, A),
    Case("inv-stack", np.linalg.inv, (S,)),
    *both("solve", la.solve, A, B),
    *both("solve-vector", la.solve, A, V),
    Case("solve-constant-vector", lambda a: la.solve(a, like(a, V)), (A,)),
    Case("solve-constant-matrix", lambda b: la.solve(like(b, A), b), (V,)),
    Case("kron-constant", lambda b: np.kron(like(b, B), b), (V,)),
    Case("solve-stack", np.linalg.solve, (S, normal(2, 3, 2))),
    Case("solve-stack-vector", la.solve, (S, V)),
    Case("solve-broadcast", la.solve, (S, normal(4, 1, 3, 2))),
    Case("solve_triangular", la.solve_triangular, (A, B)),
    Case("solve_triangular-lower", lambda a, b: la.solve_triangular(a, b, lower=True, unit_diagonal=True), (S, V)),
    *both("det", la.det, A),
    Case("det-stack", np.linalg.det, (S,)),
    *both("cofactor", lambda a: record("cofactor", [a]), A),
    Case("cofactor-direction", lambda a, e: record("cofactor", [a, e]), (S, S + 1.0)),
    *both("slogdet", lambda a: tuple(la.slogdet(a)), A),
    Case("slogdet-stack", lambda a: np.linalg.slogdet(a)[1], (S,)),
    *both("cholesky", lambda a: la.cholesky(definite(a)), A),
    Case("cholesky-upper", lambda a: np.linalg.cholesky(definite(a), upper=True), (S,)),
    *both("qr", lambda a: tuple(la.qr(a)), A),
    *both("qr-tall", lambda a: tuple(la.qr(a)), TALL),
    *both("qr-wide", lambda a: tuple(la.qr(a, mode="complete")), WIDE),
    Case("qr-q", lambda a: np.linalg.qr(a).Q, (TALL,)),
    Case("qr-r", lambda a: np.linalg.qr(a).R, (S,)),
    *both("svd", signless_svd, A),
    *both("svd-tall", signless_svd, TALL),
    *both("svd-wide", signless_svd, WIDE),
    *both("svdvals", la.svdvals, WIDE),
    Case("svd-left", lambda a: np.linalg.svd(a)[0] ** 2, (S,)),
    Case("svd-right", lambda a: np.linalg.svd(a)[2] ** 2, (S,)),
    *both("eigh", signless_eigh, A),
    Case("eigh-stack", signless_eigh, (S,)),
    *both("eigvalsh", lambda a: la.eigvalsh(symmetric(a)), S),
    Case("eig", signless_eig, (complex_normal(3, 3),)),
    Case("eig-real", lambda a: la.eig(a)[1] ** 2, (0.2 * S + np.diag([1.0, 2.0, 3.0]),)),
    Case("eigvals", la.eigvals, (S,)),
    *both("pinv-tall", la.pinv, TALL),
    *both("pinv-wide", la.pinv, WIDE),
    Case("pinv", lambda a, b: la.pinv(a @ b), (normal(4, 2), normal(2, 3))),
    *[Case(f"matrix_power-{n}", lambda a, n=n: la.matrix_power(a, n), (S,)) for n in (-2, 0, 1, 2, 3, 5)],
    *both("expm", la.expm, A, seed=71),
    *both("sqrtm", la.sqrtm, A),
    Case("sqrtm-stack", la.sqrtm, (S,)),
    *both("solve_sylvester", la.solve_sylvester, A, 1.5 * regular(2, 2, seed=4), normal(3, 2)),
    *both("solve_sylvester-blocks", la.solve_sylvester, DEFECTIVE, 1.5 * regular(2, 2, seed=4), normal(9, 2)),
    *both("solve_banded-matrix", lambda ab, b: la.solve_banded((1, 2), ab, b), BAND, normal(5, 2)),
    Case("solve_banded-vector", lambda ab, b: la.solve_banded((2, 1), ab, b), (BAND[::-1], normal(5))),
    Case("solve_banded-upper", lambda ab, b: la.solve_banded((0, 3), ab, b), (BAND[[3, 0, 1, 2]], normal(5, 1))),
    Case(
        "solve_banded",
        lambda ab, b: la.solve_banded((1, 2), ab, b),
        (normal(4, 5) + 3.0 * np.eye(4)[:, [2]], normal(5, 2)),
    ),
    Case("solve_banded-lower", lambda ab: la.solve_banded((2, 0), ab, like(ab, V)), (positive(3, 3),)),
    Case("expm-large", lambda a: la.expm(a * 4.0) * 1e-3, (S * 0.5,)),
    *[
        case
        for ord in (1, 2, 3, 0.5, -1, float("inf"), float("-inf"))
        for case in both(f"vector_norm-{ord}", lambda a, o=ord: la.vector_norm(a, axis=1, ord=o), normal(3, 4))
    ],
    Case("kink", lambda a: record("kink", [a], {"of_tangents": False}), (A,)),
    Case("vector_norm", la.vector_norm, (normal(2, 3, 4),)),
    Case("vector_norm-keepdims", lambda a: np.linalg.norm(a, axis=-1, keepdims=True), (normal(2, 3),)),
    *[
        case
        for ord in ("fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf"))
        for case in both(f"matrix_norm-{ord}", lambda a, o=ord: la.matrix_norm(a, ord=o), WIDE)
    ],
    Case("norm", np.linalg.norm, (B,)),
    Case("norm-matrix", lambda a: np.linalg.norm(a, "nuc", axis=(0, 2), keepdims=True), (normal(3, 2, 4),)),
]

FFT = [
    *[
        Case(f"{name}-{norm}", named(fft, name, norm=norm), (Z3,))
        for name in ("fft", "ifft", "fftn", "ifftn", "irfft", "irfftn", "hfft")
        for norm in ("backward", "ortho", "forward")
    ],
    *[
        Case(f"{name}-{norm}-real", named(fft, name, norm=norm), (Z3.real,), name in ("rfft", "rfftn", "ihfft"))
        for name in ("fft", "ifftn", "rfft", "rfftn", "ihfft")
        for norm in ("backward", "ortho", "forward")
    ],
    *[
        Case(f"{name}-n{n}", named(np.fft, name, n, axis=1), (Z3,))
        for name in ("fft", "ifft", "irfft", "hfft")
        for n in (2, 5, 6)
    ],
    *[
        Case(f"{name}-n{n}", named(np.fft, name, n, axis=1), (Z3.real,))
        for name in ("rfft", "ihfft")
        for n in (2, 5, 6)
    ],
    Case("fftn-sizes", lambda z: fft.fftn(z, s=(3, 5), axes=(0, 1)), (Z3,)),
    Case("rfftn-sizes", lambda x: np.fft.rfftn(x, s=(3, 5), axes=(2, 1)), (Z3.real,)),
    Case("irfftn-sizes", lambda z: np.fft.irfftn(z, s=(3, 5), axes=(2, 1)), (Z3,)),
    Case("fft2", np.fft.fft2, (Z3,)),
    Case("ifft2", np.fft.ifft2, (Z3,)),
    Case("irfft2", np.fft.irfft2, (Z3,)),
    Case("rfft2", lambda x: np.fft.irfft2(np.fft.rfft2(x) ** 2), (Z3.real,)),
    Case("fftshift", lambda x: fft.fftshift(x) * like(x, np.arange(3.0)), (Z3,)),
    Case("ifftshift", lambda x: np.fft.ifftshift(x, axes=(0, 2)) * like(x, np.arange(3.0)), (Z3,)),
]

CASES = [*COMPLEX, *PRODUCTS, *LINALG, *FFT]
# Those whose Jacobians take seconds.
SLOW = {"solve_sylvester-blocks", "solve_sylvester-blocks-complex"}
