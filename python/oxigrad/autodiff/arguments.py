"""The arguments that a transform differentiates by, and that a rule reads, and the functions that transforms return."""

import functools
import inspect
import math
import operator
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad._core import DerivativeError
from oxigrad._names import check_callable, name_of
from oxigrad._typing import Argnums


def resolve(
    f: Callable[..., Any], argnums: Argnums | None, argnames: str | Sequence[str] | None
) -> tuple[Callable[..., Any], Argnums]:
    """The function, and the positions of the arguments: ``argnums``, then the positions of ``argnames``.

    If both are None, the first argument is chosen. A single number or name is one position, everything else a tuple.
    For names of keyword-only parameters, the returned function takes these in front. Raises `TypeError` for another
    type of ``argnums``, and for an unknown parameter of ``f``; `ValueError` for a duplicate argument.
    """
    for each in () if argnums is None else argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        if not _is_position(each):
            hint = "the transformed function takes the arguments, as in grad(f)(x)"
            hint = f"argnames={argnums!r} names a parameter" if isinstance(argnums, str) else hint
            raise TypeError(f"argnums is {argnums!r}: expected an int, or a tuple of them; {hint}")
    if argnames is None:
        return f, 0 if argnums is None else argnums
    names = [argnames] if isinstance(argnames, str) else [*argnames]
    f, count = _with_leading(f, names)
    parameters = _positional(f)
    positions = tuple(parameters.index(name) for name in names)
    if argnums is None:
        return f, positions[0] if isinstance(argnames, str) else positions
    numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    both = (*(each + count if each >= 0 else each for each in numbers), *positions)
    if len(set(both)) < len(both):
        raise ValueError(f"argnums is {argnums!r} and argnames {argnames!r}: found an argument in both")
    return f, both


def _is_position(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:  # also of arrays, which have the method
        return False
    return not isinstance(value, bool)


def _with_leading(f: Callable[..., Any], names: Sequence[str]) -> tuple[Callable[..., Any], int]:
    """The function with its named keyword-only parameters in front, by position, and the number of these."""
    positional = _positional(f)
    parameters = [*positional, *_of_kinds(f, inspect.Parameter.KEYWORD_ONLY)]
    for name in names:
        if name not in parameters:
            raise TypeError(f"argnames: found {name!r}, expected parameters of the function: {', '.join(parameters)}")
    leading = [name for name in names if name not in positional]
    if not leading:
        return f, 0

    @functools.wraps(f)
    def with_leading(*args: Any, **named: Any) -> Any:
        return f(*args[len(leading) :], **dict(zip(leading, args, strict=False)), **named)

    # An attribute, so that transforms of this function have it too.
    vars(with_leading)[_PARAMETERS] = (leading, [*leading, *positional])
    return with_leading, len(leading)


_PARAMETERS = "_parameters_by_position"


def _positional(f: Callable[..., Any]) -> list[str]:
    """The names of the parameters of ``f`` that may be given by position."""
    if hasattr(f, _PARAMETERS):
        return getattr(f, _PARAMETERS)[1]
    return _of_kinds(f, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _of_kinds(f: Callable[..., Any], *kinds: Any) -> list[str]:
    return [name for name, parameter in inspect.signature(f).parameters.items() if parameter.kind in kinds]


def count_arguments(f: Callable[..., Any]) -> tuple[int, float]:
    """The least and the greatest number of arguments by position; none and infinity of a function without a signature.

    >>> count_arguments(lambda x, y, z=0: x), count_arguments(lambda *args: args)
    ((2, 3), (0, inf))
    """
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return 0, math.inf
    by_position = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    least = sum(each.default is each.empty for each in by_position)
    return least, math.inf if any(each.kind is each.VAR_POSITIONAL for each in parameters) else len(by_position)


def by_position(
    f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], argnums: Argnums
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with those up to the last of ``argnums`` by position."""
    leading = getattr(f, _PARAMETERS)[0] if hasattr(f, _PARAMETERS) else ()
    if leading and named.keys() >= set(leading):
        args = (*(named[name] for name in leading), *args)
        named = {name: value for name, value in named.items() if name not in leading}
    last = argnums if isinstance(argnums, int) else max(argnums, default=-1)
    if last < len(args):
        return args, named
    moved = _positional(f)[len(args) : last + 1]
    if len(args) + len(moved) <= last or not named.keys() >= set(moved):
        return args, named
    rest = {name: value for name, value in named.items() if name not in moved}
    return (*args, *(named[name] for name in moved)), rest


def check_rules(decorator: str, rules: Sequence[object], linear: str) -> None:
    """Raises `TypeError` for a rule that is no function, or that does not read the value in which it is ``linear``.

    A decorator that is used without rules has the function in their place.
    """
    for position, rule in enumerate(rules):
        if not callable(rule):
            if rule is not None:
                check_callable(rule, f"{decorator}, rule")
            continue
        if linear not in inspect.signature(rule).parameters:
            raise TypeError(
                f"{decorator}: the rule of argument {position}, {name_of(rule)}, does not read {linear}: expected one "
                f"that is linear in {linear}, or None for zero: {decorator}(lambda {linear}, x: {linear} * 2.0 * x)(f)"
            )


def rules_by_position(
    decorator: str, f: Callable[..., Any], rules: Sequence[Callable[..., Any] | None], special: tuple[str, str]
) -> list[Callable[[tuple[Any, ...], dict[str, Any]], Any] | None]:
    """The rules as functions of a tuple and of named arguments; it has the ``special`` values, then arguments of ``f``.

    Raises `TypeError` if a rule reads an unknown value, for more rules than arguments, or if ``f`` is not callable.
    """
    check_callable(f, decorator)
    count = len(_positional(f))
    if len(rules) > count and not _of_kinds(f, inspect.Parameter.VAR_POSITIONAL):
        raise TypeError(f"{f.__name__}: found {len(rules)} rules, expected at most {count}, one for each argument")
    parameters = inspect.signature(f).parameters
    names = [*special, *parameters]
    reads = [list(inspect.signature(rule).parameters) if rule else [] for rule in rules]
    if unknown := {name for read in reads for name in read} - {*names}:
        raise TypeError(
            f"{f.__name__}: found a rule with parameters {', '.join(sorted(unknown))}, expected "
            f"{', '.join(special)} or arguments by name"
        )

    def of(
        position: int, rule: Callable[..., Any], read: list[str]
    ) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        at = [(name, names.index(name)) for name in read]
        defaults = {name: parameters[name].default for name in read if name in parameters}
        least = max(k for _, k in at) + 1  # fewer values lack some that were given by name, or by default

        def called(values: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if len(values) >= least:
                value = rule(**{name: values[k] for name, k in at})
            else:
                arguments = {**defaults, **named, **dict(zip(names, values, strict=False))}
                value = rule(**{name: arguments[name] for name, _ in at})
            if value is None:  # as of a rule without a return statement
                raise DerivativeError(
                    f"{f.__name__}: the rule of argument {position} returned None: expected a derivative; None instead "
                    "of a rule means zero"
                )
            return value

        return called

    return [rule and of(at, rule, read) for at, (rule, read) in enumerate(zip(rules, reads, strict=True))]


# --- functions that transforms return ---------------------------------------------------------------------------------


class Transformed(functools.partial[Any]):
    """A function that a transform returns. A call takes no frame besides the inner function's."""

    def __reduce__(self) -> Any:
        # The result of a decorator is found by its name; any other is made again, by the transform.
        public: Any = sys.modules.get(getattr(self, "__module__", ""))
        for part in (name := getattr(self, "__qualname__", "")).split("."):
            public = getattr(public, part, None)
        return name if public is self else (operator.call, (vars(self)["_call"],))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        call = vars(self)["_call"]
        return f"<{call.func.__name__} of {call.args[0]!r}>"


def transformed(
    inner: Callable[..., Any], f: Callable[..., Any], call: functools.partial[Callable[..., Any]]
) -> Transformed:
    """The function ``inner`` with the names of ``f``; ``call`` is the call of the transform that makes it again."""
    function = Transformed(inner)
    functools.update_wrapper(function, f)
    vars(function)["_call"] = call
    return function
