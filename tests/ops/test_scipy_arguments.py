"""Functions under SciPy's names: each argument in each form that SciPy takes, beside SciPy and finite differences."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

scipy = pytest.importorskip("scipy")
from scipy_arguments import FUNCTIONS, Function  # noqa: E402

PARTS = {name: getattr(scipy, name) for name in ("fft", "integrate", "interpolate", "linalg", "signal", "special")}
SCIPY = types.SimpleNamespace(**PARTS, polynomial=np.polynomial)


def nested_tuple(x: Any) -> Any:
    return tuple(map(nested_tuple, x)) if isinstance(x, list) else x


def strided(x: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * n for n in x.shape])
    part = wide[(..., *[slice(None, None, -2)] * x.ndim)]
    part[...] = x
    return part


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda x: x,
    "list": lambda x: x.tolist(),
    "tuple": lambda x: nested_tuple(x.tolist()),
    "list of arrays": lambda x: [*map(np.asarray, x)] if x.ndim else x[()],
    "float32": lambda x: x.astype(np.float32),
    "strided": strided,
    "Fortran": lambda x: np.asfortranarray(x) if x.ndim else x,
    "integers": lambda x: x.astype(int),
    "list of integers": lambda x: x.astype(int).tolist(),
}


def flat(results: list[Any]) -> np.ndarray:
    """The elements of all results, of complex ones the real and the imaginary parts."""
    parts = [part for each in results for part in (np.real(each), np.imag(each))]
    return np.concatenate([np.ravel(part) for part in parts]).astype(float)


def number(results: list[Any]) -> Any:
    """A smooth function of all elements of the results, each with a weight of its own."""
    total: Any = 0.0
    for each in map(xp.asarray, results):
        weights = 1.0 + np.arange(float(np.prod(each.shape))).reshape(each.shape) / 7.0
        total = total + xp.sum(xp.real(each) * weights)
        if np.iscomplexobj(ox.stop_gradient(each)):
            total = total + xp.sum(xp.imag(each) * weights) / 2.0
    return total


def admissible(function: Function, at: int, x: np.ndarray) -> np.ndarray:
    """An argument that SciPy reads as it is."""
    if function.path == "linalg.eigh":  # reads one triangle
        return np.tril(x) + np.tril(x, -1).T
    # takes no other leading coefficient than one
    return x / x[:, 3:4] if function.path == "signal.sosfilt" and at == 0 else x


@functools.cache
def differences(index: int, at: int) -> np.ndarray:
    """The derivative of `number` by an argument, by central differences of SciPy's function."""
    function, step = FUNCTIONS[index], 1e-5
    values, slopes = function.values, []
    for place in np.ndindex(values[at].shape):
        ends = []
        for sign in (1.0, -1.0):
            x = values[at].copy()
            x[place] += sign * step
            ends.append(number(function(SCIPY, *values[:at], admissible(function, at, x), *values[at + 1 :])))
        slopes.append((ends[0] - ends[1]) / (2.0 * step))
    return np.asarray(slopes)


def gradient(function: Function, values: list[Any], at: int, *, by_name: bool = False) -> np.ndarray:
    """The derivative of `number` by an argument in any form: of lists and tuples, by their items."""
    f = lambda x: number(function(xp, *values[:at], x, *values[at + 1 :], by_name=by_name))  # noqa: E731
    g = np.concatenate([np.ravel(leaf) for leaf in ox.tree.leaves(ox.grad(f)(values[at]))])
    if function.path != "linalg.eigh":
        return g
    matrix = g.reshape(function.values[at].shape)
    return np.ravel(np.tril(matrix) + np.triu(matrix, 1).T)


NAMES = [f"{index}-{function.path}" for index, function in enumerate(FUNCTIONS)]


@pytest.mark.parametrize("index", range(len(FUNCTIONS)), ids=NAMES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.one_in(8)
def test_each_argument_in_a_form(index: int, form: str) -> None:
    function = FUNCTIONS[index]
    values, is_whole = function.values, form.endswith("integers")
    for at, value in enumerate(values):
        changed = [*values[:at], FORMS[form](value), *values[at + 1 :]]
        if is_whole and not np.array_equal(value, value.astype(int)):
            continue
        # SciPy's own reads some arguments only if they are contiguous.
        expected = flat(function(SCIPY, *(values if form in ("strided", "Fortran") else changed)))
        tolerance = 1e-5 if form == "float32" else 1e-8
        slopes = 2e-3 if form == "float32" else 1e-5
        result = flat(function(xp, *changed))
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
        for other in {at, (at + 1) % len(values)}:
            if is_whole and other == at:  # integers have no derivative
                continue
            g = gradient(function, changed, other)
            np.testing.assert_allclose(g, differences(index, other), rtol=slopes, atol=slopes)


@pytest.mark.parametrize("index", range(len(FUNCTIONS)), ids=NAMES)
def test_arguments_by_name(index: int) -> None:
    function = FUNCTIONS[index]
    if function.path.startswith("special."):  # ufuncs, which have no names
        with pytest.raises(TypeError):
            function(SCIPY, *function.values, by_name=True)
        return
    np.testing.assert_array_equal(
        flat(function(xp, *function.values, by_name=True)), flat(function(xp, *function.values))
    )
    for at in range(len(function.arguments)):
        by_name = gradient(function, [*function.values], at, by_name=True)
        np.testing.assert_array_equal(by_name, gradient(function, [*function.values], at))


def test_every_function_of_the_parts_without_a_table_of_forms_has_a_row() -> None:
    paths = {function.path for function in FUNCTIONS}
    transforms = {f"fft.{name}" for name in xp.fft.__all__ if not name.endswith(("freq", "shift"))}
    assert {f"interpolate.{name}" for name in xp.interpolate.__all__} | transforms <= paths
    assert {"integrate.solve_ivp", "integrate.quad", "integrate.odeint"} <= paths
    evaluated = {
        f"polynomial.{module}.{name}"
        for module in xp.polynomial.__all__
        for name in dir(getattr(xp.polynomial, module))
        if name.endswith(("val", "2d", "3d")) and "vander" not in name
    }
    assert evaluated <= paths
