"""Filters of signals: values against SciPy's, transposes, derivatives of both arguments of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.ops.backends import on_host
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")
from cases_signal import FIR, LINEAR, SOS, A, B, H, X  # noqa: E402


@pytest.mark.parametrize("name", LINEAR)
def test_filters_and_their_transposes(name: str) -> None:
    f = LINEAR[name]
    np.testing.assert_allclose(f(xp.signal, X), f(scipy.signal, X), rtol=1e-11, atol=1e-12)
    rng = np.random.default_rng(5)
    of_x = lambda x: f(xp.signal, x)  # noqa: E731
    y, pull = ox.vjp(of_x, X)
    t, g = rng.standard_normal(X.shape), rng.standard_normal(y.shape)
    product = np.sum(g * ox.jvp(of_x, (X,), (t,))[1])
    assert np.sum(t * pull(g)[0]) == pytest.approx(product, rel=1e-12)
    again = ox.vjp(lambda g: ox.vjp(of_x, X)[1](g)[0], g)[1](t)[0]
    assert np.sum(g * again) == pytest.approx(product, rel=1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "fftconvolve", "oaconvolve", "correlate", "convolve2d", "correlate2d"])
def test_convolutions(name: str, mode: str) -> None:
    x, ours, theirs = X[:, :6], getattr(xp.signal, name), getattr(scipy.signal, name)
    pairs = [(x, H), (H, x)] if mode == "valid" else [(x, H), (x, H[:1, :3])]
    pairs += [] if name.endswith("2d") else [(x[0], H[0]), (x[0], H[0, :3])]
    for one, other in pairs:
        np.testing.assert_allclose(ours(one, other, mode), theirs(one, other, mode), rtol=1e-11, atol=1e-12)
        check_grads(lambda a, b: ours(a, b, mode), (one, other), order=2)


SHAPES = [
    ((4, 5), (4, 3)),
    ((4, 5), (1, 3)),
    ((1, 5), (4, 3)),
    ((3, 4, 5), (3, 2, 1)),
    ((5, 2), (1, 4)),
    ((4, 5), (2, 3)),
]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
def test_convolutions_along_some_axes(name: str, shapes: tuple[tuple[int, ...], ...], mode: str) -> None:
    """The other axes are broadcast: sums of derivatives over copies."""
    one, other = (np.random.default_rng(6).standard_normal(shape) for shape in shapes)
    ours, theirs = getattr(xp.signal, name), getattr(scipy.signal, name)
    for axes in (None, 0, -1, [1], (1, 0), np.int64(1)):
        try:
            wanted = theirs(one, other, mode, axes=axes)
        except ValueError:
            with pytest.raises(ox.ShapeError):
                ours(one, other, mode, axes=axes)
            continue
        np.testing.assert_allclose(ours(one, other, mode, axes=axes), wanted, rtol=1e-11, atol=1e-12)
        check_grads(lambda a, b, axes=axes: ours(a, b, mode, axes=axes), (one, other), order=2)


@pytest.mark.parametrize("shapes", [((0,), (3,)), ((3,), (0,)), ((2, 0), (2, 3)), ((2, 3), (0, 3))], ids=str)
@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
def test_gradients_of_convolutions_of_nothing_have_the_shapes_of_their_arguments(
    name: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    args = tuple(map(np.ones, shapes))
    for mode in ("full", "same", "valid"):
        y, pull = ox.vjp(lambda a, b, mode=mode: getattr(xp.signal, name)(a, b, mode), *args)
        assert y.shape == getattr(scipy.signal, name)(*args, mode).shape
        for gradient, arg in zip(pull(np.ones_like(y)), args, strict=True):
            np.testing.assert_array_equal(gradient, np.zeros_like(arg))


def test_axes_of_a_convolution_that_are_refused() -> None:
    x = np.ones((2, 3))
    for axes in ((), (0, 0), (1, -1)):
        with pytest.raises(ValueError, match=r"^fftconvolve: axes is .*: expected at least one axis"):
            xp.signal.fftconvolve(x, x, axes=axes)
    with pytest.raises(
        ox.ShapeError, match=r"^oaconvolve: found shapes \(2, 3\), \(4, 3\), expected equal sizes, or 1"
    ):
        ox.grad(lambda x: xp.sum(xp.signal.oaconvolve(x, np.ones((4, 3)), axes=1)))(x)
    with pytest.raises(ox.ShapeError, match="axis is 2"):
        xp.signal.fftconvolve(x, x, axes=2)


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_boundaries_of_planar_convolutions(mode: str, boundary: str) -> None:
    x, named = X[:, :6], {"boundary": boundary, "fillvalue": 1.5}
    for name in ("convolve2d", "correlate2d"):
        ours, theirs = getattr(xp.signal, name), getattr(scipy.signal, name)
        np.testing.assert_allclose(ours(x, H, mode, **named), theirs(x, H, mode, **named), rtol=1e-12, atol=1e-12)
        check_grads(lambda a, b, f=ours: f(a, b, mode, **named), (x, H), order=2)


def test_complex_signals() -> None:
    z, w = X[0, :5] + 1j * X[1, :5], H[0] - 1j * H[1]
    for name in ("convolve", "correlate"):
        np.testing.assert_allclose(
            getattr(xp.signal, name)(z, w), getattr(scipy.signal, name)(z, w), rtol=1e-12, atol=1e-12
        )
        check_grads(getattr(xp.signal, name), (z, w), order=1)
    y, pull = ox.vjp(lambda h: xp.signal.convolve(z, h), H[0])
    assert pull(y)[0].dtype == np.float64


@pytest.mark.parametrize("name", ["lfilter", "savgol_filter-interp", "filtfilt"])
def test_signals_of_every_library(name: str, arrays: Any) -> None:
    x = arrays.asarray(X)
    f = lambda x: xp.sum(LINEAR[name](xp.signal, x) ** 2)  # noqa: E731
    if not on_host(x):
        with pytest.raises(NotImplementedError, match="cannot be read in host memory"):
            f(x)
        return
    np.testing.assert_allclose(host(ox.grad(f)(x)), ox.grad(f)(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("axis", [0, -1])
def test_filters_by_their_coefficients(axis: int) -> None:
    x, a = X[:2, :12], 2.0 * A
    value, _ = ox.vjp(lambda b, a: xp.signal.lfilter(b, a, x, axis), B, a)
    np.testing.assert_allclose(value, scipy.signal.lfilter(B, a, x, axis), rtol=1e-13)
    check_grads(lambda b, a, x: xp.signal.lfilter(b, a, x, axis), (B, a, x), order=2)
    check_grads(lambda a: xp.signal.lfilter([1.0, 0.5], a, x, axis), (a,), order=3)
    each = ox.vmap(ox.grad(lambda b: xp.sum(xp.signal.lfilter(b, a, x, axis) ** 2)))(np.stack([B, 2.0 * B]))
    np.testing.assert_allclose(each[1], 2.0 * each[0], rtol=1e-12)


def test_sections_by_their_coefficients() -> None:
    x, ones = X[:2, :12], np.ones((2, 1))
    value, _ = ox.vjp(lambda sos: xp.signal.sosfilt(sos, x), SOS)
    np.testing.assert_allclose(value, scipy.signal.sosfilt(SOS, x), rtol=1e-10, atol=1e-14)

    def f(b: Any, a: Any, x: Any) -> Any:  # SciPy's sections begin with a[0] = 1
        return xp.signal.sosfilt(xp.concat([b, ones, a], axis=1), x)

    check_grads(f, (SOS[:, :3], SOS[:, 4:], x), order=2)


def test_refusals() -> None:
    with pytest.raises(ox.DerivativeError, match="^filtfilt is not differentiable with respect to b"):
        ox.grad(lambda b: xp.sum(xp.signal.filtfilt(b, A, X)))(B)
    with pytest.raises(ox.ShapeError, match=r"^sosfilt: found sos of shape \(6,\), expected \(n, 6\)"):
        ox.grad(lambda sos: xp.sum(xp.signal.sosfilt(sos, X)))(SOS[0])
    with pytest.raises(ox.ShapeError, match="^convolve: found 2 and 1 dimensions, expected the same number"):
        xp.signal.convolve(X, FIR)
    with pytest.raises(ox.ShapeError, match=r"^filtfilt: found 5 elements along the axis, expected more than padlen"):
        xp.signal.filtfilt(B, A, X[:, :5])
    with pytest.raises(ox.ShapeError, match=r"with mode='valid', expected one not to exceed the other"):
        xp.signal.convolve(X[:, :3], H, "valid")
    with pytest.raises(ValueError, match="^mode is 'some': expected 'full', 'same' or 'valid'"):
        xp.signal.convolve(FIR, FIR, "some")
    for name, args in {"hilbert": (), "resample": (5,)}.items():
        with pytest.raises(ox.DtypeError, match=f"^{name}: found a complex signal, expected a real one"):
            getattr(xp.signal, name)(X * 1j, *args)
    with pytest.raises(ValueError, match="length of `a` along the last axis must be at least 2"):  # as SciPy's
        xp.signal.filtfilt(1.0, 1.0, X)
    with pytest.raises(AttributeError, match="medfilt"):
        xp.signal.medfilt  # noqa: B018


@pytest.mark.parametrize("name", ["hilbert", "savgol_filter", "resample", "filtfilt"])
def test_single_precision_is_kept(name: str) -> None:
    x, (b, a) = X.astype(np.float32), (np.array(each, np.float32) for each in (B, A))
    calls = {"filtfilt": (b, a, x), "savgol_filter": (x, 5, 2), "resample": (x, 4), "hilbert": (x,)}
    expected = getattr(scipy.signal, name)(*calls[name])
    found = getattr(xp.signal, name)(*calls[name])
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [np.complex128(1 + 2j), np.complex64(1 + 2j), np.longdouble(1.5)], ids=type)
def test_scalars_of_every_dtype(number: Any) -> None:
    assert xp.signal.convolve(number, number) == scipy.signal.convolve(number, number)
    if not isinstance(number, np.longdouble):
        assert xp.special.wofz(number) == scipy.special.wofz(number)


@pytest.mark.parametrize("shape", [(2, 3), (3, 4), (5, 6)])
@pytest.mark.parametrize("name", ["correlate", "correlate2d", "convolve2d"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_correlations_of_complex_matrices_are_scipys(name: str, mode: str, shape: tuple[int, int]) -> None:
    """SciPy conjugates the other argument where it exchanges them: `correlate2d` of a smaller first one, in the mode "valid"."""
    rng = np.random.default_rng(0)
    x, h = (rng.normal(size=each) + 1j * rng.normal(size=each) for each in ((3, 4), shape))
    expected = getattr(scipy.signal, name)(x, h, mode=mode)
    f = lambda x, h: getattr(xp.signal, name)(x, h, mode=mode)  # noqa: E731
    np.testing.assert_allclose(f(x, h), expected, rtol=1e-12)
    np.testing.assert_allclose(ox.vjp(f, x, h)[0], expected, rtol=1e-12)
    check_grads(f, (x, h), order=1)


@pytest.mark.parametrize("size", [1, 6])
def test_filters_from_a_state(size: int) -> None:
    b, a, zi, x = np.array([1.0, 2.0]), np.array([2.0, 1.0, 0.5]), np.array([1.0, -2.0]), X[0, :size]
    f = lambda b, a, x, zi: xp.signal.lfilter(b, a, x, zi=zi)  # noqa: E731
    for dtype in (np.float32, np.float64, np.complex128):
        args = [each.astype(dtype) for each in (b, a, x, zi)]
        expected, value = scipy.signal.lfilter(*args[:3], zi=args[3]), ox.vjp(f, *args)[0]
        for one, other in zip(value, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-5 if dtype == np.float32 else 1e-12)
    check_grads(lambda *args: xp.sum(xp.concat([*f(*args)]) ** 3), (b, a, x, zi), order=2)
    with pytest.raises(ox.ShapeError, match=r"^lfilter: zi has the shape \(3,\), expected \(2,\)"):
        ox.vjp(lambda x: f(b, a, x, np.zeros(3)), x)


def test_states_are_of_the_signals_library() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(X[0])
    state = xp.signal.lfilter([1.0, 2.0], [1.0, 0.5], x, zi=torch.zeros(1, dtype=x.dtype))[1]
    final = xp.signal.sosfilt(SOS, x, zi=torch.zeros((len(SOS), 2), dtype=x.dtype))[1]
    assert isinstance(state, torch.Tensor) and isinstance(final, torch.Tensor)
    np.testing.assert_allclose(final, scipy.signal.sosfilt(SOS, X[0], zi=np.zeros((len(SOS), 2)))[1])
