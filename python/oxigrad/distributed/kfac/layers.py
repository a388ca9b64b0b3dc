"""Layers of a recorded program: matrix products with a parameter, and moments of their inputs and cotangents.

A layer is a parameter W that occurs in ``x @ W`` or ``W @ x``, where no factor x depends on another parameter alone,
and the bias b of ``x @ W + b``. W may be a reshaped or permuted parameter, as the filters of a convolution that is
written as a product of patches and filters are; `oxigrad.xp.tensordot` and `oxigrad.xp.einsum` record such products
too.
"""

import dataclasses
import functools
import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import StructureError, Tape, stop_gradient, xp
from oxigrad._typing import Array
from oxigrad.distributed.messages.gradients import HALVES
from oxigrad.extend import Recording, dtype_name, to_host

# A change of the layout of a matrix, as recorded: the name of the op, and the shape before and after it, or the axes.
Move = tuple[str, tuple[int, ...], tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class Layer:
    """A weight, and its bias if it has one, by key path. The gradient is a matrix of the shape ``(inputs, outputs)``.

    With a bias, the last row of the matrix is its gradient: it counts as the weight of an input that is always one.
    ``moves`` lead from the shape of the parameter to the matrix.
    """

    path: str
    moves: tuple[Move, ...]
    inputs: int
    outputs: int
    bias: str | None = None

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Layer":
        """The layer of the plain data of `dataclasses.asdict`, also after a way through JSON."""
        moves = tuple((kind, tuple(before), tuple(to)) for kind, before, to in state["moves"])
        return cls(**{**state, "moves": moves})

    def matrix(self, gradients: Mapping[str, np.ndarray]) -> np.ndarray:
        """The gradient of the layer as a matrix, given those of the parameters by key path."""
        matrix = gradients[self.path]
        for kind, _, to in self.moves:
            matrix = matrix.reshape(to) if kind == "reshape" else matrix.transpose(to)
        if self.bias is None:
            return matrix
        return np.concatenate([matrix, gradients[self.bias].reshape(1, -1)])

    def arrays(self, matrix: np.ndarray, gradients: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inverse of `matrix`: the elements of ``matrix`` by key path, in the shapes of ``gradients``."""
        rows = matrix if self.bias is None else matrix[:-1]
        for kind, before, to in reversed(self.moves):
            rows = rows.reshape(before) if kind == "reshape" else rows.transpose(np.argsort(to))
        gradient_of = {self.path: rows}
        if self.bias is not None:
            gradient_of[self.bias] = matrix[-1].reshape(gradients[self.bias].shape)
        return gradient_of


@dataclasses.dataclass(frozen=True)
class Statistics:
    """The second moments of one batch: of each layer, those of its inputs and of the cotangents of its outputs.

    ``inputs[k]`` is the mean over examples of the sum over positions of ``a a^T``, where ``a`` is an input, with a one
    appended where the layer has a bias. ``outputs[k]`` is the mean over examples and positions of ``g g^T``, where
    ``g`` is the derivative of the example's own loss with respect to an output (Grosse and Martens 2016, section 3: for
    one position, the factors of Martens and Grosse 2015).
    """

    layers: tuple[Layer, ...]
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]


@dataclasses.dataclass
class _Use:
    """A product with a parameter: its entry, that of the other factor, and the parameter's side."""

    entry: int
    other: int
    is_left: bool
    moves: tuple[Move, ...]
    shape: tuple[int, ...]


@dataclasses.dataclass
class _Program:
    """A recorded program: the kind, arguments and attributes of each entry, and the parameters among the leaves."""

    tape: Tape
    entries: list[tuple[str, list[int], dict[str, Any]]]
    # By entry, the leaf that it is a view of, with its moves and its shape.
    weights: dict[int, tuple[int, tuple[Move, ...], tuple[int, ...]]]
    users: dict[int, list[int]]

    @classmethod
    def of(cls, tape: Tape, leaves: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> "_Program":
        """The program on a tape whose first entries are the leaves at these positions."""
        program = cls(tape, tape.entries(), {}, {})
        program.weights.update(
            {k: (leaf, (), shape) for k, (leaf, shape) in enumerate(zip(leaves, shapes, strict=True))}
        )
        for number, (kind, arguments, named) in enumerate(program.entries):
            for argument in set(arguments):
                program.users.setdefault(argument, []).append(number)
            if kind in ("reshape", "permute_dims", "astype") and arguments[0] in program.weights:
                leaf, moves, shape = program.weights[arguments[0]]
                move = _move(kind, shape, named)
                to = shape if move is None else _after(move)
                program.weights[number] = leaf, moves if move is None else (*moves, move), to
        return program

    def uses(self) -> dict[int, list[_Use]]:
        """By leaf, its products; without the leaves that occur in a product in another way than as a matrix."""
        products: dict[int, list[_Use]] = {}
        refused = set()
        for number, (kind, arguments, _) in enumerate(self.entries):
            if kind != "matmul":
                continue
            inside = [argument in self.weights for argument in arguments]
            for side, argument in enumerate(arguments):
                if not inside[side]:
                    continue
                leaf, moves, shape = self.weights[argument]
                if all(inside) or len(shape) != 2:
                    refused.add(leaf)
                else:
                    products.setdefault(leaf, []).append(_Use(number, arguments[1 - side], side == 0, moves, shape))
        return {leaf: uses for leaf, uses in products.items() if leaf not in refused}

    def bias(self, use: _Use, width: int) -> int | None:
        """The leaf that is added to a product as its bias; None where there is none."""
        number = use.entry
        while len(users := self.users.get(number, [])) == 1:
            kind, arguments, named = self.entries[users[0]]
            if kind == "add" and len(arguments) == 2:
                other = arguments[1] if arguments[0] == number else arguments[0]
                leaf, _, shape = self.weights.get(other, (None, (), ()))
                spreads = math.prod(shape) == width and self._spreads(shape, use, width)
                return leaf if spreads else None
            # Views that keep the outputs on the last axis; after a product from the left they are on another one.
            keeps = kind == "reshape" and not use.is_left and tuple(named["shape"])[-1:] == (width,)
            axes = tuple(named.get("axes") or ())
            if not keeps and not (kind == "permute_dims" and axes == tuple(range(len(axes))) and axes):
                return None
            number = users[0]
        return None

    def _spreads(self, shape: tuple[int, ...], use: _Use, width: int) -> bool:
        """Whether an array of this shape is added to each output, rather than to each example."""
        if not use.is_left:
            return shape[-1:] == (width,)
        is_vector = len(self.tape.variable(use.other).value.shape) == 1
        return shape == ((width,) if is_vector else (width, 1))

    def reads(self, leaf: int) -> int:
        """The number of entries that read a leaf, or a view of it."""
        views = [number for number, (of, _, _) in self.weights.items() if of == leaf]
        return sum(user not in self.weights for number in views for user in self.users.get(number, ()))


def _move(kind: str, shape: tuple[int, ...], named: dict[str, Any]) -> Move | None:
    """The change of layout that an entry makes of an array of this shape; None where it makes none."""
    if kind == "astype":
        return None
    if kind == "permute_dims":
        axes = named.get("axes")
        order = tuple(reversed(range(len(shape)))) if axes is None else tuple(axis % len(shape) for axis in axes)
        return ("permute_dims", shape, order)
    extents = named["shape"]
    to = list(extents) if isinstance(extents, (tuple, list)) else [extents]
    if -1 in to:
        to[to.index(-1)] = math.prod(shape) // max(1, -math.prod(to))
    return ("reshape", shape, tuple(map(int, to)))


def _after(move: Move) -> tuple[int, ...]:
    kind, before, to = move
    return to if kind == "reshape" else tuple(before[axis] for axis in to)


def recorded(
    call: Recording,
    leaves: Sequence[Any],
    paths: Sequence[str],
    *,
    trained: Container[str],
    examples: int | None = None,
    mean: bool = True,
) -> tuple[list[Any], Statistics]:
    """The gradients of a recorded loss with respect to its variables, and the statistics of its layers.

    ``call`` is a call with one tree, whose leaves and key paths are given, ``trained`` the key paths of those that
    layers may have. ``examples`` is the number of examples of the batch, None for the length of the first axis of each
    layer's inputs, and ``mean`` whether the loss is a mean over them rather than a sum. Raises `StructureError` where
    the loss depends on no variable.
    """
    structure = call.watched.structures[0]
    chosen = [0] if structure is None else structure[1]
    shapes = [tuple(getattr(leaves[i], "shape", ())) for i in chosen]
    program = _Program.of(call.tape, chosen, shapes)
    if len(call.outputs) != 1 or call.outputs[0] is None:
        raise StructureError("the loss: found a value that does not depend on the parameters, expected one that does")
    layers, products = _layers(program, _merged(chosen, leaves, program.uses()), paths, trained)
    outputs = [call.tape.variable(use.entry) for uses in products for use in uses]
    pulled = call.tape.gradient(call.outputs[0], [*outputs, *call.watched.variables])
    flow = iter(pulled[: len(outputs)])
    pairs = [[(call.tape.variable(use.other).value, next(flow), use.is_left) for use in uses] for uses in products]
    measured = [
        (layer, moments)
        for layer, uses in zip(layers, pairs, strict=True)
        if (moments := _moments(layer, uses, examples, mean))
    ]
    return pulled[len(outputs) :], Statistics(
        tuple(layer for layer, _ in measured), tuple(a for _, (a, _) in measured), tuple(g for _, (_, g) in measured)
    )


def _merged(chosen: Sequence[int], leaves: Sequence[Any], uses: dict[int, list[_Use]]) -> dict[int, list[_Use]]:
    """The uses, with those of one array at several key paths as those of the first of them."""
    first: dict[int, int] = {}
    for i in chosen:
        first.setdefault(id(leaves[i]), i)
    merged: dict[int, list[_Use]] = {}
    for leaf in sorted(uses):
        merged.setdefault(first[id(leaves[leaf])], []).extend(uses[leaf])
    return merged


def _layers(
    program: _Program, uses: dict[int, list[_Use]], paths: Sequence[str], trained: Container[str]
) -> tuple[list[Layer], list[list[_Use]]]:
    layers, products = [], []
    for leaf, of_leaf in uses.items():
        oriented = {_oriented(use) for use in of_leaf}
        if len(oriented) != 1 or paths[leaf] not in trained:
            continue  # a matrix and its transpose have no one pair of factors
        inputs, outputs = of_leaf[0].shape[::-1] if of_leaf[0].is_left else of_leaf[0].shape
        biases = {program.bias(use, outputs) for use in of_leaf}
        bias = biases.pop() if len(biases) == 1 else None
        if bias is not None and (program.reads(bias) != len(of_leaf) or paths[bias] not in trained):
            bias = None  # it is used elsewhere too, or frozen
        name = None if bias is None else paths[bias]
        layers.append(Layer(paths[leaf], oriented.pop(), inputs + (bias is not None), outputs, name))
        products.append(of_leaf)
    return layers, products


def _oriented(use: _Use) -> tuple[Move, ...]:
    return (*use.moves, ("permute_dims", use.shape, (1, 0))) if use.is_left else use.moves


def _moments(
    layer: Layer, uses: Sequence[tuple[Array, Any, bool]], examples: int | None, mean: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """The second moments of a layer; None where the loss does not depend on it, or a value is complex."""
    rows, moments_of_uses = 0, []
    for other, cotangent, is_left in uses:
        x, g = stop_gradient(other), stop_gradient(cotangent)
        if not hasattr(g, "shape") or any(dtype_name(each.dtype).startswith("complex") for each in (x, g)):
            continue
        x, g = _by_example(x, is_left), _by_example(g, is_left)
        examples = int(x.shape[0]) if examples is None else examples
        x, g = xp.reshape(x, (-1, x.shape[-1])), xp.reshape(g, (-1, g.shape[-1]))
        rows += int(x.shape[0])
        moments_of_uses.append((_second_moment(x, with_one=layer.bias is not None), _second_moment(g)))
    if not (rows and examples):
        return None
    a, g = (functools.reduce(np.add, moments) for moments in zip(*moments_of_uses, strict=True))
    positions, dtype = rows / examples, np.result_type(a, g)
    # The derivative of an example's own loss is that of the mean times the number of examples.
    factor = examples / positions if mean else 1 / (examples * positions)
    return a.astype(dtype) / dtype.type(examples), g.astype(dtype) * dtype.type(factor)


def _by_example(array: Array, is_left: bool) -> Array:
    """An array of examples, positions and features, the last."""
    if len(array.shape) == 1:
        return xp.reshape(array, (1, -1))
    return xp.matrix_transpose(array) if is_left else array


def _second_moment(x: Array, *, with_one: bool = False) -> np.ndarray:
    """The sum over rows of ``a a^T``, in host memory, of float32 or float64.

    ``with_one``, a one is appended to each row a.
    """
    if dtype_name(x.dtype) in HALVES:
        x = xp.astype(x, xp.float32)
    square = np.asarray(to_host(xp.matmul(xp.matrix_transpose(x), x)))
    if not with_one:
        return square
    sums = np.asarray(to_host(xp.sum(x, axis=0)), square.dtype)
    return np.block([[square, sums[:, None]], [sums[None, :], np.full((1, 1), x.shape[0], square.dtype)]])
