"""Cosine and sine transforms: values against SciPy's by type, size and norm, derivatives, dtypes, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")
pytest.importorskip("scipy.fft")

NAMES = ["dct", "idct", "dst", "idst"]
X = np.random.default_rng(0).standard_normal((8, 3))


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_values_of_every_size_and_norm(name: str, type: int) -> None:
    ours, theirs = getattr(xp.fft, name), getattr(scipy.fft, name)
    for count in (1, 2, 3, 5, 8):
        if count == 1 and type == 1 and name.endswith("dct"):
            continue
        for norm in (None, "backward", "ortho", "forward"):
            for named in ({}, {"orthogonalize": True}, {"orthogonalize": False}, {"n": 4}):
                found, expected = (f(X[:count], type, axis=0, norm=norm, **named) for f in (ours, theirs))
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13, err_msg=str((count, norm, named)))
    z = X + 1j * X[::-1]
    np.testing.assert_allclose(ours(z, type, axis=0), theirs(z, type, axis=0), rtol=1e-12, atol=1e-13)
    check_grads(lambda x: ours(x, type, axis=0, norm="ortho"), (X,))
    check_grads(lambda z: ours(z, type, axis=0), (z,), order=1)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_inverses_and_orthogonal_matrices(name: str, type: int) -> None:
    one, inverse = getattr(xp.fft, name), getattr(xp.fft, f"i{name}")
    for norm in ("backward", "ortho", "forward"):
        np.testing.assert_allclose(inverse(one(X, type, norm=norm), type, norm=norm), X, rtol=1e-12, atol=1e-13)
        many, back = getattr(xp.fft, f"{name}n"), getattr(xp.fft, f"i{name}n")
        np.testing.assert_allclose(back(many(X, type, norm=norm), type, norm=norm), X, rtol=1e-12, atol=1e-13)
    matrix = ox.jacobian(lambda x: one(x, type, norm="ortho"))(X[:, 0])
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(8), atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_and_lists(name: str) -> None:
    ours, theirs = getattr(xp.fft, name), getattr(scipy.fft, name)
    for dtype in (np.float16, np.float32, np.int64):
        x = (4.0 * X[:, 0]).astype(dtype)
        assert ours(x).dtype == theirs(x).dtype
        np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(ours([1, 2, 4], 3), theirs([1, 2, 4], 3))


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "idst"])
def test_arrays_of_every_library(name: str, type: int, arrays: Any) -> None:
    x = arrays.asarray(X.astype(np.float32))
    f = lambda x: xp.sum(getattr(xp.fft, name)(x, type, norm="ortho", axis=0) ** 3)  # noqa: E731
    found = ox.grad(f)(x)
    assert str(found.dtype).endswith("float32")
    np.testing.assert_allclose(host(found), ox.grad(f)(X), rtol=1e-3, atol=1e-4)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="^dct: type is 5: expected 1, 2, 3 or 4"):
        xp.fft.dct(X, 5)
    with pytest.raises(ValueError, match="^norm is 'orthogonal': expected"):
        xp.fft.idst(X, norm="orthogonal")
    with pytest.raises(ox.ShapeError, match="^dct: found 1 elements along the axis, expected 2 at least"):
        xp.fft.dct(X[:1], 1, axis=0)
    with pytest.raises(ox.ShapeError, match="^dctn: found 1 sizes s for 2 axes"):
        xp.fft.dctn(X, s=(2,), axes=(0, 1))


@pytest.mark.parametrize("name", ["dctn", "idctn", "dstn", "idstn"])
def test_axes_and_sizes(name: str) -> None:
    x = np.arange(12.0).reshape(3, 4) ** 2
    with pytest.raises(ValueError, match="none of them twice"):
        getattr(xp.fft, name)(x, axes=(0, -2))
    ours, theirs = getattr(xp.fft, name), getattr(scipy.fft, name)
    for sizes in ((-1, 3), (2, -1), -1):
        np.testing.assert_allclose(ours(x, s=sizes), theirs(x, s=sizes), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["hfft2", "hfftn", "ihfft2", "ihfftn"])
def test_hermitian_transforms_along_several_axes(name: str, norm: str | None) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 4, 5)) + (0.0 if name.startswith("i") else 1j * rng.standard_normal((3, 4, 5)))
    ours, theirs = getattr(xp.fft, name), getattr(scipy.fft, name)
    np.testing.assert_allclose(ours(x, norm=norm), theirs(x, norm=norm), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(ours(x, (4, 7), (0, 1), norm), theirs(x, (4, 7), (0, 1), norm), rtol=1e-11, atol=1e-12)
    check_grads(lambda x: ours(x, norm=norm), (x[0],), order=2)
