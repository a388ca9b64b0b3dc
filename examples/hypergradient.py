"""Learns a learning-rate schedule, and a weight decay per group, by gradients through the whole training.

    python examples/hypergradient.py

A classifier is trained on few noisy examples by 30 steps of AdamW. The loss on other examples is differentiated with respect to
the learning rate of every step and the decay of every group, through all steps of the optimizer, and these are trained in turn
by Adam. Prints the loss on the other examples before and after, and that of a third set, which no gradient has seen.
"""

import dataclasses
from typing import Any

import numpy as np
from tqdm import trange

import oxigrad as ox
from oxigrad import optim, xp

STEPS, FEATURES, HIDDEN = 30, 20, 16
GROUPS = ("first", "second", "bias*")


@dataclasses.dataclass
class Hyperparameters:
    """Logarithms, so that rates and decays stay positive: a rate for each step, and a decay for each of `GROUPS`."""

    rates: np.ndarray
    decays: np.ndarray


def draw(
    generator: np.random.Generator, count: int, truth: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of shape (count, FEATURES), and labels in {-1, 1}, of which a tenth is wrong."""
    inputs = generator.normal(size=(count, FEATURES))
    labels = np.sign(np.tanh(inputs @ truth[0]) @ truth[1])
    return inputs, labels * np.where(generator.random(count) < 0.1, -1.0, 1.0)


def initial(generator: np.random.Generator) -> dict[str, Any]:
    """The parameters of a network with one hidden layer."""
    return {
        "first": generator.normal(size=(FEATURES, HIDDEN)) / FEATURES**0.5,
        "bias": np.zeros(HIDDEN),
        "second": generator.normal(size=HIDDEN) / HIDDEN**0.5,
        "bias_out": np.zeros(1),
    }


def loss(model: dict[str, Any], data: tuple[np.ndarray, np.ndarray]) -> Any:
    """The mean logistic loss."""
    inputs, labels = data
    scores = xp.tanh(inputs @ model["first"] + model["bias"]) @ model["second"] + model["bias_out"]
    return xp.mean(xp.logaddexp(0.0, -labels * scores))


def trained(hyperparameters: Hyperparameters, model: dict[str, Any], data: Any) -> dict[str, Any]:
    """The model after all steps, as a function of the hyperparameters: each step is computed again in the backward pass."""
    opt = optim.AdamW()
    decays = xp.exp(hyperparameters.decays)
    groups = {pattern: {"weight_decay": decays[at]} for at, pattern in enumerate(GROUPS)}

    @ox.checkpoint
    def step(model: Any, state: Any, rate: Any, groups: Any) -> Any:
        return opt.apply(model, ox.grad(loss)(model, data), state, learning_rate=rate, groups=groups)

    state = opt.init(model)
    for rate in xp.exp(hyperparameters.rates):
        model, state = step(model, state, rate, groups)
    return model


def main(rounds: int = 40, seed: int = 0) -> tuple[Hyperparameters, float, float]:
    """Returns the hyperparameters, and the loss on the third set before and after they were learned."""
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=(FEATURES, 4)), generator.normal(size=4)
    training, validation, test = (draw(generator, count, truth) for count in (60, 500, 2000))
    model = initial(generator)
    hyperparameters = Hyperparameters(np.full(STEPS, np.log(0.05)), np.full(len(GROUPS), np.log(0.01)))

    def objective(hyperparameters: Hyperparameters) -> Any:
        return loss(trained(hyperparameters, model, training), validation)

    before = float(loss(trained(hyperparameters, model, training), test))
    outer = optim.Adam(0.1)
    values = [outer.minimize(objective, hyperparameters) for _ in trange(rounds, disable=None, leave=False)]
    after = float(loss(trained(hyperparameters, model, training), test))
    print(f"validation loss {values[0]:.3f} -> {values[-1]:.3f}, test loss {before:.3f} -> {after:.3f}")
    rates = np.exp(hyperparameters.rates)
    print("learning rates  " + "  ".join(f"{rate:.4f}" for rate in rates[:: STEPS // 6]))
    decays = zip(GROUPS, np.exp(hyperparameters.decays), strict=True)
    print("weight decays   " + "  ".join(f"{pattern}: {decay:.3f}" for pattern, decay in decays))
    return hyperparameters, before, after


if __name__ == "__main__":
    main()
