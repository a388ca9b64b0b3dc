"""Transforms of functions into their derivatives. Arguments and results are arrays, Python numbers or trees of them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import DtypeError, ShapeError, StructureError, Tape, Variable, is_inexact, plain

Argnums = int | tuple[int, ...]


def _is_differentiable(leaf: Any, trainable: bool) -> bool:
    return trainable and (isinstance(leaf, (float, Variable)) or xp.is_inexact(leaf))


class _Watched:
    """The arguments of one call, on a tape: what to give to the function, and where its gradients go."""

    def __init__(self, tape: Tape, primals: Sequence[Any]) -> None:
        self.trees: list[Any] = []
        self.variables: list[Variable] = []
        # The structure of each argument, its leaves, and which are differentiated; None where it is a leaf itself.
        self._parts: list[tuple[tree.Structure, list[Any], list[int]] | None] = []
        for position, primal in enumerate(primals):
            if isinstance(primal, float) or is_inexact(primal):
                self.trees.append(tape.watch(primal))
                self.variables.append(self.trees[-1])
                self._parts.append(None)
                continue
            leaves, structure = tree.flatten(primal)
            if type(primal) is int:
                leaves = [float(primal)]
            chosen = [i for i, leaf in enumerate(leaves) if _is_differentiable(leaf, structure.is_trainable(i))]
            if not chosen:
                raise DtypeError(
                    f"argument {position} has nothing to differentiate: expected a float, an array of floating-point "
                    f"dtype or a tree that has one, found {_describe(primal)}"
                )
            inside: list[Any] = list(leaves)
            for i in chosen:
                inside[i] = tape.watch(leaves[i])
                self.variables.append(inside[i])
            self._parts.append((structure, leaves, chosen))
            self.trees.append(tree.unflatten(structure, inside))

    def unflatten(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients, in the structure of the arguments; leaves that are not differentiated are the arguments'."""
        remaining = iter(gradients)
        trees = []
        for part in self._parts:
            if part is None:
                trees.append(next(remaining))
                continue
            structure, leaves, chosen = part
            filled = list(leaves)
            for i in chosen:
                filled[i] = next(remaining)
            trees.append(tree.unflatten(structure, filled))
        return tuple(trees)


def _describe(value: Any) -> str:
    return f"{type(value).__name__} of dtype {value.dtype}" if xp.is_array(value) else type(value).__name__


def _split(tape: Tape, result: Any) -> tuple[Any, list[Any], tree.Structure]:
    """A function's result without the variables of ``tape``, and those variables (None for other leaves)."""
    leaves, structure = tree.flatten(result)
    own = [leaf if isinstance(leaf, Variable) and tape.owns(leaf) else None for leaf in leaves]
    values = [leaf if variable is None else variable.value for leaf, variable in zip(leaves, own, strict=True)]
    return tree.unflatten(structure, values), own, structure


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of ``f`` at the primals, and the pullback of cotangents: vector-Jacobian products.

    ``pullback(cotangent)`` takes a tree of the structure and shapes of the value and gives a tuple, one gradient for each
    primal, in its structure. It may be called any number of times. With ``has_aux``, ``f`` returns a pair, and its second
    item comes third, undifferentiated.

    Raises `DtypeError` where a primal has nothing to differentiate, and `StructureError` or `ShapeError` where a
    cotangent does not fit the value.

    >>> value, pullback = vjp(lambda x, y: x * y, 2.0, 5.0)
    >>> value, pullback(1.0)
    (10.0, (5.0, 2.0))
    """
    with Tape() as tape:
        watched = _Watched(tape, primals)
        result = f(*watched.trees)
        result, aux = result if has_aux else (result, None)
        value, outputs, structure = _split(tape, result)
        aux = _split(tape, aux)[0] if has_aux else None

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        cotangents, given = tree.flatten(cotangent)
        if given != structure:
            raise StructureError(f"the cotangent is {given}, the value {structure}")
        seeds = [(out, ct) for out, ct in zip(outputs, cotangents, strict=True) if out is not None]
        return watched.unflatten(tape.pull(seeds, watched.variables))

    return (value, pullback, aux) if has_aux else (value, pullback)


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the value of ``f`` and its gradient.

    The gradient has the structure of the argument ``argnums``, or is a tuple of such trees where ``argnums`` is a tuple.
    Python floats and arrays of floating-point dtype are differentiated; other leaves (functions, flags, integers, and
    what `oxigrad.field` marks as not trainable) appear in the gradient as they are. With ``has_aux``, ``f`` returns
    ``(value, aux)`` and the result is ``((value, aux), gradient)``.

    Raises `ShapeError` where the value is not a scalar, and `DtypeError` where an argument has nothing to differentiate.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (9.0, 6.0)
    """
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        if any(not -len(args) <= position < len(args) for position in positions):
            raise TypeError(f"argnums is {argnums}, and there are {len(args)} positional arguments")
        with Tape() as tape:
            watched = _Watched(tape, [args[position] for position in positions])
            filled = list(args)
            for position, inside in zip(positions, watched.trees, strict=True):
                filled[position] = inside
            result = f(*filled, **named)
            target, aux = result if has_aux else (result, None)
            value, aux = _scalar(tape, target), _split(tape, aux)[0] if has_aux else None
        if isinstance(target, Variable) and tape.owns(target):
            gradients = tape.gradient(target, watched.variables, release=True)
        else:
            gradients = [_zeros(variable.value) for variable in watched.variables]
        trees = watched.unflatten(gradients)
        gradient = trees[0] if isinstance(argnums, int) else trees
        return ((value, aux) if has_aux else value), gradient

    return wrapped


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of ``f``: see `value_and_grad`. With ``has_aux``: ``(gradient, aux)``.

    >>> grad(grad(lambda x: x**3))(2.0)
    12.0
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        value, gradient = both(*args, **named)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def _scalar(tape: Tape, target: Any) -> Any:
    value = target.value if isinstance(target, Variable) and tape.owns(target) else target
    if isinstance(value, (bool, int, float)):
        return value
    if not xp.is_array(value):
        raise ShapeError(f"the function must return a scalar to have a gradient, not {type(value).__name__}")
    if tuple(value.shape) != ():
        raise ShapeError(
            f"the function must return a scalar to have a gradient, not shape {tuple(value.shape)}: use vjp"
        )
    return value


def _zeros(value: Any) -> Any:
    return xp.zeros_like(value) if xp.is_array(plain(value)) else 0.0


def stop_gradient(x: Any) -> Any:
    """The tree ``x`` with plain values in place of variables: constants, as far as derivatives are concerned.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    leaves, structure = tree.flatten(x)
    return tree.unflatten(structure, [plain(leaf) for leaf in leaves])
