"""Batching rules of ops: an op on examples is the same op on the whole array, with attributes for its leading axis.

`RULES` has a rule for each class of ops. Elementwise ops align dimensions. Reductions and shapes count axes from the
second one (by the table of forward mode, `jvp_rules.LINEAR`). Products and decompositions take stacks of matrices.
Indexing by a batched key is done for each example, and the results are stacked.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import xp
from oxigrad._core import ShapeError, Variable, elementwise_functions, plain, record
from oxigrad._typing import Array
from oxigrad.autodiff.rules.jvp_rules import LINEAR, shifted_reduction
from oxigrad.ops.backends import UnbatchedError, examples_of, is_array, is_batched, namespace
from oxigrad.ops.core import primitives

# The array arguments of an op, with a leading axis where the flag is set; its attributes; the number of examples.
Rule = Callable[[list[Any], list[bool], dict[str, Any], int], Any]

_ELEMENTWISE = {function.__name__ for function in elementwise_functions()}


def on_examples(name: str, values: list[Any], flags: list[bool], named: dict[str, Any], level: int) -> Any:
    """The result of an op on arguments that have a leading axis if their flag is set; the result has the axis."""
    size = next(value.shape[0] for value, flag in zip(values, flags, strict=True) if flag)
    rule = RULES.get(name)
    if rule is not None:
        return rule(values, flags, named, size)
    if name in _ELEMENTWISE:
        return record(name, aligned(values, flags))
    return _linear(name, values, named, level)


def _ndim(value: Any, flag: bool) -> int:
    return len(getattr(value, "shape", ())) - flag


def _padded(value: Array, ndim: int) -> Array:
    """Examples with dimensions of size 1 in front, so that there are ``ndim``."""
    count, *shape = value.shape
    added = ndim - len(shape)
    return xp.reshape(value, (count, *(1,) * added, *shape)) if added else value


def aligned(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The arguments reshaped to equal ranks of their examples."""
    ndim = max(map(_ndim, values, flags))
    return [_padded(value, ndim) if flag else value for value, flag in zip(values, flags, strict=True)]


def _linear(name: str, values: list[Any], named: dict[str, Any], level: int) -> Any:
    """A structured op of one argument, with its attributes for a leading axis; else for each example."""
    keys = {key: value for key, value in named.items() if _has_batched(value, level)}
    if name not in LINEAR:
        raise TypeError(f"vmap: {name} has no batching rule")
    behind = None if keys else LINEAR[name](values[0], **named)
    if behind is not None:
        return _indexed(name, values[0], behind)
    each = [
        _indexed(name, values[0][at, ...], {key: _example(value, level, at) for key, value in named.items()})
        for at in examples_of(values[0])
    ]
    shapes = sorted({tuple(example.shape) for example in each})
    if len(shapes) > 1:
        shown = ", ".join(map(str, shapes))
        raise UnbatchedError(
            f"vmap: {name}: the results of the examples differ in their shapes: found {shown}, expected the same"
        )
    return xp.stack(each)


def _indexed(name: str, x: Array, named: dict[str, Any]) -> Any:
    """An op of one argument whose attributes may hold the examples of a batch outside of this one."""
    return record(name, [functools.reduce(primitives.for_examples, named.values(), x)], named)


def _has_batched(value: Any, level: int) -> bool:
    if isinstance(value, tuple):
        return any(_has_batched(part, level) for part in value)
    return is_batched(value) and value.level == level


def _example(value: Any, level: int, at: int) -> Any:
    """One example of the batched values of a level in a key."""
    if isinstance(value, tuple):
        return tuple(_example(part, level, at) for part in value)
    return plain(value.value[at, ...]) if _has_batched(value, level) else value


def _repeated(values: list[Any], flags: list[bool], size: int) -> list[Any]:
    """All arguments with the leading axis."""
    like = next(value for value, flag in zip(values, flags, strict=True) if flag)

    def of(value: Any) -> Any:
        array = (
            value
            if is_array(value) or isinstance(value, Variable)
            else namespace(like).asarray(value, dtype=like.dtype)
        )
        return xp.broadcast_to(array, (size, *array.shape))

    return [value if flag else of(value) for value, flag in zip(values, flags, strict=True)]


def _joined(join: Callable[..., Any]) -> Rule:
    return lambda values, flags, named, size: join(_repeated(values, flags, size), axis=named["axis"] + 1)


def _matmul(values: list[Any], flags: list[bool], named: dict[str, Any], size: int) -> Any:
    ndims = list(map(_ndim, values, flags))
    if 0 in ndims:
        raise ShapeError("matmul: found an argument without dimensions, expected at least one")
    left, right = values
    left = xp.expand_dims(left, axis=-2) if ndims[0] == 1 else left
    right = xp.expand_dims(right, axis=-1) if ndims[1] == 1 else right
    product = record("matmul", aligned([left, right], flags))
    gone = (-2,) * (ndims[0] == 1) + (-1,) * (ndims[1] == 1)
    return xp.squeeze(product, axis=gone) if gone else product


def _solve(values: list[Any], flags: list[bool], named: dict[str, Any], size: int) -> Any:
    is_vector = _ndim(values[1], flags[1]) == 1
    right = xp.expand_dims(values[1], axis=-1) if is_vector else values[1]
    solution = record("solve", aligned([values[0], right], flags))
    return xp.squeeze(solution, axis=-1) if is_vector else solution


def _broadcast_to(values: list[Any], flags: list[bool], named: dict[str, Any], size: int) -> Any:
    shape = named["shape"]
    return xp.broadcast_to(_padded(values[0], len(shape)), (size, *shape))


def _cofactor(values: list[Any], flags: list[bool], named: dict[str, Any], size: int) -> Any:
    return record("cofactor", aligned(_repeated(values, flags, size), [True] * len(values)))


def _reduction(name: str) -> Rule:
    return lambda values, flags, named, size: record(name, values, shifted_reduction(values[0], **named))


def _stacked(name: str) -> Rule:
    """An op that takes a stack of matrices."""
    return lambda values, flags, named, size: record(name, values, named)


RULES: dict[str, Rule] = {
    "broadcast_to": _broadcast_to,
    "cofactor": _cofactor,
    "concat": _joined(xp.concat),
    "matmul": _matmul,
    "solve": _solve,
    "stack": _joined(xp.stack),
    **{name: _reduction(name) for name in ("max", "min", "vector_norm")},
    **{name: _stacked(name) for name in "inv cholesky qr svd eigh eig det slogdet sqrtm pinv kink".split()},
}
