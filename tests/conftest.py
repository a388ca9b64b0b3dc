"""What every test may ask for: array libraries, and libraries to compare with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oxigrad as ox


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require", default="", help="libraries (comma-separated) whose tests fail where they are missing"
    )


@pytest.fixture
def library(request: pytest.FixtureRequest) -> Callable[[str], ModuleType]:
    """Imports a library by name, or skips the test; fails it where ``--require`` promises the library."""
    promised = request.config.getoption("--require").split(",")

    def load(name: str) -> ModuleType:
        try:
            return importlib.import_module(name)
        except ImportError:
            if name.partition(".")[0] in promised:
                pytest.fail(f"{name} is promised by --require, and cannot be imported")
            pytest.skip(f"{name} is not installed")

    return load


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of threads for one test."""
    before = ox.get_num_threads()
    yield ox.set_num_threads
    ox.set_num_threads(before)


def _read_only(values: Any) -> np.ndarray:
    array = np.array(values)
    array.setflags(write=False)
    return array


def _jax(jax: ModuleType) -> Callable[..., Any]:
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray


# How each library makes an array of NumPy values; "read-only" stands for NumPy arrays that must not be written.
ARRAYS: dict[str, tuple[str, Callable[[ModuleType], Callable[..., Any]]]] = {
    "numpy": ("numpy", lambda numpy: numpy.array),
    "read-only": ("numpy", lambda numpy: _read_only),
    "array-api-strict": ("array_api_strict", lambda strict: strict.asarray),
    "torch": ("torch", lambda torch: lambda values: torch.asarray(np.array(values))),
    "jax": ("jax", _jax),
}


@pytest.fixture(params=ARRAYS)
def asarray(request: pytest.FixtureRequest, library: Callable[[str], ModuleType]) -> Callable[..., Any]:
    """A function that makes an array of each library from NumPy's values."""
    name, make = ARRAYS[request.param]
    return make(library(name))
