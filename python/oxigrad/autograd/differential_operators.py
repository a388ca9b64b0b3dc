"""Derivatives of functions, by the names and conventions of `autograd.differential_operators`."""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import tree, xp
from oxigrad.autodiff.checkpoint import checkpoint as checkpoint
from oxigrad.autodiff.products import ggnvp
from oxigrad.autograd import core
from oxigrad.autograd.wrap_util import unary_to_nary
from oxigrad.ops.backends import is_complex

make_vjp: Callable[..., Callable[..., Any]] = unary_to_nary(core.make_vjp)
make_jvp: Callable[..., Callable[..., Any]] = unary_to_nary(core.make_jvp)


def _check_scalar(ans: Any, name: str) -> None:
    if core.vspace(ans).size != 1:
        raise TypeError(
            f"{name} applies to real scalar functions: found a value of shape {np.shape(ans)}, expected one real "
            "number; see jacobian, elementwise_grad or holomorphic_grad"
        )


def _check_real(ans: Any) -> None:
    if any(map(is_complex, tree.leaves(ans))):
        raise TypeError("elementwise_grad applies to real functions: found a complex value")


@unary_to_nary
def grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Gradient of a real scalar function by argument ``argnum``, in the structure of the argument."""
    return core.value_and_gradient(fun, x, lambda ans: _check_scalar(ans, "grad"))[1]


@unary_to_nary
def value_and_grad(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Value of a real scalar function, and its gradient."""
    return core.value_and_gradient(fun, x, lambda ans: _check_scalar(ans, "value_and_grad"))


@unary_to_nary
def grad_and_aux(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Gradient of the first of two results of a function, and the second result."""
    vjp, (ans, aux) = core.make_vjp(fun, x)
    _check_scalar(ans, "grad_and_aux")
    return vjp((core.vspace(ans).ones(), core.vspace(aux).zeros())), aux


@unary_to_nary
def elementwise_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Sum of the rows of the Jacobian: the derivative at each element, where the function is elementwise."""
    return core.value_and_gradient(fun, x, _check_real)[1]


@unary_to_nary
def deriv(fun: Callable[[Any], Any], x: Any) -> Any:
    """Derivative of a function of a scalar, in forward mode."""
    return core.make_jvp(fun, x)(core.vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Jacobian, of the shape of the value followed by the shape of the argument."""
    vjp, ans = core.make_vjp(fun, x)
    space = core.vspace(ans)
    rows = [vjp(g) for g in space.standard_basis()]
    return xp.reshape(xp.stack([xp.asarray(row) for row in rows]), (*np.shape(ans), *np.shape(x)))


@unary_to_nary
def holomorphic_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Complex derivative of a holomorphic function."""
    if not core.vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=2)
    return grad(lambda x: xp.real(fun(x)))(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Gradient by the argument of this name."""
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


@unary_to_nary
def hessian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Hessian of a scalar function."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Function that multiplies the Hessian at ``x`` by a vector, and the gradient there."""
    return core.make_vjp(grad(fun), x)


def _dotted(fun: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
    """Inner product of the value of a function with its last argument, which is added."""

    @functools.wraps(fun)
    def dotted(*args: Any, **kwargs: Any) -> Any:
        value, vector = fun(*args[:-1], **kwargs), args[-1]
        return xp.tensordot(*((vector, value) if first else (value, vector)), axes=np.ndim(vector))

    return dotted


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Function of the arguments and a tensor: the product of the Hessian and the tensor."""
    return grad(_dotted(grad(fun, argnum), first=False), argnum)


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Function of the arguments and a tensor: the product of the tensor and the Jacobian."""
    return jacobian(_dotted(fun, first=True), argnum)


hessian_vector_product = hessian_tensor_product
vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Pushforward of a function, as the transpose of its pullback."""
    vjp, ans = core.make_vjp(fun, x)
    return core.make_vjp(vjp, core.vspace(ans).zeros())[0]


def _half_square(x: Any) -> Any:
    return 0.5 * xp.sum(x**2, axis=-1)


def make_ggnvp(f: Callable[..., Any], g: Callable[[Any], Any] = _half_square, f_argnum: int = 0) -> Callable[..., Any]:
    """Function that multiplies the generalized Gauss-Newton matrix of ``g(f(x))`` by a vector."""
    return unary_to_nary(lambda f, x: lambda v: ggnvp(f, g, (x,), (v,))[0])(f, f_argnum)


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Gradients by all arguments at once, by name."""
    signature = inspect.signature(fun)

    def gradfun(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_names(values: dict[str, Any]) -> Any:
            bound.arguments.update(values)
            return fun(*bound.args, **bound.kwargs)

        return grad(of_names)(dict(bound.arguments))

    return gradfun
