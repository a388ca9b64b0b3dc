"""Linear algebra, products and Fourier transforms compared with other libraries, and their limits."""

import math
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from cases import Case
from cases_linalg import CASES, A, complex_normal, definite, regular, symmetric
from libraries import host
from oxigrad import tree, xp
from oxigrad.ops.linalg.host_equations import schur
from oxigrad.testing import check_grads

la = xp.linalg


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_variable_has_the_results_of_its_plain_array(case: Case) -> None:
    recorded, _ = ox.vjp(case.function, *case.args)
    for ours, theirs in zip(tree.leaves(recorded), tree.leaves(case.function(*case.args)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_single_precision_stays_single(case: Case) -> None:
    singles = [np.asarray(x, np.complex64 if np.iscomplexobj(x) else np.float32) for x in case.args]
    value, pullback = ox.vjp(case.function, *singles)
    assert [x.dtype for x in tree.leaves(value)] == [x.dtype for x in tree.leaves(case.function(*singles))]
    for single, gradient in zip(singles, pullback(tree.map(np.ones_like, value)), strict=True):
        assert (gradient.dtype, gradient.shape) == (single.dtype, single.shape)


# --- other libraries ---------------------------------------------------------------------------------------------------

# Real functions of one complex matrix, as code for any namespace.
REAL_FUNCTIONS = {
    "abs": lambda xp, z: xp.sum(xp.abs(z) ** 3),
    "parts": lambda xp, z: xp.sum(xp.real(z) * xp.imag(z) ** 2),
    "conj": lambda xp, z: xp.real(xp.sum(xp.conj(z) * z * z)),
    "holomorphic": lambda xp, z: xp.imag(xp.sum(xp.exp(z) * xp.sin(z) / z)),
    "matmul": lambda xp, z: xp.sum(xp.abs(z @ z)),
    "inv": lambda xp, z: xp.sum(xp.abs(xp.linalg.inv(z))),
    "solve": lambda xp, z: xp.sum(xp.abs(xp.linalg.solve(z, z @ z + 1.0))),
    "det": lambda xp, z: xp.real(xp.linalg.det(z)),
    "slogdet": lambda xp, z: xp.real(xp.linalg.slogdet(z)[0] * (1.0 + 2.0j)) + xp.linalg.slogdet(z)[1],
    "fft": lambda xp, z: xp.sum(xp.abs(xp.fft.fft(z)) * xp.real(xp.fft.ifft(z * z))),
    "irfft": lambda xp, z: xp.sum(xp.fft.irfft(z) ** 3),
}


@pytest.mark.parametrize("name", REAL_FUNCTIONS)
def test_complex_gradients_are_those_of_jax(name: str, library) -> None:
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)
    z = regular(4, 4) + 0.5j * regular(4, 4, seed=3)
    expected = jax.grad(lambda z: REAL_FUNCTIONS[name](jax.numpy, z))(z)
    np.testing.assert_allclose(ox.grad(lambda z: REAL_FUNCTIONS[name](xp, z))(z), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", sorted(REAL_FUNCTIONS.keys() - {"slogdet", "irfft"}))
def test_complex_gradients_are_those_of_autograd(name: str, library) -> None:
    autograd, anp = library("autograd"), library("autograd.numpy")
    z = regular(4, 4) + 0.5j * regular(4, 4, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = autograd.grad(lambda z: REAL_FUNCTIONS[name](anp, z))(z)
    np.testing.assert_allclose(ox.grad(lambda z: REAL_FUNCTIONS[name](xp, z))(z), expected, rtol=1e-9, atol=1e-10)


def _hermitian(xp, z):
    return z + xp.conj(z).mT


# Functions that do not depend on signs and phases, of a stack of matrices, as code for any namespace.
DECOMPOSITIONS = {
    "cholesky": lambda xp, z: xp.linalg.cholesky(z @ xp.conj(z).mT + xp.eye(4)),
    "qr": lambda xp, z: xp.linalg.qr(z[..., :3])[0],
    "svd": lambda xp, z: (lambda u, s, vh: (u * s[..., None, :] ** 2) @ vh)(
        *xp.linalg.svd(z[..., :3], full_matrices=False)
    ),
    "eigh": lambda xp, z: (lambda w, v: (v * xp.exp(w)[..., None, :]) @ xp.conj(v).mT)(
        *xp.linalg.eigh(_hermitian(xp, z))
    ),
    "eig": lambda xp, z: (lambda w, v: (v * w[..., None, :]) @ xp.conj(v).mT)(*xp.linalg.eig(z)),
    "pinv": lambda xp, z: xp.linalg.pinv(z[..., :3]),
    "nuclear": lambda xp, z: xp.linalg.matrix_norm(z, ord="nuc"),
}


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_gradients_of_decompositions_are_those_of_torch(name: str, kind: type, library) -> None:
    torch = library("torch")
    import array_api_compat.torch as namespace

    z = regular(2, 4, 4) + (0.5j * regular(2, 4, 4, seed=3) if kind is complex else 0.0)

    def loss(xp, z):
        y = DECOMPOSITIONS[name](xp, z)
        return xp.sum(xp.abs(y + 0.5) ** 2)

    leaf = torch.tensor(z, requires_grad=True)
    namespace.eye, eye = (lambda n: torch.eye(n, dtype=leaf.dtype)), namespace.eye
    try:
        loss(namespace, leaf).backward()
    finally:
        namespace.eye = eye
    np.testing.assert_allclose(np.conj(ox.grad(lambda z: loss(xp, z))(z)), leaf.grad.numpy(), rtol=1e-8, atol=1e-9)


# --- missing derivatives -----------------------------------------------------------------------------------------------


def test_equal_eigenvalues_keep_their_derivative_and_vectors_have_none() -> None:
    x = np.diag([1.0, 1.0, 2.0])
    np.testing.assert_allclose(ox.grad(lambda x: xp.sum(la.eigvalsh(x) ** 2))(x), 2 * x, atol=1e-14)
    np.testing.assert_allclose(ox.grad(lambda x: xp.sum(la.svdvals(x) ** 2))(x), 2 * x, atol=1e-14)
    weights = np.arange(9.0).reshape(3, 3)  # a loss that depends on the choice of the vectors
    assert np.isnan(ox.grad(lambda x: xp.sum(la.eigh(x).eigenvectors * weights))(x)).any()
    assert np.isnan(ox.grad(lambda x: xp.sum(la.svd(x).U * weights))(x)).any()


def test_the_gradient_of_a_hermitian_matrix_is_hermitian() -> None:
    for f in (lambda x: xp.sum(la.cholesky(x)), lambda x: xp.sum(la.eigvalsh(x) ** 3)):
        gradient = ox.grad(f)(definite(A))
        np.testing.assert_allclose(gradient, gradient.T, rtol=1e-12)


def test_the_determinant_of_a_singular_matrix_has_a_gradient() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(ox.grad(la.det)(x), [[4.0, -2.0], [-2.0, 1.0]], atol=1e-14)
    np.testing.assert_array_equal(ox.grad(la.det)(np.zeros((3, 3))), 0.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", [1e-170, 1e-160, 1e170], ids=["zero", "denormal", "infinite"])
def test_the_determinant_s_gradient_where_it_leaves_the_normal_numbers(scale: float) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(ox.grad(la.det)(scale * x) / scale, [[4.0, -3.0], [-2.0, 1.0]], rtol=1e-13)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["expm", "coshm", "sinhm"])
def test_functions_of_matrices_that_are_not_finite(name: str) -> None:
    regular = np.array([[1.0, 2.0], [3.0, 4.0]])
    x = np.stack([[[1.0, math.nan], [2.0, 4.0]], regular, [[1.0, math.inf], [2.0, 4.0]]])
    f = getattr(la, name)
    for y in (f(x), ox.vjp(f, x)[0]):
        assert np.isnan(y[[0, 2]]).any(axis=(-2, -1)).all()
        np.testing.assert_allclose(y[1], f(regular), rtol=1e-13)
    gradient = ox.grad(lambda x: xp.sum(f(x)[1]))(x)
    np.testing.assert_allclose(gradient[1], ox.grad(lambda x: xp.sum(f(x)))(regular), rtol=1e-12)


def test_factors_of_a_matrix_of_the_other_byte_order() -> None:
    """SciPy's function reads no other byte order, and returned what was in memory."""
    x = np.random.default_rng(7).standard_normal((4, 4))
    other = x.astype(x.dtype.newbyteorder())
    for function in (la.lu, la.lu_factor):
        for y in (function(other), ox.vjp(function, other)[0]):
            for part, expected in zip(y, function(x), strict=True):
                np.testing.assert_allclose(part, expected, rtol=1e-13)


@pytest.mark.filterwarnings("ignore")
def test_a_matrix_with_nan_spoils_no_other_determinant_s_gradient() -> None:
    x = np.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, math.nan], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]])
    gradient = ox.grad(lambda x: xp.sum(la.det(x)))(x)
    assert np.isnan(gradient[1]).all()
    np.testing.assert_allclose(gradient[[0, 2]], [[[4.0, -2.0], [-2.0, 1.0]], [[4.0, -3.0], [-2.0, 1.0]]], atol=1e-14)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, math.inf, -math.inf, "fro"])
def test_condition_numbers_of_singular_matrices_are_numpy_s(p: Any, asarray: Any) -> None:
    singular, regular = np.array([[1.0, 2.0], [2.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    nothing, missing = np.zeros((2, 2)), np.array([[1.0, math.nan], [2.0, 4.0]])
    for x in (nothing, singular[None] if p in (1, "fro") else regular, np.stack([nothing, regular]), missing):
        if x is missing and p in (None, 2, -2):  # LAPACK gives NaN, or raises
            continue
        with np.errstate(all="ignore"):
            expected = np.linalg.cond(x, p)
        for y in (la.cond(asarray(x), p), ox.vjp(lambda x: la.cond(x, p), asarray(x))[0]):
            np.testing.assert_allclose(host(y), expected, rtol=1e-12)
    gradient = ox.grad(lambda x: xp.sum(la.cond(x, p)[1:]))(np.stack([singular, regular]))
    np.testing.assert_allclose(gradient[1], ox.grad(lambda x: la.cond(x, p))(regular), rtol=1e-12)
    for shape in ((0, 0), (2, 0, 3)):
        with pytest.raises(np.linalg.LinAlgError, match="cond: found the shape .*expected matrices that are not empty"):
            la.cond(np.ones(shape), p)


@pytest.mark.parametrize("ord", [1, 2, 3, 1.5, math.inf])
def test_norms_at_zero_have_gradient_zero(ord) -> None:
    assert not ox.grad(lambda x: la.vector_norm(x, ord=ord))(np.zeros(3)).any()
    hessian = ox.grad(lambda x: xp.sum(ox.grad(lambda x: la.vector_norm(x, ord=ord))(x)))(np.zeros(3))
    # A norm alone has no second derivative at zero; those of 1 and inf have parts that are linear.
    assert np.isnan(hessian).any() == (ord not in (1, math.inf)) and (np.isnan(hessian) | (hessian == 0.0)).all()


def test_a_zero_among_others_does_not_spoil_a_norm() -> None:
    gradient = ox.grad(lambda x: la.vector_norm(x, ord=0.5))(np.array([0.0, 4.0]))
    np.testing.assert_allclose(gradient, [0.0, 1.0])


def test_a_function_without_a_derivative_names_an_alternative() -> None:
    with pytest.raises(ox.DerivativeError, match="full_matrices=False"):
        ox.grad(lambda x: xp.sum(la.svd(x).U))(np.ones((3, 2)))
    with pytest.raises(ox.DerivativeError, match="reduced"):
        ox.grad(lambda x: xp.sum(la.qr(x, mode="complete").Q))(np.ones((3, 2)))
    with pytest.raises(ox.DerivativeError, match="ord=0"):
        ox.grad(lambda x: la.vector_norm(x, ord=0))(np.ones(3))


def test_plain_arrays_have_the_results_of_their_library() -> None:
    x = np.ones((3, 2))
    assert la.svd(x).U.shape == (3, 3)
    assert la.qr(x, mode="complete").Q.shape == (3, 3)
    assert la.vector_norm(x, ord=0) == 6.0
    assert la.matrix_rank(x) == 1
    assert ox.grad(lambda x: xp.sum(x) * la.matrix_rank(x))(x).tolist() == x.tolist()
    np.testing.assert_array_equal(xp.fft.rfftfreq(4), np.fft.rfftfreq(4))


def test_expm_scales_each_matrix_by_itself(library) -> None:
    scipy = library("scipy.linalg")
    stack = np.stack([A * size for size in (0.0, 1e-3, 1.0, 5.0, 60.0)])
    np.testing.assert_allclose(la.expm(stack), scipy.expm(stack), rtol=1e-11)
    assert la.expm(stack[:0]).shape == (0, 3, 3)
    nilpotent = np.diag([1e6, 2e6], k=1)
    np.testing.assert_allclose(la.expm(nilpotent), np.eye(3) + nilpotent + nilpotent @ nilpotent / 2)


def test_roots_and_linear_equations_agree_with_scipy(library) -> None:
    scipy, rng = library("scipy.linalg"), np.random.default_rng(0)
    definite = A @ A.T + np.eye(3)
    turned = np.array([[0.0, -1.0], [1.0, 0.0]])
    for x in (definite, A, 1e8 * definite, A + 0.5j * definite, turned, np.diag([1e-10, 1.0, 1e10])):
        np.testing.assert_allclose(la.sqrtm(x), scipy.sqrtm(x), rtol=1e-9, atol=1e-12)
    indefinite = A + A.T - 2.0 * np.eye(3)
    assert np.linalg.eigvalsh(indefinite)[0] < 0.0
    np.testing.assert_allclose(la.sqrtm(indefinite), scipy.sqrtm(indefinite), rtol=1e-9, atol=1e-12)
    check_grads(la.sqrtm, (indefinite,))
    q, ab = rng.standard_normal((3, 2)), rng.standard_normal((4, 6)) + 3.0
    b = rng.standard_normal((2, 2))
    np.testing.assert_allclose(la.solve_sylvester(A, b, q), scipy.solve_sylvester(A, b, q), rtol=1e-9)
    np.testing.assert_allclose(la.solve_banded((1, 2), ab, ab[0]), scipy.solve_banded((1, 2), ab, ab[0]), rtol=1e-9)
    with pytest.raises(ox.ShapeError, match="expected 3"):
        la.solve_banded((1, 1), ab, ab[0])


def rotated(x: np.ndarray) -> np.ndarray:
    """A matrix with the Jordan form of ``x``, and nothing that shows it."""
    q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal(x.shape))
    return q @ x @ q.T


def jordan(size: int, eigenvalue: float) -> np.ndarray:
    return eigenvalue * np.eye(size) + np.eye(size, k=1)


@pytest.mark.parametrize(
    "a",
    [
        rotated(jordan(30, 2.0)),
        np.kron(np.eye(5), rotated(jordan(4, 2.0))),
        np.roll(np.eye(24), 1, axis=0) + 2.0 * np.eye(24),  # its eigenvalues have one distance from 2
        2.0 * np.eye(20),
        rotated(jordan(12, 2.0)) + 0.5j * np.eye(12),
    ],
    ids=["defective", "several blocks", "circulant", "scalar", "complex"],
)
def test_sylvester_s_equation_with_matrices_that_cannot_be_diagonalized(a: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    b, q = np.eye(11) + 0.1 * rng.standard_normal((11, 11)), rng.standard_normal((len(a), 11))
    x = la.solve_sylvester(a, b, q)
    np.testing.assert_allclose(a @ x + x @ b, q, atol=1e-12)
    assert la.solve_sylvester(a.real.astype(np.float32), b.astype(np.float32), q.astype(np.float32)).dtype == np.float32


def test_the_schur_form_is_backward_stable() -> None:
    rng = np.random.default_rng(2)
    for x in (*(rng.standard_normal((n, n)) for n in (0, 1, 2, 3, 25)), np.zeros((9, 9)), 1e-200 * jordan(9, 1.0)):
        t, q = schur(x)
        np.testing.assert_array_equal(t, np.triu(t))
        scale = max(np.abs(x).max(initial=0.0), 1e-300)
        np.testing.assert_allclose(q @ t @ q.conj().T / scale, x / scale, atol=1e-13)
        np.testing.assert_allclose(q @ q.conj().T, np.eye(len(x)), atol=1e-13)


@pytest.mark.slow
def test_solve_sylvester_uses_memory_linear_in_the_matrices() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((60, 60)) + 30.0 * np.eye(60), rng.standard_normal((60, 60))
    tracemalloc.start()
    x = la.solve_sylvester(a, b, a)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(a @ x + x @ b, a, atol=1e-10)
    assert peak < 100 * a.nbytes  # the Kronecker product has 3,600 times as much


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (1, 0), (0, 2), (1, 1), (3, 1), (20, 3), (2, 30)])
@pytest.mark.parametrize("size", [1, 2, 17, 64])
def test_banded_systems_of_any_width(lower: int, upper: int, size: int) -> None:
    rng = np.random.default_rng(4)
    ab, b = rng.standard_normal((lower + upper + 1, size)), rng.standard_normal((size, 2))
    ab[upper] = 0.1 * ab[upper] + (lower + upper)  # pivoting is needed where the diagonal does not dominate
    offsets = range(-lower, upper + 1)
    dense = sum(np.diag(ab[upper - d, max(d, 0) : size + min(d, 0)], d) for d in offsets if abs(d) < size)
    if lower == upper == 0:
        dense = np.diag(ab[0])
    x = la.solve_banded((lower, upper), ab, b)
    np.testing.assert_allclose(dense @ x, b, atol=1e-10 * np.linalg.cond(dense))
    np.testing.assert_allclose(la.solve_banded((lower, upper), ab, b[:, 0]), x[:, 0], rtol=1e-9)
    gradient = ox.grad(lambda ab: xp.sum(la.solve_banded((lower, upper), ab, b)))(ab)
    inside = [[0 <= j - d < size for j in range(size)] for d in reversed(offsets)]
    assert not gradient[~np.array(inside)].any()  # elements of `ab` outside of the matrix have no gradient


def test_a_banded_system_with_zeros_on_the_diagonal() -> None:
    swaps = np.array([[0.0, 1.0, 0.0, 1.0], [0.0] * 4, [1.0, 0.0, 1.0, 0.0]])
    np.testing.assert_allclose(la.solve_banded((1, 1), swaps, np.arange(4.0)), [1.0, 0.0, 3.0, 2.0], atol=1e-15)
    with pytest.raises(np.linalg.LinAlgError):
        la.solve_banded((1, 1), np.zeros((3, 4)), np.ones(4))


@pytest.mark.slow
def test_a_banded_system_of_a_hundred_thousand_rows() -> None:
    """The dense matrix has 80 GB."""
    size = 100_000
    ab = np.stack([np.full(size, value) for value in (-1.0, 2.5, -1.0)])

    def loss(b: Any) -> Any:
        return xp.sum(la.solve_banded((1, 1), ab, b) ** 2)

    b = np.ones(size)
    x = la.solve_banded((1, 1), ab, b)
    np.testing.assert_allclose(2.5 * x[1:-1] - x[2:] - x[:-2], 1.0, atol=1e-12)
    np.testing.assert_allclose(ox.grad(loss)(b), la.solve_banded((1, 1), ab, 2.0 * x), atol=1e-10)


def test_shapes_of_structured_systems_are_checked() -> None:
    with pytest.raises(ox.ShapeError, match=r"found b of shape \(3,\), expected \(4,\) or \(4, k\)"):
        la.solve_banded((1, 1), np.ones((3, 4)), np.ones(3))
    with pytest.raises(ox.ShapeError, match=r"expected \(m, m\), \(n, n\), \(m, n\)"):
        la.solve_sylvester(A, A, np.ones((3, 2)))


def test_both_results_of_a_decomposition_are_pulled_at_once() -> None:
    with ox.Tape() as tape:
        x = tape.watch(symmetric(A))
        w, v = la.eigh(x)
        y = xp.sum(w * v[0, :] ** 2)
    assert str(tape).count("eigh") == 1
    np.testing.assert_allclose(tape.gradient(y, [x])[0], np.outer([1, 0, 0], [1, 0, 0]), atol=1e-13)


def test_the_gradient_of_a_real_argument_is_real() -> None:
    gradient = ox.grad(lambda x: xp.real(xp.sum((x * 1j) * complex_normal(3))))(np.ones(3))
    assert gradient.dtype == np.float64
    gradient = ox.grad(lambda x: xp.sum(xp.abs(xp.fft.fft(x))))(np.arange(3.0, dtype=np.float32))
    assert gradient.dtype == np.float32


def test_the_derivative_of_a_holomorphic_function() -> None:
    z = 0.3 + 0.2j
    _, pullback = ox.vjp(xp.sin, np.asarray(z))
    np.testing.assert_allclose(pullback(np.asarray(1.0 + 0j))[0], np.cos(z))


def test_einsum_refuses_invalid_subscripts() -> None:
    with pytest.raises(ValueError, match="found 1 operands, expected 2"):
        ox.grad(lambda x: xp.einsum("i,j", x))(np.ones(2))
    with pytest.raises(ox.ShapeError, match="dimensions"):
        ox.grad(lambda x: xp.einsum("ij->", x))(np.ones(2))
    with pytest.raises(ox.ShapeError, match="sizes 2 and 3"):
        ox.grad(lambda x: xp.einsum("i,i", x, np.ones(3)))(np.ones(2))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_least_squares_of_a_matrix_without_elements(rows: int, columns: int, dtype: str) -> None:
    """The solution is of zeros, the residual of no columns is the right side, and no gradient depends on the matrix."""
    a = np.ones((rows, columns), dtype)
    for shape in ((rows,), (rows, 2), (rows, 0)):
        b = (np.arange(1.0, 1 + np.prod(shape)).reshape(shape)).astype(dtype)
        wanted, seen = np.linalg.lstsq(a, b, rcond=None), []

        def squares(a: Any, b: Any, seen: list[Any] = seen) -> Any:
            seen.append(xp.linalg.lstsq(a, b))
            return xp.sum(xp.real(seen[-1][0])) + xp.sum(seen[-1][1]) + xp.sum(seen[-1][3])

        gradients = ox.grad(squares, (0, 1))(a, b)
        for found, value in zip(xp.linalg.lstsq(a, b), wanted, strict=True):
            np.testing.assert_array_equal(found, value, strict=np.ndim(value) > 0)
        assert [(each.shape, each.dtype) for each in seen[0][:2]] == [(each.shape, each.dtype) for each in wanted[:2]]
        np.testing.assert_array_equal(gradients[0], np.zeros_like(a), strict=True)
        np.testing.assert_array_equal(gradients[1], 2.0 * b if columns == 0 and rows else 0.0 * b)
        tangent = ox.jvp(lambda a, b: xp.linalg.lstsq(a, b)[0], (a, b), (a, b))[1]
        np.testing.assert_array_equal(tangent, np.zeros_like(wanted[0]), strict=True)
