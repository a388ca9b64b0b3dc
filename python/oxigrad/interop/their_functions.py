"""Functions of another library as differentiable functions of oxigrad, by that library's own autodiff."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad._core import BatchLevel, Variable
from oxigrad._names import check_callable, name_of
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.function_calls import FunctionCall, called_for_each, level_of
from oxigrad.interop.array_functions import ArrayCall, Pullback
from oxigrad.ops.backends import beneath, device_of, is_array, namespace
from oxigrad.ops.core.aliasing import apart
from oxigrad.ops.core.primitives import TupleCotangent

# A function from a list of the library's arrays to another.
Function = Callable[[Sequence[Any]], list[Any]]


class Autodiff:
    """Base class of other libraries' automatic differentiation."""

    def array(self, value: Array) -> Array:
        """A plain array or number as an array of the library, in the same memory if possible."""
        raise NotImplementedError

    def is_array(self, value: Any) -> bool:
        """Whether a value is an array of the library."""
        raise NotImplementedError

    def to_host(self, array: Array) -> Array:
        """An array of the library as a NumPy array, in the same memory if possible."""
        return np.asarray(array)

    def evaluate(self, f: Function, arrays: Sequence[Array]) -> list[Array]:
        """The outputs of a function, without derivatives."""
        return f(arrays)

    def record(self, f: Function, arrays: Sequence[Array], at: Sequence[int]) -> tuple[list[Array], Pullback]:
        """The outputs of a function, and the pullback to the arguments ``at`` these positions.

        Cotangents are not conjugated. An argument that no output depends on has None, if the library tells. The
        pullback is differentiable if the library differentiates the function twice.
        """
        raise NotImplementedError

    def pull(self, pullback: Pullback, cotangents: Mapping[int, Array]) -> list[Array]:
        """The cotangents of a pullback, without derivatives."""
        return pullback(cotangents)

    def zeros_like(self, array: Array) -> Array:
        """Zeros of the shape and dtype of an array of the library, as a constant."""
        return 0.0 * array


def differentiable(f: Callable[..., Any], theirs: Autodiff, name: str) -> Callable[..., Any]:
    """A function of trees of the library's arrays as one of trees of any arrays, which oxigrad differentiates.

    ``name`` is the public function that is called, for errors.
    """
    check_callable(f, name)

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Tree:
        call = ArrayCall(f, args, named, _is_ours, theirs.is_array)
        values, call.variables = call.variables, []
        like = next((x for x in map(beneath, values) if is_array(x)), None)
        return call.result(_called(call.compute, values, [like], theirs))

    return wrapped


def _is_ours(leaf: Any) -> bool:
    return isinstance(leaf, Variable) or is_array(leaf)


def _called(f: Function, values: Sequence[Array], likes: Sequence[Array], theirs: Autodiff) -> list[Array]:
    """The outputs of a library's function, recorded where values are variables.

    Each is an array of the library of its item of ``likes``, whose last item also counts for all further outputs.
    """

    def ours(outputs: Sequence[Array]) -> list[Array]:
        return [_like(likes[min(i, len(likes) - 1)], output, theirs) for i, output in enumerate(outputs)]

    def again(*values: Any) -> list[Array]:
        return _called(f, values, likes, theirs)

    at = [i for i, value in enumerate(values) if isinstance(value, Variable)]
    if not at:
        level = level_of(values)
        if level is not None:
            return called_for_each(again, tuple(values), {}, level)
        return apart(ours(theirs.evaluate(f, [*map(theirs.array, values)])), values)
    saved_pullbacks: list[Pullback] = []

    def forward(*values: Any) -> list[Array]:
        outputs, pullback = theirs.record(f, [*map(theirs.array, values)], at)
        saved_pullbacks[:] = [pullback]
        return apart(ours(outputs), values)

    count = len(values)
    call = FunctionCall(forward, tuple(values), {}, again, takes_batches=False, name=name_of(f))
    del values

    def pull(g: TupleCotangent, y: Array, chosen: Sequence[Array]) -> list[Array]:
        if not any(isinstance(value, (Variable, BatchLevel)) for value in (*chosen, *g.values())):
            cotangents = {i: theirs.array(cotangent) for i, cotangent in g.items()}
            derivatives = theirs.pull(saved_pullbacks[0], cotangents)
            return [
                None if cotangent is None else _like(value, cotangent, theirs)
                for value, cotangent in zip(chosen, derivatives, strict=True)
            ]
        (arguments, _), outputs = call.arguments(chosen), list(g)
        used: set[int] = set()  # in any of the examples of a batch

        def pulled(arrays: Sequence[Array]) -> list[Array]:
            pullback = theirs.record(f, arrays[:count], at)[1]
            cotangents = pullback(dict(zip(outputs, arrays[count:], strict=True)))
            used.update(i for i, cotangent in zip(at, cotangents, strict=True) if cotangent is not None)
            return [
                theirs.zeros_like(arrays[i]) if cotangent is None else cotangent
                for i, cotangent in zip(at, cotangents, strict=True)
            ]

        likes = [beneath(value) for value, active in zip(chosen, call.are_active, strict=True) if active]
        derivatives = _called(pulled, [*arguments, *g.values()], likes, theirs)
        by_argument = iter([derivative if i in used else None for i, derivative in zip(at, derivatives, strict=True)])
        return [next(by_argument) if active else None for active in call.are_active]

    return list(call.record(call.outputs, pull, None))


def _like(like: Array, array: Array, theirs: Autodiff) -> Array:
    """An array as one of the library of ``like``; a number if it has no axes, and ``like`` is a number or None."""
    if like is not None and theirs.is_array(like):
        return array
    host = theirs.to_host(array)
    if not is_array(like):
        return host.item() if host.shape == () else host
    if isinstance(like, (np.ndarray, np.generic)):
        return host
    return namespace(like).asarray(host, device=device_of(like))
