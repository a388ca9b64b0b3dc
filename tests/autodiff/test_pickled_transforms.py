"""Functions that transforms return: pickled, copied, sent to other processes, bound as methods, read by name and recorded."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import pickle
import pydoc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X = np.linspace(0.5, 2.0, 4)


def scalar(x: Any, y: Any = 2.0, *, k: float = 1.0) -> Any:
    """A weighted sum of squares."""
    return xp.sum(x * x) * y * k


def elementwise(x: Any) -> Any:
    return x * xp.sin(x)


def holomorphic(z: Any) -> Any:
    return xp.sum(z * z * z)


@ox.grad
def decorated(x: Any) -> Any:
    return xp.sum(x**3)


class Decorated:
    """A class with transforms as methods."""

    factor = 3.0

    @ox.checkpoint
    def scaled(self, x: Any) -> Any:
        return x * self.factor

    slope = ox.grad(lambda self, x: xp.sum(x**2) * self.factor, argnums=1)


TRANSFORMS: dict[str, Callable[[], Callable[..., Any]]] = {
    "grad": lambda: ox.grad(scalar),
    "grad by position": lambda: ox.grad(scalar, (0,)),
    "value_and_grad": lambda: ox.value_and_grad(scalar),
    "elementwise_grad": lambda: ox.elementwise_grad(elementwise),
    "jacobian": lambda: ox.jacobian(elementwise, mode="reverse"),
    "jacfwd": lambda: ox.jacfwd(elementwise),
    "jacrev": lambda: ox.jacrev(elementwise),
    "hessian": lambda: ox.hessian(scalar),
    "hessian_diag": lambda: ox.hessian_diag(scalar),
    "vmap": lambda: ox.vmap(elementwise),
    "checkpoint": lambda: ox.checkpoint(elementwise),
    "nested": lambda: ox.vmap(ox.grad(ox.checkpoint(scalar))),
}


def same(found: Any, expected: Any) -> None:
    for a, b in zip(ox.tree.leaves(found), ox.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_pickle_and_copies_have_the_same_results(name: str) -> None:
    made = TRANSFORMS[name]()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(made, protocol))  # noqa: S301
        same(again(X), made(X))
        same(pickle.loads(pickle.dumps(again, protocol))(X), made(X))  # noqa: S301
        assert again.__name__ == made.__name__
    same(copy.copy(made)(X), made(X))
    same(copy.deepcopy(made)(X), made(X))


def test_options_are_kept() -> None:
    for made, args, named in (
        (ox.grad(scalar, argnames="k"), (X,), {"k": 3.0}),
        (ox.value_and_grad(scalar, 0, argnames=["y", "k"]), (X, 4.0), {"k": 3.0}),
        (ox.grad(holomorphic, holomorphic=True), (X + 1j,), {}),
        (ox.value_and_grad(holomorphic, holomorphic=True), (X + 1j,), {}),
        (ox.vmap(scalar, (0, None), 0), (X, 4.0), {}),
    ):
        same(pickle.loads(pickle.dumps(made))(*args, **named), made(*args, **named))  # noqa: S301


def test_a_decorated_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated  # noqa: S301
    assert pickle.loads(pickle.dumps(Decorated.scaled)) is Decorated.scaled  # noqa: S301
    assert copy.deepcopy(decorated) is decorated
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(ox.grad(lambda x: x))


def test_a_deep_copy_is_of_the_copied_object() -> None:
    """As a bound method: the transform of the copy reads the copy's attributes."""

    class Model:
        def __init__(self) -> None:
            self.factor, self.slope = 2.0, ox.grad(self.loss)

        def loss(self, x: Any) -> Any:
            return self.factor * x

    model = Model()
    copied = copy.deepcopy(model)
    copied.factor = 5.0
    assert (model.slope(1.0), copied.slope(1.0)) == (2.0, 5.0)


def test_other_processes_get_them() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for made in (ox.grad(scalar), ox.jacobian(elementwise), ox.vmap(ox.grad(scalar)), decorated):
            same(pool.map(made, [X, 2 * X]), [made(X), made(2 * X)])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_names_documentation_and_signature_are_those_of_the_function(name: str) -> None:
    made = TRANSFORMS[name]()
    of = inspect.unwrap(made)
    assert of in (scalar, elementwise)
    assert (made.__name__, made.__qualname__, made.__module__) == (of.__name__, of.__name__, __name__)
    assert (made.__doc__, inspect.signature(made)) == (of.__doc__, inspect.signature(of))
    assert f"{of.__name__}(x" in pydoc.plain(pydoc.render_doc(made))
    assert of.__name__ in repr(made)


def test_methods_are_bound() -> None:
    model = Decorated()
    same(model.scaled(X), 3.0 * X)
    same(model.slope(X), 6.0 * X)


def test_recordings_follow_them_and_their_names() -> None:
    weights = np.array([1.0, 2.0, 3.0, 4.0])

    def weighted(x: Any) -> Any:
        return xp.sum(weights * x**2)

    slope, curvature, each = ox.grad(weighted), ox.hessian_diag(weighted), ox.vmap(weighted)

    @ox.record
    def recorded(x: Any) -> Any:
        assert slope.__name__ == "weighted"
        return slope(x) + curvature(x) * each(xp.stack([x, x, x, x]))

    for factor in (1.0, 2.0, 3.0):
        weights *= factor  # an input
        same(recorded(X), 2 * weights * X + 2 * weights * np.sum(weights * X**2))
    assert "1 recording, 2 replays" in repr(recorded)
