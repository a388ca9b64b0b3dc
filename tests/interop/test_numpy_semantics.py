"""Functions of NumPy's names over PyTorch's plain tensors: NumPy's values, which PyTorch's functions of these names may not have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

torch: Any = pytest.importorskip("torch")

X = np.array([[4.0, 1.0, 3.0, 2.0], [0.5, -1.0, 2.5, 7.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4) ** 1.5
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "median": lambda np, x, cube: np.median(x),
    "median-axis": lambda np, x, cube: np.median(x, axis=1),
    "median-axes": lambda np, x, cube: np.median(cube, axis=(0, 2)),
    "quantile": lambda np, x, cube: np.quantile(x, [0.1, 0.45], axis=1),
    "quantile-method": lambda np, x, cube: np.quantile(x, 0.4, method="lower"),
    "transpose": lambda np, x, cube: np.transpose(cube, (1, 0, 2)),
    "cov": lambda np, x, cube: np.cov(x, bias=True),
    "corrcoef": lambda np, x, cube: np.corrcoef(x, rowvar=False),
    "amax": lambda np, x, cube: np.amax(x, initial=5.0),
    "dot-matrices": lambda np, x, cube: np.dot(x, x.T),
    "dot-matrix-vector": lambda np, x, cube: np.dot(x, x[0]),
    "inner": lambda np, x, cube: np.inner(x, x),
    "vdot": lambda np, x, cube: np.vdot(x, x),
    "outer": lambda np, x, cube: np.outer(x, x[0]),
    "trace": lambda np, x, cube: np.trace(cube, offset=1, axis1=1, axis2=2),
    "diagonal": lambda np, x, cube: np.diagonal(cube, offset=1, axis1=0, axis2=2),
    "diag": lambda np, x, cube: np.diag(x, k=-1),
    "einsum": lambda np, x, cube: np.einsum("ij,kj->ik", x, x, optimize=True),
    "concatenate": lambda np, x, cube: np.concatenate([x, x], axis=None),
    # Numbers beside arrays of float64, which PyTorch's default dtype would round.
    "hstack-number": lambda np, x, cube: np.hstack([x[0], 0.7]),
    "pad-ramp": lambda np, x, cube: np.pad(x[0], 2, mode="linear_ramp", end_values=0.7),
    "histogram-edges": lambda np, x, cube: np.histogram_bin_edges(x, bins=7),
    "histogram-density": lambda np, x, cube: np.histogram(x, bins=7, density=True)[0],
    "linspace": lambda np, x, cube: np.linspace(x[0, 1], 0.3, 7),
    "kron": lambda np, x, cube: np.kron(x, x[0]),
    # The order of the elements in memory.
    "ravel-A": lambda np, x, cube: np.ravel(x.T, order="A"),
    "ravel-K": lambda np, x, cube: np.ravel(np.permute_dims(cube, (1, 2, 0)), order="K"),
    "reshape-A": lambda np, x, cube: np.reshape(np.permute_dims(cube, (2, 1, 0)), (6, 4), order="A"),
    "ravel-A-strided": lambda np, x, cube: np.ravel(x.T[::2], order="A"),
}


@pytest.mark.parametrize("name", CALLS)
def test_plain_tensors_have_the_values_of_numpy(name: str) -> None:
    call, args = CALLS[name], tuple(map(torch.from_numpy, (X, CUBE)))
    expected, value = call(np, X, CUBE), call(xp, *args)
    assert isinstance(value, torch.Tensor)
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-12)
    assert value.dtype == torch.float64
    # Under a derivative it is the same function.
    differentiated = ox.vjp(lambda *args: call(xp, *args), *args)[0]
    np.testing.assert_allclose(differentiated.numpy(), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("asarray", [np.asarray, torch.asarray], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_variances_of_too_few_elements_are_those_of_numpy(name: str, asarray: Callable[[Any], Any]) -> None:
    x, chosen = np.array([[1.0, 2.0, 4.0], [4.0, 5.0, 7.0], [1.0, 3.0, 4.0]]), np.tril(np.ones((3, 3), dtype=bool))
    of = lambda np, x: getattr(np, name)(x, axis=1, ddof=2, where=asarray(chosen) if np is xp else chosen)  # noqa: E731
    expected = of(np, x)
    for value in (of(xp, asarray(x)), ox.vjp(lambda x: of(xp, x), asarray(x))[0]):
        np.testing.assert_allclose(np.asarray(value), expected)


_IN_DOUBLE: dict[str, Callable[[Any, Any], Any]] = {
    "cov": lambda np, x: np.cov(x),
    "cov-dtype": lambda np, x: np.cov(x, dtype=np.float32),
    "corrcoef": lambda np, x: np.corrcoef(x[0], x[1]),
    "bincount": lambda np, x: np.bincount([0, 1, 0, 2], weights=x[0]),
    "interp": lambda np, x: np.interp([0.1, 0.6], [0.0, 0.25, 0.5, 1.0], x[0]),
    "polyfit": lambda np, x: np.polyfit([0.0, 1.0, 2.0, 3.0], x[0], 2),
    "vander": lambda np, x: np.vander(x[0], 3),
    "quantile": lambda np, x: np.quantile(x, 0.3),
    "quantiles": lambda np, x: np.quantile(x, [0.3, 0.4], axis=1),
    "quantiles-lower": lambda np, x: np.quantile(x, [0.3, 0.4], method="lower"),
    "percentiles": lambda np, x: np.percentile(x, [30.0, 40.0]),
    "nanquantiles": lambda np, x: np.nanquantile(x, [0.3, 0.4], axis=0),
}


@pytest.mark.parametrize("name", _IN_DOUBLE)
def test_results_of_float32_have_the_dtype_of_numpy(name: str) -> None:
    call, x = _IN_DOUBLE[name], X.astype(np.float32)
    expected = call(np, x)
    differentiated = ox.vjp(lambda x: call(xp, x), x)[0]
    assert differentiated.dtype == expected.dtype
    np.testing.assert_allclose(differentiated, expected, rtol=1e-6 if expected.dtype == np.float32 else 1e-12)
    if name not in ("interp", "polyfit"):
        batched = ox.vmap(lambda x: call(xp, x))(np.stack([x, x]))
        assert batched.dtype == expected.dtype
    assert ox.grad(lambda x: xp.sum(call(xp, x)))(x).dtype == np.float32


# A choice between numbers has PyTorch's default dtype, which would round them beside arrays of float64.
_PARAMETERS = {
    "special.boxcox": (0.9, -0.3),
    "special.boxcox1p": (0.9, -0.3),
    "special.comb": (5.3, 2.1),
    "special.perm": (5.3, 2.1),
    "special.xlogy": (0.3, 0.7),
    "special.xlog1py": (0.3, 0.7),
    "special.rel_entr": (0.3, 0.7),
    "special.kl_div": (0.3, 0.7),
    "stats.norm.cdf": (0.3, 0.1, 1.7),
    "stats.beta.logpdf": (0.3, 1.7, 2.1),
    "stats.invgauss.logcdf": (0.3, 1.7),
    "stats.nakagami.pdf": (0.3, 1.7),
    "stats.skewnorm.cdf": (0.3, 1.7),
    "stats.triang.ppf": (0.3, 0.35),
    "stats.truncnorm.isf": (0.3, -0.7, 2.1),
    "stats.johnsonsu.sf": (0.3, 0.3, 1.7),
    "stats.reciprocal.cdf": (2.3, 0.7, 7.1),
    "stats.poisson.pmf": (2.0, 1.7),
}


@pytest.mark.parametrize("is_variable", [False, True], ids=["constant", "variable"])
@pytest.mark.parametrize(
    ("path", "place"), [(path, at) for path, args in _PARAMETERS.items() for at in range(len(args))]
)
def test_numbers_beside_an_array_are_not_rounded(path: str, place: int, is_variable: bool) -> None:
    part, *names = path.split(".")
    scipys, args = pytest.importorskip(f"scipy.{part}"), _PARAMETERS[path]
    function = lambda space: functools.reduce(getattr, names, space)  # noqa: E731
    array = np.array([1.0, 1.01]) * args[place]
    if path == "stats.poisson.pmf" and place == 0:
        array = np.array([2.0, 3.0])
    expected = function(scipys)(*args[:place], array, *args[place + 1 :])
    ours, tensor = function(getattr(xp, part)), torch.from_numpy(array)

    def of_numbers(*numbers: Any) -> Any:
        given = iter(numbers)
        return ours(*(tensor if at == place else next(given) for at in range(len(args))))

    others = args[:place] + args[place + 1 :]
    value = ox.vjp(of_numbers, *others)[0] if is_variable else of_numbers(*others)
    assert value.dtype == torch.float64
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-11)
