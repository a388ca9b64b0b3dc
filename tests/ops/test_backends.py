"""Adapters of array libraries: their selection, and that no other module names a library."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import array_api_strict as strict
import device
import numpy as np
import pytest
import tiny

import oxigrad as ox
from oxigrad import xp
from oxigrad.ops.backends import adapter_of, implementation, is_immutable, is_of_kind, on_host, to_host
from oxigrad.ops.backends.dispatch import adapter_of_library
from oxigrad.ops.backends.generic import Adapter

BACKENDS = Path(str(importlib.util.find_spec("oxigrad.ops.backends").origin)).parent  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("module", "adapter"),
    [
        ("numpy", "NumPyAdapter"),
        ("torch", "TorchAdapter"),
        ("jax", "JaxAdapter"),
        ("dask.array", "DaskAdapter"),
        ("mlx.core", "MLXAdapter"),
        ("array_api_strict", "Adapter"),
        ("tiny", "Adapter"),
    ],
)
def test_an_array_has_the_adapter_of_its_library(module: str, adapter: str) -> None:
    library = pytest.importorskip(module)
    if module == "tiny":
        library = library.NAMESPACE
    array = (library.numpy if module == "jax" else library).ones(2)
    assert type(adapter_of(array)).__name__ == adapter
    assert is_immutable(array) is (module == "jax")


def test_a_parameter_of_torch_is_apart_from_tensors_of_other_classes_alone() -> None:
    torch = pytest.importorskip("torch")

    class Other(torch.Tensor):  # type: ignore[name-defined, misc]
        pass

    p = torch.nn.Parameter(torch.ones(2))
    is_apart = adapter_of(p).is_apart
    assert not is_apart(p, torch.ones(2)) and not is_apart(p.detach(), p)
    assert is_apart(p, np.ones(2)) and is_apart(p, torch.ones(2).as_subclass(Other))
    assert is_apart(p, torch.ones(2, device="meta")) and is_apart(p, torch.ones(2).to_sparse())


def test_numbers_have_numpy_s_adapter_and_other_objects_the_generic_one() -> None:
    assert adapter_of(2.0) is adapter_of(np.float32(1.0)) is adapter_of(np.ones(1))
    assert type(adapter_of("text")) is Adapter


def test_a_library_named_as_another_file_of_the_folder_has_the_generic_adapter() -> None:
    for name in ("generic", "dispatch", "", "no_such_library"):
        library = type(sys)(name) if name else object()
        assert type(adapter_of_library(library)) is Adapter


def test_a_new_library_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = type(sys)("oxigrad.ops.backends.newcomer")
    module.ADAPTER = type("NewcomerAdapter", (Adapter,), {"special_modules": ("scipy.special",)})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter = adapter_of_library(type(sys)("newcomer.arrays"))
    assert type(adapter) is module.ADAPTER
    assert adapter.implementation("erf") is pytest.importorskip("scipy.special").erf


def test_no_library_is_imported_before_its_arrays() -> None:
    code = "import sys, oxigrad; print({'torch', 'jax', 'cupy', 'scipy', 'array_api_compat'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_only_an_adapter_names_its_library() -> None:
    names = re.compile(
        r"\b(torch|jax|cupy|cupyx|dask|mlx|ndonnx)\.[a-z_]+|requires_grad|index_put_|\bis_torch|\bis_jax"
    )
    for file in {*BACKENDS.parent.rglob("*.py")} - {
        BACKENDS / "memory" / "worker.py",  # which has PyTorch's settings of the caller's thread
        BACKENDS / "memory" / "file_transfers.py",  # whose memory is of its tensors
        BACKENDS.parent / "protocols" / "other_libraries.py",
    }:
        code = re.sub(r'""".*?"""|#[^\n]*', "", file.read_text(), flags=re.DOTALL)
        code = re.sub(r"oxigrad\.interop\.[a-z_.]+", "", code)  # the names of ours, in errors
        if file.stem.partition("_")[0] not in ("torch", "jax", "cupy", "dask", "mlx", "ndonnx"):
            assert not names.search(code), file


# --- one class of arrays, on several devices ---------------------------------------------------------------------------


def test_a_composed_op_is_chosen_for_each_array_not_for_its_class() -> None:
    class Mixed(device.Array):
        """An array that lies in host memory, of a class whose others lie on a device."""

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __array_namespace__(self, *, api_version: str | None = None) -> Any:
            return device

    there = device.asarray(np.array([2.0, 3.0]), device=device.DEVICE)
    here = Mixed(there._array)
    assert on_host(here)
    assert not on_host(there)
    beta = implementation("beta", here)
    with pytest.raises(NotImplementedError, match="no function beta"):
        beta(here, here)  # it says that it can be read, and cannot
    np.testing.assert_allclose(beta(there, there).to_device("cpu"), [1 / 6, 1 / 30])


# --- arrays that share no memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64", "complex64"])
def test_the_host_reads_an_array_that_shares_no_memory_number_by_number(dtype: str) -> None:
    for values in (np.arange(6.0).reshape(2, 3), np.array(2.0), np.zeros((2, 0))):
        expected = values.astype(dtype)
        found = to_host(tiny.asarray(expected))
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


def test_an_array_whose_numbers_cannot_be_read_is_refused() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(BufferError, match="has no memory that can be read"):
        jax.jit(lambda x: to_host(x).sum())(np.ones(2))


def test_a_gradient_needs_no_assignment_to_elements() -> None:
    x = tiny.asarray(np.arange(6.0).reshape(2, 3))
    assert not hasattr(x, "__setitem__")
    gradient = ox.grad(lambda x: xp.sum(x[1, ::2] ** 2) + xp.sum(x[None, 0, ...] ** 2))(x)
    np.testing.assert_array_equal(to_host(gradient), [[0.0, 2.0, 4.0], [6.0, 0.0, 10.0]])


# --- dtypes ------------------------------------------------------------------------------------------------------------


def test_kinds_of_dtypes() -> None:
    numpy: Any = np
    of_strict: Any = strict
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert is_of_kind(np.dtype(ml_dtypes.bfloat16), "real floating", numpy)
    assert not is_of_kind(np.dtype(ml_dtypes.int4), ("real floating", "complex floating"), numpy)
    assert is_of_kind(strict.float32, "real floating", of_strict)
    for dtype, kind in ((float, "real floating"), ("float32", "real floating"), (complex, "complex floating")):
        assert is_of_kind(dtype, kind, numpy)
    assert not is_of_kind(int, "real floating", numpy)


def test_python_s_complex_is_a_dtype_with_derivatives() -> None:
    found = ox.grad(lambda x: xp.sum(xp.real(xp.astype(x, complex) * 2.0)))(np.ones(2))
    np.testing.assert_array_equal(found, [2.0, 2.0])
