"""Derivatives of CUDA tensors: no copy to the host, no synchronization, and nothing from the host in a replay."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import fake
import torch

import libraries
import oxigrad as ox
from libraries import TABLE
from oxigrad import optim, tree, xp

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of tensors without memory

# The shape of the result depends on numbers.
COUNTED = {"index-mask", "repeat-axis", "unique_all", "unique_counts", "unique_inverse", "unique_values"}


@pytest.fixture
def asarray() -> Iterator[Callable[[Any], Any]]:
    with fake.cuda() as made:
        yield made


def on_device(value: Any) -> bool:
    return all(leaf.device.type == "cuda" for leaf in tree.leaves(value))


@pytest.mark.parametrize("name", [name for name in libraries.cases(libraries.named("torch")) if name not in COUNTED])
def test_every_function(name: str, asarray: Callable[[Any], Any]) -> None:
    case = TABLE[name]
    args = tuple(map(asarray, case.args))
    try:
        with fake.Alone(given=True):  # a case may use arrays of its own
            value, pullback = ox.vjp(case.function, *args)
    except NotImplementedError as error:
        pytest.skip(str(error))  # PyTorch has no such function
    cotangent = tree.map(torch.ones_like, value)
    with fake.Alone():
        gradients = pullback(cotangent)
    assert on_device(gradients)
    assert [gradient.shape for gradient in gradients] == [arg.shape for arg in args]


def loss(model: dict[str, Any], x: Any) -> Any:
    hidden = xp.tanh(x @ model["w"] + model["b"])
    return xp.mean(xp.square(hidden @ model["v"])) + 0.1 * xp.sum(xp.maximum(model["w"], 0.0))


@pytest.fixture
def model(asarray: Callable[[Any], Any]) -> dict[str, Any]:
    shapes = {"w": (4, 3), "b": (3,), "v": (3, 2)}
    return {name: asarray(np.zeros(shape, np.float32)) for name, shape in shapes.items()}


def test_transforms(model: dict[str, Any], asarray: Callable[[Any], Any]) -> None:
    x, direction = asarray(np.zeros((5, 4), np.float32)), tree.map(torch.ones_like, model)
    of_model = lambda model: loss(model, x)  # noqa: E731
    with fake.Alone():
        value, gradients = ox.value_and_grad(of_model)(model)
        product = ox.hvp(of_model, (model,), (direction,))
        checkpointed = ox.grad(lambda model: ox.checkpoint(loss)(model, x))(model)
        along = ox.jvp(of_model, (model,), (direction,))
        jacobian = ox.jacobian(lambda b: xp.tanh(x @ model["w"] + b))(model["b"])
        norm = tree.map(lambda leaf: leaf * 2.0, gradients)
    assert value.shape == () and jacobian.shape == (5, 3, 3)
    for found in (value, gradients, product, checkpointed, along, jacobian, norm):
        assert on_device(found)


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.AdamW(0.1),
        lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(0.1), optim.EMA(0.9)),
        lambda: optim.LAMB(0.1),
        lambda: optim.AdamW(0.1, accumulate=2),
    ],
    ids=["adamw", "clipped", "lamb", "accumulated"],
)
def test_minimize(make: Callable[[], Any], model: dict[str, Any], asarray: Callable[[Any], Any]) -> None:
    x, opt = asarray(np.zeros((5, 4), np.float32)), make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with fake.Alone(given=True):  # slots are made
            opt.minimize(lambda model: loss(model, x), model)
    with fake.Alone():
        value = opt.minimize(lambda model: loss(model, x), model)
    assert on_device(value) and on_device(model)


UNARY = """abs acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfinv exp expit expm1 floor gammaln digamma isfinite isinf
isnan log log10 log1p log2 logical_not negative positive reciprocal round sign sin sinh sqrt square tan tanh trunc"""


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_a_number_on_a_device(name: str, asarray: Callable[[Any], Any]) -> None:
    with fake.Alone():
        assert on_device(getattr(xp, name)(asarray(np.array(0.5))))


@pytest.mark.parametrize("name", "atan2 hypot logaddexp maximum minimum beta betaln".split())
def test_a_number_beside_a_tensor(name: str, asarray: Callable[[Any], Any]) -> None:
    f, x = getattr(xp, name), asarray(np.ones(3))
    with fake.Alone():
        value, pullback = ox.vjp(lambda x: f(x, 0.5) + f(0.5, x) + xp.where(x > 1.0, 0.0, x), x)
        assert on_device(pullback(value))


def test_copies_and_questions_are_detected(asarray: Callable[[Any], Any]) -> None:
    x = asarray(np.ones(3))
    for wait in (
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: x.sum().item(),
        bool,
        lambda x: x.numpy(),
        lambda x: torch.equal(x, x),
        lambda x: x[x > 0],
        lambda x: torch.zeros(3, dtype=torch.float64).to("cuda") + x,
    ):
        with fake.Alone(), pytest.raises((RuntimeError, TypeError, ValueError)):
            wait(x)
