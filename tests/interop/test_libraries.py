"""Derivatives of all functions over each array library, and replays that do not synchronize with the device."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import libraries
import oxigrad as ox
from cases_linalg import LINALG
from libraries import TABLE, Library, differentiated, directions, gradient, host
from optimizers import OPTIMIZERS, problem, run
from oxigrad import tree, xp
from oxigrad.autodiff.transforms import Recording
from oxigrad.ops.backends import on_host


@pytest.mark.one_in(3)
def test_derivatives_agree_with_numpy_s(case: str, arrays: Library) -> None:
    try:
        libraries.check(case, arrays)
    except NotImplementedError as error:
        if arrays not in libraries.GPU:  # what those have is known when they run
            raise
        pytest.skip(str(error))


@pytest.mark.filterwarnings("ignore")
def test_one_variable_beside_plain_arrays_of_a_library_whose_operators_refuse_variables(library) -> None:
    strict = library("array_api_strict")
    wrong, tried = [], 0
    for name, case in TABLE.items():
        # Functions that compute by several ops; single ones are called by operators in the table.
        if len(case.args) < 2 or not (
            hasattr(xp.special, name.split("-")[0]) or hasattr(xp.stats, name.split("-")[1:][0] if "-" in name else "")
        ):
            continue
        args = [strict.asarray(np.asarray(arg)) for arg in case.args]
        for k in range(len(args)):
            tried += 1
            try:
                found = ox.grad(lambda *args, f=case.function: xp.sum(f(*args)), k)(*args)
                expected = ox.grad(lambda *args, f=case.function: xp.sum(f(*args)), k)(*map(np.asarray, case.args))
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
            except Exception as error:  # noqa: BLE001 - any is a fault
                wrong.append(f"{name} by argument {k}: {type(error).__name__} {error}")
    assert not wrong, "\n".join(wrong)
    assert tried > 50


@pytest.mark.parametrize(("module", "case"), sorted(libraries.LACKING))
def test_a_missing_function_is_missing_on_plain_arrays_too(module: str, case: str, library) -> None:
    library(module)
    found = next(each for each in libraries.LIBRARIES if each.module == module)
    try:
        result = TABLE[case].function(*map(found.asarray, TABLE[case].args))
    except (NotImplementedError, ValueError, RuntimeError):
        return
    assert not np.array_equal(host(result), TABLE[case].function(*TABLE[case].args))


@pytest.mark.parametrize("module", ["torch", "array_api_strict"])
@pytest.mark.parametrize("name", ["digitize", "flatnonzero", "lexsort", "array_equal", "nanargmax", "argpartition"])
def test_a_function_that_a_library_lacks_is_named(name: str, module: str, library) -> None:
    library(module)
    asarray = next(each for each in libraries.LIBRARIES if each.module == module).asarray
    x = asarray(np.array([1.0, 2.0, 3.0]))
    args = {"digitize": (x,), "array_equal": (x,), "argpartition": (1,)}.get(name, ())
    for call in (
        lambda: getattr(xp, name)(x, *args),
        lambda: ox.grad(lambda x: xp.sum(x) + getattr(xp, name)(x, *args) * 0.0)(x),
    ):
        with pytest.raises(
            NotImplementedError, match=f"^xp.{name}: .*{module} has no function {name}: expected arrays"
        ):
            call()


def check_not_committed(name: str, jax: Any, order: int) -> None:
    """A gradient that is committed to a device refuses arrays of another device in all that follows."""
    case, arrays = TABLE[name], libraries.named("jax")
    args = tuple(map(arrays.asarray, case.args))
    assert not any(arg.committed for arg in args)
    found = gradient(differentiated(case, arrays.asarray, order), len(args))(*args)
    assert not any(getattr(leaf, "committed", False) for leaf in tree.leaves(found))


def check_under_jit(name: str, jax: Any) -> None:
    case, arrays = TABLE[name], libraries.named("jax")
    args = tuple(map(arrays.asarray, case.args))
    compiled = jax.jit(gradient(differentiated(case, arrays.asarray, 1), len(args)))
    if name in UNCOMPILED:
        with pytest.raises((NotImplementedError, TypeError), match="has no function|Abstract tracer"):
            compiled(*args)
        return
    for own, expected in zip(compiled(*args), libraries.of_numpy(name)["order 1, reverse"], strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)


# What is checked of the gradients of JAX's arrays. A test for each would compile all ops for each, in a sample too.
OF_JAX: dict[str, Callable[[str, Any], None]] = {
    "not committed": functools.partial(check_not_committed, order=1),
    "second ones not committed": functools.partial(check_not_committed, order=2),
    "under jit": check_under_jit,
}


@pytest.mark.parametrize("what", OF_JAX)
@pytest.mark.parametrize("name", libraries.cases(libraries.named("jax")))
def test_gradients_of_arrays_of_jax(name: str, what: str, library) -> None:
    OF_JAX[what](name, library("jax"))


# Shapes that depend on numbers, and functions that JAX lacks.
UNCOMPILED = set(
    "unique_all unique_counts unique_inverse unique_values jn yn iv j0 j1 y0 y1 i0 i1 gammainc_a betainc_a betainc_b odeint".split()
)


# --- the host does not wait for a device -------------------------------------------------------------------------------

# A mask says how many elements it picks when they are counted, forwards and again in reverse.
COUNTED = {"index-mask"}
# On a GPU the library's own linear algebra asks whether it went well.
ASKING = {case.name for case in LINALG} | {name for name in TABLE if name.endswith("multivariate-normal")}


def cotangent(value: Any, asarray: Callable[..., Any]) -> Any:
    """Ones, like a value."""
    return tree.map(lambda leaf: asarray(np.ones_like(host(leaf))), value)


def skip_what_waits(case: str, arrays: Library) -> None:
    if case in COUNTED or (arrays in libraries.GPU and case in ASKING):
        pytest.skip("what is computed makes the host wait")


@pytest.mark.on_device
@pytest.mark.one_in(5)
def test_a_replay_does_not_synchronize(case: str, arrays: Library) -> None:
    skip_what_waits(case, arrays)
    asarray, args = arrays.asarray, tuple(map(arrays.asarray, TABLE[case].args))
    try:
        value, pullback = ox.vjp(TABLE[case].function, *args)
        gradients, second = ox.vjp(gradient(differentiated(TABLE[case], asarray, 1), len(args)), *args)
        recorded = Recording.of(TABLE[case].function, args, tuple(range(len(args))), forward=True)
    except NotImplementedError as error:
        if arrays not in libraries.GPU:
            raise
        pytest.skip(str(error))
    seeds = list(zip(recorded.watched.variables, directions(TABLE[case], asarray), strict=True))
    targets = [output for output in recorded.outputs if output is not None]
    given, twice = cotangent(value, asarray), cotangent(gradients, asarray)
    with arrays.alone():
        pullback(given)
        second(twice)
        recorded.tape.push(seeds, targets)


@pytest.mark.on_device
@pytest.mark.parametrize("name", [name for name, make in OPTIMIZERS.items() if "noise" not in make()._rule.supplied])
@pytest.mark.one_in(5)
def test_a_step_does_not_synchronize(name: str, arrays: Library) -> None:
    values, grads = problem(np.float64)
    model, given = (tree.map(arrays.asarray, each) for each in (values, grads))
    with arrays.alone():
        model, opt = run(name, model, given)
        loss = opt.minimize(lambda model: sum(xp.sum(xp.square(p)) for p in model.values()), model)
    assert host(loss).shape == () and host(loss) > 0.0


@pytest.mark.on_device
@pytest.mark.parametrize("name", "atan2 hypot logaddexp maximum minimum".split())
def test_a_number_beside_an_array_does_not_synchronize(name: str, arrays: Library) -> None:
    f = getattr(xp, name)
    x = arrays.asarray([0.25, 2.0])
    with arrays.alone():
        value, pullback = ox.vjp(
            lambda x: (f(x, 0.5), f(0.5, x), xp.where(x > 1.0, 0.0, x), xp.where(x > 1.0, 0, 1)), x
        )
        gradient = pullback(value)[0]
    expected, pullback = ox.vjp(lambda x: (f(x, 0.5), f(0.5, x), xp.where(x > 1.0, 0.0, x)), np.array([0.25, 2.0]))
    for own, numpy_s in zip(value, (*expected, [1, 0]), strict=True):
        np.testing.assert_allclose(host(own), numpy_s, rtol=1e-14)
    np.testing.assert_allclose(host(gradient), pullback(expected)[0], rtol=1e-14)


@pytest.mark.on_device
def test_synchronization_is_detected(arrays: Library) -> None:
    x = arrays.asarray([1.0, 2.0])
    with arrays.alone():
        through_host = [] if arrays in libraries.GPU else [arrays.asarray]  # a GPU's arrays become others there
        for wait in (bool, float, lambda x: x.tolist(), lambda x: np.asarray(x), *through_host):
            with pytest.raises((TypeError, RuntimeError, AttributeError)):
                wait(xp.sum(x) if wait in (bool, float) else x)


def test_no_array_of_the_fake_device_can_be_read_by_the_host() -> None:
    device = importlib.import_module("device")
    x = device.asarray([1.0], device=device.DEVICE)
    for read in (bool, float, int, complex, len, list, np.asarray, np.from_dlpack, np.sum, memoryview):
        with pytest.raises(TypeError):
            read(x)
    with pytest.raises(ValueError, match="two different devices"):
        x + device.asarray([1.0])
    assert not on_host(x)
    np.testing.assert_array_equal(host(x + x), [2.0])


def test_a_matrix_too_large_for_a_device_to_scale_has_no_exponential() -> None:
    device = importlib.import_module("device")
    sizes = np.array([1.0, 3e5, 4e5])
    x = device.asarray(-sizes[:, None, None] * np.eye(2), device=device.DEVICE)
    found = host(xp.linalg.expm(x))
    np.testing.assert_allclose(found[0], np.exp(-1.0) * np.eye(2), atol=1e-15)
    np.testing.assert_array_equal(found[1], np.zeros((2, 2)))
    assert np.isnan(found[2]).all()


@pytest.mark.parametrize(("more", "message"), [([], "PyTorch or CuPy"), (["--require=numpy"], "numpy")])
@pytest.mark.slow
def test_tests_on_a_gpu_say_where_there_is_none(more: list[str], message: str) -> None:
    if any(library.is_there() for library in libraries.GPU):
        pytest.skip("there is one")
    command = [sys.executable, "-m", "pytest", "--gpu", *more]
    found = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert found.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--gpu: no GPU is found by {message}" in found.stderr
