"""SciPy's own names for differentiable functions: in a context, and as a backend of `scipy.fft`."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.testing import check_grads

pytest.importorskip("scipy")
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.stats

from oxigrad.scipy import fft_backend, names

X = np.random.default_rng(0).standard_normal((4, 6))
CALLS: dict[str, Any] = {
    "linalg": lambda m, x: m.linalg.expm(x[:, :4]),
    "fft": lambda m, x: m.fft.dct(x, axis=0),
    "signal": lambda m, x: m.signal.lfilter(x[0], [1.0, 0.5], x),
    "integrate": lambda m, x: m.integrate.simpson(x),
    "integrate of a function": lambda m, x: m.integrate.quad(lambda t: xp.sin(x[0, 0] * t), 0.0, 1.0)[0],
    "interpolate": lambda m, x: m.interpolate.CubicSpline(np.arange(6.0), x[0])(np.array([0.5, 2.5])),
    "special": lambda m, x: m.special.logsumexp(x, axis=1),
}


@pytest.mark.parametrize("part", CALLS)
def test_in_the_context_names_of_scipy_take_variables(part: str) -> None:
    module, f = importlib.import_module(f"scipy.{part.split()[0]}"), CALLS[part]
    before = dict(vars(module))
    expected = ox.jacobian(lambda x: f(xp, x))(X)
    plain = f(scipy, X)
    with names():
        np.testing.assert_array_equal(ox.jacobian(lambda x: f(scipy, x))(X), expected)
        np.testing.assert_array_equal(f(scipy, X), plain)
    assert dict(vars(module)) == before
    with pytest.raises(RuntimeError, match="inside"), names():
        raise RuntimeError("inside")
    assert dict(vars(module)) == before


@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_the_generalized_problem_has_scipy_s_arguments(name: str) -> None:
    a, b = X[:, :4] + X[:, :4].T, X @ X.T + np.eye(4)
    values = lambda result: result if name == "eigvalsh" else result[0] ** 2 + xp.sum(xp.abs(result[1]), axis=0)  # noqa: E731
    loss = lambda a, b: xp.sum(values(getattr(scipy.linalg, name)(a, b)) * np.arange(4.0))  # noqa: E731
    with names():
        np.testing.assert_allclose(loss(ox.stop_gradient(a), b), loss(a, b))
        check_grads(lambda s, t: loss(a + (s + s.T), b + (t + t.T)), (0.1 * X[:, :4], 0.1 * X[:, :4]))


@pytest.mark.parametrize("name", ["norm.logpdf", "gamma.cdf", "t.sf", "poisson.logpmf", "multivariate_normal.logpdf"])
def test_in_the_context_distributions_take_variables(name: str) -> None:
    distribution, method = name.split(".")
    theirs, ours = (getattr(getattr(module, "stats"), distribution) for module in (scipy, xp))  # noqa: B009
    args = (np.array([1.0, 2.0]),) if distribution.startswith(("norm", "multi")) else (np.array([1.0, 2.0]), 1.5)
    at = 0 if distribution.startswith(("norm", "multi")) else 1
    call = lambda owner: lambda x: xp.sum(getattr(owner, method)(*args[:at], x, *args[at + 1 :]))  # noqa: E731
    before, expected = dict(vars(theirs)), ox.grad(call(ours))(args[at])
    with names():
        np.testing.assert_array_equal(ox.grad(call(theirs))(args[at]), expected)
        np.testing.assert_array_equal(getattr(theirs, method)(*args), getattr(type(theirs), method)(theirs, *args))
    assert dict(vars(theirs)) == before


@pytest.mark.parametrize("name", "fft ifft rfft irfft hfft ihfft fft2 rfftn hfft2 dct idst dctn".split())
def test_transforms_take_variables_by_the_backend_of_scipy(name: str) -> None:
    function = getattr(scipy.fft, name)
    loss = lambda transform: lambda x: xp.sum(xp.abs(transform(x)) ** 2)  # noqa: E731
    expected = ox.grad(loss(getattr(xp.fft, name)))(X)
    with scipy.fft.set_backend(fft_backend):
        np.testing.assert_array_equal(ox.grad(loss(function))(X), expected)
        np.testing.assert_allclose(scipy.fft.fftfreq(4), [0.0, 0.25, -0.5, -0.25])
