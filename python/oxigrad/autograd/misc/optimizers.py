"""Optimizers as functions, named as in `autograd.misc.optimizers`. ``grad(params, step)`` is the gradient."""

import functools
from collections.abc import Callable
from typing import Any

from oxigrad import optim, tree
from oxigrad.optim.optimizer import Optimizer


def _steps(default: int) -> Callable[[Callable[..., Optimizer]], Callable[..., Any]]:
    """Decorator of a function that makes an optimizer: its steps from a copy of ``x0``, as a function."""

    def decorated(settings: Callable[..., Optimizer]) -> Callable[..., Any]:
        @functools.wraps(settings)
        def optimized(
            grad: Callable[[Any, int], Any],
            x0: Any,
            callback: Callable[[Any, int, Any], object] | None = None,
            num_iters: int = default,
            *args: float,
            **named: float,
        ) -> Any:
            opt, (params, unflatten) = settings(*args, **named), tree.ravel(x0)
            params = params.copy()
            for i in range(num_iters):
                current = unflatten(params)
                gradient = grad(current, i)
                if callback is not None:
                    callback(current, i, gradient)
                params = opt.update(params, tree.ravel(gradient)[0])
            return unflatten(params)

        return optimized

    return decorated


@_steps(200)
def sgd(step_size: float = 0.1, mass: float = 0.9) -> Optimizer:
    """Stochastic gradient descent whose momentum averages gradients."""
    return optim.SGD(step_size * (1.0 - mass), momentum=mass)


@_steps(100)
def rmsprop(step_size: float = 0.1, gamma: float = 0.9, eps: float = 1e-8) -> Optimizer:
    """RMSprop (Tieleman and Hinton, 2012) whose mean square starts at one."""
    return optim.RMSprop(step_size, rho=gamma, epsilon=eps, initial_accumulator=1.0)


@_steps(100)
def adam(step_size: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Adam (Kingma and Ba, 2015)."""
    return optim.Adam(step_size, beta1=b1, beta2=b2, epsilon=eps)
