"""Transforms of functions into their derivatives. Arguments and results are arrays, Python numbers or trees of them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import _core, tree, xp
from oxigrad._core import DtypeError, ShapeError, StructureError, Tape, Variable, is_inexact, plain
from oxigrad.autodiff.cotangents import require_real
from oxigrad.autodiff.tangents import zero_tangent
from oxigrad.ops.aliasing import is_same_array
from oxigrad.ops.backends import dtype_of, is_array, is_complex, is_smooth

Argnums = int | tuple[int, ...]


def check_callable(f: Any, name: str) -> None:
    """Raises `TypeError` where something that is to be differentiated is no function."""
    if not callable(f):
        raise TypeError(f"{name}: found {f!r}: expected a function")


class _Watched:
    """The arguments of one call, on a tape: what to give to the function, and where its gradients go.

    The function gets copies of the variables, so that what it assigns to its arguments is its own affair.
    """

    def __init__(self, tape: Tape, primals: Sequence[Any]) -> None:
        self.trees: list[Any] = []
        self.variables: list[Variable] = []
        self._primals = primals
        # The structure of each argument, its leaves, and which are differentiated; None where it is a leaf itself.
        self._parts: list[tuple[tree.Structure, list[Any], list[int]] | None] = []
        for position, primal in enumerate(primals):
            if isinstance(primal, (float, complex)) or is_inexact(primal):
                self.variables.append(tape.watch(primal))
                self.trees.append(self.variables[-1].__copy__())
                self._parts.append(None)
                continue
            leaves, structure = tree.flatten(primal)
            if type(primal) is int:
                leaves = [float(primal)]
            chosen = [i for i, leaf in enumerate(leaves) if structure.is_trainable(i) and is_smooth(leaf)]
            if not chosen:
                raise DtypeError(
                    f"argument {position} has nothing to differentiate: expected a float, an array of floating-point "
                    f"dtype or a tree that has one, found {_describe(primal)}"
                )
            inside: list[Any] = list(leaves)
            for i in chosen:
                try:
                    self.variables.append(tape.watch(leaves[i]))
                except DtypeError as error:
                    raise DtypeError(f"{_at(structure, i, f'argument {position}')}: {error}") from None
                inside[i] = self.variables[-1].__copy__()
            self._parts.append((structure, leaves, chosen))
            self.trees.append(tree.unflatten(structure, inside))

    def unflatten(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients, in the structure of the arguments; leaves that are not differentiated are the arguments'."""
        remaining = iter(self._apart(gradients) if len(self.variables) > 1 else gradients)
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

    def _apart(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """The gradients, none of them one array with another of the same primal: an optimizer counts such an array once."""
        primals: list[int] = []
        for primal, part in zip(self._primals, self._parts, strict=True):
            primals += [id(primal)] if part is None else [id(part[1][i]) for i in part[2]]
        if len(set(primals)) == len(primals):
            return gradients
        found: list[Any] = []
        by_primal: dict[int, list[Any]] = {}
        for primal, g in zip(primals, gradients, strict=True):
            others = by_primal.setdefault(primal, [])
            is_another = is_array(g) and any(is_same_array(g, other) for other in others)
            found.append(xp.asarray(g, copy=True) if is_another else g)
            others.append(found[-1])
        return found

    def fitted(self, tangents: Sequence[Any]) -> list[Any]:
        """The tangents of the variables, from trees of the structure of the arguments."""
        if len(tangents) != len(self._parts):
            raise StructureError(f"there are {len(tangents)} tangents and {len(self._parts)} primals")
        fitted, remaining = [], iter(self.variables)
        for position, (part, tangent) in enumerate(zip(self._parts, tangents, strict=True)):
            where = f"argument {position}"
            structure, _, chosen = part or (_LEAF, [], [0])
            given = _leaves_like(structure, tangent, f"the tangent of {where}")
            for i in chosen:
                what = f"{_at(structure, i, where)}: the tangent"
                fitted.append(_fit(given[i], next(remaining).value, what, "the primal"))
        return fitted


_LEAF = tree.flatten(0.0)[1]


def _at(structure: tree.Structure, i: int, where: str = "") -> str:
    """Where a leaf is: the key path, if it has one."""
    path = str(structure.path(i))
    return f"{where}, {path}" if where and path else where or path


def _describe(value: Any) -> str:
    return f"{type(value).__name__} of dtype {value.dtype}" if is_array(value) else type(value).__name__


def _leaves_like(structure: tree.Structure, other: Any, what: str) -> list[Any]:
    try:
        return _core.tree_leaves(other, structure)
    except StructureError as error:
        raise StructureError(f"{what} has another structure: {error}") from None


def _fit(given: Any, value: Any, what: str, like: str) -> Any:
    """A tangent or cotangent, which must have the shape and the dtype of the value."""
    shape, expected = tuple(getattr(given, "shape", ())), tuple(getattr(value, "shape", ()))
    if not is_smooth(given) and type(given) is not int:
        raise DtypeError(f"{what} is {_describe(given)}: expected a float, or an array of floating-point dtype")
    if shape != expected:
        raise ShapeError(f"{what} has shape {shape}, {like} {expected}")
    if is_complex(given) and not is_complex(value):
        raise DtypeError(f"{what} is complex, {like} real")
    if not is_array(plain(value)):
        return given if isinstance(given, Variable) else float(given)
    if not is_array(plain(given)):
        return xp.ones_like(value) * given
    if dtype_of(given) != value.dtype:
        raise DtypeError(f"{what} has dtype {dtype_of(given)}, {like} {value.dtype}")
    return given


@functools.lru_cache(typed=True)
def _positions(argnums: Argnums, count: int) -> tuple[int, ...]:
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    for position in positions:
        if type(position) is not int:
            raise TypeError(f"argnums is {argnums!r}: expected an int, or a tuple of them")
        if not -count <= position < count:
            raise TypeError(f"argnums is {argnums}, and there are {count} positional arguments")
    if len(positions) > 1 and len({position % count for position in positions}) < len(positions):
        raise TypeError(f"argnums is {argnums}, and an argument is named twice")
    return positions


class Recording:
    """One call of a function on a tape: its value, and what of the value depends on the arguments."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence[Any],
        argnums: Argnums,
        *,
        named: dict[str, Any] | None = None,
        has_aux: bool = False,
        forward: bool = False,
    ) -> None:
        self._argnums = argnums
        several = tuple(argnums) if isinstance(argnums, (tuple, list)) else argnums
        positions = _positions(several, len(args))
        with Tape(forward=forward) as self.tape:
            self.watched = _Watched(self.tape, [args[position] for position in positions])
            filled = list(args)
            for position, inside in zip(positions, self.watched.trees, strict=True):
                filled[position] = inside
            result, self.aux = f(*filled, **(named or {})), None
            if has_aux:
                result, self.aux = self._pair(result)
            # The value without variables of this tape, and those variables: None for other leaves.
            self.value, self.outputs, self.structure = self._split(result)

    def _pair(self, result: Any) -> tuple[Any, Any]:
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"with has_aux the function returns a pair (value, aux), not {type(result).__name__}")
        return result[0], self._split(result[1])[0]

    def _split(self, result: Any) -> tuple[Any, list[Variable | None], tree.Structure]:
        if isinstance(result, Variable) and self.tape.owns(result):
            return result.value, [result], _LEAF
        leaves, structure = tree.flatten(result)
        own = [leaf if isinstance(leaf, Variable) and self.tape.owns(leaf) else None for leaf in leaves]
        values = [leaf if variable is None else variable.value for leaf, variable in zip(leaves, own, strict=True)]
        return tree.unflatten(structure, values), own, structure

    def arguments(self, derivatives: Sequence[Any]) -> Any:
        """The derivatives with respect to each variable, in the structure of the argument, or of a tuple of them."""
        trees = self.watched.unflatten(derivatives)
        return trees[0] if isinstance(self._argnums, int) else trees


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of ``f`` at the primals, and the pullback of cotangents: vector-Jacobian products.

    ``pullback(cotangent)`` takes a tree of the structure and shapes of the value and gives a tuple, one gradient for each
    primal, in its structure. It may be called any number of times. With ``has_aux``, ``f`` returns a pair, and its second
    item comes third, undifferentiated.

    Raises `DtypeError` where a primal has nothing to differentiate, and `StructureError`, `ShapeError` or `DtypeError`
    where a cotangent does not fit the value.

    >>> value, pullback = vjp(lambda x, y: x * y, 2.0, 5.0)
    >>> value, pullback(1.0)
    (10.0, (5.0, 2.0))
    """
    call = Recording(f, primals, tuple(range(len(primals))), has_aux=has_aux)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        given, seeds = _leaves_like(call.structure, cotangent, "the cotangent"), []
        for i, (output, leaf) in enumerate(zip(call.outputs, given, strict=True)):
            if output is not None:
                what = ": ".join(filter(None, (_at(call.structure, i), "the cotangent")))
                seeds.append((output, _fit(leaf, output.value, what, "the target")))
        return call.arguments(call.tape.pull(seeds, call.watched.variables))

    return (call.value, pullback, call.aux) if has_aux else (call.value, pullback)


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """The value of ``f`` at the primals, and its derivative along the tangents: a Jacobian-vector product.

    ``tangents`` has a tree for each primal, of its structure, shapes and dtypes; what stands in place of a leaf that is
    not differentiated is ignored. The tangent of the value has the structure of the value. With ``has_aux``, ``f`` returns
    a pair, and its second item comes third, undifferentiated.

    Raises `DtypeError` where a primal has nothing to differentiate, and `StructureError`, `ShapeError` or `DtypeError`,
    with the argument and the key path, where a tangent does not fit its primal.

    >>> jvp(lambda x, y: x * y, (2.0, 5.0), (1.0, 10.0))
    (10.0, 25.0)
    """
    call = Recording(f, primals, tuple(range(len(primals))), has_aux=has_aux, forward=True)
    seeds = zip(call.watched.variables, call.watched.fitted(tangents), strict=True)
    outputs = [output for output in call.outputs if output is not None]
    pushed = iter(call.tape.push(list(seeds), outputs))
    leaves = zip(call.outputs, tree.leaves(call.value), strict=True)
    filled = [_zero_or_same(leaf) if output is None else next(pushed) for output, leaf in leaves]
    tangent = tree.unflatten(call.structure, filled)
    return (call.value, tangent, call.aux) if has_aux else (call.value, tangent)


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the value of ``f`` and its gradient.

    The gradient has the structure of the argument ``argnums``, or is a tuple of such trees where ``argnums`` is a tuple.
    Python floats, Python complex numbers and arrays of floating-point or complex dtype are differentiated; other leaves
    (functions, flags, integers, and what `oxigrad.field` marks as not trainable) appear in the gradient as they are. A
    Python ``int`` that is a whole argument counts as a float. An array that stands at two paths has a gradient
    at each, that with respect to the one place, and the two are never one array: an optimizer adds them. With ``has_aux``, ``f`` returns
    ``(value, aux)`` and the result is ``((value, aux), gradient)``.

    Raises `ShapeError` where the value is not a scalar, and `DtypeError` where it is complex (as JAX and HIPS autograd do)
    or an argument has nothing to differentiate.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (9.0, 6.0)
    """
    check_callable(f, "grad")

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        call = Recording(f, args, argnums, named=named, has_aux=has_aux)
        value, variables = _scalar(call.value), call.watched.variables
        if (target := call.outputs[0]) is None:
            require_real(value, "the value of the function")
            gradients = [zero_tangent(variable.value, None) for variable in variables]
        else:
            gradients = call.tape.gradient(target, variables, release=True)
        return ((value, call.aux) if has_aux else value), call.arguments(gradients)

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


def _zero_or_same(leaf: Any) -> Any:
    """The derivative of what depends on nothing: zeros, or the leaf itself where it is nothing to differentiate."""
    return zero_tangent(leaf, None) if is_smooth(leaf) or type(leaf) is int else leaf


def _scalar(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if not is_array(value):
        hint = ": with an aux beside it, has_aux=True" if isinstance(value, tuple) and len(value) == 2 else ""
        raise ShapeError(f"the function must return a scalar to have a gradient, not {type(value).__name__}{hint}")
    if tuple(value.shape) != ():
        raise ShapeError(
            f"the function must return a scalar to have a gradient, not shape {tuple(value.shape)}: use vjp or jacobian"
        )
    return value


def stop_gradient(x: Any) -> Any:
    """The tree ``x`` with plain values in place of variables: constants, as far as derivatives are concerned.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    leaves, structure = tree.flatten(x)
    return tree.unflatten(structure, [plain(leaf) for leaf in leaves])
