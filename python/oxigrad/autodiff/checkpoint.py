"""Gradient checkpointing, and functions called for each example of a batch: derivatives call both again."""

import contextlib
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oxigrad import tree
from oxigrad._core import BatchLevel, Tape, Variable, plain, record
from oxigrad._names import check_callable
from oxigrad._typing import Array, P, R
from oxigrad.autodiff.arguments import transformed
from oxigrad.autodiff.function_calls import FunctionCall, Leaves, called_for_each, is_on, level_of
from oxigrad.ops.backends import UnbatchedError, install_one_by_one, is_of_vmap, is_smooth
from oxigrad.ops.core import primitives


def checkpoint(f: Callable[P, R]) -> Callable[P, R]:
    """Gradient checkpointing: ``f`` is called again in the backward pass, instead of keeping intermediate values.

    Args:
        f: function that is called again in the backward pass; it must be deterministic.

    The tape keeps only the arguments. A chain of n such functions keeps n arguments and, one function at a time, the
    values inside. Forward mode saves no memory. Arguments and results may be trees of arrays of any shape and dtype;
    derivatives have the shapes and dtypes of the arguments. ``f`` must return the same result each time.

    Nested checkpoints use Python's stack, and call the innermost functions once for each level. Raises `RecursionError`
    if they exceed it, and `DerivativeError` if ``f`` uses a variable of an enclosing tape that is not among its
    arguments.

    T. Chen et al., "Training deep nets with sublinear memory cost", arXiv:1604.06174.

    >>> from oxigrad import grad
    >>> grad(checkpoint(lambda x: x**3))(2.0)
    12.0
    """
    check_callable(f, "checkpoint")

    def wrapped(*args: Any, **named: Any) -> Any:
        call = FunctionCall(f, args, named, wrapped)
        try:
            values = _plain_values(call.variables)
            if values is None:
                return call.record(call.taped, *_rules(f, call))
            # The call is made here, so that a level of nested checkpoints takes one Python call in addition to the call
            # of f.
            with Tape() as tape:
                inside, by_name = call.arguments([tape.watch(x) if is_smooth(x) else x for x in values])
                result = f(*inside, **by_name)
            outputs = call.values(tape, call.leaves(result))
            return call.record(lambda _: outputs, *_rules(f, call))
        except _TooDeepError:
            raise
        except RecursionError as error:
            raise _too_deep(error) from None

    return transformed(wrapped, f, functools.partial(checkpoint, f))


class _Read(Exception):
    """Raised once the values of variables are read, so that no entry is recorded."""


def _plain_values(variables: Sequence[Any]) -> Leaves | None:
    """The values with which the innermost tape calls a function of the variables, if all are plain; else None."""
    values: list[Any] = []

    def read(*args: Any) -> None:
        values.extend(args)
        raise _Read

    if not variables or not all(isinstance(each, Variable) for each in variables):
        return None
    with contextlib.suppress(_Read):
        record("call", variables, {"function": read, "pull": None, "push": None})
    return None if any(isinstance(each, (Variable, BatchLevel)) for each in values) else values


def _rules(
    f: Callable[..., Any], call: FunctionCall
) -> tuple[Callable[..., list[Array]], Callable[..., dict[int, Any]]]:
    """The pullback of a call of ``f``, and the function of tangents, both by a tape of a further call."""

    def pull(g: primitives.TupleCotangent, y: Array, values: Leaves) -> list[Array]:
        with Tape() as tape:
            inside = [tape.watch(v) if active else v for v, active in zip(values, call.are_active, strict=True)]
            args, named = call.arguments(inside)
            outputs = call.leaves(f(*args, **named))
        seeds = [(outputs[at], ct) for at, ct in g.items() if is_on(tape, outputs[at])]
        variables = [v for v, active in zip(inside, call.are_active, strict=True) if active]
        pulled = iter(tape.pull(seeds, variables, release=True, zeros=False))
        return [next(pulled) if active else None for active in call.are_active]

    def push(values: Leaves, tangents: Leaves) -> dict[int, Any]:
        with Tape(forward=True) as tape:
            inside = [v if t is None else tape.watch(v) for v, t in zip(values, tangents, strict=True)]
            args, named = call.arguments(inside)
            outputs = call.leaves(f(*args, **named))
        targets = {at: output for at, output in enumerate(outputs) if is_on(tape, output)}
        seeds = [(variable, t) for variable, t in zip(inside, tangents, strict=True) if t is not None]
        return dict(zip(targets, tape.push(seeds, list(targets.values())), strict=True))

    return pull, push


class _TooDeepError(RecursionError):
    """The error of checkpoints that are nested too deep, with its hint."""


def _too_deep(error: RecursionError) -> RecursionError:
    """The error of checkpoints that are nested too deep."""
    return _TooDeepError(
        f"{error}: checkpoints inside of checkpoints need a few calls of Python for each level, and the limit is "
        f"{sys.getrecursionlimit()}: call checkpointed layers in sequence, or raise sys.setrecursionlimit"
    )


# --- calls for each example -------------------------------------------------------------------------------------------


def _one_by_one(
    f: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], error: UnbatchedError | None
) -> Any:
    """See `oxigrad.ops.backends.one_by_one`."""
    leaves = tree.leaves((args, named))
    if not any(is_of_vmap(plain(leaf)) for leaf in leaves):
        raise error or UnbatchedError(f"{f.__name__}: found no batched value among the arguments")
    if not any(isinstance(leaf, Variable) for leaf in leaves):
        level = level_of(leaves)
        assert level is not None, "a leaf is batched"  # noqa: S101
        return called_for_each(f, tuple(args), dict(named), level)
    call = FunctionCall(f, tuple(args), dict(named), f, takes_batches=False)
    pull, push = _rules(f, call)
    pull_each = _each(lambda g, y, values: pull(primitives.TupleCotangent(g), y, values))
    return call.record(call.outputs, lambda g, y, values: pull_each(dict(g), tuple(y), tuple(values)), _each(push))


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called for each example of batched values."""

    def called(*args: Any) -> Any:
        if any(is_of_vmap(plain(leaf)) for leaf in tree.leaves(args)):
            return _one_by_one(called, args, {}, None)
        return function(*args)

    return called


install_one_by_one(_one_by_one)
