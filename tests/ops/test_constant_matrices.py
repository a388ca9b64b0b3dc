"""Products of variables with sparse arrays and matrices of SciPy, of every format, and with linear operators."""

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.testing import check_grads

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")

GENERATOR = np.random.default_rng(0)
DENSE = GENERATOR.normal(size=(4, 3)) * (GENERATOR.uniform(size=(4, 3)) < 0.6)
DENSE[0] = [0.5, 0.0, -2.0]
V, W = GENERATOR.normal(size=3), GENERATOR.normal(size=4)
X, Y = GENERATOR.normal(size=(3, 2)), GENERATOR.normal(size=(2, 4))
FORMATS = "bsr coo csc csr dia dok lil".split()

# Products, of the matrix and a variable, as functions of both, and where they are checked.
PRODUCTS = {
    "A @ v": (lambda A, v: A @ v, V),
    "A @ X": (lambda A, x: A @ x, X),
    "w @ A": (lambda A, w: w @ A, W),
    "Y @ A": (lambda A, y: y @ A, Y),
    "A.T @ w": (lambda A, w: A.T @ w, W),
    "np.matmul(A, v)": (lambda A, v: np.matmul(A, v), V),
    "np.matmul(Y, A)": (lambda A, y: np.matmul(y, A), Y),
    "xp.matmul(A, X)": (lambda A, x: xp.matmul(A, x), X),
    "np.dot(A, v)": (lambda A, v: np.dot(A, v), V),
    "np.dot(w, A)": (lambda A, w: np.dot(w, A), W),
    "xp.dot(A, X)": (lambda A, x: xp.dot(A, x), X),
    "A.dot(v)": (lambda A, v: A @ v if isinstance(A, np.ndarray) else A.dot(v), V),
    "v.dot": (lambda A, w: w.dot(A), W),
}
ELEMENTWISE = {
    "A + x": lambda A, x: A + x,
    "x + A": lambda A, x: x + A,
    "A - x": lambda A, x: A - x,
    "x - A": lambda A, x: x - A,
    "A / x": lambda A, x: A / x,
    "xp.multiply(A, x)": lambda A, x: xp.multiply(A, x),
    "np.multiply(x, A)": lambda A, x: np.multiply(x, A),
}


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_a_sparse_constant_gives_the_product_of_its_dense_array(form: str, kind: str) -> None:
    matrix = getattr(sparse, f"{form}_{kind}")(DENSE)
    for name, (product, at) in PRODUCTS.items():
        if form == "coo" and name == "A.dot(v)":  # which NumPy converts: see below
            continue
        f = lambda x, product=product: product(matrix, x)  # noqa: E731
        expected = product(DENSE, at)
        np.testing.assert_allclose(ox.vjp(f, at)[0], expected, rtol=1e-12, atol=1e-14, err_msg=name)
        squares = lambda x, f=f: xp.sum(f(x) ** 2)  # noqa: E731
        dense = lambda x, product=product: xp.sum(product(DENSE, x) ** 2)  # noqa: E731
        np.testing.assert_allclose(ox.grad(squares)(at), ox.grad(dense)(at), rtol=1e-10, atol=1e-13, err_msg=name)
    for name, function in ELEMENTWISE.items():
        at = 2.0 + np.arange(12.0).reshape(4, 3)
        f, dense = (lambda x, A=A, function=function: xp.sum(function(A, x) ** 2) for A in (matrix, DENSE))
        np.testing.assert_allclose(ox.grad(f)(at), ox.grad(dense)(at), rtol=1e-10, err_msg=name)


def test_stars_of_sparse_arrays_and_matrices_differ_as_in_scipy() -> None:
    array, matrix = sparse.csr_array(DENSE), sparse.csr_matrix(DENSE)
    at = GENERATOR.normal(size=(4, 3))
    for f in (lambda x: array * x, lambda x: x * array):
        np.testing.assert_allclose(ox.vjp(f, at)[0], DENSE * at)
    np.testing.assert_allclose(ox.vjp(lambda x: matrix * x, V)[0], DENSE @ V)
    np.testing.assert_allclose(ox.vjp(lambda x: x * matrix, W)[0], W @ DENSE)
    np.testing.assert_allclose(ox.grad(lambda x: xp.sum(matrix * x))(V), DENSE.sum(axis=0))


# NumPy's own functions of plain arrays do not know sparse ones.
@pytest.mark.parametrize("name", [name for name in PRODUCTS if not name.startswith(("np.", "v."))])
def test_products_have_derivatives_of_second_order_in_every_transform(name: str) -> None:
    product, at = PRODUCTS[name]
    matrix = sparse.csr_array(DENSE)

    def f(x):
        return xp.sin(product(matrix, xp.exp(0.3 * x)))

    check_grads(f, (at,), order=2)
    np.testing.assert_allclose(ox.vmap(f)(np.stack([at, 2 * at])), [f(at), f(2 * at)], rtol=1e-12)
    gradient = ox.grad(lambda x: xp.sum(f(x) ** 2))
    np.testing.assert_allclose(ox.vmap(gradient)(np.stack([at, 2 * at])), [gradient(at), gradient(2 * at)], rtol=1e-12)
    recorded = ox.record(gradient)
    for k in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(recorded(k * at), gradient(k * at))
    assert recorded.replays == 2, recorded.why


def test_complex_products_have_the_derivatives_of_dense_ones() -> None:
    dense = DENSE + 1j * DENSE[::-1]
    for A in (sparse.csr_array(dense), sparse.csc_matrix(dense), linalg.aslinearoperator(dense)):
        for at in (V, V + 0.5j * V[::-1]):
            f, expected = (lambda x, A=A: xp.sum(xp.abs(xp.matmul(A, x)) ** 2) for A in (A, dense))
            np.testing.assert_allclose(ox.grad(f)(at), ox.grad(expected)(at), rtol=1e-10)
    check_grads(
        lambda x: xp.real(A @ (x + 1j * x**2)) if sparse.issparse(A) else xp.real(xp.matmul(A, x * x)), (V,), order=2
    )


def test_single_precision_is_kept() -> None:
    matrix = sparse.csr_array(DENSE.astype(np.float32))
    gradient = ox.grad(lambda x: xp.sum(matrix @ x))(V.astype(np.float32))
    assert gradient.dtype == np.float32
    assert ox.grad(lambda x: xp.sum(sparse.csr_array(DENSE) @ x))(V.astype(np.float32)).dtype == np.float32


def test_linear_operators_have_derivatives_of_second_order() -> None:
    operator = linalg.LinearOperator((4, 3), matvec=lambda v: DENSE @ v, rmatvec=lambda u: DENSE.T @ u, dtype=float)
    for L in (operator, linalg.aslinearoperator(DENSE)):
        for f, at, dense in (
            (lambda x, L=L: xp.matmul(L, x) ** 3, V, lambda x: (DENSE @ x) ** 3),
            (lambda x, L=L: xp.dot(L, x) ** 3, X, lambda x: (DENSE @ x) ** 3),
            (lambda x, L=L: (x @ L) ** 3, W, lambda x: (x @ DENSE) ** 3),
            (lambda x, L=L: (x @ L) ** 3, Y, lambda x: (x @ DENSE) ** 3),
        ):
            np.testing.assert_allclose(ox.vjp(f, at)[0], dense(at), rtol=1e-12)
            check_grads(f, (at,), order=2)
            np.testing.assert_allclose(ox.vmap(f)(np.stack([at, 2 * at])), [dense(at), dense(2 * at)], rtol=1e-10)


def test_what_python_does_not_leave_to_a_variable_names_what_to_write() -> None:
    A, L = sparse.csr_array(DENSE), linalg.aslinearoperator(DENSE)
    square = sparse.csc_array(np.eye(3))
    for f, text in (
        (lambda x: L @ x, r"xp\.matmul\(L, x\)"),
        (lambda x: L.matvec(x), r"xp\.matmul\(L, x\)"),
        (lambda x: L.dot(x), r"xp\.matmul\(L, x\)"),
        (lambda x: A.multiply(x), r"xp\.multiply\(A, x\)"),
        (lambda x: A.tocoo().dot(x), r"xp\.dot\(A, x\)"),
        (lambda x: linalg.spsolve(square, x), "custom_vjp"),
        (lambda x: linalg.cg(square, x), "custom_vjp"),
        (lambda x: xp.sum(A) * x, r"x\.toarray\(\)"),
        (lambda x: xp.concat([A, xp.stack([x, x])]), r"x\.toarray\(\)"),
    ):
        with pytest.raises(TypeError, match=text):
            ox.grad(lambda x, f=f: xp.sum(f(x)))(V)
    with pytest.raises(ox.ShapeError, match="matmul: found shapes"):
        ox.grad(lambda x: xp.sum(A @ x))(W)


def test_constants_of_a_transform_meet_sparse_ones() -> None:
    A = sparse.csr_array(DENSE)

    def f(x):
        y = xp.zeros(3)
        y[:2] = x[:2]
        return xp.sum((A @ y) ** 2) + xp.sum(A @ xp.ones(3))

    check_grads(f, (V,), order=2)


def test_a_sparse_solver_has_a_rule() -> None:
    A = sparse.csc_array(np.diag([2.0, 3.0, 4.0]) + np.diag([1.0, -1.0], 1))
    solve = ox.custom_vjp(lambda b: linalg.spsolve(A, b), lambda g, x, b: transposed(g))
    transposed = ox.custom_vjp(lambda g: linalg.spsolve(A.T.tocsc(), g), lambda v, u, g: solve(v))
    check_grads(lambda b: solve(b) ** 2, (V,), order=2)
