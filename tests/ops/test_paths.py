"""Values of a name on every path: under NumPy's name and ours, of plain arrays and variables, in every transform; views of what was written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.testing import check_grads


def test_eigenvalues_of_real_matrices_have_one_dtype_on_every_path() -> None:
    """Complex under the standard's name; under NumPy's, real where all are."""
    for m in (np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])):
        for f, single in (
            (np.linalg.eigvals, lambda m: m),
            (np.linalg.eig, lambda m: m.eigenvectors),
            (xp.linalg.eigvals, lambda m: m),
            (xp.linalg.eig, lambda m: m.eigenvectors),
        ):
            own = lambda m, f=f, single=single: single(f(m))  # noqa: E731
            expected = own(m)
            if f.__module__ != "numpy.linalg":
                assert expected.dtype == np.complex128
            for value in (
                ox.vjp(own, m)[0],
                ox.jvp(own, (m,), (m,))[0],
                ox.vmap(own)(m[None])[0],
                ox.record(own)(m),
                ox.vjp(lambda m, own=own: ox.checkpoint(own)(m), m)[0],
            ):
                assert value.dtype == expected.dtype
                np.testing.assert_allclose(value, expected, atol=1e-15)
    m = np.array([[1.0, 2.0], [2.0, 1.0]])  # an eigenvalue is negative
    value, gradient = ox.value_and_grad(lambda m: xp.sum(xp.real(xp.sqrt(xp.linalg.eigvals(m)))))(m)
    assert value == pytest.approx(np.sqrt(3.0))
    np.testing.assert_allclose(gradient, np.full((2, 2), 0.25 / np.sqrt(3.0)), rtol=1e-12)
    assert xp.__array_namespace_info__().devices() == ("cpu",)


@pytest.mark.parametrize("shift, axis", [((1, 1), 0), (1, (0, 1)), ((1, -2), (1, 1)), (2, ()), ((3, 1), None)])  # noqa: PT006
def test_shifts_and_axes_broadcast_in_roll(shift: Any, axis: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    for roll in (np.roll, xp.roll):
        value, pullback = ox.vjp(lambda x, roll=roll: roll(x, shift, axis=axis), x)
        np.testing.assert_array_equal(value, np.roll(x, shift, axis=axis))
        back = tuple(-each for each in shift) if isinstance(shift, tuple) else -shift
        np.testing.assert_array_equal(pullback(x)[0], np.roll(x, back, axis=axis))


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("kth", [3, [1, 4]])
def test_partitions_have_the_order_of_numpy(axis: Any, kth: Any) -> None:
    x = np.random.default_rng(0).normal(size=(60, 40))
    expected = np.partition(x, kth, axis=axis)
    for partition in (np.partition, xp.partition):
        value, pullback = ox.vjp(lambda x, partition=partition: partition(x, kth, axis=axis), x)
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(pullback(expected)[0], x)  # each element to its place
        np.testing.assert_array_equal(partition(x, kth, axis=axis), expected)
        np.testing.assert_array_equal(ox.vmap(lambda x, p=partition: p(x, kth, axis=axis))(x[None])[0], expected)


WRITES = {
    "out": lambda y, x: np.multiply(x, 2.0, out=y),
    "out and where": lambda y, x: np.multiply(x, 2.0, out=y, where=x > 1.5),
    "a mask": lambda y, x: y.__setitem__(x > 1.5, x[0]),
    "all": lambda y, x: y.__setitem__(..., 2.0 * x),
    "put": lambda y, x: np.put(y, [0], x[1]),
    "copyto": lambda y, x: np.copyto(y, 2.0 * x),
    "at": lambda y, x: np.add.at(y, [0, 0], x[:2]),
    "cumsum": lambda y, x: np.cumsum(x, out=y),
    "fill": lambda y, x: y.fill(x[0]),
}
CHANGES = {
    "*=": lambda v, x: v.__imul__(3.0),
    "element": lambda v, x: v.__setitem__(0, x[0]),
    "out": lambda v, x: np.multiply(v, 3.0, out=v),
    "mask": lambda v, x: v.__setitem__(v > 2.5, 0.0),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_view_of_what_was_written_is_changed_in_place(write: str, change: str) -> None:
    x = np.array([1.0, 2.0, 3.0])
    for make in (lambda x: 0.0 * x, lambda x: x.copy(), lambda x: np.stack([x[2], x[1], x[0]])):
        for view in (lambda y: y[1:], lambda y: np.ravel(y)[1:], lambda y: y.reshape(3, 1)[1:, 0]):

            def f(x: Any, make: Any = make, view: Any = view) -> Any:
                whole = x * 1.0
                y = make(x)
                WRITES[write](y, whole)
                v = view(y)
                CHANGES[change](v, whole)
                return np.sum(np.sin(v))

            check_grads(f, (x,), order=1)
            np.testing.assert_allclose(ox.vmap(ox.grad(f))(x[None])[0], ox.grad(f)(x))
