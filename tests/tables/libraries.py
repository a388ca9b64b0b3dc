"""The array libraries that tests run over, and the derivatives of the table of cases there, beside NumPy's."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import array_api_compat
import numpy as np
import pytest

import oxigrad as ox
from cases import CASES as ELEMENTARY
from cases import Case, normal
from cases_linalg import CASES as LINALG
from oxigrad import tree, xp
from oxigrad.ops.backends import is_complex, namespace
from oxigrad.testing import check_grads


@dataclasses.dataclass(frozen=True)
class Library:
    """An array library under test: how its module makes an array of NumPy's values, and what it is tested with."""

    name: str
    module: str
    make: Callable[[ModuleType], Callable[..., Any]]
    # For libraries with arrays on a device: a context that raises when the host waits for the device.
    leave_alone: Callable[[ModuleType], AbstractContextManager[None]] | None = None
    has_gpu: Callable[[ModuleType], bool] | None = None
    is_strict: bool = False  # it has what is in the standard, and no more
    is_slow: bool = False
    sample: str = ""  # the only cases that it is tested with, where it is very slow
    rtol: float = 1e-9  # of derivatives, beside NumPy's

    @property
    def asarray(self) -> Callable[..., Any]:
        """A function that makes an array of NumPy's values."""
        return self.make(importlib.import_module(self.module))

    def alone(self) -> AbstractContextManager[None]:
        """A context in which it is an error to make the host wait for the device."""
        assert self.leave_alone is not None, f"{self.name} has no device"
        return self.leave_alone(importlib.import_module(self.module))

    def is_there(self) -> bool:
        """Whether the library is installed, and finds the GPU that it is to be tested on."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(self.module)
                return self.has_gpu is None or bool(self.has_gpu(module))
        except ImportError:
            return False


def _read_only(values: Any) -> np.ndarray:
    array = np.array(values)
    array.setflags(write=False)
    return array


def _jax(jax: ModuleType) -> Callable[..., Any]:
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray


@contextlib.contextmanager
def _torch_alone(torch: ModuleType) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@contextlib.contextmanager
def _cupy_alone(cupy: ModuleType) -> Iterator[None]:
    def refuse(*args: Any, **named: Any) -> Any:
        raise TypeError("a copy to the host, where the device is to be left alone")

    with pytest.MonkeyPatch.context() as patch:
        for name in "get item tolist __array__ __bool__ __float__ __int__ __index__ __complex__".split():
            patch.setattr(cupy.ndarray, name, refuse, raising=False)
        yield


# Where libraries differ most: functions that many lack, shapes, keys, reductions, matrices.
SAMPLE = """
multiply pow where maximum exp log expm1 erf expit gammaln logaddexp copysign clip betainc sum prod max mean var cumulative_sum
matmul vector-matmul reshape permute_dims broadcast_to concat stack pad-edge roll repeat take index-slice index-pairs index-item
take_along_axis sort astype meshgrid diagonal--3 triu inv solve-vector cholesky eigh svd-wide qr-tall slogdet pinv-tall
matrix_norm-fro fft-backward irfft-backward
"""


def _dask(array: ModuleType) -> Callable[..., Any]:
    return lambda values: array.from_array(np.array(values))


def _mlx(mlx: ModuleType) -> Callable[..., Any]:
    def asarray(values: Any) -> Any:
        values = np.array(values)
        return mlx.array(values, mlx.float64 if values.dtype == np.float64 else None)

    return asarray


# "read-only" stands for NumPy arrays that must not be written, "device" for a GPU where there is none, "tiny" for any other library of the standard.
LIBRARIES = [
    Library("numpy", "numpy", lambda numpy: numpy.array),
    Library("read-only", "numpy", lambda numpy: _read_only),
    Library("array-api-strict", "array_api_strict", lambda strict: strict.asarray, is_strict=True),
    Library(
        "device",
        "device",
        lambda device: lambda values: device.asarray(np.array(values), device=device.DEVICE),
        leave_alone=lambda device: device.alone(),
        is_strict=True,
    ),
    Library("tiny", "tiny", lambda tiny: tiny.asarray, is_strict=True, is_slow=True),
    Library("torch", "torch", lambda torch: lambda values: torch.asarray(np.array(values))),
    Library("jax", "jax", _jax, is_slow=True),
]
# Slow or imprecise, and so tested with derivatives, one step of each optimizer, and in modules of their own.
OTHERS = [
    Library("dask", "dask.array", _dask, sample=SAMPLE),
    Library("mlx", "mlx.core", _mlx, is_slow=True, rtol=1e-3),  # its exponential of float64 has the digits of float32
]
GPU = [
    Library(
        "torch-cuda",
        "torch",
        lambda torch: lambda values: torch.asarray(np.array(values), device="cuda"),
        leave_alone=_torch_alone,
        has_gpu=lambda torch: torch.cuda.is_available(),
    ),
    Library(
        "cupy",
        "cupy",
        lambda cupy: cupy.asarray,
        leave_alone=_cupy_alone,
        has_gpu=lambda cupy: cupy.cuda.is_available(),
    ),
    Library(
        "jax-gpu",
        "jax",
        _jax,
        leave_alone=lambda jax: jax.transfer_guard_device_to_host("disallow"),
        has_gpu=lambda jax: jax.default_backend() == "gpu",
        sample=SAMPLE,
        is_slow=True,
    ),
]


def named(name: str) -> Library:
    """The library of that name in the table."""
    return next(library for library in (*LIBRARIES, *OTHERS) if library.name == name)


def host(x: Any) -> np.ndarray:
    """The numbers of an array of any library, as NumPy's: the only way by which tests look at them."""
    try:
        return np.asarray(x) if not hasattr(x, "_numbers") else np.array(x._numbers)  # tiny's have no other door
    except TypeError:  # it lies elsewhere, and does not come by itself
        return np.asarray(array_api_compat.to_device(x, "cpu"))


# --- the table of cases ------------------------------------------------------------------------------------------------

TABLE = {case.name: case for case in (*ELEMENTARY, *LINALG) if all(isinstance(arg, np.ndarray) for arg in case.args)}
# Cases that a library does not support on plain arrays either.
LACKING = {
    ("torch", "index-slice"),  # backwards
    ("torch", "index-apart"),  # it puts the new axis elsewhere
    ("torch", "matmul-real-complex"),
    ("cupy", "solve-broadcast"),
}


def function_of(name: str) -> str:
    """The function that a case is of."""
    return name.split("-")[0]


def cases(library: Library) -> list[str]:
    """The cases that a library is tested with; of each function the first, where it is slow."""
    if library.sample:
        return library.sample.split()
    found = [name for name, case in TABLE.items() if case.is_standard or not library.is_strict]
    found = [name for name in found if (library.module, name) not in LACKING]
    return list({function_of(name): name for name in reversed(found)}.values()) if library.is_slow else found


def weighted(value: Any, asarray: Callable[..., Any]) -> Any:
    """A real number that depends on every element of a tree of arrays."""
    total: Any = 0.0
    for at, leaf in enumerate(tree.leaves(value)):
        total = xp.add(total, xp.sum(leaf * asarray(normal(*leaf.shape, seed=at))))  # either may be plain
    return xp.real(total) + xp.imag(total) if is_complex(total) else total


def differentiated(case: Case, asarray: Callable[..., Any], order: int) -> Callable[..., Any]:
    """A weighted sum of the results of a case, or of its gradients, for the second order."""
    f = case.function
    for _ in range(order - 1):
        f = gradient(lambda *args, f=f: weighted(f(*args), asarray), len(case.args))
    return lambda *args: weighted(f(*args), asarray)


def gradient(f: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The gradients with respect to so many arguments."""
    return ox.grad(f, argnums=tuple(range(count)))


def directions(case: Case, asarray: Callable[..., Any]) -> tuple[Any, ...]:
    """A tangent for each argument."""
    return tuple(asarray(normal(*arg.shape, seed=8).astype(arg.dtype)) for arg in case.args)


def derivatives(name: str, library: Library) -> dict[str, list[np.ndarray]]:
    """The gradients of a weighted sum of the results of a case, and its derivative along a direction; then those of a
    weighted sum of its gradients.
    """
    case, asarray = TABLE[name], library.asarray
    args, found = tuple(map(asarray, case.args)), {}
    for order in (1, 2):
        f = differentiated(case, asarray, order)
        gradients = gradient(f, len(args))(*args)
        assert list(map(namespace, gradients)) == list(map(namespace, args))
        found[f"order {order}, reverse"] = list(map(host, gradients))
        found[f"order {order}, forward"] = [host(ox.jvp(f, args, directions(case, asarray))[1])]
    return found


@functools.cache
def of_numpy(name: str) -> dict[str, list[np.ndarray]]:
    """The derivatives over NumPy, the reference for the other libraries."""
    return derivatives(name, LIBRARIES[0])


@functools.cache
def check(name: str, library: Library) -> None:
    """Compares the derivatives of a case with central differences, over NumPy; with NumPy's, over any other library."""
    if library is LIBRARIES[0]:
        check_grads(TABLE[name].function, TABLE[name].args, order=2)
        return
    for what, found in derivatives(name, library).items():
        for own, expected in zip(found, of_numpy(name)[what], strict=True):
            np.testing.assert_allclose(own, expected, rtol=library.rtol, atol=library.rtol, err_msg=what)
