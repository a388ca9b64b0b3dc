"""Transforms of functions into their derivatives. Arguments and results are arrays, Python numbers or trees of them."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from oxigrad import _core, tree, xp
from oxigrad._core import BatchLevel, DtypeError, ShapeError, Structure, StructureError, Tape, Variable, Watched, plain
from oxigrad._names import check_callable, check_flags
from oxigrad._typing import A, Argnums, Array, Differentiable, First, P, R, T, Tree, Ts
from oxigrad.autodiff.arguments import by_position, resolve, transformed
from oxigrad.autodiff.rules.cotangents import require_complex, require_real
from oxigrad.autodiff.rules.tangents import check_several, zero_or_same
from oxigrad.ops.backends import dtype_of, is_array, is_complex, is_smooth
from oxigrad.ops.core.aliasing import stopped

_LEAF = tree.flatten(0.0)[1]


def _at(structure: tree.Structure, i: int, where: str = "") -> str:
    """The location of a leaf for an error message: ``where`` and the key path, if it has one."""
    path = str(structure.path(i))
    return f"{where}, {path}" if where and path else where or path


def _describe(value: Any) -> str:
    return f"{type(value).__name__} of dtype {value.dtype}" if is_array(value) else type(value).__name__


def _leaves_like(structure: tree.Structure, other: Any, what: str) -> list[Any]:
    try:
        return _core.tree_leaves(other, structure)
    except StructureError as error:
        raise StructureError(f"{what}: {error}") from None


def _matched(derivative: Any, value: Any, what: str, like: str, batch: int | None = None) -> Any:
    """The tangent or cotangent ``derivative``, checked to match ``value``, or ``batch`` such values."""
    shape, expected = tuple(getattr(derivative, "shape", ())), tuple(getattr(value, "shape", ()))
    expected = expected if batch is None else (batch, *expected)
    if not is_smooth(derivative) and type(derivative) is not int:
        raise DtypeError(
            f"{what}: found {_describe(derivative)}, expected a float, or an array of floating-point dtype"
        )
    if shape != expected:
        of = like if batch is None else f"{like} after an axis of tangents"
        raise ShapeError(f"{what}: found shape {shape}, expected {expected}, the shape of {of}")
    if is_complex(derivative) and not is_complex(value):
        raise DtypeError(f"{what}: found a complex value, expected a real one, as {like} is")
    if not is_array(plain(value)):
        return derivative if isinstance(derivative, (Variable, BatchLevel)) or batch is not None else float(derivative)
    if not is_array(plain(derivative)):
        return xp.ones_like(value) * derivative
    if dtype_of(derivative) != value.dtype:
        raise DtypeError(f"{what}: found dtype {dtype_of(derivative)}, expected {value.dtype}, the dtype of {like}")
    return derivative


def _leading(tangents: Any, what: str) -> int:
    """The number of tangents that lie along the first axis of an array."""
    shape = tuple(getattr(tangents, "shape", ()))
    if not shape:
        raise ShapeError(f"{what}: found no dimensions, expected an axis of tangents first")
    return shape[0]


class Recording:
    """One call of a function on a tape: its value, and the variables of the tape among the leaves of the result.

    ``value`` is the result with variables replaced by plain values, ``outputs`` has the variable of each leaf or None,
    and ``structure`` is the structure of the result.
    """

    aux: Any
    value: Any
    outputs: list[Variable | None]
    structure: Structure

    def __init__(self, tape: Tape, watched: Watched, result: Any, argnums: Argnums, *, has_aux: bool = False) -> None:
        self._argnums = argnums
        self.tape = tape
        self.watched = watched
        result, self.aux = self._pair(result) if has_aux else (result, None)
        self.value, self.outputs, self.structure = self._split(result)

    @classmethod
    def of(
        cls,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        argnums: Argnums,
        *,
        named: dict[str, Any] | None = None,
        has_aux: bool = False,
        forward: bool = False,
        detaches: bool = False,
    ) -> "Recording":
        """Calls ``f`` on a new tape that watches the arguments ``argnums``."""
        tape = Tape(forward=forward, detaches=detaches)
        watched, result = _core.record_call(tape, f, args, named, argnums)
        return cls(tape, watched, result, argnums, has_aux=has_aux)

    def _pair(self, result: Any) -> tuple[Any, Any]:
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(
                f"has_aux=True: found a result of type {type(result).__name__}, expected a pair (value, aux)"
            )
        return result[0], self._split(result[1])[0]

    def _split(self, result: Any) -> tuple[Any, list[Variable | None], tree.Structure]:
        result = _core.value_of_constant(result)
        if isinstance(result, Variable) and self.tape.owns(result):
            return result.value, [result], _LEAF
        leaves, structure = tree.flatten(result)
        leaves = [*map(_core.value_of_constant, leaves)]
        variables = [leaf if isinstance(leaf, Variable) and self.tape.owns(leaf) else None for leaf in leaves]
        values = [
            leaf if variable is None else variable.value for leaf, variable in zip(leaves, variables, strict=True)
        ]
        return tree.unflatten(structure, values), variables, structure

    def matched(self, tangents: Sequence[Tree], *, together: bool = False) -> tuple[list[Array], int | None]:
        """The tangents of the variables, given trees of the structures of the arguments; checks shapes and dtypes.

        With ``together``, each tangent has a leading axis, whose size is returned as well.
        """
        structures = self.watched.structures
        if len(tangents) != len(structures):
            raise StructureError(f"found {len(tangents)} tangents, expected {len(structures)}, one for each primal")
        matched, remaining, batch = [], iter(self.watched.variables), None
        for position, (entry, tangent) in enumerate(zip(structures, tangents, strict=True)):
            where = f"argument {position}"
            structure, chosen = entry or (_LEAF, [0])
            leaves = _leaves_like(structure, tangent, f"the tangent of {where}")
            for i in chosen:
                what = f"{_at(structure, i, where)}: the tangent"
                if together and batch is None:
                    batch = _leading(leaves[i], what)
                matched.append(_matched(leaves[i], next(remaining).value, what, "the primal", batch))
        return matched, batch

    def pushed(self, tangents: Sequence[Tree], *, together: bool = False) -> Tree:
        """The derivative of the value along tangents of the arguments, in the structure of the value.

        With ``together``, each tangent, also of the value, has a leading axis of directions.
        """
        matched, batch = self.matched(tangents, together=together)
        seeds = list(zip(self.watched.variables, matched, strict=True))
        outputs = [output for output in self.outputs if output is not None]
        pushed = iter(self.tape.push(seeds, outputs, batch))
        leaves = zip(self.outputs, tree.leaves(self.value), strict=True)
        filled = [zero_or_same(leaf, batch) if output is None else next(pushed) for output, leaf in leaves]
        return tree.unflatten(self.structure, filled)

    def pulled(self, cotangent: Tree) -> Any:
        """The gradients by the arguments, given a cotangent of the value; checks its structure, shapes and dtypes."""
        cotangents, seeds = _leaves_like(self.structure, cotangent, "the cotangent"), []
        for i, (output, leaf) in enumerate(zip(self.outputs, cotangents, strict=True)):
            if output is not None:
                what = ": ".join(filter(None, (_at(self.structure, i), "the cotangent")))
                seeds.append((output, _matched(leaf, output.value, what, "the target")))
        return self.arguments(self.tape.pull(seeds, self.watched.variables))

    def arguments(self, derivatives: Sequence[Any]) -> Any:
        """The derivatives by the variables, in the structure of the argument or of the tuple of arguments."""
        trees = self.watched.unflatten(derivatives)
        return trees[0] if isinstance(self._argnums, int) else trees

    pulled.__qualname__ = "pullback"  # as errors of Python's name it


@overload
def vjp(
    f: Callable[[*Ts], R], *primals: *Ts, has_aux: Literal[False] = False
) -> tuple[R, Callable[[R], tuple[*Ts]]]: ...
@overload
def vjp(
    f: Callable[[*Ts], tuple[R, A]], *primals: *Ts, has_aux: Literal[True]
) -> tuple[R, Callable[[R], tuple[*Ts]], A]: ...
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of ``f`` at the primals, and its pullback, which computes vector-Jacobian products.

    Args:
        f: function to differentiate; its arguments and results are arrays, numbers or trees of them.
        *primals: values of the arguments at which ``f`` is evaluated, one tree for each.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.

    ``pullback(cotangent)`` takes a tree of the structure, shapes and dtypes of the value and returns a tuple with one
    gradient for each primal, of its structure. It may be called any number of times. With ``has_aux``, ``f`` returns
    ``(value, aux)`` and the result is ``(value, pullback, aux)``.

    Raises `DtypeError` if a primal has no leaf to differentiate. Raises `StructureError`, `ShapeError` or `DtypeError`
    if a cotangent differs from the value in structure, shape or dtype.

    >>> value, pullback = vjp(lambda x, y: x * y, 2.0, 5.0)
    >>> value, pullback(1.0)
    (10.0, (5.0, 2.0))
    """
    check_callable(f, "vjp")
    call = Recording.of(f, primals, tuple(range(len(primals))), has_aux=has_aux)
    return (call.value, call.pulled, call.aux) if has_aux else (call.value, call.pulled)


@overload
def jvp(
    f: Callable[..., R], primals: Sequence[Tree], tangents: Sequence[Tree], *, has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., tuple[R, A]], primals: Sequence[Tree], tangents: Sequence[Tree], *, has_aux: Literal[True]
) -> tuple[R, R, A]: ...
def jvp(f: Callable[..., Any], primals: Sequence[Tree], tangents: Sequence[Tree], *, has_aux: bool = False) -> Any:
    """The value of ``f`` at the primals, and its derivative along the tangents, the Jacobian-vector product.

    Args:
        f: function to differentiate; its arguments and results are arrays, numbers or trees of them.
        primals: values of the arguments at which ``f`` is evaluated, one tree for each.
        tangents: directions: one tree for each primal, of its structure, shapes and dtypes.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.

    ``tangents`` has a tree for each primal, of its structure, shapes and dtypes; items for leaves that are not
    differentiated are ignored. The tangent of the value has the structure of the value. Integers and booleans have a
    zero tangent, in the default floating-point dtype of their library. With ``has_aux``, ``f`` returns ``(value, aux)``
    and the result is ``(value, tangent, aux)``.

    Raises `DtypeError` if a primal has no leaf to differentiate. Raises `StructureError`, `ShapeError` or `DtypeError`,
    with the argument and the key path, if a tangent differs from its primal in structure, shape or dtype.

    >>> jvp(lambda x, y: x * y, (2.0, 5.0), (1.0, 10.0))
    (10.0, 25.0)
    """
    check_callable(f, "jvp")
    check_several(primals, tangents, "jvp")
    call = Recording.of(f, tuple(primals), tuple(range(len(primals))), has_aux=has_aux, forward=True)
    tangent = call.pushed(tangents)
    return (call.value, tangent, call.aux) if has_aux else (call.value, tangent)


@overload
def value_and_grad(
    f: Differentiable[P, T, R], argnums: First = None, has_aux: bool = False
) -> Callable[P, tuple[R, T]]: ...
@overload
def value_and_grad(
    f: Callable[P, R],
    argnums: Argnums | None = None,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    holomorphic: bool = False,
) -> Callable[P, tuple[R, Tree]]: ...
def value_and_grad(
    f: Callable[P, Any],
    argnums: Argnums | None = None,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, Any]]:
    """A function that returns the value of the scalar function ``f`` and its gradient.

    Args:
        f: scalar function of arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.
        argnames: name of the parameter to differentiate, or several names; keyword-only parameters too.
        holomorphic: whether arguments and value are complex and ``f`` is holomorphic.

    The gradient has the structure of the argument ``argnums``, the first one by default, or is a tuple of such trees if
    ``argnums`` is a tuple. ``argnames`` names parameters instead, keyword-only ones too. With both, the result is a
    tuple with ``argnums`` first. Arguments may be passed by name.

    Python floats, Python complex numbers and arrays of floating-point or complex dtype are differentiated. Other leaves
    (functions, flags, integers, and fields that `oxigrad.field` marks as not trainable) are copied to the gradient. A
    Python ``int`` that is a whole argument counts as a float, and an integer array as one of the library's default
    dtype. An array with two key paths has a gradient at each, with respect to that occurrence alone; the two gradients
    are different arrays, which an optimizer sums. With ``has_aux``, ``f`` returns ``(value, aux)`` and the function
    returns ``((value, aux), gradient)``.

    With ``holomorphic``, arguments and value are complex, and the result is the complex derivative of ``f``, which must
    be holomorphic. Without it, the gradient at a complex argument ``a + ib`` is ``df/da - i df/db``, as in JAX and HIPS
    autograd.

    Raises `ShapeError` unless the value has exactly one element. Raises `DtypeError` if the value is complex (as JAX
    and HIPS autograd do), if an argument has no leaf to differentiate, and, with ``holomorphic``, if an argument or the
    value is real.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (9.0, 6.0)
    >>> value_and_grad(lambda x, y: x * y, argnums=(0, 1))(3.0, 4.0)
    (12.0, (4.0, 3.0))
    """
    check_callable(f, "value_and_grad")
    check_flags(has_aux=has_aux, holomorphic=holomorphic)
    call = functools.partial(value_and_grad, f, argnums, has_aux, argnames=argnames, holomorphic=holomorphic)
    f, argnums = resolve(f, argnums, argnames)
    if holomorphic:
        return transformed(_holomorphic(f, argnums, has_aux), f, call)
    finish = functools.partial(_finish, argnums, has_aux)

    def wrapped(*args: Any, **named: Any) -> Any:
        if named:
            args, named = by_position(f, args, named, argnums)
        return _core.value_and_grad(f, args, named or None, argnums, has_aux, finish)

    return transformed(wrapped, f, call)


def value_and_grad_of(
    f: Callable[..., Any], primal: Tree, begin: Callable[..., Callable[[int, Any], bool]] | None = None
) -> tuple[Array, Tree]:
    """``value_and_grad(f)(primal)``, without the cost of creating the wrapper.

    ``begin(watched, constants, value)`` is called before the derivatives are replayed. It returns a function of the
    number of a variable and its gradient, which is called once the gradient is final and no remaining derivative reads
    the variable. If it returns true, the gradient is 0.0 in the result, and the variable's array may have changed.
    """
    check_callable(f, "grad")
    return _core.value_and_grad(f, (primal,), None, 0, False, _finish_first, begin)


def _finish(argnums: Argnums, has_aux: bool, tape: Tape, watched: Watched, result: Any) -> tuple[Any, Any]:
    """The value and the gradient of a recorded call whose result is not a variable of one real number."""
    return _with_gradient(Recording(tape, watched, result, argnums, has_aux=has_aux), has_aux, holomorphic=False)


def _holomorphic(f: Callable[..., Any], argnums: Argnums, has_aux: bool) -> Callable[..., Any]:
    """A function that returns the value of the holomorphic function ``f`` and its derivative."""

    def wrapped(*args: Any, **named: Any) -> Any:
        args, named = by_position(f, args, named, argnums)
        call = Recording.of(f, args, argnums, named=named, has_aux=has_aux)
        return _with_gradient(call, has_aux, holomorphic=True)

    return wrapped


def _with_gradient(call: Recording, has_aux: bool, *, holomorphic: bool) -> tuple[Any, Any]:
    """The value of a recorded call, with the auxiliary result if it has one, and the gradient."""
    value, variables = _scalar(call.value), call.watched.variables
    if holomorphic:
        require_complex([*variables, value], "grad")
    if (target := call.outputs[0]) is not None:
        cotangent = xp.ones_like(target.value) if holomorphic else None
        gradients = call.tape.gradient(target, variables, cotangent, release=True)
    else:
        if not holomorphic:
            require_real(value, "the value of the function")
        gradients = call.tape.pull([], variables, release=True)
    return ((value, call.aux) if has_aux else value), call.arguments(gradients)


_finish_first = functools.partial(_finish, 0, False)


@overload
def grad(f: Differentiable[P, T, Any], argnums: First = None, has_aux: Literal[False] = False) -> Callable[P, T]: ...
@overload
def grad(
    f: Differentiable[P, T, tuple[Any, A]], argnums: First = None, *, has_aux: Literal[True]
) -> Callable[P, tuple[T, A]]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: Argnums | None = None,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    holomorphic: bool = False,
) -> Callable[P, Tree]: ...
def grad(
    f: Callable[P, Any],
    argnums: Argnums | None = None,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """A function that returns the gradient of the scalar function ``f``.

    Args:
        f: scalar function of arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.
        has_aux: whether ``f`` returns a pair ``(value, aux)``; the gradient is then returned with ``aux``.
        argnames: name of the parameter to differentiate, or several names, instead of ``argnums``.
        holomorphic: whether arguments and value are complex and ``f`` is holomorphic.

    Returns:
        A function with the arguments of ``f``. It returns the gradient, a tree of the structure, shapes and dtypes of
        the argument, or a tuple of trees if ``argnums`` is a tuple. With ``has_aux`` it returns ``(gradient, aux)``.

    Raises `ShapeError` unless the value has exactly one element, and `DtypeError` if an argument has no leaf to
    differentiate.

    The gradient is computed in reverse mode: it costs a few evaluations of ``f``, for any number of arguments.
    Gradients of gradients work, to any order. `value_and_grad` returns the value too, and explains which leaves are
    differentiated; `jvp` is forward mode.

    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> grad(grad(lambda x: x**3))(2.0)
    12.0
    """
    check_callable(f, "grad")
    check_flags(has_aux=has_aux, holomorphic=holomorphic)
    call = functools.partial(grad, f, argnums, has_aux, argnames=argnames, holomorphic=holomorphic)
    f, argnums = resolve(f, argnums, argnames)
    finish = functools.partial(_finish, argnums, has_aux)
    both = _holomorphic(f, argnums, has_aux) if holomorphic else None

    def wrapped(*args: Any, **named: Any) -> Any:
        if both is not None:
            value, gradient = both(*args, **named)
            return (gradient, value[1]) if has_aux else gradient
        if named:
            args, named = by_position(f, args, named, argnums)
        value, gradient = _core.value_and_grad(f, args, named or None, argnums, has_aux, finish)
        return (gradient, value[1]) if has_aux else gradient

    return transformed(wrapped, f, call)


def _scalar(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if not is_array(value):
        hint = "; for a pair (value, aux), pass has_aux=True" if isinstance(value, tuple) and len(value) == 2 else ""
        raise ShapeError(f"the value of the function: found {type(value).__name__}, expected a scalar{hint}")
    if math.prod(value.shape) != 1:
        raise ShapeError(
            f"the value of the function: found shape {tuple(value.shape)}, expected a scalar: use vjp or jacobian"
        )
    return value


def stop_gradient(x: T) -> T:
    """The tree ``x`` with variables replaced by plain values: derivatives treat them as constants.

    Args:
        x: tree whose variables are replaced by their values.

    NumPy's arrays are read-only, as they may be the caller's: ``stop_gradient(x).copy()`` can be changed.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    return tree.map(stopped, x)
