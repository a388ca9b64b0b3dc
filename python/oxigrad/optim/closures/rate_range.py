"""The learning-rate range test (Smith 2017, arXiv:1506.01186): losses while the learning rate increases."""

import copy
import dataclasses
import importlib
import math
from collections.abc import Callable
from typing import Any

from oxigrad._typing import Array, Tree
from oxigrad.ops.backends import fetched
from oxigrad.optim.optimizer import Optimizer
from oxigrad.optim.settings.options import checked_number
from oxigrad.rules.core.ranges import COUNT, Domain, Interval

_RATE = Domain(interval=Interval("(0, inf)"))


@dataclasses.dataclass(frozen=True)
class RateRange:
    """The ``rates`` of a range test, and the ``losses`` before the steps that were taken with them.

    ``has_diverged`` tells whether the test ended before all of its steps, with a loss that is not finite or far above
    the smallest.
    """

    rates: list[float]
    losses: list[float]
    has_diverged: bool

    @property
    def steepest(self) -> float:
        """The rate at which the loss falls fastest over the logarithm of the rate.

        NaN where there are fewer than three losses.

        The slope is the difference of the losses after and before a rate.
        """
        finite = [loss for loss in self.losses if math.isfinite(loss)]
        if len(finite) < 3:
            return math.nan
        slopes = [after - before for before, after in zip(finite, finite[2:], strict=False)]
        return self.rates[1 + slopes.index(min(slopes))]

    def plot(self, ax: Any = None) -> Any:
        """Plots the losses over the rates by matplotlib, on ``ax`` or pyplot's current axes; returns the axes."""
        ax = importlib.import_module("matplotlib.pyplot").gca() if ax is None else ax
        ax.plot(self.rates, self.losses)
        ax.set(xscale="log", xlabel="learning rate", ylabel="loss")
        return ax


def range_test(
    optimizer: Optimizer,
    loss: Callable[[Tree], Array],
    model: Tree,
    *,
    initial: float = 1e-6,
    final: float = 10.0,
    steps: int = 100,
    divergence: float = 4.0,
) -> RateRange:
    """Takes ``steps`` steps with learning rates from ``initial`` to ``final``, equally spaced in their logarithm.

    Returns the losses.

    Args:
        optimizer: optimizer with one ``learning_rate``; it stays as it is.
        loss: function of the model that returns a number.
        model: model from which the test starts; it stays as it is.
        initial: first learning rate of the test.
        final: last learning rate of the test.
        steps: number of learning rates that are tried.
        divergence: ratio to the smallest loss at which the test ends.

    The steps are taken by copies, so that ``optimizer`` and ``model`` remain as they are, to the bit; ``loss`` must
    compute the loss of its argument, and may take another batch in each call. The test ends where the loss is not
    finite, or larger than ``divergence`` times the smallest so far, if that is positive. Raises `ValueError` for rates
    or steps out of range, and `AttributeError` for an optimizer without one ``learning_rate``, such as a partition.
    Rates of groups stay as they are.

    >>> import numpy as np
    >>> from oxigrad import xp
    >>> from oxigrad.optim import SGD
    >>> model = {"w": np.array([1.0, 2.0])}
    >>> found = range_test(SGD(), lambda m: xp.sum(m["w"] ** 2), model, initial=1e-3, final=10.0, steps=40)
    >>> found.has_diverged, 0.01 < found.steepest < 1.0, model["w"]
    (True, True, array([1., 2.]))
    """
    initial, final = checked_number(_RATE, "initial", initial), checked_number(_RATE, "final", final)
    steps, divergence = checked_number(COUNT, "steps", steps), checked_number(_RATE, "divergence", divergence)
    if not initial < final:
        raise ValueError(f"the rates go from {initial!r} to {final!r}: expected positive numbers, the first smaller")
    if steps < 2:
        raise ValueError(f"steps is {steps!r}: expected 2 or more")
    if not callable(loss):
        raise TypeError(
            f"range_test: loss is {type(loss).__name__}: expected a function of the model, before the model"
        )
    opt: Any = copy.deepcopy(optimizer)
    copied = copy.deepcopy(model)
    rates: list[float] = []
    losses: list[float] = []
    for step in range(steps):
        rate = initial * (final / initial) ** (step / (steps - 1))
        opt.learning_rate = rate
        value, grads = opt.compute_gradients(loss, copied)
        rates.append(rate)
        losses.append(float(fetched(value)))
        if not math.isfinite(losses[-1]) or 0.0 < min(losses) * divergence < losses[-1]:
            return RateRange(rates, losses, has_diverged=True)
        copied = opt.update(copied, grads, loss=value)
    return RateRange(rates, losses, has_diverged=False)
