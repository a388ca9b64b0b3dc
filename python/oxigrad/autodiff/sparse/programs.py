"""A recorded call as propagation reads it, and whether another call recorded the same program."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad._core import RuleError, Tape, plain
from oxigrad.autodiff.jacobians import shape_of
from oxigrad.autodiff.sparse.dependences import Shape
from oxigrad.ops.backends import is_array, to_host

Entry = tuple[str, list[int], dict[str, Any]]


class Program:
    """The entries of a tape, with the further facts that the pattern depends on: shapes, and zeros of constants.

    These are noted when they are read.
    """

    outputs: range

    def __init__(self, tape: Tape, inputs: Sequence[Any], outputs: int) -> None:
        self._tape = tape
        self.entries: list[Entry] = tape.entries()
        #: The shapes of the inputs, which are the first entries.
        self.inputs: list[Shape] = [*map(shape_of, inputs)]
        #: The numbers of the entries that are results of the function, at the end of the tape.
        self.outputs = range(len(self.entries) - outputs, len(self.entries))
        self._shapes: dict[int, Shape | None] = {}
        self._zeros: dict[int, np.ndarray | None] = {}

    def shape(self, number: int) -> Shape | None:
        """The shape of an entry's value, or None if the tape does not keep it."""
        if number not in self._shapes:
            self._shapes[number] = _shape(self._tape, number)
        return self._shapes[number]

    def nonzero(self, number: int) -> np.ndarray | None:
        """The mask of the nonzero elements of a constant array; None for other values and dropped arrays."""
        if number not in self._zeros:
            self._zeros[number] = _nonzero(self._tape, number) if self.entries[number][0] == "constant" else None
        return self._zeros[number]

    def forget_tape(self) -> None:
        """Drops the tape with its arrays. Nothing but `is_of` may be called afterwards."""
        del self._tape

    def is_of(self, tape: Tape, inputs: Sequence[Any], outputs: int) -> bool:
        """Whether a tape has the same program: the pattern is then the same."""
        if len(tape) != len(self.entries) or [*map(shape_of, inputs)] != self.inputs or outputs != len(self.outputs):
            return False
        pairs = zip(self.entries, tape.entries(), strict=True)
        return (
            all(a[0] == b[0] and a[1] == b[1] and _same(a[2], b[2]) for a, b in pairs)
            and all(_shape(tape, number) == shape for number, shape in self._shapes.items())
            and all(_same(_nonzero(tape, number), zeros) for number, zeros in self._zeros.items() if zeros is not None)
        )


def _shape(tape: Tape, number: int) -> Shape | None:
    try:
        return tuple(tape.variable(number).shape)
    except (AttributeError, RuleError):  # of a tuple, or of a value that no rule reads
        return None


def _nonzero(tape: Tape, number: int) -> np.ndarray | None:
    try:
        value = plain(tape.variable(number).value)
    except RuleError:
        return None
    return np.asarray(to_host(value) != 0) if is_array(value) else None


def _same(a: Any, b: Any) -> bool:
    """Whether two attributes of entries are equal; functions are equal if they are one object."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    if is_array(a):
        return a is b or (tuple(a.shape) == tuple(b.shape) and np.array_equal(to_host(a), to_host(b)))
    return bool(a == b)
