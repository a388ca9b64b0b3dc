"""Jacobians, Hessians and Hessian-vector products of functions of trees."""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from oxigrad import tree, xp
from oxigrad._core import DerivativeError, Variable, plain
from oxigrad._names import check_callable, check_flags
from oxigrad._typing import Array, P, Tree
from oxigrad.autodiff.arguments import by_position, resolve, transformed
from oxigrad.autodiff.rules.cotangents import require_complex
from oxigrad.autodiff.rules.tangents import check_several, is_numeric, tangent_dtype
from oxigrad.autodiff.transforms import Argnums, Recording, grad, jvp
from oxigrad.ops.backends import device_of, is_array, is_complex, namespace, widest_float
from oxigrad.ops.core import primitives

Mode = Literal["forward", "reverse"] | None

# The maximal number of columns in a batch of tangents, and of elements of one of its arrays.
COLUMNS, ELEMENTS = 256, 1 << 22


def jacobian(
    f: Callable[P, Any],
    argnums: Argnums | None = None,
    mode: Mode = None,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """A function that returns the Jacobian of ``f``.

    Args:
        f: function to differentiate; its arguments and results are arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.
        mode: direction of replay: "forward", "reverse", or None for the cheaper one.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.
        argnames: name of the parameter to differentiate, or several names, instead of ``argnums``.
        holomorphic: whether arguments and value are complex and ``f`` is holomorphic.
        chunk_size: largest number of columns that are computed together; None chooses by sizes.

    The Jacobian is a tree of the structure of the result. Its leaves are trees of the structure of the argument, or
    tuples of these if ``argnums`` is a tuple; ``argnames`` names parameters instead. The leaves of these are arrays of
    shape ``result.shape + argument.shape``. ``f`` is called once.

    ``mode="forward"`` computes all columns in one batched forward replay. "reverse" computes one row for each reverse
    replay, which is faster if the result has far fewer elements than the argument. None chooses by these sizes. With
    ``has_aux``, ``f`` returns ``(value, aux)`` and the function returns ``(jacobian, aux)``.

    ``chunk_size`` is the maximum number of columns that are pushed forward together: fewer need less memory. None
    chooses by the sizes of the arguments and the results, which may be far smaller than intermediate values.

    The Jacobian of integers and truth values is zero, in the dtype of the argument.

    If argument and result are complex the function must be holomorphic; with ``holomorphic``, `DtypeError` is raised if
    one of them is real. A complex result of real arguments requires forward mode. A real result of complex arguments
    requires reverse mode, whose rows are gradients. Raises `DerivativeError` for any other mode, and `ValueError` for
    an unknown one, or for a ``chunk_size`` below one.

    >>> import numpy as np
    >>> jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    if mode not in ("forward", "reverse", None):
        raise ValueError(f"mode is {mode!r}: expected 'forward', 'reverse' or None")
    if chunk_size is not None and not (type(chunk_size) is int and chunk_size > 0):
        raise ValueError(f"chunk_size is {chunk_size!r}: expected a positive int or None")
    check_callable(f, "jacobian")
    check_flags(has_aux=has_aux, holomorphic=holomorphic)
    options: dict[str, Any] = {"argnames": argnames, "holomorphic": holomorphic, "chunk_size": chunk_size}
    call_again = functools.partial(jacobian, f, argnums, mode, has_aux, **options)
    f, argnums = resolve(f, argnums, argnames)

    def wrapped(*args: Any, **named: Any) -> Any:
        args, named = by_position(f, args, named, argnums)
        call = Recording.of(f, args, argnums, named=named, has_aux=has_aux, forward=mode != "reverse")
        outputs = [output for output in call.outputs if output is not None]
        if holomorphic:
            require_complex([*call.watched.variables, *tree.leaves(call.value)], "jacobian")
        forward = _goes_forward(mode, call.watched.variables, outputs)
        blocks = iter(_columns(call, outputs, chunk_size) if forward else _rows(call, outputs))
        trees = []
        for output, leaf in zip(call.outputs, tree.leaves(call.value), strict=True):
            if output is not None or is_numeric(leaf):
                block = _nothing(leaf, call.watched.variables) if output is None else next(blocks)
                trees.append(call.arguments(block))
            else:
                trees.append(leaf)
        result = tree.unflatten(call.structure, trees)
        return (result, call.aux) if has_aux else result

    return transformed(wrapped, f, call_again)


def hessian(
    f: Callable[P, Any],
    argnums: Argnums | None = None,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[P, Any]:
    """A function that returns the Hessian of the scalar function ``f``: the forward-mode Jacobian of its gradient.

    Args:
        f: scalar function of arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.
        argnames: name of the parameter to differentiate, or several names, instead of ``argnums``.

    For trees it is a tree of the structure of the argument whose leaves are such trees, as of `jacobian`.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    check_callable(f, "hessian")
    f, argnums = resolve(f, argnums, argnames)
    return jacobian(grad(f, argnums, has_aux), argnums, "forward", has_aux)


def hvp(f: Callable[..., Any], primals: Sequence[Tree], tangents: Sequence[Tree]) -> tuple[Tree, ...]:
    """The product of the Hessian of the scalar function ``f`` with the tangents, one tree for each primal.

    Args:
        f: scalar function of arrays, numbers or trees of them.
        primals: values of the arguments at which ``f`` is evaluated, one tree for each.
        tangents: directions: one tree for each primal, of its structure, shapes and dtypes.

    It is the forward-mode derivative of the gradient. It costs a few times as much as ``f``, and does not form the
    Hessian.

    >>> hvp(lambda x, y: x * x * y, (2.0, 5.0), (1.0, 0.0))
    (10.0, 4.0)
    """
    check_callable(f, "hvp")
    check_several(primals, tangents, "hvp")
    return jvp(grad(f, tuple(range(len(primals)))), primals, tangents)[1]


def _goes_forward(mode: Mode, inputs: Sequence[Any], outputs: Sequence[Array]) -> bool:
    real_in, complex_in = _kinds(inputs)
    real_out, complex_out = _kinds(outputs)
    only_forward, only_reverse = real_in and complex_out, complex_in and real_out
    if (only_forward and (only_reverse or mode == "reverse")) or (only_reverse and mode == "forward"):
        raise DerivativeError(
            f"arguments are {'complex' if complex_in else 'real'} and results {'complex' if complex_out else 'real'}, "
            f"at least in part: mode {mode!r} does not compute such a Jacobian; take real and imaginary parts"
        )
    # A batch of columns costs less than the same number of rows.
    by_size = total_size(inputs) <= 4 * total_size(outputs)
    return only_forward or mode == "forward" or (mode is None and by_size and not only_reverse)


def _kinds(variables: Sequence[Array]) -> tuple[bool, bool]:
    """Whether any variable is real, and whether any is complex."""
    kinds = {is_complex(variable) for variable in variables}
    return False in kinds, True in kinds


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array; empty for a number."""
    return tuple(getattr(value, "shape", ()))


def total_size(variables: Iterable[Array]) -> int:
    """The number of elements of all arrays."""
    return sum(math.prod(shape_of(variable)) for variable in variables)


def _is_number(value: Any) -> bool:
    return not is_array(plain(value))


def library_of(values: Sequence[Array]) -> tuple[Any, Any]:
    """The array library of the first array, and its device."""
    arrays = [plain(value) for value in values if not _is_number(value)]
    return namespace(*arrays), device_of(arrays[0]) if arrays else None


def _entry(block: Any, output: Any, variable: Any) -> Any:
    """An array of one block; a number if both the output and the input are numbers."""
    if _is_number(output) and _is_number(variable) and not isinstance(block, (float, Variable)):
        return float(block)
    return block


def _nothing(leaf: Array, variables: Sequence[Variable]) -> list[Array]:
    """The blocks of a leaf of the result that depends on no variable: zeros."""

    def block(variable: Variable) -> Any:
        like = leaf if _is_number(variable) else variable
        library, device = library_of([like])
        zeros = library.zeros(shape_of(leaf) + shape_of(variable), dtype=tangent_dtype(like), device=device)
        return _entry(zeros, leaf, variable)

    return [block(variable) for variable in variables]


def _columns(call: Recording, outputs: Sequence[Variable], chunk_size: int | None) -> list[list[Any]]:
    """For each output, its derivatives with respect to each variable, by batches of columns in forward mode."""
    variables = call.watched.variables
    total, largest = total_size(variables), max(total_size([v]) for v in (*variables, *outputs, 1.0))
    if not total:
        return [_nothing(output, variables) for output in outputs]
    together = max(1, min(chunk_size or min(COLUMNS, ELEMENTS // max(1, largest)), total))
    pushed = [_push(call, outputs, start, min(together, total - start)) for start in range(0, total, together)]
    blocks = []
    for at, output in enumerate(outputs):
        columns = pushed[0][at] if len(pushed) == 1 else xp.concat([each[at] for each in pushed])
        columns = xp.permute_dims(columns, (*range(1, len(columns.shape)), 0))
        blocks.append(_split(columns, output, variables))
    return blocks


def _push(call: Recording, outputs: Sequence[Variable], start: int, count: int) -> list[Any]:
    variables = call.watched.variables
    library, device = library_of([*variables, *outputs])
    total, end, seeds = total_size(variables), 0, []
    for variable in variables:
        begin, end = end, end + total_size([variable])
        if begin < start + count and start < end:
            dtype = widest_float(library, device) if _is_number(variable) else variable.dtype
            units = library.eye(count, total, k=start, dtype=dtype, device=device)[:, begin:end]
            seeds.append((variable, library.reshape(units, (count, *shape_of(variable)))))
    return call.tape.push(seeds, outputs, count)


def _split(columns: Any, output: Variable, variables: Sequence[Variable]) -> list[Any]:
    """The columns of each variable, in its shape."""
    blocks, end = [], 0
    for variable in variables:
        begin, end = end, end + total_size([variable])
        block = xp.reshape(primitives.index(columns, (..., slice(begin, end))), shape_of(output) + shape_of(variable))
        blocks.append(_entry(block, output, variable))
    return blocks


def _rows(call: Recording, outputs: Sequence[Variable]) -> list[list[Any]]:
    """For each output, its derivatives with respect to each variable, row by row in reverse mode."""
    variables = call.watched.variables
    blocks = []
    for output in outputs:
        size, shape = total_size([output]), shape_of(output)
        if not size:
            blocks.append(_nothing(output, variables))
            continue
        rows = [call.tape.pull([(output, _unit(output, at))], variables) for at in range(size)]
        stacked = [xp.stack(list(column)) for column in zip(*rows, strict=True)]
        fitted = [xp.reshape(s, shape + shape_of(v)) for s, v in zip(stacked, variables, strict=True)]
        blocks.append([_entry(block, output, v) for block, v in zip(fitted, variables, strict=True)])
    return blocks


def _unit(output: Variable, at: int) -> Any:
    """The cotangent that is one at element ``at`` and zero elsewhere."""
    if _is_number(output):
        return 1.0
    library, size = namespace(output), total_size([output])
    unit = library.eye(1, size, k=at, dtype=output.dtype, device=device_of(plain(output)))
    return library.reshape(unit, shape_of(output))
