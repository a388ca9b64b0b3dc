"""`minimize` with a recorded loss: the bits of steps without a recording."""

import copy
import warnings

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim, xp

RNG = np.random.default_rng(0)
INPUTS, TARGETS = RNG.normal(size=(3, 16, 4)), RNG.normal(size=(3, 16))


def new_model():
    return {"w": np.full(4, 0.3), "b": np.zeros(()), "v": [np.ones(4)]}


def trained(opt, *, record, steps=9):
    """The losses and the model of a training whose loss reads the batch from variables."""
    model, losses = new_model(), []
    x, y = INPUTS[0], TARGETS[0]

    def loss(model):
        return xp.mean((xp.tanh(x * model["v"][0]) @ model["w"] + model["b"] - y) ** 2)

    for step in range(steps):
        x, y = INPUTS[step % 3], TARGETS[step % 3]
        losses.append(opt.minimize(loss, model, record=record))
    return np.array(losses), model


OPTIMIZERS = {
    "SGD": lambda: optim.SGD(0.1),
    "Adam": lambda: optim.Adam(0.1),
    "chain": lambda: optim.chain(optim.ClipByGlobalNorm(0.1), optim.AdamW(0.1)),
    "LBFGS": lambda: optim.LBFGS(max_iterations=3),
    "scaled": lambda: optim.Adam(0.1, loss_scale=optim.LossScale(8.0)),
    "SAM": lambda: optim.SAM(optim.SGD(0.1, 0.9), rho=0.1),
    "elastic": lambda: distributed.ElasticAverage(optim.SGD(0.1, 0.5), nesterov=True),
    "around-sam": lambda: distributed.LargeBatch(optim.SAM(optim.SGD(0.1))),
    "kfac": lambda: distributed.KFAC(optim.SGD(0.1), factor_update_steps=2, inverse_update_steps=2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_have_the_bits_of_steps_without_a_recording(name):
    (losses, model), (expected, other) = (trained(OPTIMIZERS[name](), record=record) for record in (True, False))
    assert losses.tobytes() == expected.tobytes()
    for one, its in zip(ox.tree.leaves(model), ox.tree.leaves(other), strict=True):
        assert one.tobytes() == its.tobytes()


def test_gradients_of_a_subclass_are_those_of_the_step():
    class Halved(optim.SGD):
        def compute_gradients(self, loss, model):
            value, grads = super().compute_gradients(loss, model)
            return value, ox.tree.map(lambda g: g / 2, grads)

    for record in (False, True):
        model = {"w": np.ones(2)}
        Halved(1.0).minimize(lambda m: xp.sum(m["w"]), model, record=record)
        assert model["w"].tolist() == [0.5, 0.5]


def test_a_copied_optimizer_records_anew():
    opt = optim.Adam(0.1)
    trained(opt, record=True)
    assert np.isfinite(trained(copy.deepcopy(opt), record=True)[0]).all()


def test_a_new_loss_in_each_step_warns_once_and_is_right():
    opt, other = optim.SGD(0.1), optim.SGD(0.1)
    model, expected = new_model(), new_model()

    def at(step):
        return lambda model: xp.sum(model["w"] * INPUTS[0][step])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(10):
            opt.minimize(at(step), model, record=True)
            other.minimize(at(step), expected)
    assert ["another function in each step" in str(each.message) for each in caught] == [True]
    assert model["w"].tobytes() == expected["w"].tobytes()


def test_a_loss_that_depends_on_no_parameter_raises():
    with pytest.raises(ox.DerivativeError, match="depends on no parameter"):
        optim.SGD(0.1).minimize(lambda model: 1.0, new_model(), record=True)
