"""Operators on functions of one argument as operators on functions of several, as in `autograd.wrap_util`."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from oxigrad.autodiff.function_calls import replaced
from oxigrad.autograd.modules import made


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Tuple of the items of ``x`` with the values of pairs (index, value) in their places."""
    return tuple(replaced([*x], *zip(*ivs, strict=True)))


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """Tuple of the items of ``x`` with the value ``v`` at index ``i``."""
    return tuple(replaced([*x], [i], [v]))


made("oxigrad.autograd.util", {"subval": subval, "subvals": subvals})

Argnum = int | tuple[int, ...] | list[int]


def get_name(f: Any) -> str:
    """Name of a function."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: Any) -> str:
    """Documentation of a function."""
    return getattr(f, "__doc__", None) or ""


def wraps(fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any) -> Callable[[Any], Any]:
    """Decorator that names a function after another one."""

    def named(f: Any) -> Any:
        f.__name__ = namestr.format(fun=get_name(fun), **kwargs)
        f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **kwargs)
        return f

    return named


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """Operator ``op(fun, argnum)`` on functions of several arguments, from an operator ``op(f, x)``.

    With a tuple or list of numbers, ``x`` is the tuple of these arguments.
    """

    @functools.wraps(unary_operator)
    def nary_operator(
        fun: Callable[..., Any], argnum: Argnum = 0, *operands: Any, **options: Any
    ) -> Callable[..., Any]:
        name = get_name(unary_operator)
        if type(argnum) not in (int, tuple, list):
            raise TypeError(f"{name}: found {argnum!r}, expected the number of an argument, or several")

        @wraps(fun, "{op}_of_{fun}_wrt_argnum_{argnum}", "{op} of {fun} by argument {argnum}.", op=name, argnum=argnum)
        def nary_f(*args: Any, **kwargs: Any) -> Any:
            def unary_f(x: Any) -> Any:
                values = subval(args, argnum, x) if isinstance(argnum, int) else replaced(args, argnum, x)
                return fun(*values, **kwargs)

            x = args[argnum] if isinstance(argnum, int) else tuple(args[i] for i in argnum)
            return unary_operator(unary_f, x, *operands, **options)

        return nary_f

    return nary_operator
