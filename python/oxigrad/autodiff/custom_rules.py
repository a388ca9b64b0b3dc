"""User-defined derivative rules: `custom_vjp`, `define_vjp` and `define_jvp`."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

from oxigrad import tree, xp
from oxigrad._core import DerivativeError, ShapeError, Tape, Variable, plain
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.function_calls import FunctionCall, Leaves, Zero, called_for_each, is_on, level_of, name_of
from oxigrad.autodiff.rules.cotangents import unbroadcast, unbroadcast_to_number
from oxigrad.autodiff.rules.tangents import zero_or_same, zero_tangent
from oxigrad.ops.backends import is_array, is_smooth
from oxigrad.ops.core import primitives
from oxigrad.ops.core.host_calls import of_dtype

# Maps the cotangent of the result, the result, the arguments and the residuals to the cotangents of the arguments.
Pullback = Callable[[Any, Any, tuple[Any, ...], Any], Any]


class CustomVJP(Protocol):
    """A function with a derivative rule, as returned by `custom_vjp`."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The value of the function."""

    def defvjp(self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., Any]) -> None:
        """Defines the rule: ``fwd(*args)`` returns the value and residuals, ``bwd(residuals, g)`` the cotangents."""


class _Rule(NamedTuple):
    """The rule of a function: its forward pass, if the rule reads residuals, and its pullback."""

    fwd: Callable[..., tuple[Any, Any]] | None
    pull: Pullback | None

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
        """The value of the function and the residuals, or None without residuals."""
        if self.fwd is None:
            return f(*args, **named), None
        result = self.fwd(*args, **named)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"fwd: found a result of type {type(result).__name__}, expected a pair (value, residuals)")
        return result


def custom_vjp(f: Callable[..., Any], rule: Callable[..., Any] | None = None) -> CustomVJP:
    """The function ``f`` with a user-defined vector-Jacobian product.

    The rule has one of two forms. As in JAX, ``f.defvjp(fwd, bwd)`` sets it afterwards. ``fwd(*args)`` returns a pair
    of the value and residuals (any object); ``bwd(residuals, g)`` returns the cotangents of the arguments, where ``g``
    is the cotangent of the value. The other form is ``rule(g, y, *args)``, which returns them from the cotangent, the
    value and the arguments.

    The cotangents are a tuple with one item for each positional argument, of its structure, shape and dtype. For a
    single argument, the cotangent alone is accepted. None means zeros. Items for leaves that are not differentiated are
    ignored. Cotangents are unbroadcast to the shape of the argument. Arguments and values may be trees. Keyword
    arguments are passed on, and not differentiated.

    ``f`` and ``fwd`` are called with plain arrays and numbers, which they must not change in place; they may be any
    code. Their results are assumed to share no memory with the arguments. Under `oxigrad.vmap` they are called for each
    example. For derivatives of higher order ``fwd`` is called again with variables; it and ``bwd``, or ``rule``, must
    then be differentiable. In forward mode the rule, which is linear in ``g``, is transposed.

    Raises `DerivativeError` if no rule is set, if the rule does not return one cotangent for each argument, or if ``f``
    uses a variable that is not an argument. Raises `ShapeError` if a cotangent cannot be unbroadcast to the shape of
    its argument.

    >>> from oxigrad import grad
    >>> clipped = custom_vjp(lambda x: x, lambda g, y, x: xp.minimum(g, 1.0))
    >>> grad(lambda x: 5.0 * clipped(x))(2.0)
    1.0

    >>> @custom_vjp
    ... def log1pexp(x):
    ...     return xp.log1p(xp.exp(x))
    >>> def fwd(x):
    ...     return log1pexp(x), xp.exp(x)
    >>> def bwd(exponential, g):
    ...     return (g * (1.0 - 1.0 / (1.0 + exponential)),)
    >>> log1pexp.defvjp(fwd, bwd)
    >>> grad(log1pexp)(0.0)
    0.5
    """
    # These are closure variables, not attributes: recordings watch the variables that a function reads.
    forward: Callable[..., tuple[Any, Any]] | None = None
    pull: Pullback | None = None if rule is None else lambda g, y, args, _: rule(g, y, *args)

    def defvjp(fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., Any]) -> None:
        """Sets the rule ``fwd(*args)``, ``bwd(residuals, g)``."""
        nonlocal forward, pull
        for function, name in ((fwd, "fwd"), (bwd, "bwd")):
            if not callable(function):
                raise TypeError(f"defvjp: found {function!r} as {name}, expected a function")
        forward, pull = fwd, lambda g, y, args, residuals: bwd(residuals, g)

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        return _call(f, _Rule(forward, pull), args, named)

    vars(wrapped)["defvjp"] = defvjp
    return cast(CustomVJP, wrapped)


def _call(f: Callable[..., Any], rule: _Rule, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    pull_back = rule.pull
    if not any(isinstance(leaf, Variable) for leaf in tree.leaves(args)):
        return call_on_values(f, lambda *args, **named: _call(f, rule, args, named), args, named)
    name = name_of(f)
    if pull_back is None:
        raise DerivativeError(
            f"no derivative is defined for {name}: expected {name}.defvjp(fwd, bwd) before it is called"
        )
    # The tape keeps alive all that the functions below refer to, so they must not refer to the variables.
    saved_residuals: list[Any] = []  # empty if the function was called for each example of batched values
    count = len(args)

    def forward(*args: Any) -> Any:
        value, residuals = rule.call(f, args, named)
        saved_residuals[:] = [residuals]
        return value

    call = FunctionCall(forward, args, {}, lambda *args: _call(f, rule, args, named), takes_batches=False, name=name)

    @for_each_example
    def pull(g: primitives.TupleCotangent, y: Leaves, values: Leaves) -> list[Any]:
        arguments, _ = call.arguments(values)
        assert call.structure is not None, "the function has been called"  # noqa: S101
        filled = [g.get(at, zero_or_same(leaf)) for at, leaf in enumerate(y)]
        result, cotangent = tree.unflatten(call.structure, y), tree.unflatten(call.structure, filled)
        # If the arguments are variables of an enclosing tape, the residuals must be variables too.
        are_saved = bool(saved_residuals) and not any(isinstance(value, Variable) for value in values)
        is_read = rule.fwd is not None
        residuals = saved_residuals[0] if are_saved else rule.call(f, arguments, named)[1] if is_read else None
        pulled = pull_back(cotangent, result, arguments, residuals)
        pulled = pulled if isinstance(pulled, tuple) or count != 1 else (pulled,)
        return call.chosen((_completed(pulled, arguments), {}))

    return call.record(call.outputs, pull, None)


def call_on_values(
    f: Callable[..., Any], again: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """A call of ``f`` on values that are no variables; of batched ones ``again`` for each example."""
    level = level_of(tree.leaves((args, named)))
    return f(*args, **named) if level is None else called_for_each(again, args, named, level)


def for_each_example(pull: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Decorates the pullback of a call of one example: of batched values it is called for each of them."""

    def pulled(g: dict[int, Any], y: Leaves, values: Leaves) -> list[Any]:
        level = _level_of_constants((*g.values(), *y, *values))
        if level is not None:
            return called_for_each(pulled, (dict(g), tuple(y), tuple(values)), {}, level)
        return pull(primitives.TupleCotangent(g), y, values)

    return pulled


def _level_of_constants(values: Leaves) -> int | None:
    """The highest level of batched values if no argument is a variable, else None.

    A rule is called on variables, and batched beneath them.
    """
    return None if any(isinstance(value, Variable) for value in values) else level_of(values)


def _completed(pulled: Any, arguments: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """The cotangents in the structure of the arguments, unbroadcast, with `Zero` for each leaf without one."""
    if not isinstance(pulled, tuple) or len(pulled) != len(arguments):
        count = f"{len(pulled)}" if isinstance(pulled, tuple) else type(pulled).__name__
        raise DerivativeError(
            f"the rule: found {count} cotangents, expected a tuple of {len(arguments)}, one for each argument"
        )
    return tuple(map(completed_tree, range(len(pulled)), pulled, arguments))


def completed_tree(position: int, pulled: Tree, argument: Tree) -> Tree:
    """The cotangent of an argument, in its structure, unbroadcast, with `Zero` for each leaf without one."""
    leaves, structure = tree.flatten(argument)
    if pulled is None:
        return tree.unflatten(structure, [Zero] * len(leaves))
    matched = functools.partial(_unbroadcast, position)
    return tree.map(matched, argument, pulled)


def _unbroadcast(position: int, argument: Array, pulled: Array) -> Array:
    """The cotangent summed over the broadcast axes."""
    if not is_smooth(argument):
        return Zero
    if not is_array(plain(argument)):
        return unbroadcast_to_number(pulled)
    shape, expected = tuple(getattr(pulled, "shape", ())), tuple(argument.shape)
    added = len(shape) - len(expected)
    if added < 0 or any(size not in (1, length) for size, length in zip(expected, shape[added:], strict=True)):
        raise ShapeError(f"argument {position}: found a cotangent of shape {shape}, expected {expected}")
    return unbroadcast(pulled if is_array(pulled) else xp.ones_like(argument) * pulled, expected, argument.dtype)


def define_vjp(*rules: Callable[..., Any] | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that defines the vector-Jacobian product of a function by one rule for each positional argument.

    The parameters of a rule name the values that it reads: ``g``, the cotangent of the value; ``y``, the value; and the
    arguments of the function by their names. It returns the cotangent of its argument, of the shape and dtype of the
    argument, before or after broadcasting. None instead of a rule means that the derivative is zero. The function
    itself may be any code.

    Raises `TypeError` for a rule with another parameter, and `DerivativeError` or `ShapeError` as `custom_vjp` does.

    >>> import math
    >>> from oxigrad import grad
    >>> @define_vjp(lambda g, x: g * 2.0 / math.sqrt(math.pi) * xp.exp(-x * x))
    ... def erf(x):
    ...     return math.erf(x)
    >>> round(grad(grad(erf))(0.5), 6)
    -0.878783
    """

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(f).parameters)
        reads = [list(inspect.signature(rule).parameters) if rule else [] for rule in rules]
        _check_reads(f, reads, {"g", "y", *names})

        def rule(g: Tree, y: Tree, *args: Tree) -> tuple[Tree, ...]:
            values = {"g": g, "y": y, **dict(zip(names, args, strict=False))}
            stated = zip(rules, reads, strict=True)
            pulled = [rule and rule(**{name: values[name] for name in read}) for rule, read in stated]
            return tuple(pulled[: len(args)])

        return custom_vjp(f, rule)

    return decorate


def define_jvp(*rules: Callable[..., Any] | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that defines the Jacobian-vector product of a function by one rule for each positional argument.

    The parameters of a rule name the values that it reads: ``t``, the tangent of its argument; ``y``, the value; and
    the arguments of the function by their names. It returns the term of the value's tangent that comes from its
    argument. The term is linear in ``t``, and has the structure of the value, with its shapes before or after
    broadcasting. None instead of a rule means that the derivative is zero. The function itself may be any code; keyword
    arguments are passed on, and not differentiated.

    In reverse mode the rules are transposed. For derivatives of higher order they are called with variables, and must
    be differentiable. `define_vjp` states the same derivative by its transpose.

    Raises `TypeError` for a rule with another parameter or an argument without a rule, and `ShapeError` for a tangent
    that cannot be broadcast to the shape of the value.

    >>> import math
    >>> from oxigrad import grad, jvp
    >>> @define_jvp(lambda t, x: t * 2.0 / math.sqrt(math.pi) * xp.exp(-x * x))
    ... def erf(x):
    ...     return math.erf(x)
    >>> round(jvp(erf, (0.5,), (1.0,))[1], 6), round(grad(grad(erf))(0.5), 6)
    (0.878783, -0.878783)
    """

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(f).parameters)
        reads = [list(inspect.signature(rule).parameters) if rule else [] for rule in rules]
        _check_reads(f, reads, {"t", "y", *names})

        def tangent(t: tuple[Tree, ...], args: tuple[Tree, ...]) -> list[Tree]:
            """The tangent of the value, a tree for each rule that is read."""
            values = dict(zip(names, args, strict=False))
            if any("y" in read for read in reads):
                values["y"] = wrapped(*args)
            stated = zip(rules, reads, t, strict=False)
            return [rule(**{name: {**values, "t": of}[name] for name in read}) for rule, read, of in stated if rule]

        @functools.wraps(f)
        def wrapped(*args: Any, **named: Any) -> Any:
            if len(args) > len(rules):
                raise TypeError(
                    f"{f.__name__}: found {len(args)} arguments, expected at most {len(rules)}, one for each rule"
                )
            return _pushed(f, functools.partial(f, **named) if named else f, tangent, args)

        return wrapped

    return decorate


def _check_reads(f: Callable[..., Any], reads: list[list[str]], readable: set[str]) -> None:
    """Raises `TypeError` if a rule reads an unknown value."""
    if unknown := {name for read in reads for name in read} - readable:
        special = "g, y" if "g" in readable else "t, y"
        raise TypeError(
            f"{f.__name__}: found a rule with parameters {', '.join(sorted(unknown))}, expected {special} or arguments by name"
        )


def _pushed(
    f: Callable[..., Any], called: Callable[..., Any], tangent: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    """A call of ``called`` whose tangent is the sum of the trees ``tangent(tangents, args)``."""
    if not any(isinstance(leaf, Variable) for leaf in tree.leaves(args)):
        return call_on_values(called, lambda *args: _pushed(f, called, tangent, args), args, {})
    shapes: list[Any] = []

    def noted(leaves: Leaves) -> None:
        shapes[:] = [zero_tangent(leaf, None) if is_smooth(leaf) else None for leaf in leaves]

    def example(*args: Any) -> Any:
        result = _pushed(f, called, tangent, args)
        noted(tree.leaves(result))
        return result

    call = FunctionCall(called, args, {}, example, takes_batches=False, name=name_of(f))

    def outputs(values: Leaves) -> tuple[Any, ...]:
        results = call.outputs(values)
        noted(results)
        return results

    def push(values: Leaves, tangents: Leaves) -> dict[int, Any]:
        level = _level_of_constants((*values, *tangents))
        if level is not None:
            return called_for_each(push, (tuple(values), tuple(tangents)), {}, level)
        arguments, _ = call.arguments(values)
        filled = [zero_tangent(v, None) if t is None else t for v, t in zip(values, tangents, strict=True)]
        directions, _ = call.tangents(filled)
        total: dict[int, Any] = {}
        for part in tangent(directions, arguments):
            for at, (leaf, like) in enumerate(zip(tree.leaves(part), shapes, strict=True)):
                if like is not None:
                    term = _of_shape(call.name, leaf, like)
                    total[at] = total[at] + term if at in total else term
        return total

    @for_each_example
    def pull(g: primitives.TupleCotangent, y: Leaves, values: Leaves) -> list[Any]:
        with Tape() as tape:
            directions = [tape.watch(zero_tangent(value, None)) for value in values]
            pushed = push(values, directions)
        seeds = [(pushed[at], g[at]) for at in pushed if g[at] is not None and is_on(tape, pushed[at])]
        return tape.pull(seeds, directions, zeros=False)

    return call.record(outputs, pull, push)


def _of_shape(name: str, t: Any, like: Any) -> Any:
    """The tangent in the shape and dtype of the value."""
    shape, expected = (tuple(getattr(x, "shape", ())) for x in (t, like))
    if shape != expected:
        try:
            t = primitives.broadcast_to(t, expected)
        except ValueError:
            raise ShapeError(f"{name}: found a tangent of shape {shape}, expected {expected}") from None
    return of_dtype(t, like) if is_array(like) else t
