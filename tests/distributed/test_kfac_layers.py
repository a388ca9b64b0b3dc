"""The layers that K-FAC finds in a recorded loss, and their second moments."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kfac_networks import (
    Model,
    X,
    Y,
    assert_close,
    data,
    kfac,
    network,
    network_loss,
    statistics,
)

import oxigrad as ox
from oxigrad import optim, xp
from oxigrad.distributed import KFAC


def test_a_product_from_the_left() -> None:
    model = {"w": data(0, 3, 5), "b": data(1, 3, 1)}
    found, moments = statistics(lambda m: xp.sum((m["w"] @ X.T + m["b"] - Y.T) ** 2) / (2 * len(X)), model)
    mirrored = {"w": model["w"].T.copy(), "b": model["b"].reshape(-1)}
    _, expected = statistics(lambda m: xp.sum((X @ m["w"] + m["b"] - Y) ** 2) / (2 * len(X)), mirrored)
    for one, other in zip(moments["w"], expected["w"], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    (layer,) = found.layers
    gradients = {"w": data(5, 3, 5), "b": data(6, 3, 1)}
    matrix = layer.matrix(gradients)
    np.testing.assert_array_equal(matrix, np.concatenate([gradients["w"].T, gradients["b"].T]))
    for path, array in layer.arrays(matrix, gradients).items():
        np.testing.assert_array_equal(array, gradients[path])


def test_a_single_example_on_either_side() -> None:
    model = {"w": data(0, 5, 3), "v": data(1, 2, 3), "b": data(2, 2)}
    _, moments = statistics(lambda m: xp.sum((m["v"] @ (X[0] @ m["w"]) + m["b"]) ** 2), model)
    a = np.r_[X[0] @ model["w"], 1.0]
    g = 2 * (model["v"] @ (X[0] @ model["w"]) + model["b"])
    np.testing.assert_allclose(moments["v"][0], np.outer(a, a))
    np.testing.assert_allclose(moments["v"][1], np.outer(g, g))
    np.testing.assert_allclose(moments["w"][0], np.outer(X[0], X[0]))


def test_the_loss_may_be_a_sum_over_examples() -> None:
    model = {"w": data(0, 5, 3)}
    _, mean = statistics(lambda m: xp.sum((X @ m["w"] - Y) ** 2) / len(X), model)
    _, total = statistics(lambda m: xp.sum((X @ m["w"] - Y) ** 2), model, mean=False)
    for one, other in zip(total["w"], mean["w"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def convolved(filters: Any, images: np.ndarray) -> Any:
    """A convolution of images (n, 6, 6, 2) with filters (3, 3, 2, 4), as a product with patches."""
    patches = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)
    return patches.reshape(len(images), 16, 18) @ xp.reshape(filters, (18, -1))


def test_a_convolution_has_the_factors_of_grosse_and_martens() -> None:
    images = data(0, 7, 6, 6, 2)
    model = {"filters": data(1, 3, 3, 2, 4), "bias": data(2, 4)}
    found, moments = statistics(
        lambda m: xp.sum(xp.tanh(convolved(m["filters"], images) + m["bias"]) ** 2) / len(images), model
    )
    omega, gamma = np.zeros((19, 19)), np.zeros((4, 4))
    for image in images:
        for i in range(4):
            for j in range(4):
                a = np.r_[image[i : i + 3, j : j + 3].reshape(-1), 1.0]
                s = np.tensordot(image[i : i + 3, j : j + 3], model["filters"], 3) + model["bias"]
                g = 2 * np.tanh(s) / np.cosh(s) ** 2
                omega += np.outer(a, a) / len(images)
                gamma += np.outer(g, g) / (16 * len(images))
    np.testing.assert_allclose(moments["filters"][0], omega, atol=1e-12)
    np.testing.assert_allclose(moments["filters"][1], gamma, atol=1e-12)
    assert (found.layers[0].inputs, found.layers[0].outputs, found.layers[0].bias) == (19, 4, "bias")


def test_flattened_positions_need_the_number_of_examples() -> None:
    x, model = data(0, 6, 4, 5), {"w": data(1, 5, 3)}
    _, stacked = statistics(lambda m: xp.sum((x @ m["w"]) ** 2) / 6, model)
    _, flat = statistics(lambda m: xp.sum((x.reshape(24, 5) @ m["w"]) ** 2) / 6, model, examples=6)
    _, einsum = statistics(lambda m: xp.sum(xp.einsum("btn,nm->btm", x, m["w"]) ** 2) / 6, model, examples=6)
    for one, *others in zip(stacked["w"], flat["w"], einsum["w"], strict=True):
        for other in others:
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_uses_of_one_weight_are_positions() -> None:
    steps, model = data(0, 6, 4, 5), {"w": data(1, 5, 3), "b": data(2, 3)}
    _, one = statistics(lambda m: xp.sum((steps @ m["w"] + m["b"]) ** 2) / 6, model)
    _, several = statistics(
        lambda m: (
            sum(
                (xp.sum((steps[:, t] @ m["w"] + m["b"]) ** 2) for t in range(1, 4)),
                xp.sum((steps[:, 0] @ m["w"] + m["b"]) ** 2),
            )
            / 6
        ),
        model,
    )
    for other, expected in zip(several["w"], one["w"], strict=True):
        np.testing.assert_allclose(other, expected, atol=1e-12)


LAYERLESS: dict[str, Callable[[Model], Any]] = {
    "used together with its transpose": lambda m: xp.sum((X @ m["w"]) @ m["w"].T),
    "a stack of matrices": lambda m: xp.sum(X @ xp.stack([m["w"], m["w"]])),
    "a product of parameters": lambda m: xp.sum(X @ (m["w"] @ m["v"])),
    "elementwise": lambda m: xp.sum(m["w"] ** 2),
    "not in the loss": lambda m: xp.sum(m["v"] ** 2) + 0.0 * xp.sum(ox.stop_gradient(X @ m["w"])),
}


@pytest.mark.parametrize("loss", LAYERLESS.values(), ids=LAYERLESS)
def test_a_parameter_without_factors_keeps_its_gradient(loss: Callable[[Model], Any]) -> None:
    model = {"w": data(0, 5, 3), "v": data(1, 3, 3)}
    expected = optim.SGD(0.1).update(copy.deepcopy(model), ox.grad(loss)(model))
    opt = kfac()
    opt.minimize(loss, model)
    assert not opt.layers
    assert_close(model, expected, 0.0)


def test_a_bias_that_is_used_elsewhere_keeps_its_gradient() -> None:
    model = {"w": data(0, 5, 3), "b": data(1, 3)}
    found, _ = statistics(lambda m: xp.sum((X @ m["w"] + m["b"]) * m["b"]), model)
    assert [layer.bias for layer in found.layers] == [None]


def test_a_frozen_weight_has_no_factors_and_a_frozen_bias_no_row() -> None:
    model = network()
    opt = KFAC(optim.SGD(0.1, groups={"l2.*": None, "*.b": None}))
    before = copy.deepcopy(model)
    opt.minimize(lambda m: network_loss(m, X, Y), model)
    assert [(layer.path, layer.inputs, layer.bias) for layer in opt.layers.values()] == [("l1.w", 5, None)]
    np.testing.assert_array_equal(model["l2"]["w"], before["l2"]["w"])
    np.testing.assert_array_equal(model["l1"]["b"], before["l1"]["b"])


def test_one_array_at_two_key_paths_is_one_layer() -> None:
    w = data(0, 5, 5) / 3
    model, twice = {"w": w.copy()}, {"u": w.copy()}
    twice["v"] = twice["u"]
    opt, other = kfac(), kfac()
    opt.minimize(lambda m: xp.sum(xp.tanh(X @ m["w"]) @ m["w"]) / 24, model)
    other.minimize(lambda m: xp.sum(xp.tanh(X @ m["u"]) @ m["v"]) / 24, twice)
    assert [*other.layers] == ["u"] and twice["u"] is twice["v"]
    np.testing.assert_allclose(twice["u"], model["w"], atol=1e-12)


def test_a_loss_that_does_not_depend_on_the_model() -> None:
    with pytest.raises(ox.StructureError, match="does not depend on the parameters"):
        kfac().minimize(lambda m: 1.0, {"w": np.ones((2, 2))})
