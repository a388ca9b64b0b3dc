"""A package of optimizers: a rule, its class, and the classes of other libraries that come with it.

A rule is one function over ``xp``. `oxigrad.optim.define` makes an optimizer of it, with groups, schedules, options and
files of its state. `oxigrad.testing.check_rule` compares all of its executors.
"""

from typing import Annotated, Any

import numpy as np

from oxigrad import optim, testing, xp
from oxigrad.optim import Interval, Slot

Rate = Annotated[float, Interval("[0, inf)"), "step size"]
Decay = Annotated[float, Interval("[0, 1)"), "decay of the moving mean of gradients"]


def averaged_sign(
    xp: Any,
    p: Any,
    g: Any,
    m: Any = Slot.zeros(decay="beta"),  # noqa: B008 - a declaration
    *,
    learning_rate: Rate = 0.01,
    beta: Decay = 0.9,
    mix: Annotated[float, Interval("[0, 1]"), "share of the sign of the gradient itself"] = 0.1,
    weight_decay: Rate = 0.0,
) -> Any:
    """The sign of a moving mean of gradients, mixed with the sign of the gradient.

    Weight decay is decoupled: each step multiplies the parameter by ``1 - learning_rate * weight_decay``.
    """
    m = beta * m + (1.0 - beta) * g
    direction = (1.0 - mix) * xp.sign(m) + mix * xp.sign(g)
    return p - learning_rate * (direction + weight_decay * p), m


AveragedSign = optim.define(averaged_sign)


def half(xp: Any, p: Any, g: Any, *, limit: Rate = 1.0) -> Any:
    """The part of each gradient within ``limit``, and half of the rest."""
    inside = xp.clip(g, -limit, limit)
    return inside + 0.5 * (g - inside)


SoftClip = optim.transform(half, "SoftClip")


def main(steps: int = 200) -> float:
    """Fits a line by both, and returns the mean square of the error."""
    x = np.linspace(-1.0, 1.0, 50)
    y = 3.0 * x - 0.5
    model = {"slope": np.zeros(1), "offset": np.zeros(1)}
    optimizer = optim.chain(SoftClip(limit=0.5), AveragedSign(learning_rate=0.02, mix=0.25))

    def loss(model: dict[str, Any]) -> Any:
        return xp.mean((model["slope"] * x + model["offset"] - y) ** 2)

    for _ in range(steps):
        optimizer.minimize(loss, model)
    return float(loss(model))


if __name__ == "__main__":
    testing.check_rule(averaged_sign, beta=0.5, mix=0.25)
    testing.check_rule(averaged_sign, weight_decay=0.1)
    print(f"mean square error {main():.5f}")
