"""Sparse Jacobians and Hessians beside dense ones, for every op of the table and for random programs."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oxigrad as ox
from cases import CASES as ELEMENTARY
from cases import Case
from cases_linalg import CASES as LINALG
from cases_linalg import SLOW
from oxigrad import xp
from oxigrad.autodiff.sparse import colorings

sparse = pytest.importorskip("scipy.sparse")


def is_real(case: Case) -> bool:
    return not any(map(np.iscomplexobj, case.args))


CASES = list(filter(is_real, (*ELEMENTARY, *LINALG)))
QUICK = [pytest.param(case, marks=pytest.mark.slow) if case.name in SLOW else case for case in CASES]


def any_(value: Any) -> Any:
    """The value, of which types say nothing."""
    return value


def size(value: Any) -> int:
    return math.prod(np.shape(value))


def matrix(blocks: Any, results: Sequence[Any], arguments: Sequence[Any]) -> np.ndarray:
    """The blocks of a dense derivative, one for each result and argument, as one matrix."""
    leaves, wide = iter(ox.tree.leaves(blocks)), sum(map(size, arguments))
    rows = [
        np.concatenate([np.asarray(next(leaves)).reshape(size(r), size(a)) for a in arguments], axis=1) for r in results
    ]
    return np.concatenate(rows) if rows else np.zeros((0, wide))


def check_jacobian(f: Callable[..., Any], args: Sequence[Any], **options: Any) -> Any:
    """Compares a sparse Jacobian by all arguments with the dense one, and returns it."""
    every = tuple(range(len(args)))
    expected = matrix(ox.jacobian(f, every, "forward")(*args), ox.tree.leaves(f(*args)), args)
    derivative = ox.sparse_jacobian(f, every, **options)
    found = derivative(*args)
    assert sparse.issparse(found) and found.format == "csr" and found.shape == expected.shape
    assert found.has_canonical_format and found.nnz == derivative.pattern.nnz
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-11, atol=1e-11)
    return found


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """A number whose second derivatives are those of all results of ``f``, and products of them."""

    def function(*args: Any) -> Any:
        return sum(xp.sum(xp.real(xp.sin(leaf))) for leaf in ox.tree.leaves(f(*args)))

    return function


def check_hessian(f: Callable[..., Any], args: Sequence[Any], **options: Any) -> Any:
    every = tuple(range(len(args)))
    expected = matrix(ox.hessian(f, every)(*args), args, args)
    found = ox.sparse_hessian(f, every, **options)(*args)
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-9, atol=1e-9 * scale)
    return found


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("case", QUICK, ids=str)
@pytest.mark.one_in(8)
def test_every_op_has_the_jacobian_that_it_has_densely(case: Case, mode: str) -> None:
    is_complex = any(map(np.iscomplexobj, ox.tree.leaves(case.function(*case.args))))
    check_jacobian(case.function, case.args, mode="forward" if is_complex else mode)  # reverse mode takes real results


@pytest.mark.parametrize("case", [case for case in CASES if "-" not in case.name], ids=str)
def test_every_op_has_the_hessian_that_it_has_densely(case: Case) -> None:
    check_hessian(total(case.function), case.args)


# --- random programs --------------------------------------------------------------------------------------------------

# Each takes two arrays of shape (3, 4), and returns another one.
A = np.array([[0.0, 1.5, 0.0], [0.0, 0.0, 0.7], [1.1, 0.0, 0.0]])
STATEMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda a, b: np.sin(a) * b,
    "one row for all": lambda a, b: a + np.exp(0.1 * b[1]),
    "one column for all": lambda a, b: a * b[:, 2:3] - 1.0,
    "transpose": lambda a, b: np.reshape(a.T, (3, 4)) + b,
    "roll": lambda a, b: np.roll(a, 1, axis=0) * np.tanh(b),
    "flip": lambda a, b: np.flip(a, axis=1) - b * b,
    "pad": lambda a, b: np.pad(a, 1)[2:, :4] + b,
    "take": lambda a, b: a[np.array([2, 0, 2])] * b[:, np.array([3, 3, 1, 0])],
    "scatter": lambda a, b: xp.at(a)[np.array([0, 0, 2]), 1].add(b[0, :3]),
    "assign": lambda a, b: xp.at(a)[1, ::2].set(b[0, :2]),
    "mask": lambda a, b: np.where(MASK, a, b) * np.where(MASK, 0.0, 2.0),
    "branches": lambda a, b: np.where(a > 0.0, a * b, b),
    "concat": lambda a, b: np.concatenate([a[1:], np.zeros((1, 2)).repeat(2, 1)]) * b,
    "stack": lambda a, b: np.stack([a[0], b[1], a[2] * b[2]]),
    "numbers": lambda a, b: np.stack([a[0, 0] * b[2, 3], b[1, 1] ** 2, 3.0 * a[2, 0]])[:, None] + b,
    "sum": lambda a, b: a - np.sum(b, axis=0),
    "mean": lambda a, b: a * np.mean(b, axis=1, keepdims=True),
    "max": lambda a, b: a + np.max(b, axis=0),
    "cumulative": lambda a, b: np.cumsum(a, axis=1) * b,
    "product": lambda a, b: (a @ b.T) @ a / 10.0,
    "constant matrix": lambda a, b: A @ a + b,
    "constant matrix on the right": lambda a, b: (a[:, :3] @ A)[:, np.array([0, 1, 2, 0])] + b,
    "constant vector": lambda a, b: a + (A[0] @ b),
    "einsum": lambda a, b: np.einsum("ij,kj->ij", a, b),
    "solve": lambda a, b: np.linalg.solve(A + np.eye(3) * (3.0 + a[0, 0] ** 2), b),
    "inverse": lambda a, b: np.linalg.inv(np.eye(3) * 9.0 + np.tanh(a[:, :3])) @ b,
    "norm": lambda a, b: a / (1.0 + xp.linalg.vector_norm(b)),
    "fourier": lambda a, b: a + xp.real(xp.fft.fft(b, axis=1)),
    "step": lambda a, b: a + np.floor(b),
    "stopped": lambda a, b: a * ox.stop_gradient(b),
    "checkpoint": lambda a, b: ox.checkpoint(lambda a, b: a * b)(a[:2], b[:2])[np.array([0, 1, 1])] + b,
}
MASK = np.arange(12).reshape(3, 4) % 3 == 0
X, Y = (0.8 * np.random.default_rng(seed).standard_normal((3, 4)) for seed in (0, 1))


def program(steps: Sequence[tuple[str, int, int]]) -> Callable[..., Any]:
    """A function of two arrays: each step makes an array of two of those before it, and the last ones are the result."""

    def function(x: Any, y: Any) -> Any:
        made = [x, y]
        for name, a, b in steps:
            made.append(np.tanh(0.5 * STATEMENTS[name](made[a % len(made)], made[b % len(made)])))
        return made[2:][-2:]

    return function


@pytest.mark.parametrize("name", STATEMENTS)
def test_each_statement_has_exactly_the_nonzeros_that_it_can_have(name: str) -> None:
    f = STATEMENTS[name]
    found = check_jacobian(f, (X, Y))
    if name not in {"checkpoint", "concat", "fourier", "max"}:  # whose derivatives are zero for these values, in part
        assert np.count_nonzero(found.toarray()) == found.nnz
    check_hessian(total(f), (X, Y))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(sorted(STATEMENTS)), st.integers(0, 9), st.integers(0, 9)), max_size=6))
def test_random_programs_have_no_nonzero_outside_of_the_pattern(steps: list[tuple[str, int, int]]) -> None:
    f = program(steps)
    check_jacobian(f, (X, Y), mode="forward")
    check_jacobian(f, (X, Y), mode="reverse")
    if sum(name in {"inverse", "solve"} for name, _, _ in steps) < 2:
        check_hessian(total(f), (X, Y))


# --- colorings --------------------------------------------------------------------------------------------------------


def is_column_coloring(pattern: np.ndarray, colors: np.ndarray) -> bool:
    """Whether the columns of one color share no row, and exactly the columns without nonzeros have no color."""
    rows = [colors[np.flatnonzero(row)] for row in pattern]
    return all(len(set(row)) == len(row) for row in rows) and bool(np.all((colors >= 0) == pattern.any(axis=0)))


def is_star_coloring(pattern: np.ndarray, colors: np.ndarray) -> bool:
    """Whether neighbors differ, and every path of four vertices has three colors at least."""
    size = len(pattern)
    around = [[k for k in range(size) if pattern[j, k] and k != j] for j in range(size)]
    paths = [(a, b, c, d) for b in range(size) for c in around[b] for a in around[b] for d in around[c]]
    return all(colors[a] != colors[b] for a in range(size) for b in around[a]) and all(
        len({colors[v] for v in path}) > 2 for path in paths if len(set(path)) == 4
    )


@st.composite
def patterns(draw: Any, symmetric: bool = False) -> np.ndarray:
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    shape = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    found = rng.random((shape[1], shape[1]) if symmetric else shape) < draw(st.floats(0.0, 0.7))
    return found | found.T if symmetric else found


@settings(deadline=None)
@given(patterns())
def test_column_colorings_are_ones(pattern: np.ndarray) -> None:
    colors = colorings.columns(sparse.csr_array(pattern))
    assert is_column_coloring(pattern, colors)
    assert colorings.count(colors) >= pattern.sum(axis=1).max()


@settings(deadline=None, max_examples=100)
@given(patterns(symmetric=True))
def test_star_colorings_are_ones_and_recover_the_matrix(pattern: np.ndarray) -> None:
    csr = sparse.csr_array(pattern)
    colors = colorings.star(csr)
    assert is_star_coloring(pattern, colors)
    full = np.where(pattern, np.arange(1.0, pattern.size + 1).reshape(pattern.shape), 0.0)
    full = full + full.T
    compressed = np.stack([full @ (colors == color) for color in range(colorings.count(colors))] or [full[0]], axis=1)
    np.testing.assert_array_equal(compressed[colorings.star_places(csr, colors)], full[pattern])


def chain(x: Any) -> Any:
    """The generalized Rosenbrock function."""
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def adjustment(cameras: Any, points: Any, weights: Any) -> Any:
    """Residuals with the dependences of bundle adjustment: each observation is of one camera, one point and one weight."""
    at = np.arange(24)
    of_camera, of_point = cameras[at % 3], points[at // 3]
    seen = (
        xp.sum(of_camera[:, :3] * of_point, axis=1)[:, None] * of_camera[:, 3:5] * xp.sum(of_camera**2, axis=1)[:, None]
    )
    return weights[:, None] * seen * xp.sum(of_point, axis=1)[:, None], 1.0 - weights**2


def band(width: int) -> Callable[[Any], Any]:
    return lambda x: sum(x[k : len(x) - width + 1 + k] ** 2 for k in range(width))


Z = np.linspace(0.1, 2.0, 30)
OPTIMAL: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], int]] = {
    **{f"band of {width}": (band(width), (Z,), width) for width in (1, 2, 3, 5)},
    "elementwise": (np.sin, (Z,), 1),
    "blocks": (lambda x: xp.reshape(xp.cumulative_sum(xp.reshape(x, (6, 5)), axis=1), (30,)), (Z,), 5),
    "dense row": (lambda x: xp.concat([x * x, xp.sum(x, keepdims=True)]), (Z,), 30),
    "one number": (lambda x: xp.sum(x * x), (Z,), 1),
    "column for all": (lambda x: x[0] * x, (Z,), 2),
    "bundle adjustment": (adjustment, (*map(np.ones, ((3, 11), (8, 3))), np.ones(24)), 15),
    "nothing": (lambda x: xp.zeros(4), (Z,), 0),
}


@pytest.mark.parametrize("name", OPTIMAL)
def test_known_patterns_get_the_least_number_of_colors(name: str) -> None:
    f, args, least = OPTIMAL[name]
    derivative = ox.sparse_jacobian(f, tuple(range(len(args))), mode=None if name == "one number" else "forward")
    found, colors = derivative(*args), any_(derivative.colors)
    assert derivative.products == colorings.count(colors) == least and derivative.by_rows == (name == "one number")
    lines = found.T if derivative.by_rows else found
    assert is_column_coloring(lines.toarray() != 0, colors)


@pytest.mark.parametrize(
    ("f", "least"),
    [
        (chain, 3),
        (lambda x: xp.sum(x[0] * x[1:] ** 2), 2),
        (lambda x: xp.sum(x[-1] * x[:-1] ** 2), 2),
        (lambda x: xp.sum(x**4), 1),
        (lambda x: xp.sum(x), 0),
        (lambda x: xp.sum(x) ** 2, 30),
    ],
)
def test_known_hessians_get_the_least_number_of_colors(f: Any, least: int) -> None:
    check_hessian(f, (Z,))
    derivative = ox.sparse_hessian(f)
    found, colors = derivative(Z), any_(derivative.colors)
    assert colorings.count(colors) == least and (found != found.T).nnz == 0
    assert is_star_coloring(derivative.pattern.toarray(), colors)


def test_a_long_chain_of_numbers() -> None:
    def f(x: Any) -> Any:
        return sum(100.0 * (x[k + 1] - x[k] ** 2) ** 2 + (1.0 - x[k]) ** 2 for k in range(len(x) - 1))

    check_hessian(f, (Z,))
    many = np.linspace(0.0, 1.0, 400)
    assert (abs(ox.sparse_hessian(f)(many) - ox.sparse_hessian(chain)(many)) > 1e-9).nnz == 0


# --- what they take, return and keep ----------------------------------------------------------------------------------


@dataclasses.dataclass
class Model:
    scale: float
    layers: list[Any]
    steps: int = 3


def test_trees_are_flattened_in_the_order_of_their_leaves() -> None:
    model = Model(2.0, [np.array([1.0, 2.0]), {"b": np.array([[3.0]]), "a": 4.0}])

    def f(m: Model, factor: Any) -> Any:
        first, second = m.layers
        return {"z": first * m.scale, "n": 7, "y": (second["b"][0, 0] * factor, second["a"] ** 2), "text": "no row"}

    found = ox.sparse_jacobian(f, (0, 1))(model, 5.0)
    # rows z0, z1, n, y0, y1; columns scale, layers[0], b, a, factor
    expected = [[1, 2, 0, 0, 0, 0], [2, 0, 2, 0, 0, 0], [0] * 6, [0, 0, 0, 5, 0, 3], [0, 0, 0, 0, 8, 0]]
    order = [str(path) for path in ox.tree.key_paths(model, float)]
    assert order[0] == "scale" and list(ox.tree.leaves({"b": 1, "a": 2})) == [1, 2]
    np.testing.assert_array_equal(found.toarray(), expected)
    by_name = ox.sparse_jacobian(f, argnames="factor")(m=model, factor=5.0)
    np.testing.assert_array_equal(by_name.toarray(), np.array(expected)[:, 5:])

    def number(m: Model) -> Any:
        return xp.sum(m.layers[0] ** 3) * m.scale + m.layers[1]["a"] ** 2

    hessian = ox.sparse_hessian(number)(model)
    exact = np.zeros((5, 5))
    exact[0, 1:3] = exact[1:3, 0] = [3.0, 12.0]
    exact[1, 1], exact[2, 2], exact[4, 4] = 12.0, 24.0, 2.0
    np.testing.assert_allclose(hessian.toarray(), exact)


def test_derivatives_print_their_sizes() -> None:
    def f(x: Any) -> Any:
        return x[1:] * x[0]

    derivative = ox.sparse_jacobian(f)
    assert repr(derivative) == "<sparse_jacobian of f, not called yet>"
    derivative(Z)
    assert repr(derivative) == "<sparse_jacobian of f, 29 x 30, 58 nonzeros, 2 products>"


NESTS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda x: ox.vmap(lambda a: xp.stack([xp.sin(a[0]) * a[1], a[1]]))(xp.reshape(x, (3, 2))),
    "grad": lambda x: ox.grad(lambda y: xp.sum(y[1:] ** 2 * y[:-1]))(x),
    "vmap of grad": lambda x: ox.vmap(ox.grad(lambda a: xp.sum(a**3) * a[0]))(xp.reshape(x, (3, 2))),
    "jvp": lambda x: ox.jvp(lambda y: y[1:] ** 2 * y[:-1], (x,), (np.ones(6),))[1],
}


@pytest.mark.parametrize("name", NESTS)
def test_other_transforms_inside_are_exact(name: str) -> None:
    found = check_jacobian(NESTS[name], (Z[:6],))
    assert found.nnz == np.count_nonzero(found.toarray())


def test_an_auxiliary_result_is_passed_on() -> None:
    found, aux = ox.sparse_jacobian(lambda x: (x * x, {"sum": xp.sum(x)}), has_aux=True)(Z)
    np.testing.assert_allclose(found.diagonal(), 2.0 * Z)
    assert aux["sum"] == pytest.approx(Z.sum())
    _, aux = ox.sparse_hessian(lambda x: (xp.sum(x * x), x[0]), has_aux=True)(Z)
    assert aux == Z[0]


def test_patterns_are_found_again_where_the_program_changes() -> None:
    searches = []
    factor = np.ones(4)

    def f(x: Any) -> Any:
        moved = x[1:] if x[0] > 0 else x[:-1]
        return moved[: len(factor)] * factor

    derivative = ox.sparse_jacobian(f)
    assert derivative.pattern is None and derivative.colors is None and not derivative.products

    def at(x: np.ndarray) -> Any:
        before = derivative._last
        found = derivative(x)
        searches.append(derivative._last is not before)
        np.testing.assert_allclose(found.toarray(), ox.jacobian(f)(x))
        return found

    x = np.arange(1.0, 6.0)
    at(x)
    at(2 * x)
    assert searches == [True, False]
    at(-x)  # a branch
    at(np.arange(1.0, 8.0))  # a shape
    assert searches[2:] == [True, True]
    factor[1] = 0.0  # a zero of an array that is captured
    assert at(np.arange(1.0, 8.0)).nnz == 3
    factor[2] = 5.0
    at(np.arange(1.0, 8.0))
    assert searches[4:] == [True, False]


def test_results_that_are_constant_have_rows_of_zeros_where_they_are() -> None:
    def f(x: Any, first: bool) -> Any:
        parts = [np.ones(2), x * x]
        return parts if first else parts[::-1]

    derivative = ox.sparse_jacobian(f)
    for first in (True, False, True):
        found = derivative(Z[:3], first).toarray()
        np.testing.assert_array_equal(found[2:] if first else found[:3], np.diag(2.0 * Z[:3]))
        assert found.shape == (5, 3) and not (found[:2] if first else found[3:]).any()


def test_a_pattern_that_is_given_is_used_and_compared() -> None:
    derivative = ox.sparse_jacobian(band(3))
    expected = derivative(Z)
    for pattern in (derivative.pattern, expected.toarray() != 0, sparse.coo_matrix(expected)):
        again = ox.sparse_jacobian(band(3), pattern=pattern)
        assert again.pattern.nnz == expected.nnz
        for mode in (1.0, 2.0):
            np.testing.assert_allclose(again(mode * Z).toarray(), mode * expected.toarray())
    lacking = expected.tolil()
    lacking[4, 5] = 0.0
    for mode in ("forward", "reverse"):
        with pytest.raises(ox.DerivativeError, match="nonzero outside of the pattern"):
            ox.sparse_jacobian(band(3), pattern=lacking.tocsr() != 0, mode=mode)(Z)
    with pytest.raises(ox.ShapeError, match=r"pattern has shape \(28, 30\), the matrix \(18, 20\)"):
        ox.sparse_jacobian(band(3), pattern=derivative.pattern)(Z[:20])
    hessian = ox.sparse_hessian(chain)
    hessian(Z)
    np.testing.assert_allclose(
        ox.sparse_hessian(chain, pattern=hessian.pattern)(Z).toarray(), ox.hessian(chain)(Z), rtol=1e-12
    )
    with pytest.raises(ox.DerivativeError, match="nonzero outside of the pattern"):
        ox.sparse_hessian(chain, pattern=np.eye(30))(Z)
    with pytest.raises(ox.ShapeError, match="expected a square one"):
        ox.sparse_hessian(chain, pattern=np.ones((2, 3)))


def test_a_pattern_is_not_doubted_for_rounding() -> None:
    def f(x: Any) -> Any:  # derivatives that cancel in part, or altogether
        large = xp.sin(1e3 * x)
        return xp.concat([(x + 1e3 * large) - 1e3 * large, x * large - large * x, x * x])

    found = ox.sparse_jacobian(f, pattern=np.tile(np.eye(30), (3, 1)))(Z).toarray()
    np.testing.assert_allclose(found, ox.jacobian(f)(Z), rtol=1e-6, atol=1e-6)
    infinite = ox.sparse_jacobian(xp.sqrt, pattern=np.eye(2))(np.array([0.0, 1.0]))
    assert infinite[0, 0] == np.inf and infinite[1, 1] == 0.5


def test_many_colors_are_pushed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from oxigrad.autodiff.sparse import jacobians

    monkeypatch.setattr(jacobians, "COLUMNS", 7)
    check_jacobian(lambda x: xp.cumulative_sum(x * x, axis=0), (Z,), mode="forward")


def test_a_rule_of_the_user_is_dense_and_right() -> None:
    @ox.define_vjp(lambda g, x: g * 3.0 * x**2)
    def cube(x: Any) -> Any:
        return x**3

    found = check_jacobian(lambda x: xp.concat([cube(x[:3]), x[3:]]), (Z[:6],))
    assert found.nnz == 9 + 3


def test_arrays_of_any_library(arrays: Any, asarray: Any) -> None:
    x = asarray(Z[:8])
    found = ox.sparse_jacobian(lambda x: x[1:] ** 2 * x[0])(x)
    np.testing.assert_allclose(found.toarray(), ox.jacobian(lambda x: x[1:] ** 2 * x[0])(Z[:8]), rtol=1e-6)
    np.testing.assert_allclose(ox.sparse_hessian(chain)(x).toarray(), ox.hessian(chain)(Z[:8]), rtol=1e-5, atol=1e-5)


def test_half_of_the_precision() -> None:
    x = Z.astype(np.float32)
    found = ox.sparse_jacobian(band(3), pattern=np.ones((28, 30)))(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), ox.jacobian(band(3))(Z), rtol=1e-5)


def test_complex_results_have_complex_columns() -> None:
    found = ox.sparse_jacobian(lambda x: x[:3] * (1.0 + 2.0j))(Z[:4])
    np.testing.assert_array_equal(found.toarray(), (1.0 + 2.0j) * np.eye(3, 4))
    gradient = ox.sparse_jacobian(lambda x: xp.sum(x * (1.0 + 2.0j)))(Z[:4])
    np.testing.assert_array_equal(gradient.toarray(), [[1.0 + 2.0j] * 4])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ox.sparse_jacobian(any_(3.0)), TypeError, "expected a function"),
        (lambda: ox.sparse_jacobian(np.sin, mode=any_("both")), ValueError, "expected 'forward', 'reverse' or None"),
        (lambda: ox.sparse_jacobian(np.sin)(Z + 1j), ox.DerivativeError, "argument is complex"),
        (lambda: ox.sparse_jacobian(lambda x: x * 1j, mode="reverse")(Z), ox.DerivativeError, "result is complex"),
        (lambda: ox.sparse_jacobian(np.sin)("no"), ox.DtypeError, "argument 0"),
        (lambda: ox.sparse_jacobian(np.sin, pattern=np.ones(3))(Z), ox.ShapeError, "expected a matrix"),
        (lambda: ox.sparse_hessian(np.sin)(Z), ox.ShapeError, "scalar"),
        (lambda: ox.sparse_hessian(any_(3.0)), TypeError, "expected a function"),
        (lambda: ox.grad(lambda x: ox.sparse_jacobian(np.sin)(x).sum())(Z), ox.DerivativeError, "outside of others"),
        (lambda: ox.vmap(lambda x: ox.sparse_jacobian(np.sin)(x))(Z[None]), ox.DerivativeError, "outside of others"),
    ],
)
def test_errors_say_what_is_expected(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_scipy_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match="install SciPy"):
        ox.sparse_jacobian(np.sin)(Z)
