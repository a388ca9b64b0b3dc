"""User-defined derivative rules: `custom_vjp` and `define_vjp`."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol, cast

from oxigrad import tree, xp
from oxigrad._core import DerivativeError, ShapeError, Variable, plain
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.batching import called_for_each, level_of_variables
from oxigrad.autodiff.cotangents import unbroadcast, unbroadcast_to_number
from oxigrad.autodiff.function_calls import FunctionCall, Leaves, Zero
from oxigrad.autodiff.tangents import zero_tangent
from oxigrad.ops import primitives
from oxigrad.ops.backends import is_array, is_smooth

# Maps the cotangent of the result, the result, the arguments and the residuals to the cotangents of the arguments.
Pullback = Callable[[Any, Any, tuple[Any, ...], Any], Any]


class CustomVJP(Protocol):
    """A function with a derivative rule, as returned by `custom_vjp`."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The value of the function."""

    def defvjp(self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., Any]) -> None:
        """Defines the rule: ``fwd(*args)`` returns the value and residuals, ``bwd(residuals, g)`` the cotangents."""


class _Rule:
    """The rule of a function: its forward pass, and its pullback."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self._f = f
        self._fwd: Callable[..., tuple[Any, Any]] | None = None
        self.pull: Pullback | None = None

    def state(self, rule: Callable[..., Any]) -> None:
        """Sets the rule ``rule(g, y, *args)``."""
        self.pull = lambda g, y, args, _: rule(g, y, *args)

    def defvjp(self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., Any]) -> None:
        """Sets the rule ``fwd(*args)``, ``bwd(residuals, g)``."""
        for given, name in ((fwd, "fwd"), (bwd, "bwd")):
            if not callable(given):
                raise TypeError(f"defvjp: found {given!r} as {name}, expected a function")
        self._fwd, self.pull = fwd, lambda g, y, args, residuals: bwd(residuals, g)

    @property
    def has_residuals(self) -> bool:
        """Whether the rule reads residuals of the call."""
        return self._fwd is not None

    def call(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
        """The value of the function and the residuals, None where the rule has none."""
        if self._fwd is None:
            return self._f(*args, **named), None
        given = self._fwd(*args, **named)
        if not (isinstance(given, tuple) and len(given) == 2):
            raise TypeError(f"fwd: found a result of type {type(given).__name__}, expected a pair (value, residuals)")
        return given


def custom_vjp(f: Callable[..., Any], rule: Callable[..., Any] | None = None) -> CustomVJP:
    """The function ``f`` with a user-defined vector-Jacobian product.

    The rule has one of two forms. As in JAX, ``f.defvjp(fwd, bwd)`` sets it afterwards: ``fwd(*args)`` returns a pair of the
    value and residuals (any object); ``bwd(residuals, g)`` returns the cotangents of the arguments, given the cotangent of the
    value. Or ``rule(g, y, *args)`` returns them, given the cotangent, the value and the arguments.

    The cotangents are a tuple with one item for each positional argument, of its structure, shape and dtype; for a single
    argument, the cotangent alone is accepted. None means zeros. Items for leaves that are not differentiated are ignored.
    Cotangents are unbroadcast to the shape of the argument. Arguments and values may be trees. Keyword arguments are passed on,
    and not differentiated.

    ``f`` and ``fwd`` are called with plain arrays and numbers, which they must not change in place; they may be any code. Their
    results are taken to share no memory with the arguments. For derivatives of higher order ``fwd`` is called again with
    variables, so that it and ``bwd``, or ``rule``, must then be differentiable. In forward mode the rule, which is linear in
    ``g``, is transposed.

    Raises `DerivativeError` where no rule is set, where the rule does not return one cotangent for each argument, and where
    ``f`` uses a variable that is not an argument; `ShapeError` where a cotangent cannot be unbroadcast to the shape of its
    argument.

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
    stated = _Rule(f)
    if rule is not None:
        stated.state(rule)

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        return _call(f, stated, args, named)

    vars(wrapped)["defvjp"] = stated.defvjp
    return cast(CustomVJP, wrapped)


def _call(f: Callable[..., Any], rule: _Rule, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    pull_back = rule.pull
    leaves = tree.leaves(args)
    if not any(isinstance(leaf, Variable) for leaf in leaves):
        level = level_of_variables(leaves)
        if level is not None:  # inside of `vmap`, which is differentiated: the rule is one of single examples
            return called_for_each(functools.partial(_call, f, rule), (args, named), {}, level)
        return f(*args, **named)
    if pull_back is None:
        name = getattr(f, "__qualname__", repr(f))
        raise DerivativeError(
            f"no derivative is defined for {name}: expected {name}.defvjp(fwd, bwd) before it is called"
        )
    # The tape keeps alive all that the functions below refer to, so they must not refer to the variables.
    kept: list[Any] = [None]
    count = len(args)

    def forward(*args: Any) -> Any:
        value, residuals = rule.call(args, named)
        kept[0] = residuals
        return value

    call = FunctionCall(forward, args, {})
    call.name = getattr(f, "__qualname__", repr(f))

    def pull(g: primitives.TupleCotangent, y: Leaves, values: Leaves) -> list[Any]:
        arguments, _ = call.arguments(values)
        assert call.structure is not None, "the function has been called"  # noqa: S101
        filled = [g.get(at, zero_tangent(leaf, None) if is_smooth(leaf) else leaf) for at, leaf in enumerate(y)]
        result, cotangent = tree.unflatten(call.structure, y), tree.unflatten(call.structure, filled)
        # If the arguments are variables of an enclosing tape, the residuals must be variables too.
        is_nested = rule.has_residuals and any(isinstance(value, Variable) for value in values)
        residuals = rule.call(arguments, named)[1] if is_nested else kept[0]
        pulled = pull_back(cotangent, result, arguments, residuals)
        pulled = pulled if isinstance(pulled, tuple) or count != 1 else (pulled,)
        return call.chosen((_completed(pulled, arguments), {}))

    return call.record(call.outputs, pull, None)


def _completed(pulled: Any, arguments: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """The cotangents in the structure of the arguments, unbroadcast, with `Zero` for each leaf without one."""
    if not isinstance(pulled, tuple) or len(pulled) != len(arguments):
        given = f"{len(pulled)}" if isinstance(pulled, tuple) else type(pulled).__name__
        raise DerivativeError(
            f"the rule: found {given} cotangents, expected a tuple of {len(arguments)}, one for each argument"
        )
    return tuple(map(_completed_tree, range(len(pulled)), pulled, arguments))


def _completed_tree(position: int, pulled: Tree, argument: Tree) -> Tree:
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
    shape, own = tuple(getattr(pulled, "shape", ())), tuple(argument.shape)
    added = len(shape) - len(own)
    if added < 0 or any(size not in (1, given) for size, given in zip(own, shape[added:], strict=True)):
        raise ShapeError(f"argument {position}: found a cotangent of shape {shape}, expected {own}")
    return unbroadcast(pulled if is_array(pulled) else xp.ones_like(argument) * pulled, own, argument.dtype)


def define_vjp(*rules: Callable[..., Any] | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that defines the vector-Jacobian product of a function by one rule for each positional argument.

    The parameters of a rule name the values that it reads: ``g``, the cotangent of the value; ``y``, the value; and the
    arguments of the function by their names. It returns the cotangent of its argument, of the shape and dtype of the argument,
    before or after broadcasting. None in place of a rule means that the derivative is zero. The function itself may be any
    code.

    Raises `TypeError` where a rule has another parameter, and `DerivativeError` or `ShapeError` as `custom_vjp` does.

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
        if unknown := {name for read in reads for name in read} - {"g", "y", *names}:
            raise TypeError(
                f"{f.__name__}: found a rule with parameters {', '.join(sorted(unknown))}, expected g, y or arguments by name"
            )

        def rule(g: Tree, y: Tree, *args: Tree) -> tuple[Tree, ...]:
            known = {"g": g, "y": y, **dict(zip(names, args, strict=False))}
            stated = zip(rules, reads, strict=True)
            pulled = [rule and rule(**{name: known[name] for name in read}) for rule, read in stated]
            return tuple(pulled[: len(args)])

        return custom_vjp(f, rule)

    return decorate
