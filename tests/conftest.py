"""Fixtures: array libraries, and libraries to compare with."""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import importlib.util
import os
import random
import re
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import libraries
import oxigrad as ox
from combinations import covering, is_one_in
from groups import name_groups
from libraries import Library
from oxigrad.cuda.compiler import Compiler, CompilerUnavailableError, compiler

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported: its functions then take any array
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # before JAX finds a GPU: other libraries use it too
os.environ.setdefault("KERAS_BACKEND", "jax")  # before Keras is imported: over others it computes in single precision


def _collect_no_garbage_in_parsing() -> None:
    """Python 3.11 counts the depth of `ast.parse` for the process: a finalizer that runs within it, and parses or lets another thread parse,
    makes it raise `SystemError: AST constructor recursion depth mismatch`. The import of torch._dynamo parses 92 texts, NumPy parses headers.
    """
    parse, lock = ast.parse, threading.RLock()

    @functools.wraps(parse)
    def without_garbage(*args: Any, **named: Any) -> Any:
        with lock:
            was_enabled = gc.isenabled()
            gc.disable()
            try:
                return parse(*args, **named)
            finally:
                if was_enabled:
                    gc.enable()

    ast.parse = without_garbage


if sys.version_info < (3, 12):
    _collect_no_garbage_in_parsing()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        default="",
        metavar="LIBRARY,...",
        help="libraries that must be installed (with --gpu: and find a GPU), so that no test of theirs is skipped",
    )
    parser.addoption(
        "--gpu",
        action="store_true",
        help="run what runs over array libraries, on the GPU that PyTorch or CuPy finds here, and nothing else",
    )
    parser.addoption(
        "--fake-driver",
        action="store_true",
        help="run the tests of CUDA devices by cuda-bindings over the driver in tests/emulators/libcuda, and nothing else that looks for one",
    )
    parser.addoption(
        "--fuzz-seconds",
        type=float,
        default=None,
        metavar="N",
        help="let each fuzzer run for so long, on new seeds; by default each runs for some seconds, on the same ones",
    )


def _is_installed(name: str) -> bool:
    """Whether a library can be imported; for ``cuda``, whether NVRTC can be loaded."""
    if name != "cuda":
        return importlib.util.find_spec(name) is not None
    try:
        return bool(compiler())
    except CompilerUnavailableError:
        return False


def pytest_configure(config: pytest.Config) -> None:
    required = [name for name in config.getoption("--require").split(",") if name]
    missing = [name for name in required if not _is_installed(name)]
    if missing:
        raise pytest.UsageError(f"--require: not installed: {', '.join(missing)}")
    if config.getoption("--gpu"):
        found = [library.module for library in libraries.GPU if library.is_there()]
        missing = [name for name in required if name not in found]
        if missing or not found:
            raise pytest.UsageError(f"--gpu: no GPU is found by {', '.join(missing) or 'PyTorch or CuPy'}")


# --- over array libraries ----------------------------------------------------------------------------------------------


def _tested(config: pytest.Config) -> list[Library]:
    """The array libraries that tests run over."""
    if config.getoption("--gpu"):
        return [library for library in libraries.GPU if library.is_there()]
    return libraries.LIBRARIES


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, None, None]:
    """Takes all combinations of a test's parameters or, of ``-m "not slow"``, a sample with each value of each parameter."""
    if "arrays" in metafunc.fixturenames:
        _parametrize_arrays(metafunc)
    yield
    if _is_sample(metafunc.config):
        metafunc._calls[:] = covering(metafunc._calls, metafunc.definition.nodeid)


def _parametrize_arrays(metafunc: pytest.Metafunc) -> None:
    """A test that asks for ``arrays`` runs over every array library, one that asks for ``case`` too over its cases, and over
    `libraries.OTHERS`.

    One marked ``on_device`` runs where arrays lie on a device.
    """
    tested = _tested(metafunc.config)
    on_device = metafunc.definition.get_closest_marker("on_device") is not None
    if on_device:
        tested = [library for library in tested if library.leave_alone]
    if "case" in metafunc.fixturenames:
        others = [] if metafunc.config.getoption("--gpu") or on_device else libraries.OTHERS
        tested = [*tested, *others]
        pairs = [(library, case) for library in tested for case in libraries.cases(library)]
        ids = [f"{library.name}-{case}" for library, case in pairs]
        metafunc.parametrize(("arrays", "case"), pairs, ids=ids, indirect=["arrays"])
    else:
        metafunc.parametrize("arrays", tested, ids=[library.name for library in tested], indirect=True)


def _is_sample(config: pytest.Config) -> bool:
    """Whether slow tests are left out."""
    return config.getoption("markexpr") == "not slow"


# Tests over array libraries, those of devices, and those of PyTorch's default device: by these fixtures.
_ON_GPU = ("arrays", "asarray", "mock", "default_device")
_OVER_LIBRARIES = re.compile(
    rf"def (test_\w+|mesh)\([^)]*\b({'|'.join(_ON_GPU)})\b|usefixtures\(\"(default_device|device|card)\"\)|\bdevice: LateDevice"
)
_UNDER_FAKE_DRIVER = "test_under_fake_driver.py"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --gpu, leaves out the modules without a test that runs there: they may import what is not installed."""
    is_module = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if config.getoption("--gpu") and is_module and not _OVER_LIBRARIES.search(collection_path.read_text()):
        return True
    if collection_path.name == _UNDER_FAKE_DRIVER and not config.getoption("--fake-driver"):
        return True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Keeps the garbage collector off modules and items: it would pass over all of them many times while they are made, and again in
    each collection of garbage in a test, and frees none, since they live to the end.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        if was_enabled:
            gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks slow combinations of parameters, and leaves out, with --gpu, the tests that do not run there."""
    for item in items:
        one_in = item.get_closest_marker("one_in")
        if one_in is not None and not is_one_in(one_in.args[0], item.nodeid):
            item.add_marker("slow")
    if config.getoption("--gpu"):
        _keep(config, items, [not {*_ON_GPU}.isdisjoint(getattr(item, "fixturenames", ())) for item in items])
    if config.getoption("loadgroup", default=False):
        name_groups(items)


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[bool]) -> None:
    config.hook.pytest_deselected(items=[item for item, is_kept in zip(items, kept, strict=True) if not is_kept])
    items[:] = [item for item, is_kept in zip(items, kept, strict=True) if is_kept]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says how to list skipped tests."""
    if (skipped := terminalreporter.stats.get("skipped")) and not terminalreporter.hasopt("skipped"):
        terminalreporter.write_line(f"{len(skipped)} tests were skipped: -rs lists them (make test OPTIONS=-rs)")


@pytest.fixture
def arrays(request: pytest.FixtureRequest) -> Library:
    """Each array library in turn: what makes its arrays, and what is to be expected of it."""
    pytest.importorskip(request.param.module)
    return request.param


@pytest.fixture
def asarray(arrays: Library) -> Callable[..., Any]:
    """A function that makes an array of each library from NumPy's values."""
    return arrays.asarray


# --- other fixtures ----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Seeds the global generators, so that no test depends on those that ran before it in its process."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)


@pytest.fixture
def library() -> Callable[[str], ModuleType]:
    """Imports a library by name, or skips the test where it is not installed."""
    return pytest.importorskip


@pytest.fixture(scope="session")
def nvrtc() -> Compiler:
    """NVIDIA's compiler, or skips the test where it is not installed."""
    try:
        return compiler()
    except CompilerUnavailableError as error:
        pytest.skip(str(error))


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
def keras(library: Callable[[str], ModuleType], precision: Any) -> Iterator[ModuleType]:
    """Keras over JAX, in double precision."""
    library("jax")
    module = library("keras")
    if module.backend.backend() != "jax":
        pytest.skip(
            "KERAS_BACKEND names another backend, over which Keras computes parts of a step in single precision"
        )
    before = module.config.floatx()
    module.config.set_floatx("float64")
    with precision(True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "__array__ implementation doesn't accept a copy", DeprecationWarning)
        yield module
    module.config.set_floatx(before)


@pytest.fixture
def learning_rate() -> Callable[[Any, int], Any]:
    """Learning rate that a rule receives in a step, for a schedule."""

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
