"""Gradient checkpointing."""

import functools
import sys
from collections.abc import Callable
from typing import Any

from oxigrad._core import Tape
from oxigrad._typing import Array, P, R
from oxigrad.autodiff.function_calls import FunctionCall, Leaves, is_on
from oxigrad.ops.core import primitives


def checkpoint(f: Callable[P, R]) -> Callable[P, R]:
    """Gradient checkpointing: ``f`` is called again in the backward pass, instead of keeping its intermediate values.

    The tape keeps the arguments alone, so that a chain of n such functions keeps n arguments and, one function at a time,
    the values inside. Forward mode saves no memory. Arguments and results may be trees of arrays of any shape and dtype, and
    derivatives have those of the arguments. ``f`` must give the same result each time.

    Checkpoints inside of checkpoints take Python's stack, and call the innermost functions once for each level. Raises
    `RecursionError` where they exceed it, and `DerivativeError` where ``f`` uses a variable of an enclosing tape that is not among
    its arguments.

    T. Chen et al., "Training deep nets with sublinear memory cost", arXiv:1604.06174.

    >>> from oxigrad import grad
    >>> grad(checkpoint(lambda x: x**3))(2.0)
    12.0
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Any:
        call = FunctionCall(f, args, named, wrapped)

        def pull(g: primitives.TupleCotangent, y: Array, values: Leaves) -> list[Array]:
            with Tape() as tape:
                inside = [tape.watch(v) if active else v for v, active in zip(values, call.are_active, strict=True)]
                outputs = call.outputs(inside)
            seeds = [(outputs[at], ct) for at, ct in g.items() if is_on(tape, outputs[at])]
            variables = [v for v, active in zip(inside, call.are_active, strict=True) if active]
            pulled = iter(tape.pull(seeds, variables, release=True, zeros=False))
            return [next(pulled) if active else None for active in call.are_active]

        def push(values: Leaves, tangents: Leaves) -> dict[int, Any]:
            with Tape(forward=True) as tape:
                inside = [v if t is None else tape.watch(v) for v, t in zip(values, tangents, strict=True)]
                outputs = call.outputs(inside)
            targets = {at: output for at, output in enumerate(outputs) if is_on(tape, output)}
            seeds = [(variable, t) for variable, t in zip(inside, tangents, strict=True) if t is not None]
            return dict(zip(targets, tape.push(seeds, list(targets.values())), strict=True))

        try:
            return call.record(call.taped, pull, push)
        except RecursionError as error:
            raise _too_deep(error) from None

    return wrapped


def _too_deep(error: RecursionError) -> RecursionError:
    """The error of checkpoints that are nested too deep."""
    return RecursionError(
        f"{error}: checkpoints inside of checkpoints need a few calls of Python for each level, and the limit is "
        f"{sys.getrecursionlimit()}: call checkpointed layers one after the other, or raise sys.setrecursionlimit"
    )
