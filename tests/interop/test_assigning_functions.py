"""Functions that assign to their arguments, in other libraries' autodiff: no array of the caller changes, by any road."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X, Y, TANGENT = np.arange(1.0, 4.0), np.ones(3), np.array([0.5, -1.0, 2.0])


def assigned(x: Any, y: Any) -> Any:
    x[0] = 2.0 * x[1]
    y[...] = 3.0 * y
    return xp.sum(x * x * y)


def pure(x: Any, y: Any) -> Any:
    return 3.0 * (4.0 * x[1] ** 2 * y[0] + x[1] ** 2 * y[1] + x[2] ** 2 * y[2])


# By hand: of `pure`, and what each road gives.
VALUE = 3.0 * (16.0 + 4.0 + 9.0)
GRADIENT = np.array([0.0, 60.0, 18.0])
HESSIAN = np.diag([0.0, 30.0, 6.0])


def check(found: Any, expected: Any, *given: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    for array, before in zip(given, (X, Y), strict=False):
        np.testing.assert_array_equal(np.asarray(array), before)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_in_the_autodiff_of_torch() -> None:
    torch = pytest.importorskip("torch")
    from oxigrad.interop.torch import function

    f, func = function(assigned), torch.func
    x, y, t = (torch.from_numpy(array.copy()) for array in (X, Y, TANGENT))
    check(f(x, y), VALUE, x, y)
    own = x.clone().requires_grad_()
    with torch.no_grad():
        check(f(own, y), VALUE, own.detach(), y)
    check(torch.autograd.grad(f(own, y), own)[0], GRADIENT, own.detach(), y)
    by_x = lambda x: f(x, y)  # noqa: E731
    rows = torch.stack([x, 2 * x])
    check(func.grad(by_x)(x), GRADIENT, x, y)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, t)
        check(torch.autograd.forward_ad.unpack_dual(f(dual, y)).tangent, GRADIENT @ TANGENT, x, y)
    check(func.vjp(by_x, x)[1](torch.tensor(1.0, dtype=x.dtype))[0], GRADIENT, x, y)
    check(func.vmap(by_x)(rows), [VALUE, 4 * VALUE], rows[0], y)
    check(func.vmap(func.grad(by_x))(rows), [GRADIENT, 2 * GRADIENT], rows[0], y)
    check(func.jacrev(func.grad(by_x))(x), HESSIAN, x, y)
    # A view: what it is a part of stays too.
    table = torch.stack([x, x])
    check(f(table[0], y), VALUE, table[0], y)
    check(table[1], X)


def test_in_the_autodiff_of_jax() -> None:
    jax = pytest.importorskip("jax")
    from oxigrad.interop.jax import function

    f = function(assigned)
    with jax.enable_x64(True):
        for x, y in ((X.copy(), Y.copy()), (jax.numpy.asarray(X), jax.numpy.asarray(Y))):
            by_x = lambda x, y=y: f(x, y)  # noqa: E731
            rows = np.stack([x, 2 * x])
            check(f(x, y), VALUE, x, y)
            check(jax.jit(f)(x, y), VALUE, x, y)
            check(jax.grad(by_x)(x), GRADIENT, x, y)
            check(jax.jit(jax.grad(by_x))(x), GRADIENT, x, y)
            check(jax.jvp(by_x, (x,), (TANGENT,))[1], GRADIENT @ TANGENT, x, y)
            check(jax.vmap(by_x)(rows), [VALUE, 4 * VALUE], rows[0], y)
            check(jax.vmap(jax.grad(by_x))(rows), [GRADIENT, 2 * GRADIENT], rows[0], y)
            check(jax.hessian(by_x)(x), HESSIAN, x, y)


def test_functions_of_torch_that_assign() -> None:
    torch = pytest.importorskip("torch")
    from oxigrad.interop.torch import from_torch

    def theirs(x: Any, y: Any) -> Any:
        x[0] = 2.0 * x[1]
        y.mul_(3.0)
        return (x * x * y).sum()

    f = from_torch(theirs)
    numpy, tensors = ([made(array.copy()) for array in (X, Y, TANGENT)] for made in (np.asarray, torch.from_numpy))
    for x, y, t in (numpy, tensors):
        check(f(x, y), VALUE, x, y)
        check(ox.grad(f)(x, y), GRADIENT, x, y)
        check(ox.grad(f, argnums=(0, 1))(x, y)[1], ox.grad(pure, argnums=1)(X, Y), x, y)
        check(ox.jvp(lambda x, y=y: f(x, y), (x,), (t,))[1], GRADIENT @ TANGENT, x, y)
        check(ox.hessian(f)(x, y), HESSIAN, x, y)
