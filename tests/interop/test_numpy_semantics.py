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


OF_DTYPE: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{
        name: lambda np, x, dtype, name=name: getattr(np, name)(x, dtype=dtype)
        for name in "zeros_like ones_like".split()
    },
    **{
        name: lambda np, x, dtype, name=name: getattr(np, name)(x, dtype=dtype)
        for name in "sum mean prod std cumsum cumprod cumulative_sum nansum nanmean nanprod nancumsum asarray array".split()
    },
    "full_like": lambda np, x, dtype: np.full_like(x, 2, dtype=dtype),
    "full": lambda np, x, dtype: np.full((2,), x[0], dtype=dtype),
    "linspace": lambda np, x, dtype: np.linspace(x[0], x[1], 3, dtype=dtype),
    "logspace": lambda np, x, dtype: np.logspace(x[0], x[1], 3, dtype=dtype),
    "arange": lambda np, x, dtype: np.arange(x[1], dtype=dtype),
    "concatenate": lambda np, x, dtype: np.concatenate([x, x], dtype=dtype),
    "stack": lambda np, x, dtype: np.stack([x, x], dtype=dtype),
    "trace": lambda np, x, dtype: np.trace(x[None, :] * x[:, None], dtype=dtype),
    "astype": lambda np, x, dtype: np.astype(x, dtype),
    "isdtype": lambda np, x, dtype: np.isdtype(x.dtype, dtype),
    "can_cast": lambda np, x, dtype: np.can_cast(x.dtype, dtype),
    "result_type": lambda np, x, dtype: np.result_type(x, dtype),
}
# The last ones are PyTorch's own.
DTYPES = [np.float32, np.dtype("float64"), "float64", "f4", float, complex, torch.float64, torch.complex64]


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("name", OF_DTYPE)
def test_dtypes_of_numpy_their_names_and_types_of_python_are_taken(name: str, library: str) -> None:
    strict = pytest.importorskip("array_api_strict")
    make = strict.asarray if library == "array_api_strict" else lambda x: torch.from_numpy(x.copy())
    x = np.array([1.0, 2.0, 3.0], np.float32)
    for dtype in DTYPES[: -2 if library == "array_api_strict" else None]:
        numpys = np.dtype(str(dtype).removeprefix("torch.")) if isinstance(dtype, torch.dtype) else dtype
        if (name == "full" and library == "array_api_strict") or (
            name == "isdtype" and dtype in ("float64", "f4", float, complex)
        ):
            continue  # it fills with numbers of Python alone, and a name is that of a kind
        expected = OF_DTYPE[name](np, x, numpys)
        calls = [lambda v, dtype=dtype: OF_DTYPE[name](xp, v, dtype)]
        found = calls[0](make(x))
        named = lambda value: str(getattr(value, "dtype", value)).rpartition(".")[2]  # noqa: E731
        assert named(found) == named(expected), dtype
        if isinstance(expected, (np.ndarray, np.generic)):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
        if named(expected) in ("float32", "float64") and hasattr(found, "shape") and name != "arange":
            _, tangent = ox.jvp(calls[0], (make(x),), (make(np.zeros(3, np.float32)),))
            assert named(tangent) == named(expected), dtype
            assert named(ox.vmap(calls[0])(xp.stack([make(x)]))) == named(expected)


def test_sums_in_a_small_dtype_have_it() -> None:
    for name in "cumsum cumulative_sum nancumsum nansum cumprod".split():
        for dtype in (np.int32, np.int8):
            ints = ox.vmap(lambda x, name=name, dtype=dtype: getattr(xp, name)(x, dtype=dtype))(np.ones((1, 3)))
            assert ints.dtype == dtype, name


def test_a_dtype_that_a_library_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(ox.DtypeError, match="expected a dtype of .*torch"):
        xp.sum(torch.ones(2), dtype="U3")
    with pytest.raises(ox.DtypeError, match="expected a dtype of .*torch"):
        xp.zeros_like(torch.ones(2), dtype=np.longdouble)
    assert xp.zeros_like(torch.ones(2), dtype="bfloat16").dtype == torch.bfloat16


BESIDE: dict[str, Callable[[Any, Any], Any]] = {
    "append": lambda np, x: np.append(x, 1.5),
    "append-list": lambda np, x: np.append([1, 2], x),
    "insert": lambda np, x: np.insert(x, [0, 1], [5, 6.0]),
    "select": lambda np, x: np.select([x > 1.5, x > 0.5], [x, x * 2], default=7),
    "r_": lambda np, x: np.r_[0:3, x, 1.5],
    "c_": lambda np, x: np.c_[x, [1, 2, 3]],
    "block": lambda np, x: np.block([x, 1.5]),
    "stack": lambda np, x: np.stack([x[0], 1.5]),
    "concatenate": lambda np, x: np.concatenate([[True], x]),
    "piecewise": lambda np, x: np.piecewise(x, [x > 1.5], [1, lambda x: 2 * x]),
    "ediff1d": lambda np, x: np.ediff1d(x, to_begin=1, to_end=[2, 3]),
    "clip": lambda np, x: np.clip(x, None, [1, 2, 3]),
    "clip-by-name": lambda np, x: np.clip(x, max=[1, 2, 3]),
    "tensordot-by-name": lambda np, x: np.tensordot(x, [1.0, 2, 3], axes=1),
    "isin": lambda np, x: np.isin(x, [1, 2]),
    "isclose": lambda np, x: np.isclose(x, 1),
    "allclose": lambda np, x: np.allclose(x, [1, 0, 2]),
    "union1d": lambda np, x: np.union1d(x, [9, 8]),
    "trapezoid": lambda np, x: np.trapezoid(x, [0, 1, 3]),
    "cov": lambda np, x: np.cov(x, [1.0, 2, 4]),
    "dot": lambda np, x: np.dot(x, [1.0, 2, 3]),
    "kron": lambda np, x: np.kron(x, [1.0, 2]),
    "tensordot": lambda np, x: np.tensordot(x, [1.0, 2, 3], 1),
    "average": lambda np, x: np.average(x, weights=[1, 2, 3]),
    "take": lambda np, x: np.take(x, [0, 2]),
    "take-one": lambda np, x: np.take(x[None, :], 1, axis=1),
    "repeat": lambda np, x: np.repeat(x, [1, 2, 0]),
    "unwrap": lambda np, x: np.unwrap(x * 4),
    "meshgrid": lambda np, x: np.meshgrid(x, [1.0, 2])[0],
}


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("name", BESIDE)
def test_numbers_and_lists_beside_arrays_are_of_their_library(name: str, library: str) -> None:
    jax = pytest.importorskip("jax")
    x = np.array([1.0, 0.0, 2.0])
    with jax.enable_x64(True):
        array: Any = torch.from_numpy(x.copy()) if library == "torch" else jax.numpy.asarray(x)
        expected, found = BESIDE[name](np, x), BESIDE[name](xp, array)
        assert type(found) in (type(array), bool)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
        assert str(getattr(found, "dtype", "bool")).rpartition(".")[2] == str(np.asarray(expected).dtype)


def test_shapes_are_of_arrays_of_any_library_and_of_lists() -> None:
    for x in (torch.ones(2, 3), [torch.ones(3), torch.ones(3)], [[1, 2, 3], [4, 5, 6]]):
        assert (xp.ndim(x), xp.shape(x), xp.size(x), xp.size(x, 1)) == (2, (2, 3), 6, 3)
    shapes: list[Any] = []
    ox.grad(lambda x: (shapes.append((xp.ndim(x), xp.shape(x), xp.size(x))), xp.sum(x))[1])(torch.ones(2, 3))
    assert shapes == [(2, (2, 3), 6)]
    assert xp.shape(2.0) == () and xp.size(2.0) == 1
