"""Numerical checks of derivatives, by the names of `autograd.test_util`."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import testing, tree
from oxigrad.autograd.core import floats, vspace
from oxigrad.autograd.wrap_util import get_name as get_name
from oxigrad.autograd.wrap_util import unary_to_nary

TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers differ by less than 1e-6, absolutely or relative to their sum."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Pushforward of a function by a central difference."""

    def jvp(v: Any) -> Any:
        value = lambda by: f(tree.map(lambda x, v: x + by * v, x, v))  # noqa: E731
        return tree.map(lambda after, before: (after - before) / EPS, value(EPS / 2), value(-EPS / 2))

    return jvp


def check_equivalent(x: Any, y: Any) -> None:
    """Raises AssertionError where two values differ, by their inner products with a random vector."""
    x_vs, y_vs = vspace(x), vspace(y)
    assert x_vs == y_vs, f"found {x_vs}, expected {y_vs}"  # noqa: S101
    v = x_vs.randn()
    assert scalar_close(x_vs.inner_prod(x, v), x_vs.inner_prod(y, v)), f"found {x}, expected {y}"  # noqa: S101


@unary_to_nary
def check_grads(f: Callable[[Any], Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Checks the derivatives of a function at ``x`` up to an order, as `oxigrad.testing.check_grads` does."""
    seed = np.random.randint(2**31)  # noqa: NPY002 - other directions in each call, as in autograd
    testing.check_grads(f, (floats(x),), order, modes, step=EPS / 2, tolerance=2.0 * RTOL, seed=seed)


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """Raises AssertionError where the pullback at ``x`` differs from a central difference."""
    check_grads(f, modes=("rev",), order=1)(x)


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """Raises AssertionError where the pushforward at ``x`` differs from a central difference."""
    check_grads(f, modes=("fwd",), order=1)(x)


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Function that checks derivatives for all combinations of candidates of the arguments."""

    def checked(*candidates: Sequence[Any], **named: Sequence[Any]) -> None:
        for chosen in itertools.product(*candidates, *named.values()):
            options = dict(zip(named, chosen[len(candidates) :], strict=True))
            check_grads(functools.partial(fun, **options), *args, **kwargs)(*chosen[: len(candidates)])

    return checked
