"""Functions with derivative rules of autograd's form: ``vjp(ans, *args)(g)`` for each argument, and ``jvp(g, ans, *args)``."""

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from oxigrad import tree
from oxigrad._core import Variable
from oxigrad.autodiff.custom_rules import call_on_values, completed_tree, for_each_example
from oxigrad.autodiff.function_calls import FunctionCall, replaced
from oxigrad.autodiff.rules.tangents import zero_or_same, zero_tangent
from oxigrad.ops.core.primitives import TupleCotangent

#: Rules by primitive: ``rule(argnums, ans, args, kwargs)(g)`` returns a cotangent for each of ``argnums``, and
#: ``rule(argnums, tangents, ans, args, kwargs)`` the tangent of the value.
primitive_vjps: dict[Callable[..., Any], Callable[..., Any]] = {}
primitive_jvps: dict[Callable[..., Any], Callable[..., Any]] = {}


def primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Function whose derivatives `defvjp` and `defjvp` define. It is called with plain values.

    >>> import numpy as np
    >>> from oxigrad.autograd import grad
    >>> from oxigrad.autograd.extend import defvjp, primitive
    >>> square = primitive(lambda x: x * x)
    >>> defvjp(square, lambda ans, x: lambda g: g * 2.0 * x)
    >>> grad(square)(3.0)
    6.0
    """

    @functools.wraps(f_raw, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not any(map(_holds_variable, args)):
            return call_on_values(f_raw, wrapped, args, kwargs)
        return _recorded(wrapped, f_raw, args, kwargs)

    return wrapped


def _holds_variable(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return any(isinstance(leaf, Variable) for leaf in tree.leaves(value))
    return isinstance(value, Variable)


def _recorded(
    wrapped: Callable[..., Any], f_raw: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A call on variables, as an entry of their tape with the rules of the primitive."""
    call = FunctionCall(
        lambda *args: f_raw(*args, **kwargs), args, {}, lambda *args: wrapped(*args, **kwargs), takes_batches=False
    )
    argnums = tuple(at for at, argument in enumerate(args) if _holds_variable(argument))
    name = getattr(f_raw, "__name__", repr(f_raw))

    def result_of(leaves: Sequence[Any]) -> Any:
        assert call.structure is not None, "the function has been called"  # noqa: S101
        return tree.unflatten(call.structure, leaves)

    @for_each_example
    def pull(g: TupleCotangent, y: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        if wrapped not in primitive_vjps:
            raise NotImplementedError(
                f"{name}: found no VJP, expected defvjp({name}, ...) before a derivative is taken"
            )
        arguments, _ = call.arguments(values)
        cotangent = result_of([g.get(at, zero_or_same(leaf)) for at, leaf in enumerate(y)])
        pulled = dict(
            zip(argnums, primitive_vjps[wrapped](argnums, result_of(y), arguments, kwargs)(cotangent), strict=True)
        )
        completed = [completed_tree(at, pulled.get(at), argument) for at, argument in enumerate(arguments)]
        return call.chosen((tuple(completed), {}))

    def push(values: Sequence[Any], tangents: Sequence[Any]) -> dict[int, Any]:
        arguments, _ = call.arguments(values)
        filled = [zero_tangent(v, None) if t is None else t for v, t in zip(values, tangents, strict=True)]
        directions, _ = call.tangents(filled)
        ans = wrapped(*arguments, **kwargs)
        tangent = primitive_jvps[wrapped](argnums, [directions[at] for at in argnums], ans, arguments, kwargs)
        return dict(enumerate(tree.leaves(tangent)))

    return call.record(call.outputs, pull, push if wrapped in primitive_jvps else None)


# --- rules --------------------------------------------------------------------------------------------------------------


def defvjp_argnums(fun: Callable[..., Any], vjpmaker: Callable[..., Any]) -> None:
    """Defines all VJPs of a primitive at once: ``vjpmaker(argnums, ans, args, kwargs)(g)`` returns one for each of ``argnums``."""
    primitive_vjps[fun] = vjpmaker


def defvjp_argnum(fun: Callable[..., Any], vjpmaker: Callable[..., Any]) -> None:
    """Defines the VJPs of a primitive by ``vjpmaker(argnum, ans, args, kwargs)(g)``."""

    def of_all(argnums: Sequence[int], *call: Any) -> Callable[[Any], list[Any]]:
        vjps = [vjpmaker(argnum, *call) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, of_all)


def defvjp(
    fun: Callable[..., Any], *vjpmakers: Callable[..., Any] | None, argnums: Iterable[int] | None = None
) -> None:
    """Defines the VJP of a primitive by each argument: ``vjpmaker(ans, *args, **kwargs)(g)``, or None for zeros."""
    makers = dict(zip(count() if argnums is None else argnums, vjpmakers, strict=False))

    def of_one(argnum: int, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
        if argnum not in makers:
            name = getattr(fun, "__name__", fun)
            raise NotImplementedError(
                f"{name}: found no VJP for argument {argnum}, expected one in defvjp({name}, ...)"
            )
        maker = makers[argnum]
        return (lambda g: None) if maker is None else maker(ans, *args, **kwargs)

    defvjp_argnum(fun, of_one)


def defjvp_argnums(fun: Callable[..., Any], jvpmaker: Callable[..., Any]) -> None:
    """Defines the JVP of a primitive: ``jvpmaker(argnums, tangents, ans, args, kwargs)``."""
    primitive_jvps[fun] = jvpmaker


def defjvp_argnum(fun: Callable[..., Any], jvpmaker: Callable[..., Any]) -> None:
    """Defines the JVPs of a primitive by ``jvpmaker(argnum, g, ans, args, kwargs)``."""

    def of_all(argnums: Sequence[int], tangents: Sequence[Any], *call: Any) -> Any:
        parts = [jvpmaker(argnum, g, *call) for argnum, g in zip(argnums, tangents, strict=True)]
        return functools.reduce(functools.partial(tree.map, lambda x, y: x + y), parts)

    defjvp_argnums(fun, of_all)


def defjvp(fun: Callable[..., Any], *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """Defines the JVP of a primitive by each argument: ``jvpfun(g, ans, *args, **kwargs)``, None for zeros, "same" if linear."""
    rules = dict(zip(count() if argnums is None else argnums, jvpfuns, strict=False))

    def of_one(argnum: int, g: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rule = rules[argnum]
        if rule is None:
            return tree.map(lambda leaf: zero_tangent(leaf, None), ans)
        if rule == "same":
            return fun(*replaced(args, [argnum], [g]), **kwargs)
        return rule(g, ans, *args, **kwargs)

    defjvp_argnum(fun, of_one)


def def_linear(fun: Callable[..., Any]) -> None:
    """Declares a primitive linear in each argument, which defines its JVPs."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(*replaced(args, [argnum], [g]), **kwargs))
