"""ndonnx: derivatives and steps become ONNX graphs, which its reference implementation evaluates to NumPy's numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, tree, xp
from oxigrad.ops.backends import to_host

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would use a runtime, which is not installed
    ndonnx = pytest.importorskip("ndonnx")
onnx_reference = pytest.importorskip("onnx.reference")

RANDOM = np.random.default_rng(0)
X, W = RANDOM.standard_normal((4, 3)), RANDOM.standard_normal((3, 2))


def evaluated(f: Callable[..., Any], *args: np.ndarray) -> Any:
    """The value of a function, by way of an ONNX graph of it."""
    names = [f"argument{at}" for at in range(len(args))]
    arguments = [ndonnx.argument(shape=arg.shape, dtype=ndonnx.float64) for arg in args]
    leaves, structure = tree.flatten(f(*arguments))
    results = {f"result{at}": leaf for at, leaf in enumerate(leaves)}
    graph = ndonnx.build(dict(zip(names, arguments, strict=True)), results)
    found = onnx_reference.ReferenceEvaluator(graph).run(list(results), dict(zip(names, args, strict=True)))
    return tree.unflatten(structure, found)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x, w: xp.sum(xp.exp(xp.tanh(x)) / (1.0 + x**2)) + xp.sum(xp.log(xp.abs(w))),
    "matmul": lambda x, w: xp.sum(xp.tanh(x @ w) ** 2),
    "shapes": lambda x, w: (
        xp.sum(xp.reshape(xp.permute_dims(x, (1, 0)), (2, 6))[:, 1:4] ** 3) + xp.sum(xp.concat([w, w], axis=1) ** 2)
    ),
    "reductions": lambda x, w: xp.mean(xp.max(x, axis=1) * xp.var(x, axis=1)) + xp.prod(w),
    "softmax": lambda x, w: -xp.mean(xp.special.log_softmax(x @ w, axis=-1)[:, 0]),
    "where": lambda x, w: xp.sum(xp.where(x > 0.0, x**2, 0.0)) + xp.sum(xp.maximum(w, 0.1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_derivative_is_a_graph(name: str) -> None:
    gradient = ox.grad(FUNCTIONS[name], argnums=(0, 1))
    for own, expected in zip(evaluated(gradient, X, W), gradient(X, W), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-10, atol=1e-12)


def test_a_derivative_of_a_derivative_is_a_graph() -> None:
    f = ox.grad(lambda x: xp.sum(ox.grad(lambda x: xp.sum(xp.tanh(x) ** 2))(x) ** 2))
    np.testing.assert_allclose(evaluated(f, X), f(X), rtol=1e-10)


def test_training_is_a_graph() -> None:
    opt = optim.chain(optim.ClipByGlobalNorm(0.5), optim.AdamW(0.1))

    def train(x: Any, w: Any) -> Any:
        params, state = {"w": w}, opt.init({"w": w})
        for _ in range(3):
            grads = ox.grad(lambda params: xp.mean(xp.tanh(x @ params["w"]) ** 2))(params)
            params, state = opt.apply(params, grads, state)
        return params, state["slots"]

    found, expected = evaluated(train, X, W), train(X, W)
    for own, numpys in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(own, numpys, rtol=1e-10)


def test_an_argument_has_no_numbers_and_a_constant_has() -> None:
    np.testing.assert_array_equal(to_host(ndonnx.asarray(X) * 2.0), X * 2.0)
    with pytest.raises(BufferError, match="no values"):
        to_host(ndonnx.argument(shape=(2,), dtype=ndonnx.float64))


def test_what_onnx_lacks_is_named() -> None:
    with pytest.raises(NotImplementedError, match=r"ndonnx has no function linalg\.inv"):
        ox.grad(lambda x: xp.sum(xp.linalg.inv(x)))(ndonnx.argument(shape=(2, 2), dtype=ndonnx.float64))


def test_a_state_of_arguments_is_not_saved(tmp_path) -> None:
    w = ndonnx.argument(shape=(3, 2), dtype=ndonnx.float64)
    opt = optim.Adam(0.1)
    opt.update({"w": w}, {"w": w})
    with pytest.raises(BufferError, match="no values"):
        opt.save(tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_gradients_that_do_not_fit_are_named() -> None:
    w, g = (ndonnx.argument(shape=shape, dtype=ndonnx.float64) for shape in ((3, 2), (2,)))
    opt = optim.Adam(0.1)
    with pytest.raises(ox.ShapeError, match=r"^w: gradient has shape \(2,\), the parameter \(3, 2\)"):
        opt.apply({"w": w}, {"w": g}, opt.init({"w": w}))
