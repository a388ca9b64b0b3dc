"""User-defined derivative rules: `custom_vjp`, `define_vjp` and `define_jvp`."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from oxigrad import tree, xp
from oxigrad._core import DerivativeError, ShapeError, Tape, Variable, call_leaves, plain
from oxigrad._names import check_callable, name_of
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.arguments import check_rules, rules_by_position
from oxigrad.autodiff.function_calls import (
    FunctionCall,
    Leaves,
    Zero,
    call_read_only,
    called_for_each,
    is_traced,
    level_of,
)
from oxigrad.autodiff.rules.cotangents import unbroadcast, unbroadcast_to_number
from oxigrad.autodiff.rules.tangents import check_numeric, owned, summed, zero_or_same, zero_tangent
from oxigrad.ops.backends import is_array, is_smooth
from oxigrad.ops.core import primitives
from oxigrad.ops.core.aliasing import read_only

# ``pull(g, y, args, named, at, residuals)``: the cotangents of the arguments, of which those at the positions ``at``
# hold variables, from the cotangent of the value, and the value.
Pullback = Callable[[Any, Any, tuple[Any, ...], dict[str, Any], Sequence[int], Any], Any]
# ``push(tangents, args, named, at)``: trees whose sum is the tangent of the value, from the tangents of all arguments.
Pushforward = Callable[[tuple[Any, ...], tuple[Any, ...], dict[str, Any], Sequence[int]], list[Any]]


class CustomVJP(Protocol):
    """A function with a derivative rule, as returned by `custom_vjp`."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The value of the function."""

    def defvjp(self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., Any]) -> None:
        """Defines the rule: ``fwd(*args)`` returns the value and residuals, ``bwd(residuals, g)`` the cotangents."""


class Rule(NamedTuple):
    """The rule of a function: its forward pass (if it reads residuals), its pullback and its pushforward.

    A pushforward without a pullback is transposed.
    """

    fwd: Callable[..., tuple[Any, Any]] | None
    pull: Pullback | None
    push: Pushforward | None = None

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
        """The value of the function and the residuals, or None without residuals."""
        return self.pair((self.fwd or f)(*args, **named))

    def pair(self, result: Any) -> tuple[Any, Any]:
        """The value and the residuals in the result of a call."""
        if self.fwd is None:
            return result, None
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"fwd: found a result of type {type(result).__name__}, expected a pair (value, residuals)")
        return result


def custom_vjp(f: Callable[..., Any], rule: Callable[..., Any] | None = None) -> CustomVJP:
    """The function ``f`` with a user-defined vector-Jacobian product.

    Args:
        f: function whose derivative you define; it may be any code.
        rule: function ``(g, y, *args)`` that returns the cotangents of the arguments; None where ``defvjp`` sets
            it.

    The rule has one of two forms. As in JAX, ``f.defvjp(fwd, bwd)`` sets it afterwards. ``fwd(*args)`` returns a pair
    of the value and residuals (any object); ``bwd(residuals, g)`` returns the cotangents of the arguments, where ``g``
    is the cotangent of the value. The other form is ``rule(g, y, *args)``, which returns them from the cotangent, the
    value and the arguments.

    The cotangents are a tuple with one item for each positional argument, of its structure, shape and dtype. For a
    single argument, the cotangent alone is accepted. An item of None means zeros. Items for leaves that are not
    differentiated are ignored. Cotangents are unbroadcast to the shape of the argument. Arguments and values may be
    trees. Keyword arguments are passed on, and not differentiated.

    ``f`` and ``fwd`` are called with plain arrays and numbers, and may be any code. Their results are assumed to share
    no memory with the arguments. No function may change its arguments in place; NumPy's arrays are read-only. Under
    `oxigrad.vmap`, ``f`` and ``fwd`` are called for each example. For derivatives of higher order ``fwd`` is called
    again with variables; it and ``bwd``, or ``rule``, must then be differentiable. In forward mode it is transposed.

    Raises `DerivativeError` if no rule is set, if the rule does not return one cotangent for each argument, if ``f``
    uses a variable that is not an argument, or in forward mode if a cotangent does not depend on ``g``. Raises
    `ShapeError` if a cotangent cannot be unbroadcast to the shape of its argument, and `DtypeError` if it is complex
    and its argument real.

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
    check_callable(f, "custom_vjp")
    if rule is not None:
        check_callable(rule, "custom_vjp, rule")
    # These are closure variables, not attributes: recordings watch the variables that a function reads.
    forward: Callable[..., tuple[Any, Any]] | None = None
    pull: Pullback | None = None if rule is None else lambda g, y, args, *_: _called(rule, g, y, *args)

    def defvjp(fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., Any]) -> None:
        """Sets the rule ``fwd(*args)``, ``bwd(residuals, g)``."""
        nonlocal forward, pull
        for function, name in ((fwd, "fwd"), (bwd, "bwd")):
            check_callable(function, f"defvjp, {name}")
        forward, pull = fwd, lambda *call: _called(lambda g: bwd(call[-1], g), call[0])

    whole, expand = entries(f, lambda: Rule(forward, pull))

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        return call_leaves(f, forward, pull, False, whole, expand, args, named)

    vars(wrapped)["defvjp"] = defvjp
    return cast(CustomVJP, wrapped)


def _called(rule: Callable[..., Any], g: Tree, *args: Any) -> Any:
    pulled = call_read_only(rule, g, *args)
    if pulled is None:  # as of a rule without a return statement
        raise DerivativeError("the rule returned None: expected a tuple of cotangents, one for each argument")
    return pulled


def entries(f: Callable[..., Any], rule: Callable[[], Rule]) -> tuple[Callable[..., Any], Callable[..., "RuledCall"]]:
    """Functions that `call_leaves` calls for ``f`` and its rule at that time: on trees, and on leaves."""

    def whole(args: tuple[Any, ...], named: dict[str, Any], outcome: tuple[Any, ...]) -> Any:
        return call_by_rule(f, rule(), args, named, outcome)

    def expand(*call: Any) -> RuledCall:
        return RuledCall.of_leaves(f, rule(), *call)

    return whole, expand


def with_pullback(f: Callable[..., Any], pull: Pullback) -> Callable[..., Any]:
    """The function ``f`` with a rule that is known at its definition."""
    whole, expand = entries(f, lambda: Rule(None, pull))

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        return call_leaves(f, None, pull, False, whole, expand, args, named)

    return wrapped


def call_by_rule(
    f: Callable[..., Any], rule: Rule, args: tuple[Any, ...], named: dict[str, Any], outcome: tuple[Any, ...] = ()
) -> Any:
    """A call of ``f`` with a rule, on trees of any leaves.

    ``outcome`` holds the result of its forward pass where it was called.
    """
    if not any(isinstance(leaf, Variable) for leaf in tree.leaves(args)):
        again = lambda *args, **named: call_by_rule(f, rule, tree.map(read_only, args), named)  # noqa: E731
        return call_on_values(f, again, args, named)
    if rule.pull is None and rule.push is None:
        name = name_of(f)
        raise DerivativeError(
            f"no derivative is defined for {name}: expected {name}.defvjp(fwd, bwd) before it is called"
        )
    call = RuledCall(f, rule, args, named, outcome)
    return call.record(call.outputs, call.pull, call.push if rule.push else None)


class RuledCall(FunctionCall):
    """A call of a function with a rule. The tape keeps it alive: it refers to no variable."""

    def __init__(
        self,
        f: Callable[..., Any],
        rule: Rule,
        args: tuple[Any, ...],
        named: dict[str, Any],
        outcome: tuple[Any, ...] = (),
        is_variable: Callable[[Any], bool] = is_traced,
    ) -> None:
        zeros: list[Any] = []  # zero tangents of the results, None for those without a tangent

        def again(*args: Any) -> Any:
            result = call_by_rule(f, rule, tree.map(read_only, args), named)
            zeros[:] = _zeros(tree.leaves(result))
            return result

        super().__init__(f, args, {}, again, takes_batches=False, name=name_of(f), is_variable=is_variable)
        self._rule, self._named, self._outcome = rule, named, [*outcome]
        self._at = tuple(at for at, arg in enumerate(args) if any(map(is_variable, tree.leaves(arg))))
        self._residuals: list[Any] = []  # none where the function was called for each example of batched values
        self._zeros = zeros

    @classmethod
    def of_leaves(
        cls,
        f: Callable[..., Any],
        rule: Rule,
        args: tuple[Any, ...],
        named: dict[str, Any],
        hole: Any,
        y: Any,
        residuals: Any,
    ) -> "RuledCall":
        """A call of leaves that the core has recorded, with ``hole`` in the place of each variable."""
        call = cls(f, rule, args, named, (), lambda leaf: leaf is hole)
        call._zeros = _zeros(call.leaves(y))
        call._residuals = [residuals]
        return call

    def function(self, *values: Any) -> tuple[Any, ...]:
        """The results for values of the variables, as an entry of a tape has them."""
        return self.results(self.outputs, *values)

    def outputs(self, values: Leaves) -> tuple[Any, ...]:
        """The leaves of the function's result for these values."""
        args, _ = self.arguments([*map(read_only, values)])
        rule = self._rule
        value, residuals = rule.pair(self._outcome.pop()) if self._outcome else rule.call(self._f, args, self._named)
        self._residuals[:] = [residuals]
        leaves = self.leaves(value)
        self._zeros[:] = _zeros(leaves)
        return leaves

    def pull(self, g: dict[int, Any], y: Leaves, values: Leaves) -> list[Any]:
        """The cotangents of the variables."""
        level = _level_of_constants((*g.values(), *y, *values))
        if level is not None:
            return called_for_each(self.pull, (dict(g), tuple(y), tuple(values)), {}, level)
        g = primitives.TupleCotangent(g)
        if self._rule.pull is None:
            return self._transposed(g, values)
        arguments, _ = self.arguments([*map(read_only, values)])
        assert self.structure is not None, "the function has been called"  # noqa: S101
        y = [*map(read_only, y)]
        filled = [g.get(at, zero_or_same(leaf)) for at, leaf in enumerate(y)]
        result, cotangent = tree.unflatten(self.structure, y), tree.unflatten(self.structure, filled)
        # If the arguments are variables of an enclosing tape, the residuals must be variables too.
        are_saved = bool(self._residuals) and not any(isinstance(value, Variable) for value in values)
        is_read = self._rule.fwd is not None
        residuals = None
        if is_read:
            residuals = self._residuals[0] if are_saved else self._rule.call(self._f, arguments, self._named)[1]
        pulled = self._rule.pull(cotangent, result, arguments, self._named, self._at, residuals)
        return self.fitted(pulled, values)

    def fitted(self, pulled: Any, values: Leaves) -> list[Any]:
        """The cotangents of the variables that the rule has returned for its arguments, unbroadcast."""
        arguments, _ = self.arguments(values)
        pulled = pulled if isinstance(pulled, tuple) or len(arguments) != 1 else (pulled,)
        return self.chosen((_completed(pulled, arguments), {}))

    def push(self, values: Leaves, tangents: Leaves) -> dict[int, Any]:
        """The tangents of the results."""
        level = _level_of_constants((*values, *tangents))
        if level is not None:
            return called_for_each(self.push, (tuple(values), tuple(tangents)), {}, level)
        arguments, _ = self.arguments([*map(read_only, values)])
        filled = [zero_tangent(v, None) if t is None else t for v, t in zip(values, tangents, strict=True)]
        directions, _ = self.tangents(filled)
        assert self._rule.push is not None, "the rule is one of tangents"  # noqa: S101
        parts = self._rule.push(directions, arguments, self._named, self._at)
        return summed(self.name, parts, self.structure, self._zeros)

    def _transposed(self, g: primitives.TupleCotangent, values: Leaves) -> list[Any]:
        with Tape() as tape:
            directions = [tape.watch(zero_tangent(value)) for value in values]
            pushed = self.push(values, directions)
        are_owned = owned(tape, [*pushed.values()], self.name, "tangent", "t")
        seeds = [(pushed[at], g[at]) for at, of in zip(pushed, are_owned, strict=True) if of and g[at] is not None]
        return tape.pull(seeds, directions, zeros=False)

    def seed(self, tape: Tape, term: Any, y: Array) -> Variable | None:
        """A term of the tangent of a result that is a leaf, fitted to it; None where it depends on no tangent."""
        fitted = summed(self.name, [term], tree.flatten(y)[1], [y])[0]
        return fitted if owned(tape, [fitted], self.name, "tangent", "t")[0] else None


def _zeros(leaves: Leaves) -> list[Any]:
    return [zero_tangent(leaf, None) if is_smooth(leaf) else None for leaf in leaves]


def call_on_values(
    f: Callable[..., Any], again: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """A call of ``f`` on values that are no variables; of batched ones ``again`` for each example."""
    level = level_of(tree.leaves((args, named)))
    return f(*args, **named) if level is None else called_for_each(again, args, named, level)


def _level_of_constants(values: Leaves) -> int | None:
    """The highest level of batched values if no argument is a variable, else None.

    A rule is called on variables, and batched beneath them.
    """
    return None if any(isinstance(value, Variable) for value in values) else level_of(values)


def _completed(pulled: Any, arguments: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """The cotangents in the structure of the arguments, unbroadcast, with `Zero` for each leaf without one."""
    if not isinstance(pulled, tuple) or len(pulled) != len(arguments):
        result = f"a tuple of {len(pulled)}" if isinstance(pulled, tuple) else type(pulled).__name__
        raise DerivativeError(
            f"the rule: found {result}, expected a tuple of {len(arguments)} cotangents, one for each argument"
        )
    return tuple(map(_completed_tree, range(len(pulled)), pulled, arguments))


def _completed_tree(position: int, pulled: Tree, argument: Tree) -> Tree:
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
    check_numeric(f"argument {position}: found a cotangent", pulled, argument)
    if not is_array(plain(argument)):
        return unbroadcast_to_number(pulled)
    shape, expected = tuple(getattr(pulled, "shape", ())), tuple(argument.shape)
    added = len(shape) - len(expected)
    if added < 0 or any(size not in (1, length) for size, length in zip(expected, shape[added:], strict=True)):
        raise ShapeError(f"argument {position}: found a cotangent of shape {shape}, expected {expected}")
    return unbroadcast(pulled if is_array(pulled) else xp.ones_like(argument) * pulled, expected, argument.dtype)


def define_vjp(*rules: Callable[..., Any] | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that defines the vector-Jacobian product of a function by one rule for each positional argument.

    Args:
        *rules: one function for each positional argument, or None for a derivative of zero.

    The parameters of a rule name the values that it reads: ``g``, the cotangent of the value; ``y``, the value; and the
    arguments of the function by their names. It returns the cotangent of its argument, of the shape and dtype of the
    argument, before or after broadcasting. None instead of a rule means that the derivative is zero. The function
    itself may be any code.

    Raises `TypeError` for a rule with another parameter or without ``g``, and `DerivativeError`, `ShapeError` or
    `DtypeError` as `custom_vjp` does.

    >>> import math
    >>> from oxigrad import grad
    >>> @define_vjp(lambda g, x: g * 2.0 / math.sqrt(math.pi) * xp.exp(-x * x))
    ... def erf(x):
    ...     return math.erf(x)
    >>> round(grad(grad(erf))(0.5), 6)
    -0.878783
    """
    check_rules("define_vjp", rules, "g")

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        called = rules_by_position("define_vjp", f, rules, ("g", "y"))

        def pull(g: Tree, y: Tree, args: tuple[Tree, ...], named: dict[str, Any], *_: Any) -> tuple[Tree, ...]:
            rule = lambda g: tuple([call and call((g, y, *args), named) for call in called[: len(args)]])  # noqa: E731
            return _called(rule, g)

        return with_pullback(f, pull)

    return decorate


def define_jvp(*rules: Callable[..., Any] | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that defines the Jacobian-vector product of a function by one rule for each positional argument.

    Args:
        *rules: one function for each positional argument, or None for a derivative of zero.

    The parameters of a rule name the values that it reads: ``t``, the tangent of its argument; ``y``, the value; and
    the arguments of the function by their names. It returns the term of the value's tangent that comes from its
    argument. The term is linear in ``t``, and has the structure of the value, with its shapes before or after
    broadcasting. None instead of a rule means that the derivative is zero. The function itself may be any code; keyword
    arguments are passed on, and not differentiated.

    In reverse mode the rules are transposed. For derivatives of higher order they are called with variables, and must
    be differentiable. `define_vjp` states the same derivative by its transpose.

    Raises `TypeError` for a rule with another parameter or without ``t``, or an argument without a rule, `ShapeError`
    for a tangent that cannot be broadcast to the shape of the value, and `DtypeError` for a complex one of a real
    value.

    >>> import math
    >>> from oxigrad import grad, jvp
    >>> @define_jvp(lambda t, x: t * 2.0 / math.sqrt(math.pi) * xp.exp(-x * x))
    ... def erf(x):
    ...     return math.erf(x)
    >>> round(jvp(erf, (0.5,), (1.0,))[1], 6), round(grad(grad(erf))(0.5), 6)
    (0.878783, -0.878783)
    """
    check_rules("define_jvp", rules, "t")

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        called = tuple(rules_by_position("define_jvp", f, rules, ("t", "y")))
        reads_value = any(rule and "y" in inspect.signature(rule).parameters for rule in rules)

        def push(t: tuple[Tree, ...], args: tuple[Tree, ...], named: dict[str, Any], _: Sequence[int]) -> list[Tree]:
            y = wrapped(*args, **named) if reads_value else None

            def term(call: Callable[..., Any], t: Tree) -> Tree:
                return call_read_only(lambda t: call((t, y, *args), named), t)

            return [term(call, of) for call, of in zip(called, t, strict=False) if call]

        whole, expand = entries(f, lambda: Rule(None, None, push))

        @functools.wraps(f)
        def wrapped(*args: Any, **named: Any) -> Any:
            if len(args) > len(rules):
                raise TypeError(
                    f"{f.__name__}: found {len(args)} arguments, expected at most {len(rules)}, one for each rule"
                )
            return call_leaves(f, None, called, True, whole, expand, args, named)

        return wrapped

    return decorate
