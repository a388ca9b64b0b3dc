"""What every test may ask for: array libraries, and libraries to compare with."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oxigrad as ox

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported: its functions then take any array


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        default="",
        metavar="LIBRARY,...",
        help="libraries that must be installed, so that no test of theirs is skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    required = [name for name in config.getoption("--require").split(",") if name]
    missing = [name for name in required if importlib.util.find_spec(name) is None]
    if missing:
        raise pytest.UsageError(f"--require: not installed: {', '.join(missing)}")


@pytest.fixture
def library() -> Callable[[str], ModuleType]:
    """Imports a library by name, or skips the test where it is not installed."""
    return pytest.importorskip


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of threads for one test."""
    before = ox.get_num_threads()
    yield ox.set_num_threads
    ox.set_num_threads(before)


@pytest.fixture
def precision(library: Callable[[str], ModuleType]) -> Callable[[bool], AbstractContextManager[None]]:
    """Within ``precision(x64)``, JAX computes in float64, or in float32."""
    jax = library("jax")

    @contextmanager
    def changed(x64: bool) -> Iterator[None]:
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", x64)
        try:
            yield
        finally:
            jax.config.update("jax_enable_x64", before)

    return changed


@pytest.fixture
def learning_rate() -> Callable[[Any, int], Any]:
    """What a rule is given as its learning rate in a step, where that is a schedule."""

    def given(schedule: Any, step: int) -> Any:
        seen = []

        def watched(xp: Any, p: Any, g: Any, *, learning_rate: float = 0.1) -> Any:
            seen.append(learning_rate)
            return p

        array = {"x": np.zeros(1)}
        opt = ox.optim.define(watched, elementwise=False)(learning_rate=schedule)
        opt.apply(array, array, {**opt.init(array), "step": step})
        return seen[0]

    return given


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
