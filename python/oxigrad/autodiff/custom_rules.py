"""Functions with a derivative rule of their own, and functions that are computed again rather than kept."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import DerivativeError, ShapeError, Tape, Variable, plain, record
from oxigrad.autodiff.cotangents import unbroadcast, unbroadcast_to_number
from oxigrad.autodiff.tangents import zero_tangent
from oxigrad.ops import primitives
from oxigrad.ops.backends import is_array, is_smooth

# The cotangents or tangents of a call's leaves, some of which may be none.
Leaves = Sequence[Any]


class _Call:
    """A function of trees as a function of their leaves: of those that are variables to those that it returns.

    The tape keeps it, to call the function again. So it keeps no variable of the tape itself once it is recorded.
    """

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._f = f
        self._leaves, self._structure = tree.flatten((args, named))
        self._chosen = [i for i, leaf in enumerate(self._leaves) if isinstance(leaf, Variable)]
        self.variables = [self._leaves[i] for i in self._chosen]
        self.structure: tree.Structure | None = None

    def arguments(self, values: Leaves) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with these values in place of the variables."""
        filled = list(self._leaves)
        for i, value in zip(self._chosen, values, strict=True):
            filled[i] = value
        return tree.unflatten(self._structure, filled)

    def chosen(self, trees: Any) -> list[Any]:
        """The leaves that stand where the variables are, of a tree of the structure of the arguments."""
        leaves = tree.leaves(trees)
        return [None if leaves[i] is _Zero else leaves[i] for i in self._chosen]

    def outputs(self, values: Leaves) -> tuple[Any, ...]:
        """The leaves of what the function returns for these values."""
        args, named = self.arguments(values)
        leaves, self.structure = tree.flatten(self._f(*args, **named))
        return tuple(leaves)

    def taped(self, values: Leaves) -> tuple[Any, ...]:
        """The same, on a tape that is thrown away: what the function assigns to its arguments changes no array."""
        with Tape() as tape:
            outputs = self.outputs([tape.watch(value) for value in values])
        return tuple(output.value if _is_on(tape, output) else output for output in outputs)

    def record(
        self,
        call: Callable[[Leaves], tuple[Any, ...]],
        pull: Callable[..., Any],
        push: Callable[..., Any] | None,
    ) -> Any:
        """What ``call`` of the variables gives: one entry of the tape, and one for each leaf of the result."""
        if not self.variables:
            return self._result(self.outputs(()))

        def function(*values: Any) -> tuple[Any, ...]:
            outputs = call(values)
            if any(isinstance(output, Variable) for output in outputs):
                name = getattr(self._f, "__qualname__", repr(self._f))
                raise DerivativeError(
                    f"{name} uses a variable that is not among its arguments, and would lose its derivative: pass it "
                    "as an argument, or ox.stop_gradient of it"
                )
            return outputs

        variables, self.variables = self.variables, []
        for i in self._chosen:
            self._leaves[i] = None
        called = record("call", variables, {"function": function, "pull": pull, "push": push})
        return self._result(primitives.items(called))

    def _result(self, outputs: Leaves) -> Any:
        assert self.structure is not None, "the function has been called"  # noqa: S101
        return tree.unflatten(self.structure, outputs)


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function ``f``, of which the tape keeps the arguments and nothing else; it is called again in the backward pass.

    A chain of n such functions keeps n arguments and, one function at a time, what is inside. Forwards nothing is saved. What
    depends on a variable of an enclosing tape must be an argument: `DerivativeError` where ``f`` uses it otherwise. ``f``
    must give the same result each time.

    >>> from oxigrad import grad
    >>> grad(checkpoint(lambda x: x**3))(2.0)
    12.0
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        call = _Call(f, args, named)

        def pull(g: primitives.TupleCotangent, y: Any, values: Leaves) -> list[Any]:
            with Tape() as tape:
                variables = [tape.watch(value) for value in values]
                outputs = call.outputs(variables)
            seeds = [(outputs[at], ct) for at, ct in g.items() if _is_on(tape, outputs[at])]
            return tape.pull(seeds, variables, release=True)

        def push(values: Leaves, tangents: Leaves) -> dict[int, Any]:
            with Tape(forward=True) as tape:
                inside = [v if t is None else tape.watch(v) for v, t in zip(values, tangents, strict=True)]
                outputs = call.outputs(inside)
            targets = {at: output for at, output in enumerate(outputs) if _is_on(tape, output)}
            seeds = [(variable, t) for variable, t in zip(inside, tangents, strict=True) if t is not None]
            return dict(zip(targets, tape.push(seeds, list(targets.values())), strict=True))

        return call.record(call.taped, pull, push)

    return wrapped


def _is_on(tape: Tape, value: Any) -> bool:
    return isinstance(value, Variable) and tape.owns(value)


def custom_vjp(f: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """The function ``f`` with ``rule`` for its derivative, in both modes and to the order that ``rule`` can be differentiated.

    ``f`` is called with plain arrays and numbers, so that it may be any code; it must not change them in place, and what it
    returns counts as arrays of their own. ``rule(g, y, *args)`` takes the cotangent of the
    result, the result and the arguments, and gives a tuple with the cotangent of each argument; of a single argument,
    that cotangent alone. None stands for zeros. Arguments and results may be trees; a cotangent then has the structure of
    its argument, with anything in place of leaves that are not differentiated. What broadcasting did is undone. Forwards the rule, which is linear in ``g``, is transposed: it must use
    functions of `oxigrad.xp` on ``g``. Keyword arguments are passed to ``f`` alone.

    >>> from oxigrad import grad
    >>> clipped = custom_vjp(lambda x: x, lambda g, y, x: xp.minimum(g, 1.0))
    >>> grad(lambda x: 5.0 * clipped(x))(2.0)
    1.0
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        call, count = _Call(lambda *args: f(*args, **named), args, {}), len(args)

        def pull(g: primitives.TupleCotangent, y: Leaves, values: Leaves) -> list[Any]:
            arguments, _ = call.arguments(values)
            assert call.structure is not None, "the function has been called"  # noqa: S101
            filled = [g.get(at, zero_tangent(leaf, None) if is_smooth(leaf) else leaf) for at, leaf in enumerate(y)]
            result, cotangent = tree.unflatten(call.structure, y), tree.unflatten(call.structure, filled)
            pulled = rule(cotangent, result, *arguments)
            pulled = pulled if isinstance(pulled, tuple) or count != 1 else (pulled,)
            return call.chosen((_completed(pulled, arguments), {}))

        return call.record(call.outputs, pull, None)

    return wrapped


class _Zero:
    """Stands for a cotangent of zeros in a tree, where None would be a container."""


def _completed(pulled: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The cotangents in the structure of the arguments, fitted to them, with `_Zero` for each leaf that has none."""
    if not isinstance(pulled, tuple) or len(pulled) != len(arguments):
        given = f"{len(pulled)}" if isinstance(pulled, tuple) else type(pulled).__name__
        raise DerivativeError(
            f"the rule gave {given} cotangents: expected a tuple of {len(arguments)}, one an argument"
        )
    return tuple(map(_completed_tree, range(len(pulled)), pulled, arguments))


def _completed_tree(position: int, pulled: Any, argument: Any) -> Any:
    leaves, structure = tree.flatten(argument)
    if pulled is None:
        return tree.unflatten(structure, [_Zero] * len(leaves))
    fit = functools.partial(_fitted, position)
    return tree.map(fit, argument, pulled)


def _fitted(position: int, argument: Any, pulled: Any) -> Any:
    """The cotangent summed over what broadcasting repeated."""
    if not is_smooth(argument):
        return _Zero
    if not is_array(plain(argument)):
        return unbroadcast_to_number(pulled)
    shape, own = tuple(getattr(pulled, "shape", ())), tuple(argument.shape)
    added = len(shape) - len(own)
    if added < 0 or any(size not in (1, given) for size, given in zip(own, shape[added:], strict=True)):
        raise ShapeError(f"the rule gave a cotangent of shape {shape} for argument {position}, whose shape is {own}")
    return unbroadcast(pulled if is_array(pulled) else xp.ones_like(argument) * pulled, own, argument.dtype)


def derivative(*rules: Callable[..., Any] | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that states the derivative of a function of arrays, by a rule for each positional argument.

    As in the table of derivatives, a rule names what it reads: ``g`` the cotangent of the result, ``y`` the result, and the
    function's arguments by their names. None says that the derivative is zero. The function itself may be any code.

    >>> import math
    >>> from oxigrad import grad
    >>> @derivative(lambda g, x: g * 2.0 / math.sqrt(math.pi) * xp.exp(-x * x))
    ... def erf(x):
    ...     return math.erf(x)
    >>> round(grad(grad(erf))(0.5), 6)
    -0.878783
    """

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(f).parameters)
        reads = [list(inspect.signature(rule).parameters) if rule else [] for rule in rules]
        if unknown := {name for read in reads for name in read} - {"g", "y", *names}:
            raise TypeError(f"a rule of {f.__name__} reads {', '.join(sorted(unknown))}: expected g, y or an argument")

        def rule(g: Any, y: Any, *args: Any) -> tuple[Any, ...]:
            known = {"g": g, "y": y, **dict(zip(names, args, strict=False))}
            stated = zip(rules, reads, strict=True)
            pulled = [rule and rule(**{name: known[name] for name in read}) for rule, read in stated]
            return tuple(pulled[: len(args)])

        return custom_vjp(f, rule)

    return decorate
