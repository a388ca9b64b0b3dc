"""Functions of NumPy arrays as recorded ops: elementwise functions with derivatives, linear maps with an adjoint.

An argument of another library is copied to host memory, and the result is an array of that library. A function is one
entry ``call`` of the tape. Its derivatives are written in differentiable functions, so all orders follow.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._core import BatchLevel, DerivativeError, Variable, plain, record
from oxigrad._names import parameter_kinds
from oxigrad._typing import Array, Function, Results
from oxigrad.ops.backends import (
    adapter_of,
    array_of,
    batched_of,
    beneath,
    device_of,
    for_each_example,
    holds_variable,
    is_array,
    is_complex,
    is_of_kind,
    is_of_vmap,
    namespace,
    on_host,
    to_host,
)
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.array_like import in_double
from oxigrad.ops.core.primitives import TupleCotangent

# A partial derivative, whose parameters name the values that it reads, or a text that names a missing derivative.
Partial = Callable[..., Any] | str
Values = Sequence[Any]


def call(
    function: Callable[..., tuple[Array, ...]],
    args: Values,
    pull: Function,
    push: Function,
    *,
    takes_batches: bool = False,
) -> Any:
    """The tuple of results of ``function(*args)`` as an entry of the tape: `primitives.item` selects a result.

    Unless ``function`` takes batched values, it is called for each example of them.

    ``pull(g, y, *args)`` returns the cotangent of each argument from the cotangents ``g`` and the values ``y`` of the
    results, which are tuples. ``push(y, *args, *tangents)`` returns the tangents of the results. None means a zero
    cotangent or tangent.
    """

    def each(*values: Array) -> tuple[Array, ...]:
        return _of_examples(lambda *values: ops.items(record("call", list(values), attributes)), values) or function(
            *values
        )

    def pull_all(g: TupleCotangent, y: Values, values: Values) -> list[Array]:
        pulled = pull(tuple(g[at] for at in range(len(y))), tuple(y), *values)
        return [None if part is None else of_dtype(part, value) for part, value in zip(pulled, values, strict=True)]

    def push_all(values: Values, tangents: Values) -> dict[int, Any]:
        y = ops.items(record("call", list(values), attributes))
        return {at: t for at, t in enumerate(push(y, *values, *tangents)) if t is not None}

    attributes = {"function": function if takes_batches else each, "pull": pull_all, "push": push_all}
    return record("call", list(args), attributes)


def is_recorded(value: Array) -> bool:
    """Whether a function of a value is an entry of a tape, or one of the examples that `vmap` has batched in it."""
    return isinstance(value, Variable) or is_of_vmap(value)


def _of_examples(function: Callable[..., tuple[Array, ...]], values: Values) -> tuple[Any, ...] | None:
    """The stacked results of a function for each example of the highest level of batched values.

    None if no value is batched.
    """
    top = batched_of(values)
    if top is None:
        return None
    results = for_each_example(function, values, top.level)
    return tuple(type(top).of(top.level, ops.stack(list(parts))) for parts in zip(*results, strict=True))


def call_one(name: str, function: Function, args: Values, pull: Function, push: Function) -> Array:
    """As `call`, for a function with a single result: one cotangent, value and tangent."""
    outputs = call(
        lambda *values: computed(name, function, values),
        args,
        lambda g, y, *values: pull(g[0], y[0], *values),
        lambda y, *values: (push(y[0], *values),),
    )
    return ops.item(outputs, 0)


def of_dtype(cotangent: Array, value: Array) -> Array:
    """The cotangent in the dtype of its argument; its real part where the argument is real."""
    cotangent = ops.real(cotangent) if is_complex(cotangent) and not is_complex(value) else cotangent
    if not is_array(value) and isinstance(cotangent, np.generic):
        return cotangent.item()
    if not is_array(value) or not is_array(cotangent) or cotangent.dtype == value.dtype:
        return cotangent
    return ops.astype(cotangent, value.dtype)


def computed(name: str, function: Function, args: Values) -> tuple[Array, ...]:
    """The results of a function of NumPy arrays for plain arrays of any library, or numbers.

    Raises `NotImplementedError` for an array that the host cannot read. Unless the function is a ufunc, also raises it
    for an array that stands for values of other calls, as in a recording.
    """
    stacked = _of_examples(lambda *each: computed(name, function, tuple(map(plain, each))), args)
    if stacked is not None:
        return stacked
    like = next((arg for arg in args if is_array(arg)), None)
    if isinstance(function, np.ufunc) and any(isinstance(arg, BatchLevel) for arg in args):
        return _recorded(function, args, is_number=like is None)
    for arg in args:
        if is_array(arg) and isinstance(arg, BatchLevel):
            raise NotImplementedError(
                f"{name}: SciPy computes it of arrays in host memory: a recording, or an update rule, has none"
            )
        if is_array(arg) and not on_host(arg):
            raise NotImplementedError(
                f"{name}: {namespace(arg).__name__} has no function {name}, and its array cannot be read in host memory"
            )
    results = function(*(_native(to_host(arg)) if is_array(arg) else arg for arg in args))
    results = results if isinstance(results, tuple) else (results,)
    if like is None:
        return tuple(result.item() if isinstance(result, np.generic) else result for result in results)
    library, device = namespace(like), device_of(like)
    return (
        results
        if library is np
        else tuple(library.asarray(np.asarray(each, order="C"), device=device) for each in results)
    )


def _recorded(ufunc: np.ufunc, args: Values, *, is_number: bool) -> tuple[Array, ...]:
    """The results of a ufunc for values that stand for values of other calls.

    NumPy's protocol is used, so a recording calls the ufunc by name.
    """
    results: Any = ufunc(*args)
    results = results if isinstance(results, tuple) else (results,)
    return tuple(result.item() for result in results) if is_number else results


def _native(array: np.ndarray) -> np.ndarray:
    """The array in the byte order of the machine: some functions of SciPy read no other, and do not say so."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


# --- elementwise functions --------------------------------------------------------------------------------------------


class Elementwise:
    """A ufunc with its partial derivatives: one per argument, or per argument and result if it has several.

    A partial derivative names the values that it reads: ``y``, the result or the tuple of results, and arguments by
    their names. A text instead of a function names the missing derivative.
    """

    name: str
    names: tuple[str, ...]

    def __init__(self, name: str, ufunc: Callable[[], Any], names: Sequence[str], partials: Sequence[Array]) -> None:
        self.name, self.names, self._ufunc = name, tuple(names), ufunc
        self._partials = tuple(part if isinstance(part, tuple) else (part,) for part in partials)
        self._is_single = not any(isinstance(part, tuple) for part in partials)
        # A tree, as a recording watches it: without functions as keys.
        self._reads = tuple(
            tuple(() if isinstance(part, str) else tuple(parameter_kinds(part)) for part in parts)
            for parts in self._partials
        )

    def __call__(self, *args: Array) -> Results:
        """The value, recorded if an argument is a variable."""
        if len(args) != len(self.names):
            expected = ", ".join(self.names)
            raise TypeError(f"{self.name}: found {len(args)} arguments, expected {len(self.names)}: {expected}")
        args = tuple(array_of(arg, args) if isinstance(arg, (list, tuple)) else arg for arg in args)
        chosen = [at for at, arg in enumerate(args) if is_recorded(arg)]
        active = [at for at in chosen if holds_variable(args[at])]
        if not chosen:
            results = self._values(args)
            return results[0] if self._is_single else results
        constants = [None if at in chosen else arg for at, arg in enumerate(args)]

        def filled(values: Values) -> list[Array]:
            whole = list(constants)
            for at, value in zip(chosen, values, strict=True):
                whole[at] = value
            return whole

        def pull(g: Values, y: Values, *values: Array) -> list[Array]:
            whole = filled(values)
            return [
                _unbroadcast(_sum_of_products(g, self._derivatives(at, y, whole)), whole[at]) if at in active else None
                for at in chosen
            ]

        def push(y: Values, *values: Array) -> list[Array]:
            count = len(values) // 2
            whole, tangents = filled(values[:count]), values[count:]
            active = [(at, t) for at, t in zip(chosen, tangents, strict=True) if t is not None]
            columns = [(self._derivatives(at, y, whole), t) for at, t in active]
            return [_like(sum(partials[k] * t for partials, t in columns), of) for k, of in enumerate(y)]

        evaluated = lambda *values: self._values(filled(values))  # noqa: E731
        outputs = call(evaluated, [args[at] for at in chosen], pull, push, takes_batches=True)
        results = ops.items(outputs)
        return results[0] if self._is_single else results

    def _derivatives(self, at: int, y: Values, args: Values) -> list[Array]:
        """The partial derivatives of all results with respect to an argument."""
        # In double precision: compositions may overflow or cancel in a narrower dtype in which the function itself does
        # not.
        are_of_numpy = all(namespace(beneath(each)) is np for each in (*y, *args) if is_array(each))
        y, args = (tuple(_wide(each, are_of_numpy) for each in values) for values in (y, args))
        values = {"y": y[0] if self._is_single else y, **dict(zip(self.names, args, strict=True))}
        partials = []
        for part, names in zip(self._partials[at], self._reads[at], strict=True):
            if isinstance(part, str):
                raise DerivativeError(f"{self.name} is not differentiable with respect to {part}")
            partials.append(part(*(values[name] for name in names)))
        return partials

    def _values(self, args: Values) -> tuple[Array, ...]:
        """By the library's own function of that name, else by SciPy's; of all examples of batched values at once."""
        top = batched_of(args)
        if top is not None:
            ndim = max(len(getattr(arg, "shape", ())) for arg in args)
            results = self(*(_whole(arg, ndim) if is_of_vmap(arg) and arg.level == top.level else arg for arg in args))
            return tuple(type(top).of(top.level, each) for each in ((results,) if self._is_single else results))
        like = next((arg for arg in args if is_array(arg)), None)
        adapter = adapter_of(like)
        special = None if like is None or namespace(like) is np else adapter.special(self.name)
        if special is None:
            return computed(self.name, self._ufunc(), args)
        result = special(*(arg if is_array(arg) else adapter.filled(arg, like) for arg in args))
        return result if isinstance(result, tuple) else (result,)


def _wide(value: Array, are_of_numpy: bool) -> Array:
    """Real or complex floats in double precision; integers are orders and counts.

    Among NumPy's arrays, or without arrays, a Python number becomes a NumPy number, whose quotient by zero is infinite.
    """
    if isinstance(value, (float, complex)):
        return np.asarray(value)[()] if are_of_numpy else value
    is_inexact = is_array(value) and is_of_kind(
        value.dtype, ("real floating", "complex floating"), namespace(beneath(value))
    )
    return in_double(value) if is_inexact else value


def _whole(batched: Array, ndim: int) -> Array:
    """All examples of batched values with ``ndim`` dimensions each."""
    count, shape = batched.value.shape[0], batched.shape
    return ops.reshape(batched.value, (count, *(1,) * (ndim - len(shape)), *shape))


def _sum_of_products(g: Values, partials: Values) -> Array:
    # By functions: arrays of some libraries have operators that refuse a variable on their right.
    terms = [ops.multiply(one, partial) for one, partial in zip(g, partials, strict=True) if one is not None]
    return sum(terms[1:], start=terms[0]) if terms else None


def _unbroadcast(g: Array, value: Array) -> Array:
    """The cotangent summed over the axes along which the argument was broadcast."""
    if g is None:
        return None
    shape, target = tuple(getattr(g, "shape", ())), tuple(getattr(value, "shape", ()))
    if not is_array(plain(value)):
        return ops.sum(g) if shape else g
    added = len(shape) - len(target)
    axes = tuple(axis for axis, size in enumerate(shape) if axis < added or target[axis - added] != size)
    return ops.reshape(ops.sum(g, axis=axes), target) if axes else g


def _like(tangent: Array, y: Array) -> Array:
    """The tangent in the shape and dtype of the result."""
    if not is_array(plain(y)) or isinstance(tangent, int):
        return None if isinstance(tangent, int) else of_dtype(tangent, y)
    tangent = tangent if is_array(tangent) else ops.ones_like(y) * tangent
    tangent = tangent if tuple(tangent.shape) == tuple(y.shape) else ops.broadcast_to(tangent, tuple(y.shape))
    return of_dtype(tangent, y)


# --- linear maps ------------------------------------------------------------------------------------------------------


def linear(name: str, forward: Callable[[Array], Array], adjoint: Callable[[Array], Array], x: Array) -> Array:
    """A linear map of NumPy arrays, applied to an array of any library; ``adjoint`` is its transpose, a linear map too.

    Both are called with plain arrays; the adjoint of the adjoint is the map, so that derivatives of all orders follow.
    """
    if not is_recorded(x):
        return computed(name, forward, (x,))[0]
    pull = lambda g, y, x: (linear(name, adjoint, forward, g),)  # noqa: E731
    return call_one(name, forward, [x], pull, lambda y, x, t: linear(name, forward, adjoint, t))
