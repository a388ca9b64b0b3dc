"""Derivatives of eigenvectors and singular vectors of levels that are equal up to rounding."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp

la = xp.linalg
N = 6
# The levels of a group that has a projector, and the others.
GROUPS = {"two": [1.0, 1.0], "three": [1.0, 1.0, 1.0], "zero": [0.0, 0.0], "one": [1.0]}
OTHERS = [2.5, 2.5, 4.0, -3.0, 7.0]


def unitary(seed: int, n: int = N, is_complex: bool = False) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, n)) + (1j * random.normal(size=(n, n)) if is_complex else 0.0)
    return np.linalg.qr(x)[0]


def with_levels(group: str, seed: int, is_complex: bool = False) -> np.ndarray:
    """A Hermitian matrix, whose levels are equal up to rounding."""
    levels = np.array([*GROUPS[group], *OTHERS][:N])
    q = unitary(seed, N, is_complex)
    x = (q * levels) @ q.conj().T
    return 0.5 * (x + x.conj().T)


def weights(seed: int, is_complex: bool = False) -> np.ndarray:
    random = np.random.default_rng(100 + seed)
    a = random.normal(size=(N, N)) + (1j * random.normal(size=(N, N)) if is_complex else 0.0)
    return a + a.conj().T


def projector(v: Any, w: Any, group: str) -> Any:
    """The projector on the vectors of a group, from its position among the sorted levels."""
    inside = v[:, np.abs(host(w) - GROUPS[group][0]) < 0.5]
    return inside @ xp.conj(inside).mT


def slope(x: np.ndarray, a: np.ndarray, center: float, radius: float = 0.5, nodes: int = 96) -> np.ndarray:
    """The derivative of the projector's product with ``a``: the integral of resolvents on a circle around the group."""
    circle = radius * np.exp(2j * np.pi * (np.arange(nodes) + 0.5) / nodes)[:, None, None]
    resolvents = np.linalg.inv((center + circle) * np.eye(len(x)) - x)
    return np.mean(circle * (resolvents @ a @ resolvents), axis=0)


def loss(x: Any, a: np.ndarray, group: str) -> Any:
    w, v = la.eigh(x)
    return xp.sum(xp.real(xp.asarray(a).T * projector(v, ox.stop_gradient(w), group)))


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("group", GROUPS)
def test_losses_of_a_projector_have_the_gradient_of_the_subspace(group: str, is_complex: bool) -> None:
    for seed in range(4):
        x, a = with_levels(group, seed, is_complex), weights(seed, is_complex)
        expected = slope(x, a, GROUPS[group][0])
        gradient = np.conj(ox.grad(loss)(x, a, group))  # of a real loss, conjugated, as for steepest ascent
        np.testing.assert_allclose(
            gradient, expected if is_complex else expected.real, rtol=0, atol=2e-14 * np.abs(a).max() * N
        )


def test_single_precision_counts_its_own_rounding() -> None:
    x, a = with_levels("three", 1), weights(1)
    gradient = ox.grad(loss)(x.astype(np.float32), a.astype(np.float32), "three")
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, slope(x, a, 1.0).real, atol=2e-5)


TURNING = {
    "one vector": lambda v, a: xp.sum(a[:, :1] * v[:, :1]),
    "a part of a group": lambda v, a: xp.sum(a * (v[:, :2] @ v[:, :2].T)),
    "a product of two": lambda v, a: xp.sum(a * (v[:, :1] @ v[:, 1:2].T)),
}


@pytest.mark.parametrize("name", TURNING)
def test_losses_that_depend_on_a_rotation_have_none(name: str) -> None:
    for seed in range(4):
        x, a = with_levels("three", seed), np.random.default_rng(seed).normal(size=(N, N))
        assert np.isnan(ox.grad(lambda x, a=a: TURNING[name](la.eigh(x)[1], a))(x)).any()


TEXT = "equal up to rounding"
EQUAL = pytest.raises(ox.DerivativeError, match=TEXT)


def in_mode(mode: str) -> Any:
    """What happens without a derivative of one matrix: reverse mode raises, forward mode warns and has NaN."""
    return EQUAL if mode == "reverse" else pytest.warns(RuntimeWarning, match=TEXT)


def test_functions_of_vectors_and_values_together_are_refused() -> None:
    def of_matrix(x: Any) -> Any:
        w, v = la.eigh(x)
        return (v * (w * w)) @ v.T  # the square of x

    a = weights(3)
    for x in (np.eye(N), with_levels("two", 4)):
        with EQUAL:
            ox.grad(lambda x: xp.sum(of_matrix(x) * a))(x)
        with in_mode("forward"):
            assert np.isnan(ox.jvp(of_matrix, (x,), (a,))[1]).any()
        assert np.isnan(ox.record(ox.grad(lambda x: xp.sum(of_matrix(x) * a)))(x)).any()
    apart = np.diag(np.arange(1.0, N + 1.0))
    np.testing.assert_allclose(ox.grad(lambda x: xp.sum(of_matrix(x) * a))(apart), apart @ a + a @ apart)


OF_LEVELS = {
    "sum of squares": lambda w: xp.sum(w * w),
    "sum of exponentials": lambda w: xp.sum(xp.exp(w)),
    "product": xp.prod,
    "entropy": lambda w: xp.sum(xp.log(w) * w),
    "logarithm of a sum": lambda w: xp.log(xp.sum(xp.exp(w))),
}


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("levels", [la.eigvalsh, la.svdvals, lambda x: xp.real(la.eigvals(x))])
@pytest.mark.parametrize("of", OF_LEVELS)
def test_second_derivatives_of_equal_levels_are_refused(of: str, levels: Callable[[Any], Any], mode: Any) -> None:
    second = ox.jacobian(ox.grad(lambda x: OF_LEVELS[of](levels(x))), mode=mode)
    q = unitary(5)
    for x in (np.eye(3), q @ np.diag([1.0, 1.0, 2.0, 3.0, 4.0, 5.0]) @ q.T):
        with in_mode(mode):
            assert np.isnan(second(x)).any()
    stack = np.stack([np.eye(2), np.diag([1.0, 2.0])])
    with in_mode("forward"):
        hessian = second(stack)
    assert np.isnan(hessian[0, :, :, 0]).any()
    assert np.isfinite(hessian[1, :, :, 1]).all()
    x = np.diag([1.0, 2.0, 4.0])
    assert np.isfinite(second(x)).all()


def test_second_derivatives_of_a_trace_exist_in_reverse_mode() -> None:
    second = ox.jacobian(ox.grad(lambda x: xp.sum(la.eigvalsh(x))), mode="reverse")
    for x in (np.eye(3), with_levels("two", 5)):
        np.testing.assert_allclose(second(x), 0.0, atol=1e-12)
    nuclear = ox.jacobian(ox.grad(lambda x: la.norm(x, "nuc")), mode="reverse")(np.eye(2))
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])  # the singular values of 1 + h turn are sqrt(1 + h**2)
    np.testing.assert_allclose(np.tensordot(np.tensordot(nuclear, turn, 2), turn, 2), 2.0, rtol=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_second_derivatives_of_projectors_are_refused(mode: Any) -> None:
    a = weights(6)
    second = ox.jacobian(ox.grad(lambda x: loss(x, a, "two")), mode=mode)
    with in_mode(mode):
        assert np.isnan(second(with_levels("two", 6))).any()
    apart = with_levels("one", 7) + 0.1 * weights(8)
    assert np.isfinite(second(apart)).all()


def test_a_matrix_without_an_effect_is_not_refused() -> None:
    """A mask leaves out the matrices of a stack whose levels are equal, in the values and in their derivatives."""
    x = np.stack([np.diag([1.0, 2.0]), np.eye(2)])

    def of(x: Any) -> Any:
        w, v = la.eigh(x)
        return xp.sum(xp.where(np.array([True, False]), xp.sum((v * w[:, None]) @ xp.exp(v).mT, axis=(-2, -1)), 0.0))

    gradient = ox.grad(of)(x)
    np.testing.assert_allclose(
        gradient[0], ox.grad(of)(x + np.diag([0.0, 1e-3]) * np.array([0.0, 1.0])[:, None, None])[0]
    )
    np.testing.assert_array_equal(gradient[1], np.zeros((2, 2)))


def test_a_nan_of_the_matrix_or_of_a_cotangent_is_none_of_the_levels() -> None:
    def of(x: Any, scale: float) -> Any:
        w, v = la.eigh(x)
        return xp.sum((v * w) @ v.T) * scale

    x = np.diag([1.0, 2.0])
    assert np.isnan(ox.grad(of)(x, math.nan)).all()
    assert np.isnan(ox.jvp(lambda x: la.eigh(x)[1], (x,), (np.full((2, 2), math.nan),))[1]).any()


def test_first_derivatives_of_the_values_are_those_of_a_trace() -> None:
    x = with_levels("three", 2)
    inside = np.abs(np.linalg.eigvalsh(x) - 1.0) < 0.5
    gradient = ox.grad(lambda x: xp.sum(la.eigvalsh(x)[inside]))(x)
    v = np.linalg.eigh(x)[1]
    np.testing.assert_allclose(gradient, v[:, inside] @ v[:, inside].T, atol=1e-14)


def test_tangents_that_do_not_mix_equal_levels_are_exact() -> None:
    x = with_levels("three", 2)
    w, v = np.linalg.eigh(x)
    inside = np.abs(w - 1.0) < 0.5
    t = weights(9)
    p = v[:, inside] @ v[:, inside].T
    t = t - p @ t @ p
    with in_mode("forward"):  # others are mixed
        tangent = ox.jvp(lambda x: projector(la.eigh(x)[1], w, "three"), (x,), (t,))[1]
    expected = [[np.sum(slope(x, e, 1.0).real * t) for e in row] for row in np.eye(N * N).reshape(N, N, N, N)]
    np.testing.assert_allclose(tangent, np.array(expected), atol=1e-13)
    with in_mode("forward"):
        mixing = ox.jvp(lambda x: projector(la.eigh(x)[1], w, "three"), (x,), (weights(9),))[1]
    assert np.isnan(mixing).all()
    values = ox.jvp(lambda x: xp.sum(la.eigvalsh(x)), (x,), (weights(9),))[1]
    np.testing.assert_allclose(values, np.trace(weights(9)))


# --- singular vectors --------------------------------------------------------------------------------------------------

SHAPES = {"square": (5, 5), "tall": (7, 5), "wide": (5, 7)}
SINGULAR = {"two": [3.0, 3.0, 1.0, 0.5, 0.2], "zero": [3.0, 2.0, 1.0, 0.0, 0.0], "pair": [3.0, 2.0, 2.0, 2.0, 0.0]}


def with_singular(shape: tuple[int, int], name: str, seed: int) -> np.ndarray:
    rows, columns = shape
    k = min(shape)
    return unitary(seed, rows)[:, :k] * SINGULAR[name] @ unitary(seed + 50, columns)[:k]


def subspace_loss(x: Any, a: np.ndarray, count: int, side: str) -> Any:
    u, _, vh = la.svd(x, full_matrices=False)
    inside = u[:, :count] if side == "left" else vh[:count].mT
    return xp.sum(a * (inside @ inside.mT))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_subspaces(shape: str, name: str, side: str) -> None:
    levels = np.array(SINGULAR[name])
    count = {"two": 2, "zero": 3, "pair": 4}[name]
    for seed in range(2):
        x = with_singular(SHAPES[shape], name, seed)
        a = np.random.default_rng(seed).normal(size=(len(x) if side == "left" else x.shape[1],) * 2)
        a = a + a.T
        gradient = ox.grad(lambda x, a=a: subspace_loss(x, a, count, side))(x)
        # The projector is that of x x^T on its largest levels, by a circle that is far from the others.
        gram = x @ x.T if side == "left" else x.T @ x
        high, edge = levels[0] ** 2 + 1.0, 0.5 * (levels[count] ** 2 + levels[count - 1] ** 2)
        of_gram = slope(gram, a, 0.5 * (high + edge), 0.5 * (high - edge), 400)
        expected = 2.0 * (of_gram.real @ x if side == "left" else x @ of_gram.real)
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_vectors_that_may_turn_have_none(shape: str) -> None:
    for name in SINGULAR:
        x = with_singular(SHAPES[shape], name, 3)
        at = {"two": 0, "zero": 4, "pair": 1}[name]
        assert np.isnan(ox.grad(lambda x, at=at: la.svd(x, full_matrices=False)[0][0, at] ** 2)(x)).any()


def test_both_singular_vectors_of_one_level_are_a_product() -> None:
    """``u @ vh`` of a group is smooth, though each factor turns: the orthogonal factor of a polar decomposition."""
    x = with_singular((5, 5), "two", 1)
    a = np.random.default_rng(2).normal(size=(5, 5))

    def by_vectors(x: Any) -> Any:
        u, _, vh = la.svd(x)
        return xp.sum(a * (u @ vh))

    np.testing.assert_allclose(ox.grad(by_vectors)(x), ox.grad(lambda x: xp.sum(a * la.polar(x)[0]))(x), atol=1e-12)


def test_a_pseudo_inverse_that_cuts_levels_of_equal_others() -> None:
    x = with_singular((6, 5), "two", 4)
    a = np.random.default_rng(3).normal(size=(5, 6))
    gradient = ox.grad(lambda x: xp.sum(a * la.pinv(x, rtol=0.25)))(x)
    h, differences = 1e-6, np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = h
        differences[at] = np.sum(a * (np.linalg.pinv(x + step, rcond=0.25) - np.linalg.pinv(x - step, rcond=0.25))) / (
            2 * h
        )
    np.testing.assert_allclose(gradient, differences, atol=1e-7)


# --- matrices that are not symmetric -----------------------------------------------------------------------------------


def spectral_loss(x: Any, a: np.ndarray, inside: np.ndarray) -> Any:
    _, v = la.eig(x)
    return xp.sum(a * xp.real(v[:, inside] @ la.inv(v)[inside]))


def test_spectral_projectors_of_a_general_matrix() -> None:
    for seed in range(3):
        random = np.random.default_rng(seed)
        s = random.normal(size=(4, 4)) + 3.0 * np.eye(4)
        x = s @ np.diag([1.0, 1.0, 2.5, 4.0]) @ np.linalg.inv(s)
        a = random.normal(size=(4, 4))
        inside = np.abs(np.linalg.eigvals(x) - 1.0) < 0.5
        expected = slope(x, a.T, 1.0).real.T
        gradient = ox.grad(spectral_loss)(x, a, inside)
        np.testing.assert_allclose(gradient, expected, atol=1e-10 * np.linalg.cond(s))


# --- other ways --------------------------------------------------------------------------------------------------------


def test_under_vmap_and_in_recordings() -> None:
    x = np.stack([with_levels("two", seed) for seed in range(4)])
    a = weights(1)
    inside = np.abs(np.linalg.eigvalsh(x[0]) - 1.0) < 0.5

    def of(x: Any) -> Any:
        v = la.eigh(x)[1][:, inside]
        return xp.sum(a * (v @ v.mT))

    expected = np.stack([slope(each, a, 1.0).real for each in x])
    np.testing.assert_allclose(ox.vmap(ox.grad(of))(x), expected, atol=1e-12)
    recorded = ox.record(ox.grad(of))
    for each, gradient in zip(x, expected, strict=True):
        np.testing.assert_allclose(recorded(each), gradient, atol=1e-12)
    np.testing.assert_allclose(ox.grad(ox.record(of))(x[1]), expected[1], atol=1e-12)
    assert np.isnan(ox.vmap(ox.grad(lambda x: la.eigh(x)[1][0, 1]))(x)).any()


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_over_another_library(name: str, library: Any) -> None:
    other = library(name)
    x, a = with_levels("two", 3), weights(3)
    if name == "torch":
        asarray = lambda x: other.tensor(x)  # noqa: E731
    else:
        other.config.update("jax_enable_x64", True)
        asarray = other.numpy.asarray
    inside = np.nonzero(np.abs(np.linalg.eigvalsh(x) - 1.0) < 0.5)[0]

    def of(x: Any) -> Any:
        v = la.eigh(x)[1][:, inside[0] : inside[-1] + 1]
        return xp.sum(asarray(a) * (v @ v.mT))

    np.testing.assert_allclose(np.asarray(ox.grad(of)(asarray(x))), slope(x, a, 1.0).real, atol=1e-12)
    assert np.isnan(np.asarray(ox.grad(lambda x: la.eigh(x)[1][0, 1])(asarray(x)))).any()
