"""Numerical checks of derivatives, by the names of `autograd.test_util`."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad.autograd.core import make_jvp, make_vjp, vspace
from oxigrad.autograd.wrap_util import get_name, unary_to_nary, wraps

TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers differ by less than 1e-6, absolutely or relative to their sum."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Pushforward of a function by a central difference."""
    y = f(x)
    x_vs, y_vs = vspace(x), vspace(y)

    def jvp(v: Any) -> Any:
        after, before = (f(x_vs.add(x, x_vs.scalar_mul(v, half))) for half in (EPS / 2, -EPS / 2))
        return y_vs.scalar_mul(y_vs.add(after, y_vs.scalar_mul(before, -1.0)), 1.0 / EPS)

    return jvp


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """Raises AssertionError where the pullback at ``x`` differs from a central difference."""
    vjp, y = make_vjp(f, x)
    x_vs, y_vs = vspace(x), vspace(y)
    x_v, y_v = x_vs.randn(), y_vs.randn()
    pulled = x_vs.covector(vjp(y_vs.covector(y_v)))
    assert vspace(pulled) == x_vs, f"{get_name(f)}: found {vspace(pulled)}, expected {x_vs}"  # noqa: S101
    exact, numerical = x_vs.inner_prod(x_v, pulled), y_vs.inner_prod(y_v, make_numerical_jvp(f, x)(x_v))
    assert scalar_close(numerical, exact), (  # noqa: S101
        f"Derivative (VJP) check of {get_name(f)} failed at {x}: found {exact}, expected {numerical} by a central "
        "difference"
    )


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """Raises AssertionError where the pushforward at ``x`` differs from a central difference."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x: Any, y: Any) -> None:
    """Raises AssertionError where two values differ, by their inner products with a random vector."""
    x_vs, y_vs = vspace(x), vspace(y)
    assert x_vs == y_vs, f"found {x_vs}, expected {y_vs}"  # noqa: S101
    v = x_vs.randn()
    assert scalar_close(x_vs.inner_prod(x, v), x_vs.inner_prod(y, v)), f"found {x}, expected {y}"  # noqa: S101


@unary_to_nary
def check_grads(f: Callable[[Any], Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Checks the derivatives of a function at ``x`` in forward and reverse mode, up to an order."""
    if unknown := {*modes} - {"fwd", "rev"}:
        raise ValueError(f"check_grads: found modes {sorted(unknown)}, expected 'fwd' or 'rev'")
    for mode, check, derivative in (("fwd", check_jvp, _jvp), ("rev", check_vjp, _vjp)):
        if mode in modes:
            check(f, x)
            if order > 1:
                space = vspace(x if mode == "fwd" else f(x))
                check_grads(derivative(f), (0, 1), modes, order=order - 1)(x, space.randn())


def _jvp(f: Callable[[Any], Any]) -> Callable[..., Any]:
    return wraps(f, "jvp_{fun}")(lambda x, v: make_jvp(f, x)(v)[1])


def _vjp(f: Callable[[Any], Any]) -> Callable[..., Any]:
    return wraps(f, "vjp_{fun}")(lambda x, v: make_vjp(f, x)[0](v))


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Function that checks derivatives for all combinations of candidates of the arguments."""

    def checked(*candidates: Sequence[Any], **named: Sequence[Any]) -> None:
        for chosen in itertools.product(*candidates):
            for values in itertools.product(*named.values()):
                options = dict(zip(named, values, strict=True))
                check_grads(fun, *args, **kwargs)(*chosen, **options)

    return checked
