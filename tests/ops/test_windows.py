"""Filters of ranks and morphology: values equal to SciPy's in every boundary mode, derivatives, ties, transforms, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from cases_ndimage import FOOTPRINT, MODES, SELECTIONS, K, X
from libraries import host
from oxigrad import xp
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")
pytest.importorskip("scipy.ndimage")

GREY = ["grey_erosion", "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient", "white_tophat"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SELECTIONS)
def test_values_in_every_mode(name: str, mode: str) -> None:
    f = SELECTIONS[name]
    for x in (X, X[:, :2], X[:1]):
        for cval in (0.0, 1.5):
            found, expected = (f(nd, x, mode=mode, cval=cval) for nd in (xp.ndimage, scipy.ndimage))
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.one_in(4)
def test_a_derivative_flows_to_the_selected_element(name: str) -> None:
    for mode in ("reflect", "constant"):
        check_grads(lambda x, mode=mode: SELECTIONS[name](xp.ndimage, x, mode=mode, cval=0.3), (X[:4],))
    if name.split("-")[0] in ("median_filter", "rank_filter", "maximum_filter1d"):
        jacobian = ox.jacobian(lambda x: SELECTIONS[name](xp.ndimage, x))(X)
        assert set(np.unique(jacobian)) == {0.0, 1.0}
        np.testing.assert_array_equal(np.sum(jacobian, axis=(2, 3)), 1.0)


@pytest.mark.parametrize("name", GREY)
def test_structures_are_differentiable(name: str) -> None:
    f = getattr(xp.ndimage, name)
    check_grads(lambda x, s: f(x, structure=s, origin=(0, 1)), (X[:4], K))
    check_grads(lambda x, s: f(x, structure=s, footprint=FOOTPRINT, mode="constant"), (X[:4], K))
    check_grads(lambda x, c: f(x, 3, mode="constant", cval=c), (X[:4], 0.35))


def test_equal_elements() -> None:
    flat, around = np.zeros((3, 3)), np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    middle = lambda f, **named: ox.grad(lambda x: f(x, **named)[1, 1])(flat)  # noqa: E731
    np.testing.assert_allclose(middle(xp.ndimage.maximum_filter, size=3), 1.0 / 9.0, rtol=1e-14)
    np.testing.assert_allclose(middle(xp.ndimage.minimum_filter, footprint=around), around / 5.0, rtol=1e-14)
    for name, args in (("median_filter", ()), ("rank_filter", (1,)), ("percentile_filter", (100.0,))):
        found = middle(lambda x, name=name, args=args, **named: getattr(xp.ndimage, name)(x, *args, **named), size=3)
        assert sorted(found.reshape(-1)) == [0.0] * 8 + [1.0]


@pytest.mark.parametrize("name", ["median_filter-footprint", "grey_closing-structure", "maximum_filter-size"])
def test_images_of_every_library(name: str, arrays: Any) -> None:
    def f(x: Any, structure: Any) -> Any:
        if name == "grey_closing-structure":
            return xp.sum(xp.ndimage.grey_closing(x, structure=structure) ** 2)
        return xp.sum(SELECTIONS[name](xp.ndimage, x, mode="constant", cval=0.5) ** 2)

    given = (arrays.asarray(each.astype(np.float32)) for each in (X, K))
    found = ox.grad(f)(*given)
    assert str(found.dtype).endswith("float32")
    np.testing.assert_allclose(host(found), ox.grad(f)(X, K), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["median_filter-size", "grey_opening-footprint", "minimum_filter1d-axis"])
def test_transforms(name: str) -> None:
    f = lambda x: SELECTIONS[name](xp.ndimage, x)  # noqa: E731
    images = np.stack([X, X[::-1], -X])
    np.testing.assert_array_equal(ox.vmap(f)(images), np.stack([f(x) for x in images]))
    of = ox.grad(lambda x: xp.sum(f(x) ** 2))
    np.testing.assert_allclose(ox.vmap(of)(images), np.stack([of(x) for x in images]), rtol=1e-12)
    recorded = ox.record(of)
    for x in images:
        np.testing.assert_array_equal(recorded(x), of(x))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_images_of_nothing(mode: str, shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    for name, args, named in (
        ("median_filter", (3,), {}),
        ("maximum_filter", (), {"footprint": FOOTPRINT}),
        ("minimum_filter1d", (2,), {}),
        ("grey_opening", (), {"structure": np.ones((2, 2))}),
        ("uniform_filter", (3,), {}),
        ("gaussian_filter", (1.0,), {}),
        ("correlate", (np.ones((2, 3)),), {}),
        ("sobel", (), {}),
    ):
        f = lambda nd, x, name=name, args=args, named=named: getattr(nd, name)(x, *args, mode=mode, **named)  # noqa: E731
        y, pull = ox.vjp(lambda x, f=f: f(xp.ndimage, x), x)
        assert y.shape == f(xp.ndimage, x).shape == f(scipy.ndimage, x).shape
        assert pull(y)[0].shape == shape


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_weights_and_structures_of_double_precision_keep_that_of_the_image(dtype: Any) -> None:
    x, w = X.astype(dtype), np.array([[0.5, 1.0], [2.0, 0.1]])
    names = ["correlate", "convolve", *(["grey_erosion", "white_tophat"] if dtype is np.float32 else [])]
    for name in names:
        f = lambda nd, w, name=name: getattr(nd, name)(x, **{"weights" if "c" in name[:2] else "structure": w})  # noqa: E731
        expected = f(scipy.ndimage, w)
        for y in (f(xp.ndimage, w), ox.vjp(lambda w, f=f: f(xp.ndimage, w), w)[0]):
            assert y.dtype == expected.dtype == dtype
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_whole_numbers_and_lists() -> None:
    x = np.arange(12).reshape(3, 4) % 5
    for name in ("maximum_filter", "median_filter", "grey_opening", "white_tophat"):
        found, expected = (getattr(nd, name)(x, 3, mode="constant", cval=2) for nd in (xp.ndimage, scipy.ndimage))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(xp.ndimage.minimum_filter([3, 1, 2], 2), [3, 1, 1])


def test_refusals() -> None:
    nd = xp.ndimage
    for message, call in {
        "minimum_filter: found neither a size nor a footprint": lambda: nd.minimum_filter(X),
        "median_filter: found neither a size nor a footprint": lambda: nd.median_filter(X),
        "grey_dilation: found neither a size nor a footprint": lambda: nd.grey_dilation(X),
        "maximum_filter: found a footprint without elements": lambda: nd.maximum_filter(X, footprint=0 * FOOTPRINT),
        "maximum_filter: origin is 2: expected a whole number from -1 to 1": lambda: nd.maximum_filter(X, 3, origin=2),
        "median_filter: mode is 'edge': expected one of 'reflect'": lambda: nd.median_filter(X, 3, mode="edge"),
        "rank_filter: rank is 9: expected a whole number from -9 to 8": lambda: nd.rank_filter(X, 9, 3),
        "percentile_filter: percentile is 101": lambda: nd.percentile_filter(X, 101, 3),
        "minimum_filter1d: size is 0: expected a whole number above zero": lambda: nd.minimum_filter1d(X, 0),
    }.items():
        with pytest.raises(ValueError, match=f"^{message}"):
            call()
    with pytest.raises(ox.ShapeError, match="^median_filter: found 3 values in size, expected 2, one for each axis"):
        nd.median_filter(X, (3, 3, 3))
    with pytest.raises(ox.ShapeError, match="^minimum_filter: found a footprint of 1 dimensions, expected 2"):
        nd.minimum_filter(X, footprint=FOOTPRINT[0])
    with pytest.raises(ox.ShapeError, match=r"^grey_erosion: found a structure of shape \(4,\) and a footprint"):
        nd.grey_erosion(X, structure=K[0], footprint=FOOTPRINT)
