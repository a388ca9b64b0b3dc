"""The inputs that the results of a recorded program depend on, propagated entry by entry.

An elementwise op takes the union over its broadcast arguments. An op that moves elements is called on their positions.
Reductions, products and decompositions take unions along the axes that they mix, and anything else on all its
arguments. Zeros of constant factors count, and so does the condition of ``where``. Zeros of values that depend on
inputs do not count, nor does the position of the largest element.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._core import DerivativeError, elementwise_functions, record
from oxigrad.autodiff.rules.vjp_rules import TABLE
from oxigrad.autodiff.sparse.dependences import (
    Dependence,
    Shape,
    gathered,
    places_of,
    reduced,
    rows_of,
    scipy_sparse,
    selection,
    union,
)
from oxigrad.autodiff.sparse.programs import Program
from oxigrad.ops.backends import is_array, to_host

_ELEMENTWISE = {function.__name__ for function in elementwise_functions()}
# Ops that keep the order of elements, that move them, and that reduce axes.
_SAME_ORDER = {"reshape", "expand_dims", "squeeze", "astype", "kink"}
_MOVING = {"permute_dims", "flip", "broadcast_to", "index", "take_along_axis", *_SAME_ORDER}
_REDUCING = {"sum", "mean", "max", "min", "vector_norm"}
_OF_MATRICES = {"inv", "cholesky", "qr", "svd", "eigh", "eig", "det", "cofactor", "slogdet", "sqrtm", "pinv"}
_TRANSFORMS = {"fftn", "ifftn", "rfft", "irfft"}

Dependences = list[Dependence | None]


def pattern_of(program: Program) -> Any:
    """The boolean CSR matrix of the elements of all results, concatenated, by the elements of all inputs."""
    propagation = _Propagation(program)
    results = [propagation.dependences[number] for number in program.outputs]
    shapes = [propagation.shape(number) for number in program.outputs]
    parts = [
        rows_of([np.zeros(0, np.int64)] * math.prod(shape), propagation.inputs)
        if result is None
        else result.matrix(propagation.inputs)
        for result, shape in zip(results, shapes, strict=True)
    ]
    parts = parts or [rows_of([], propagation.inputs)]
    pattern = scipy_sparse().csr_array(scipy_sparse().vstack(parts, format="csr"))
    pattern.sum_duplicates()
    return pattern


class _Propagation:
    """The dependence of each entry; None for one that depends on no input."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inputs = sum(map(math.prod, program.inputs))
        self.dependences: Dependences = []
        last_use = {argument: number for number, entry in enumerate(program.entries) for argument in entry[1]}
        outputs, done = set(program.outputs), 0
        for number, (name, arguments, named) in enumerate(program.entries):
            if name == "input":
                self.dependences.append(self._input(program.inputs[len(self.dependences)], done))
                done += math.prod(program.inputs[number])
                continue
            active = any(self.dependences[argument] is not None for argument in arguments)
            self.dependences.append(self._entry(number, name, arguments, named) if active else None)
            for argument in arguments:
                if last_use[argument] == number and argument not in outputs and program.entries[argument][0] != "input":
                    self.dependences[argument] = None

    def shape(self, number: int) -> Shape:
        """The shape of an entry's value."""
        dependence = self.dependences[number] if number < len(self.dependences) else None
        shape = self.program.shape(number) if dependence is None else dependence.shape
        if shape is None:
            name = self.program.entries[number][0]
            raise DerivativeError(f"sparse derivatives: the shape of the result of {name} is not known")
        return shape

    def _input(self, shape: Shape, begin: int) -> Dependence:
        if not shape:
            return Dependence((), 1 << begin)
        size = math.prod(shape)
        places = np.arange(size)
        return Dependence.of_matrix(shape, selection(places, places + begin, (size, self.inputs)))

    def _entry(self, number: int, name: str, arguments: list[int], named: dict[str, Any]) -> Dependence | None:
        rule = _RULES.get(name)
        if rule is not None:
            return rule(self, number, arguments, named)
        if name in _ELEMENTWISE:
            return self._elementwise(number, name, arguments)
        if name in _MOVING:
            return self._moved(name, arguments[0], named)
        return self._mixed(number, arguments)

    # --- elementwise ops ----------------------------------------------------------------------------------------------

    def _elementwise(self, number: int, name: str, arguments: list[int]) -> Dependence | None:
        rules = TABLE.get(name)
        if rules is None:
            return None  # its derivative is zero wherever it has one
        parts = [self.dependences[a] for a, rule in zip(arguments, rules, strict=True) if rule is not None]
        dependences = [part for part in parts if part is not None]
        if not dependences:
            return None
        shape = self._broadcast(number, arguments)
        result = union(dependences, shape, self.inputs)
        if name == "multiply" and len(dependences) == 1 and shape:
            factor = arguments[1] if self.dependences[arguments[0]] is not None else arguments[0]
            nonzero = self.program.nonzero(factor)
            if nonzero is not None and not nonzero.all():
                places = np.where(np.broadcast_to(nonzero, shape), places_of(shape), -1)
                return gathered([result], places, self.inputs)
        return result

    def _broadcast(self, number: int, arguments: list[int]) -> Shape:
        """The shape of the result of an elementwise op."""
        shapes = [part.shape if (part := self.dependences[a]) is not None else self.program.shape(a) for a in arguments]
        sizes = [shape for shape in shapes if shape is not None]
        return np.broadcast_shapes(*sizes) if len(sizes) == len(shapes) else self.shape(number)

    def where(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence | None:
        """The elements of either argument, by the condition where the tape keeps it."""
        chosen, shape = self.program.nonzero(arguments[0]), self._broadcast(number, arguments)
        parts = [self.dependences[argument] for argument in arguments[1:]]
        dependences = [part for part in parts if part is not None]
        if chosen is None or not dependences:
            return union(dependences, shape, self.inputs) if dependences else None
        places, begin = [], 0
        for part in parts:
            indices = np.array(-1) if part is None else begin + places_of(part.shape)
            begin += 0 if part is None else math.prod(part.shape)
            places.append(np.broadcast_to(indices, shape))
        return gathered(dependences, np.where(np.broadcast_to(chosen, shape), *places), self.inputs)

    # --- ops that move elements ---------------------------------------------------------------------------------------

    def _moved(self, name: str, argument: int, named: dict[str, Any]) -> Dependence:
        part = self._of(argument)
        if name == "astype":
            return part
        named = {key: _on_host(value) for key, value in named.items() if key != "copy"}
        places = np.asarray(record(name, [places_of(part.shape)], named))
        if name in _SAME_ORDER:
            return part.reshaped(places.shape, self.inputs)
        return gathered([part], places, self.inputs)

    def joined(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """``concat`` and ``stack``, called on the positions of the elements of all arguments."""
        name, axis = self.program.entries[number][0], named["axis"]
        like = next(part.shape for argument in arguments if (part := self.dependences[argument]) is not None)
        places: list[np.ndarray] = []
        dependences, begin = [], 0
        for which, argument in enumerate(arguments):
            part, shape = self.dependences[argument], list(like)
            if part is None:
                if name == "concat":
                    shape[axis] = named["ends"][which + 1] - named["ends"][which]
                places.append(np.full(shape, -1))
                continue
            places.append(begin + places_of(part.shape))
            begin += math.prod(part.shape)
            dependences.append(part)
        return gathered(dependences, np.asarray(record(name, places, named)), self.inputs)

    def scattered(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """``scatter_add``: an element of the result depends on all that are added to it."""
        part, shape = self._of(arguments[0]), tuple(named["shape"])
        to = np.asarray(record("index", [places_of(shape)], {"key": _on_host(named["key"])}))
        part = part.spread(to.shape, self.inputs)
        size = math.prod(to.shape)
        adds = selection(np.ravel(to), np.arange(size), (math.prod(shape), size))
        return Dependence.of_matrix(shape, adds @ part.matrix(self.inputs))

    # --- ops that mix elements ----------------------------------------------------------------------------------------

    def reduction(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """The union along ``axis``."""
        part = self._of(arguments[0])
        axes = _axes(named["axis"], len(part.shape))
        result = reduced(part, axes, self.inputs)
        shape = tuple(size for axis, size in enumerate(result.shape) if named["keepdims"] or axis not in axes)
        return result.reshaped(shape, self.inputs)

    def cumulative(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """The union of the elements up to each one, in a number of steps that is the logarithm of their number."""
        part = self._of(arguments[0])
        if not part.shape:
            return part
        axis = named["axis"] % len(part.shape)
        along = np.moveaxis(places_of(part.shape), axis, 0)
        distance = 1
        while distance < part.shape[axis]:
            before = np.full(along.shape, -1)
            before[distance:] = along[:-distance]
            shifted = gathered([part], np.moveaxis(before, 0, axis), self.inputs)
            part, distance = union([part, shifted], part.shape, self.inputs), 2 * distance
        return part

    def product(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """``matmul``: rows of the first argument with columns of the second one, without zeros of a constant matrix."""
        parts = [self.dependences[argument] for argument in arguments]
        for which, part in enumerate(parts):
            nonzero = None if part is None else self.program.nonzero(arguments[1 - which])
            if part is not None and nonzero is not None and nonzero.ndim <= 2 and not nonzero.all():
                return self._by_matrix(part, nonzero, left=which == 1)
        shapes = [self.shape(argument) for argument in arguments]
        rows, columns = (len(shape) > 1 for shape in shapes)
        factors = []
        if (part := parts[0]) is not None:
            whole = reduced(part, [len(part.shape) - 1], self.inputs)
            factors.append(whole if rows else whole.reshaped((1, 1), self.inputs))
        if (part := parts[1]) is not None:
            whole = reduced(part, [max(len(part.shape) - 2, 0)], self.inputs)
            factors.append(whole if columns else whole.reshaped((1, 1), self.inputs))
        batch = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
        full = (*batch, shapes[0][-2] if rows else 1, shapes[1][-1] if columns else 1)
        joint = union(factors, full, self.inputs)
        without_units = (*batch, *full[-2:-1] * rows, *full[-1:] * columns)
        return joint.reshaped(without_units, self.inputs)

    def _by_matrix(self, part: Dependence, nonzero: np.ndarray, *, left: bool) -> Dependence:
        """The product with a constant matrix or vector, on the left or on the right; ``nonzero`` masks its nonzeros."""
        shape = part.shape
        if left:  # contract the next to last axis of the part: (..., k, j), or its only one
            at = max(len(shape) - 2, 0)
            matrix, added = nonzero, nonzero.shape[:-1]
        else:
            at = len(shape) - 1
            matrix, added = nonzero.T if nonzero.ndim == 2 else nonzero, nonzero.shape[1:]
        matrix = np.atleast_2d(matrix)  # (rows of the result, k)
        before, after = shape[:at], shape[at + 1 :]
        mixing = scipy_sparse().csr_array(matrix)
        for identity, is_first in ((math.prod(before), True), (math.prod(after), False)):
            eye = scipy_sparse().eye_array(identity, dtype=bool, format="csr")
            pair = (eye, mixing) if is_first else (mixing, eye)
            mixing = scipy_sparse().csr_array(scipy_sparse().kron(*pair, format="csr"))
        return Dependence.of_matrix((*before, *added, *after), mixing @ part.matrix(self.inputs))

    def solution(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """``solve``: the whole matrix, and the column of the right-hand side."""
        matrix, right = (self.dependences[argument] for argument in arguments)
        shape, parts = self.shape(number), []
        is_vector = len(right.shape) == 1 if right is not None else len(shape) < len(self._of(arguments[0]).shape)
        if matrix is not None:
            whole = reduced(matrix, [len(matrix.shape) - 2, len(matrix.shape) - 1], self.inputs)
            parts.append(whole.reshaped(whole.shape[:-1], self.inputs) if is_vector else whole)
        if right is not None:
            parts.append(reduced(right, [0 if is_vector else len(right.shape) - 2], self.inputs))
        return union(parts, shape, self.inputs)

    def of_matrices(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """Decompositions and functions of matrices: each result of a matrix depends on all of it."""
        if len(arguments) > 1:
            return self._mixed(number, arguments)
        part = self._of(arguments[0])
        whole = reduced(part, [len(part.shape) - 2, len(part.shape) - 1], self.inputs)
        shape = self.program.shape(number)
        batch = whole.reshaped(whole.shape[:-2], self.inputs)
        return batch if shape is None else self._repeated(batch, shape)

    def item(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """One of the results of an op with several."""
        return self._repeated(self._of(arguments[0]), self.shape(number))

    def _repeated(self, batch: Dependence, shape: Shape) -> Dependence:
        """Each element of ``batch`` repeated for the last axes of ``shape``."""
        with_units = (*batch.shape, *(1,) * (len(shape) - len(batch.shape)))
        return batch.reshaped(with_units, self.inputs).spread(shape, self.inputs)

    def transformed(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """Fourier transforms: the union along their axes."""
        part = self._of(arguments[0])
        axes = _axes(named["axes"] if "axes" in named else named["axis"], len(part.shape))
        return reduced(part, axes, self.inputs).spread(self.shape(number), self.inputs)

    def call(self, number: int, arguments: list[int], named: dict[str, Any]) -> Dependence:
        """A function with a rule of the user's, or a checkpoint: everything depends on all arguments."""
        return self._mixture(arguments)

    def _mixed(self, number: int, arguments: list[int]) -> Dependence:
        return self._mixture(arguments).spread(self.shape(number), self.inputs)

    def _mixture(self, arguments: list[int]) -> Dependence:
        dependences = [part for argument in arguments if (part := self.dependences[argument]) is not None]
        whole = [reduced(part, range(len(part.shape)), self.inputs).reshaped((), self.inputs) for part in dependences]
        return union(whole, (), self.inputs)

    def _of(self, number: int) -> Dependence:
        part = self.dependences[number]
        assert part is not None, "an entry without an active argument is skipped"  # noqa: S101
        return part


_Rule = Callable[[_Propagation, int, list[int], dict[str, Any]], Dependence | None]

_RULES: dict[str, _Rule] = {
    "where": _Propagation.where,
    "concat": _Propagation.joined,
    "stack": _Propagation.joined,
    "scatter_add": _Propagation.scattered,
    "cumulative_sum": _Propagation.cumulative,
    "matmul": _Propagation.product,
    "solve": _Propagation.solution,
    "item": _Propagation.item,
    "call": _Propagation.call,
    **dict.fromkeys(_REDUCING, _Propagation.reduction),
    **dict.fromkeys(_OF_MATRICES, _Propagation.of_matrices),
    **dict.fromkeys(_TRANSFORMS, _Propagation.transformed),
}


def _axes(axis: Any, ndim: int) -> Sequence[int]:
    """The axes of an op, counted from the first one."""
    if axis is None:
        return range(ndim)
    return [each % ndim for each in (axis if isinstance(axis, (tuple, list)) else (axis,)) if ndim]


def _on_host(value: Any) -> Any:
    """An attribute of an op, with arrays of other libraries converted to NumPy."""
    if isinstance(value, tuple):
        return tuple(map(_on_host, value))
    return to_host(value) if is_array(value) else value
