"""Optimizers as functions, named as in `autograd.misc.optimizers`. ``grad(params, step)`` is the gradient."""

from collections.abc import Callable
from typing import Any

from oxigrad import optim, tree
from oxigrad.optim.optimizer import Optimizer

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], object] | None


def _optimized(opt: Optimizer, grad: Gradient, x0: Any, callback: Callback, num_iters: int) -> Any:
    """Parameters after some steps from a copy of ``x0``."""
    params, unflatten = tree.ravel(x0)
    params = params.copy()
    for i in range(num_iters):
        current = unflatten(params)
        gradient = grad(current, i)
        if callback is not None:
            callback(current, i, gradient)
        params = opt.update(params, tree.ravel(gradient)[0])
    return unflatten(params)


def sgd(
    grad: Gradient, x: Any, callback: Callback = None, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9
) -> Any:
    """Stochastic gradient descent whose momentum averages gradients."""
    return _optimized(optim.SGD(step_size * (1.0 - mass), momentum=mass), grad, x, callback, num_iters)


def rmsprop(
    grad: Gradient,
    x: Any,
    callback: Callback = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """RMSprop (Tieleman and Hinton, 2012) whose mean square starts at one."""
    opt = optim.RMSprop(step_size, rho=gamma, epsilon=eps, initial_accumulator=1.0)
    return _optimized(opt, grad, x, callback, num_iters)


def adam(
    grad: Gradient,
    x: Any,
    callback: Callback = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam (Kingma and Ba, 2015)."""
    return _optimized(optim.Adam(step_size, beta1=b1, beta2=b2, epsilon=eps), grad, x, callback, num_iters)
