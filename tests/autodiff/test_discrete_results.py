"""Derivatives of integers and truth values are zeros, in a floating-point dtype, whatever the transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import tree, xp
from oxigrad.ops.backends import namespace

RESULTS: dict[str, Callable[[Any], Any]] = {
    "integers": lambda x: xp.argsort(x),
    "truth values": lambda x: x > 0.0,
    "a sum of truth values": lambda x: sum(x > 0.0),
    "a count": lambda x: xp.count_nonzero(x > 0.0),
    "an index": lambda x: xp.argmax(x),
    "cast": lambda x: xp.astype(x, namespace(x).int32),
    "int": lambda x: 3,
    "bool": lambda x: True,
    "NumPy's bool": lambda x: np.bool_(True),
    "NumPy's int": lambda x: np.int32(7),
    "a tree": lambda x: {"n": 3, "b": (x > 0.0, True), "k": np.int64(2)},
}


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of all results."""
    return lambda x: sum(xp.sum(xp.asarray(leaf)) for leaf in tree.leaves(f(x)))


# Each transform of a function at a point.
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "jacobian": lambda f, x: ox.jacobian(f)(x),
    "jacfwd": lambda f, x: ox.jacfwd(f)(x),
    "jacrev": lambda f, x: ox.jacrev(f)(x),
    "jvp": lambda f, x: ox.jvp(f, (x,), (x,))[1],
    "linearize": lambda f, x: ox.linearize(f, x)[1](x),
    "vjp": lambda f, x: (lambda value, pullback: pullback(value))(*ox.vjp(f, x)),
    "elementwise_grad": lambda f, x: ox.elementwise_grad(total(f))(x),
    "grad": lambda f, x: ox.grad(total(f))(x),
    "hessian": lambda f, x: ox.hessian(total(f))(x),
    "hvp": lambda f, x: ox.hvp(total(f), (x,), (x,)),
    "hessian_diag": lambda f, x: ox.hessian_diag(total(f))(x),
    "ggnvp": lambda f, x: ox.ggnvp(f, total(lambda y: y), (x,), (x,)),
    "vmap of jvp": lambda f, x: ox.vmap(lambda x: ox.jvp(f, (x,), (x,))[1])(xp.stack([x, x])),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_of_discrete_results_are_zeros(name: str, library) -> None:
    torch = library("torch")
    for what, f in RESULTS.items():
        for x in (np.array([1.0, -2.0, 3.0]), torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)):
            leaves = list(map(host, tree.leaves(TRANSFORMS[name](f, x))))
            assert leaves, what
            for leaf in leaves:
                assert leaf.dtype.kind == "f", what
                np.testing.assert_array_equal(leaf, 0.0, err_msg=what)


def test_other_leaves_keep_their_derivatives_and_shapes() -> None:
    x = np.array([1.0, -2.0, 3.0])
    f = lambda x: {"y": 2.0 * x, "n": 3, "b": x > 0.0, "name": "text"}  # noqa: E731
    jacobian, tangent = ox.jacobian(f)(x), ox.jvp(f, (x,), (x,))[1]
    np.testing.assert_array_equal(jacobian["y"], 2.0 * np.eye(3))
    assert jacobian["b"].shape == (3, 3) and jacobian["n"].shape == (3,) and jacobian["name"] == "text"
    np.testing.assert_array_equal(tangent["y"], 2.0 * x)
    assert tangent["b"].shape == (3,) and tangent["n"] == 0.0 and type(tangent["n"]) is float
    assert ox.jacobian(lambda v: sum(v > 0))(x).tolist() == [0.0, 0.0, 0.0]


def test_the_rule_of_a_user_gets_zeros_for_integers() -> None:
    seen: list[Any] = []

    def rule(g: Any, y: Any, x: Any) -> Any:
        seen.append(g[1])
        return g[0] * 2.0 * x

    f = ox.custom_vjp(lambda x: (x * x, 7), rule)
    assert ox.grad(lambda x: f(x)[0])(3.0) == 6.0
    assert seen == [0.0]
