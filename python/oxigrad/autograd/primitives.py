"""Functions with rules of autograd's form: ``vjp(ans, *args)(g)`` for an argument, and ``jvp(g, ans, *args)``."""

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import DerivativeError, call_leaves
from oxigrad.autodiff.custom_rules import Rule, entries
from oxigrad.autodiff.function_calls import call_read_only, replaced
from oxigrad.autodiff.rules.tangents import zero_tangent
from oxigrad.ops.backends import is_complex

__all__ = [
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
]

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
    name = getattr(f_raw, "__name__", repr(f_raw))

    def pull(
        g: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Sequence[int], _: Any
    ) -> tuple[Any, ...]:
        if wrapped not in primitive_vjps:
            raise NotImplementedError(
                f"{name}: found no VJP, expected defvjp({name}, ...) before a derivative is taken"
            )
        cotangents: list[Any] = [None] * len(args)
        pulled = call_read_only(primitive_vjps[wrapped](argnums, ans, args, kwargs), g)
        for at, cotangent in zip(argnums, pulled, strict=True):
            cotangents[at] = _of_structure(args[at], cotangent)
        return tuple(cotangents)

    def push(
        tangents: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Sequence[int]
    ) -> list[Any]:
        ans = wrapped(*args, **kwargs)
        rule = lambda tangents: primitive_jvps[wrapped](argnums, tangents, ans, args, kwargs)  # noqa: E731
        return [call_read_only(rule, [tangents[at] for at in argnums])]

    whole, expand = entries(f_raw, lambda: Rule(None, pull, push if wrapped in primitive_jvps else None))

    @functools.wraps(f_raw, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return call_leaves(f_raw, None, pull, wrapped in primitive_jvps, whole, expand, args, kwargs)

    vars(wrapped)["fun"] = f_raw
    return wrapped


def _of_structure(value: Any, g: Any) -> Any:
    """Cotangent of a list or tuple, which a rule may return as any sequence, or as an array.

    Of a real value it is the real part, which autograd takes in the functions of NumPy that lead to the value.
    """
    if type(value) not in (list, tuple) or g is None:
        return xp.real(g) if is_complex(g) and not is_complex(value) else g
    items = [_of_structure(item, part) for item, part in zip(value, g, strict=True)]
    return items if isinstance(value, list) else tuple(items)


def _name(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", repr(fun))


def _zeros(g: Any) -> None:
    """The VJP of an argument by which the derivative is zero."""


# --- rules ------------------------------------------------------------------------------------------------------------


def defvjp_argnums(fun: Callable[..., Any], vjpmaker: Callable[..., Any]) -> None:
    """Defines all VJPs of a primitive: ``vjpmaker(argnums, ans, args, kwargs)(g)`` has one for each of ``argnums``."""
    primitive_vjps[fun] = vjpmaker


def defvjp_argnum(fun: Callable[..., Any], vjpmaker: Callable[..., Any]) -> None:
    """Defines the VJPs of a primitive by ``vjpmaker(argnum, ans, args, kwargs)(g)``."""

    def of_all(argnums: Sequence[int], *call: Any) -> Callable[[Any], list[Any]]:
        vjps = [vjpmaker(argnum, *call) for argnum in argnums]

        def pulled(g: Any) -> list[Any]:
            cotangents = []
            for argnum, vjp in zip(argnums, vjps, strict=True):
                if not callable(vjp):
                    raise TypeError(
                        f"{_name(fun)}: the VJP of argument {argnum} is of type {type(vjp).__name__}: expected a "
                        "function of the cotangent, as in lambda ans, x: lambda g: ..."
                    )
                cotangents.append(vjp(g))
                # A function without a return statement returns None, which must not stand for zeros.
                if cotangents[-1] is None and vjp is not _zeros:
                    raise DerivativeError(
                        f"{_name(fun)}: the VJP of argument {argnum} returned None: expected a cotangent"
                    )
            return cotangents

        return pulled

    defvjp_argnums(fun, of_all)


def defvjp(
    fun: Callable[..., Any], *vjpmakers: Callable[..., Any] | None, argnums: Iterable[int] | None = None
) -> None:
    """Defines the VJP of a primitive by each argument: ``vjpmaker(ans, *args, **kwargs)(g)``, or None for zeros."""
    makers = dict(zip(count() if argnums is None else argnums, vjpmakers, strict=False))

    def of_one(argnum: int, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
        if argnum not in makers:
            name = _name(fun)
            raise NotImplementedError(
                f"{name}: found no VJP for argument {argnum}, expected one in defvjp({name}, ...)"
            )
        maker = makers[argnum]
        return _zeros if maker is None else maker(ans, *args, **kwargs)

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
    """Defines the JVP by each argument: ``jvpfun(g, ans, *args, **kwargs)``, None for zeros, "same" if linear."""
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
