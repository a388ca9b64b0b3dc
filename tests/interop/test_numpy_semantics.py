"""Functions of NumPy's names over PyTorch's plain tensors: NumPy's values, which PyTorch's functions of these names may not have."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p"])
def test_a_parameter_that_is_a_number_is_not_rounded(name: str) -> None:
    special = pytest.importorskip("scipy.special")
    x = np.array([0.02, 0.3, 0.9])
    value = getattr(xp.special, name)(torch.from_numpy(x), -0.3)
    np.testing.assert_allclose(value.numpy(), getattr(special, name)(x, -0.3), rtol=1e-14)
