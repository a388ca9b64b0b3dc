"""Filters of images: values against SciPy's, transposes in every boundary mode, derivatives, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from cases_ndimage import FILTERS, LABELS, MODES, POINTS, Call, K, W, X
from libraries import host
from oxigrad import xp
from oxigrad.ops.backends import on_host
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")

ORDERS = [(order, mode) for order in (2, 3, 4, 5) for mode in ("mirror", "reflect", "grid-wrap")]


def is_transpose(f: Call, x: Any, tolerance: float = 1e-12) -> None:
    """Checks ``<A t, g> = <t, A' g>`` in both modes, to second order by the transpose of the transpose."""
    rng = np.random.default_rng(5)
    y, pull = ox.vjp(f, x)
    t, g = rng.standard_normal(np.shape(x)), rng.standard_normal(np.shape(y))
    product = np.sum(g * ox.jvp(f, (x,), (t,))[1])
    assert np.sum(t * pull(g)[0]) == pytest.approx(product, rel=tolerance, abs=tolerance)
    back = lambda g: ox.vjp(f, x)[1](g)[0]  # noqa: E731
    assert np.sum(g * ox.vjp(back, g)[1](t)[0]) == pytest.approx(product, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILTERS)
def test_filters_and_their_transposes_in_every_mode(name: str, mode: str) -> None:
    if name == "zoom-grid" and mode in ("wrap", "constant"):
        mode = f"grid-{mode}"  # which SciPy recommends by a warning
    f = FILTERS[name]
    for x in (X, X[:, :2], X[:1]):
        for cval in (0.0, 1.5):
            found, expected = (f(nd, x, mode=mode, cval=cval) for nd in (xp.ndimage, scipy.ndimage))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        if x is not X[:1] or name.split("-")[0] not in ("zoom", "shift"):
            is_transpose(lambda x: f(xp.ndimage, x, mode=mode, cval=1.5), x)


def test_weights_are_differentiable() -> None:
    for mode in ("reflect", "constant"):
        for name in ("correlate", "convolve"):
            f = lambda x, w, name=name, mode=mode: getattr(xp.ndimage, name)(x, w, mode=mode, cval=0.5, origin=(1, -1))  # noqa: E731
            found = ox.vjp(f, X, K)[0]
            expected = getattr(scipy.ndimage, name)(X, K, mode=mode, cval=0.5, origin=(1, -1))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            check_grads(f, (X[:4], K[:, :3]), order=2)
        check_grads(lambda x, w, mode=mode: xp.ndimage.correlate1d(x, w, 0, mode=mode), (X, W), order=2)
        check_grads(lambda x, w, mode=mode: xp.ndimage.convolve1d(x, w, mode=mode), (X, W), order=2)


@pytest.mark.parametrize("of_image", [X, X + 1j * X[::-1]], ids=["real", "complex"])
@pytest.mark.parametrize("name", ["correlate", "convolve", "correlate1d", "convolve1d"])
def test_complex_weights(name: str, of_image: Any) -> None:
    w = W + 1j * W[::-1] if name.endswith("1d") else K + 1j * K[::-1]
    ours, theirs = getattr(xp.ndimage, name), getattr(scipy.ndimage, name)
    expected = theirs(of_image, w, mode="wrap")
    values = [ours(of_image, w, mode="wrap"), ox.vjp(lambda x, w: ours(x, w, mode="wrap"), of_image, w)[0]]
    values += [ox.vjp(lambda x: ours(x, w, mode="wrap"), of_image)[0]]
    for value in values:
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    check_grads(lambda x, w: ours(x, w, mode="wrap"), (of_image[:4], w), order=2)


def test_gradient_magnitude() -> None:
    f = lambda nd, x: nd.gaussian_gradient_magnitude(x, 0.9, mode="nearest")  # noqa: E731
    np.testing.assert_allclose(f(xp.ndimage, X), f(scipy.ndimage, X), rtol=1e-12)
    check_grads(lambda x: f(xp.ndimage, x), (X,), order=2)
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(f(xp.ndimage, x)))(np.zeros((4, 4))), 0.0)


@pytest.mark.parametrize(("order", "mode"), ORDERS)
def test_splines(order: int, mode: str) -> None:
    f = lambda nd, x: nd.spline_filter(x, order, mode=mode)  # noqa: E731
    for x in (X, X[:1], X[:2]):
        np.testing.assert_allclose(f(xp.ndimage, x), f(scipy.ndimage, x), rtol=1e-12, atol=1e-12)
        is_transpose(lambda x: f(xp.ndimage, x), x, 1e-11)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "wrap"])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_interpolation(order: int, mode: str) -> None:
    far = np.random.default_rng(3).uniform(-9.0, 15.0, (2, 40))
    for cval in (0.0, 1.5):
        found, expected = (
            nd.map_coordinates(X, far, order=order, mode=mode, cval=cval) for nd in (xp.ndimage, scipy.ndimage)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    f = lambda x, at: xp.ndimage.map_coordinates(x, at, order=order, mode=mode)  # noqa: E731
    check_grads(f, (X, POINTS), order=1 if order < 3 else 2)
    is_transpose(lambda x: f(x, far), X, 1e-11)


def test_transformations() -> None:
    matrix, offset = np.array([[0.9, 0.2], [-0.1, 1.1]]), np.array([0.3, -0.2])
    for m in (matrix, matrix[0]):
        found, expected = (nd.affine_transform(X, m, offset, output_shape=(5, 8)) for nd in (xp.ndimage, scipy.ndimage))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    check_grads(
        lambda x, m, o: xp.ndimage.affine_transform(x, m, o, output_shape=(5, 5), mode="mirror"),
        (X, matrix, offset),
        order=1,
    )
    for named in ({}, {"reshape": False, "order": 1, "mode": "nearest"}, {"cval": 2.0}):
        found, expected = (nd.rotate(X, 31.7, **named) for nd in (xp.ndimage, scipy.ndimage))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    check_grads(lambda x, a: xp.ndimage.rotate(x, a, reshape=False, mode="mirror"), (X, np.array(20.0)), order=1)


@pytest.mark.parametrize("angle", [90, -90.0, 180.0, 270, 450.0])
def test_quarter_turns_are_exact(angle: float) -> None:
    """By angles in radians, which are rounded, elements at the edges were outside."""
    for order in (1, 3):
        for named in ({}, {"mode": "grid-constant"}, {"reshape": False, "cval": 2.0}):
            f = lambda nd, a, order=order, named=named: nd.rotate(X, a, order=order, **named)  # noqa: E731
            for y in (f(xp.ndimage, angle), ox.vjp(lambda a, f=f: f(xp.ndimage, a), float(angle))[0]):
                np.testing.assert_allclose(y, f(scipy.ndimage, angle), rtol=1e-9, atol=1e-9)
    weights = np.random.default_rng(3).standard_normal(xp.ndimage.rotate(X, angle).shape)
    gradient = ox.grad(lambda x: xp.sum(weights * xp.ndimage.rotate(x, angle, order=1)))(X)
    np.testing.assert_allclose(gradient, np.rot90(weights, -(angle // 90)), rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("prefilter", [False, True])
def test_coordinates_beyond_the_edges_that_repeat_the_last_element(prefilter: bool, order: int) -> None:
    rng = np.random.default_rng(4)
    coordinates = rng.uniform(-4.0, 4.0, (2, 40)) + np.where(
        rng.uniform(size=(2, 40)) < 0.5, 0.0, [[X.shape[0]], [X.shape[1]]]
    )
    f = lambda nd, x, c: nd.map_coordinates(x, c, order=order, mode="nearest", prefilter=prefilter)  # noqa: E731
    np.testing.assert_allclose(f(xp.ndimage, X, coordinates), f(scipy.ndimage, X, coordinates), rtol=1e-9, atol=1e-9)
    check_grads(lambda x, c: f(xp.ndimage, x, c), (X, coordinates), order=1)
    far = np.array([[1e300, -1e300], [-1e300, 1e300]])
    np.testing.assert_allclose(f(xp.ndimage, X, far), [X[-1, 0], X[0, -1]], atol=1e-6)


@pytest.mark.parametrize("rows", [2, 3])
def test_matrices_whose_last_column_is_the_offset(rows: int) -> None:
    matrix = np.array([[1.1, 0.2, 0.35], [-0.3, 0.9, 0.45], [0.0, 0.0, 1.0]])[:rows]
    expected = scipy.ndimage.affine_transform(X, matrix, order=2, mode="mirror")
    f = lambda x, m: xp.ndimage.affine_transform(x, m, order=2, mode="mirror")  # noqa: E731
    np.testing.assert_allclose(f(X, matrix), expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(ox.vjp(f, X, matrix)[0], expected, rtol=1e-11, atol=1e-11)
    column = lambda x, part: f(x, xp.concat([matrix[:2, :2], part], axis=1))  # noqa: E731
    check_grads(column, (X, matrix[:2, 2:]), order=2)


@pytest.mark.parametrize(
    ("matrix", "error"), [(np.ones((3, 3)), "last row"), (np.ones((4, 2)), "shape"), (np.ones(3), "shape")]
)
def test_matrices_that_are_refused(matrix: Any, error: str) -> None:
    with pytest.raises(ValueError, match=f"^affine_transform: found .*{error}"):
        xp.ndimage.affine_transform(X, matrix)


@pytest.mark.parametrize("name", ["sum_labels", "mean"])
@pytest.mark.parametrize("index", [[[1], [2]], [], np.zeros((0, 3), int), [[1, 2], [2, 1]], 2], ids=str)
def test_sums_have_the_shape_of_the_index(name: str, index: Any) -> None:
    labels = np.arange(X.size).reshape(X.shape) % 3
    ours, expected = (getattr(lib.ndimage, name)(X, labels, index) for lib in (xp, scipy))
    np.testing.assert_allclose(ours, expected, rtol=1e-12, strict=True)
    if np.size(index):
        check_grads(lambda x: getattr(xp.ndimage, name)(x, labels, index), (X,), order=1)


@pytest.mark.parametrize("name", ["map_coordinates", "rotate", "affine_transform"])
def test_interpolation_keeps_single_precision(name: str) -> None:
    at = {"map_coordinates": np.array([[0.3, 1.2], [0.9, 2.1]]), "rotate": 20.0, "affine_transform": np.eye(2) * 0.9}
    for argument in (X.astype(np.float32), X):
        expected = getattr(scipy.ndimage, name)(argument, at[name])
        for value in (f := lambda x: getattr(xp.ndimage, name)(x, at[name]))(argument), ox.vjp(f, argument)[0]:
            assert value.dtype == expected.dtype
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["correlate", "uniform_filter"])
def test_integers_beyond_the_edges(name: str) -> None:
    image, argument = (10 * X).astype(int), K if name == "correlate" else 3
    ours, expected = (getattr(lib.ndimage, name)(image, argument, mode="constant", cval=1) for lib in (xp, scipy))
    np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("name", ["median_filter", "maximum_filter", "grey_opening"])
def test_complex_numbers_have_no_order(name: str) -> None:
    with pytest.raises(ox.DtypeError, match="found a complex array, expected a real one"):
        getattr(xp.ndimage, name)(X + 1j, 3)


def test_the_fourier_domain() -> None:
    transform = np.fft.fft2(X)
    for name, arg in (("gaussian", 1.3), ("uniform", 3), ("ellipsoid", 3), ("shift", (0.5, 1.5))):
        f = lambda nd, x, name=f"fourier_{name}", arg=arg: getattr(nd, name)(x, arg)  # noqa: E731
        np.testing.assert_allclose(f(xp.ndimage, transform), f(scipy.ndimage, transform), rtol=1e-12, atol=1e-13)
        check_grads(lambda x, f=f: xp.real(xp.fft.ifft2(f(xp.ndimage, xp.fft.fft2(x)))), (X,))


def test_labels() -> None:
    for index in (None, 2, [1, 3, 4]):
        for name in ("sum", "sum_labels", "mean"):
            found, expected = (getattr(nd, name)(X, LABELS, index) for nd in (xp.ndimage, scipy.ndimage))
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        check_grads(lambda x, index=index: xp.ndimage.mean(x * x, LABELS, index), (X,))
    assert float(xp.ndimage.mean(X)) == pytest.approx(X.mean())


@pytest.mark.parametrize("name", ["gaussian_filter", "shift", "map_coordinates", "correlate"])
def test_images_of_every_library(name: str, arrays: Any) -> None:
    x = arrays.asarray(X.astype(np.float32))
    calls = {**FILTERS, "map_coordinates": lambda nd, x: nd.map_coordinates(x, POINTS)}
    f = lambda x: xp.sum(calls[name](xp.ndimage, x) ** 2)  # noqa: E731
    if not on_host(x):
        with pytest.raises(NotImplementedError, match="cannot be read in host memory"):
            f(x)
        return
    found = ox.grad(f)(x)
    assert str(found.dtype).endswith("float32")
    np.testing.assert_allclose(host(found), ox.grad(f)(X), rtol=1e-4, atol=1e-4)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="^laplace: mode is 'symmetric': expected one of 'reflect'"):
        xp.ndimage.laplace(X, mode="symmetric")
    with pytest.raises(ox.DerivativeError, match="^map_coordinates: order=4, mode='constant' has no derivative here"):
        xp.ndimage.map_coordinates(X, POINTS, order=4)
    with pytest.raises(ox.ShapeError, match=r"found coordinates of shape \(1, 5\), expected \(2, ...\)"):
        xp.ndimage.map_coordinates(X, POINTS[:1])
    with pytest.raises(ox.ShapeError, match=r"^rotate: found shape \(7,\)"):
        xp.ndimage.rotate(X[:, 0], 3.0)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "wrap"])
def test_the_nearest_elements_of_halves_are_scipys(mode: str, size: int) -> None:
    elements, at = np.arange(1.0, size + 1.0), np.arange(-3.0 * size - 0.5, 4.0 * size, 0.5)[None]
    found, expected = (
        nd.map_coordinates(elements, at, order=0, mode=mode, cval=-7.0) for nd in (xp.ndimage, scipy.ndimage)
    )
    np.testing.assert_array_equal(found, expected)
    gradient = ox.grad(lambda x: xp.sum(xp.ndimage.map_coordinates(x, at, order=0, mode=mode, cval=-7.0)))(elements)
    np.testing.assert_array_equal(gradient, [np.sum(expected == each) for each in elements])


@pytest.mark.parametrize(
    ("name", "named", "what"),
    [
        ("gaussian_filter", {"sigma": [1.0, 2.0, 3.0]}, "3 values in sigma, expected 2"),
        ("gaussian_filter", {"sigma": 1.0, "order": [0, 1, 2]}, "3 values in order, expected 2"),
        ("gaussian_filter", {"sigma": 1.0, "mode": ["nearest"]}, "1 values in mode, expected 2"),
        ("gaussian_filter", {"sigma": 1.0, "radius": (1, 2, 3)}, "3 values in radius, expected 2"),
        ("gaussian_filter", {"sigma": [1.0, 2.0], "axes": (1,)}, "2 values in sigma, expected 1"),
        ("gaussian_laplace", {"sigma": [1.0, 2.0, 3.0]}, "3 values in sigma, expected 2"),
        ("gaussian_gradient_magnitude", {"sigma": 1.0, "mode": ["nearest"]}, "1 values in mode, expected 2"),
        ("uniform_filter", {"size": [3, 3, 3]}, "3 values in size, expected 2"),
        ("uniform_filter", {"origin": [0, 0, 0]}, "3 values in origin, expected 2"),
        ("maximum_filter", {"size": 3, "mode": ["nearest"]}, "1 values in mode, expected 2"),
        ("convolve", {"weights": np.ones((3, 3)), "origin": [0]}, "1 values in origin, expected 2"),
        ("correlate", {"weights": np.ones(3)}, "weights of 1 dimensions, expected 2"),
        ("correlate1d", {"weights": np.ones((3, 1))}, "weights of 2 dimensions, expected 1"),
        ("shift", {"shift": [1.0, 2.0, 3.0]}, "3 values in shift, expected 2"),
        ("zoom", {"zoom": [1.0, 2.0, 3.0]}, "3 values in zoom, expected 2"),
        ("affine_transform", {"matrix": np.eye(2), "offset": [1.0, 2.0, 3.0]}, r"an offset of shape \(3,\)"),
        ("affine_transform", {"matrix": np.eye(2), "offset": [1.0]}, r"an offset of shape \(1,\)"),
        ("fourier_gaussian", {"sigma": [1.0, 2.0, 3.0]}, "3 values in sigma, expected 2"),
        ("fourier_shift", {"shift": [1.0, 2.0, 3.0]}, "3 values in shift, expected 2"),
    ],
)
def test_a_parameter_for_another_number_of_axes(name: str, named: dict[str, Any], what: str) -> None:
    x = np.ones((3, 4))
    with pytest.raises((RuntimeError, ValueError)):
        getattr(scipy.ndimage, name)(x.astype(complex) if name.startswith("fourier") else x, **named)
    with pytest.raises(ox.ShapeError, match=f"found {what}"):
        getattr(xp.ndimage, name)(x, **named)
