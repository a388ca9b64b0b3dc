"""SciPy's own names for differentiable functions: in a context, and as a backend of `scipy.fft`."""

from __future__ import annotations

import importlib
import re
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


def test_names_take_values_of_vmap_and_of_recordings() -> None:
    matrices = np.random.default_rng(1).normal(size=(3, 4, 4))
    f = ox.record(lambda x: scipy.special.expit(scipy.linalg.norm(x)))
    with names():
        determinants = ox.vmap(lambda x: scipy.linalg.det(x))(matrices)
        np.testing.assert_allclose(f(matrices[0]), scipy.special.expit(np.linalg.norm(matrices[0])))
    np.testing.assert_allclose(determinants, np.linalg.det(matrices))


@pytest.mark.parametrize("of_keyword", [True, False])
def test_generalized_eigenvalues_of_plain_arrays_and_variables(of_keyword: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = (x + x.T for x in rng.normal(size=(2, 4, 4)))
    b = b @ b + np.eye(4)

    def values(a: Any, b: Any) -> Any:
        return xp.linalg.eigvalsh(a, b=b) if of_keyword else xp.linalg.eigvalsh(a, b)

    expected = scipy.linalg.eigh(a, b, eigvals_only=True)
    np.testing.assert_allclose(values(a, b), expected, rtol=1e-12)
    np.testing.assert_allclose(values(a.tolist(), b.tolist()), expected, rtol=1e-12)
    check_grads(lambda a, b: values((a + a.T) / 2, (b + b.T) / 2), (a, b), order=1)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_the_generalized_problem_has_scipy_s_arguments(name: str) -> None:
    a, b = X[:, :4] + X[:, :4].T, X @ X.T + np.eye(4)
    values = lambda result: result if name == "eigvalsh" else result[0] ** 2 + xp.sum(xp.abs(result[1]), axis=0)  # noqa: E731
    loss = lambda a, b: xp.sum(values(getattr(scipy.linalg, name)(a, b)) * np.arange(4.0))  # noqa: E731
    with names():
        np.testing.assert_allclose(loss(ox.stop_gradient(a), b), loss(a, b))
        check_grads(lambda s, t: loss(a + (s + s.T), b + (t + t.T)), (0.1 * X[:, :4], 0.1 * X[:, :4]))


S, T, B = X @ X.T + np.eye(4), X[:, :3], np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1
LINALG: dict[str, Any] = {
    "cholesky": lambda m, x: m.cholesky(x),
    "cholesky of the lower triangle": lambda m, x: m.cholesky(x, lower=True, check_finite=False),
    "det": lambda m, x: m.det(x, overwrite_a=False),
    "eig": lambda m, x: m.eig(x, right=False).real,
    "eigh": lambda m, x: m.eigh(x, eigvals_only=True),
    "eigh of the upper triangle": lambda m, x: m.eigh(x, b=B, lower=False, driver="gvd")[0],
    "eigvals": lambda m, x: m.eigvals(x, B).real,
    "eigvalsh": lambda m, x: m.eigvalsh(x, lower=False, type=1),
    "inv": lambda m, x: m.inv(x, assume_a="pos", lower=True),
    "lstsq": lambda m, x: m.lstsq(x[:, :2], T[:, 0], lapack_driver="gelsd")[1],
    "norm": lambda m, x: m.norm(x, ord=1, axis=0, check_finite=False),
    "pinv": lambda m, x: m.pinv(x[:, :3], atol=1e-3, return_rank=True)[0],
    "qr": lambda m, x: m.qr(x, mode="full")[0],
    "qr economic": lambda m, x: m.qr(x[:, :2], mode="economic")[1],
    "r of qr": lambda m, x: m.qr(x[:, :2], mode="r")[0],
    "solve": lambda m, x: m.solve(x, T, transposed=True),
    "solve symmetric": lambda m, x: m.solve(x, T, assume_a="sym"),
    "solve triangular": lambda m, x: m.solve(x, T, assume_a="upper triangular"),
    "svd": lambda m, x: m.svd(x, compute_uv=False, lapack_driver="gesvd"),
    "svdvals": lambda m, x: m.svdvals(x, check_finite=True),
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra_has_scipy_s_arguments_values_and_derivatives(name: str) -> None:
    f, steps = LINALG[name], np.eye(16).reshape(16, 4, 4) * 1e-6
    expected = f(scipy.linalg, S)
    slopes = np.stack([(f(scipy.linalg, S + step) - f(scipy.linalg, S - step)) / 2e-6 for step in steps], axis=-1)
    with names():
        value, _ = ox.vjp(lambda x: f(scipy.linalg, x), S)
        jacobian = ox.jacobian(lambda x: f(scipy.linalg, x))(S)
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(jacobian.reshape(slopes.shape), slopes, rtol=1e-4, atol=1e-6 * np.max(np.abs(slopes)))


@pytest.mark.parametrize(("name", "remedy"), [("cholesky", {"upper": True}), ("qr", {"mode": "complete"})])
def test_errors_name_the_call_with_scipy_s_defaults(name: str, remedy: dict[str, Any]) -> None:
    written = ", ".join(f"{key}={value}" if value is True else f'{key}="{value}"' for key, value in remedy.items())
    with pytest.raises(
        TypeError, match=re.escape(f"xp.linalg.{name}(a, {written}) is scipy.linalg.{name} for variables")
    ):
        ox.grad(lambda x: xp.sum(getattr(scipy.linalg, name)(x)[0]))(S)
    ours, theirs = getattr(xp.linalg, name)(S, **remedy), getattr(scipy.linalg, name)(S)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_arguments_of_scipy_without_a_derivative_are_refused_by_name() -> None:
    refused: dict[str, Any] = {
        "eigh: subset_by_index is": lambda x: scipy.linalg.eigh(x, subset_by_index=[0, 1]),
        "qr: pivoting is True": lambda x: scipy.linalg.qr(x, pivoting=True),
        "solve: assume_a is 'odd'": lambda x: scipy.linalg.solve(x, S, assume_a="odd"),
    }
    for error, f in refused.items():
        with names(), pytest.raises(NotImplementedError, match=f"^{error}"):
            ox.vjp(f, S)


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
        by_name = lambda x: function(x=x, overwrite_x=True, workers=2)  # noqa: E731
        np.testing.assert_array_equal(ox.grad(loss(by_name))(X), expected)
        np.testing.assert_allclose(scipy.fft.fftfreq(4), [0.0, 0.25, -0.5, -0.25])


@pytest.mark.parametrize("name", ["fht", "ifht"])
def test_hankel_transforms_take_variables_by_the_backend_of_scipy(name: str) -> None:
    function = getattr(scipy.fft, name)
    loss = lambda x: xp.sum(function(x, 0.1, 0.5, bias=0.2) ** 2)  # noqa: E731
    expected = loss(X)
    with scipy.fft.set_backend(fft_backend):
        assert loss(X) == expected
        check_grads(loss, (X,))
