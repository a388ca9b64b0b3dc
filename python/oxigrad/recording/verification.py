"""The proof that a recording gives the bits of its function: its replay on the arguments of the first call, compared with the result of that call.

The proof is made before the recording is replayed or saved. Where the first call's arrays take much memory it is made at once.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from oxigrad import tree
from oxigrad._core import Replay, Structure
from oxigrad.recording.deferred import Deferred
from oxigrad.recording.trace import is_same
from oxigrad.recording.traced import UnrecordableError

# The arrays of a first call are kept for the proof, up to so many bytes.
MOST_BYTES = 1 << 26


class FirstCall:
    """The inputs of the first call of a recording, and the leaves and structure of its result."""

    leaves: list[Any]
    structure: Structure

    def __init__(self, inputs: list[Any], result: Any) -> None:
        self.inputs = inputs
        self.leaves, self.structure = tree.flatten(result)

    @property
    def is_small(self) -> bool:
        """Whether it is kept: small contiguous arrays, which have the same bits in another place."""
        arrays = [leaf for leaf in (*self.inputs, *self.leaves) if isinstance(leaf, np.ndarray)]
        are_dense = all(array.flags.c_contiguous or array.flags.f_contiguous for array in arrays)
        return are_dense and sum(array.nbytes for array in arrays) <= MOST_BYTES

    def snapshot(self, copies: dict[int, Any]) -> "FirstCall":
        """The same with copies of its arrays: those of the inputs are known."""
        copied = object.__new__(FirstCall)
        copied.inputs = [copies.get(id(leaf), leaf) for leaf in self.inputs]
        copied.leaves = [np.array(leaf, order="K") if isinstance(leaf, np.ndarray) else leaf for leaf in self.leaves]
        copied.structure = self.structure
        return copied

    def require(self, leaves: Iterable[Any], structure: tree.Structure) -> None:
        """Raises `UnrecordableError` where another computation of the call has another structure, or other bits.

        Of values that are not computed, shapes and dtypes are compared.
        """
        outputs = list(leaves)
        if structure != self.structure or len(outputs) != len(self.leaves):
            raise UnrecordableError("the function returns another structure where it is recorded")
        for at, (one, other) in enumerate(zip(self.leaves, outputs, strict=True)):
            if isinstance(other, Deferred) and not other.is_known:
                is_alike = _kind_of(one) == _kind_of(other.like)
            else:
                is_alike = is_same(one, other.value() if isinstance(other, Deferred) else other)
            if not is_alike:
                where = str(structure.path(at))
                raise UnrecordableError(
                    f"the function does not give the same bits in two calls{f', at {where}' if where else ''}: "
                    f"{_briefly(one)} and {_briefly(getattr(other, 'like', other))}"
                )

    def verify(self, replay: Replay, structure: tree.Structure) -> None:
        """Raises `UnrecordableError` where the replay gives other bits than the function did."""
        results, failed = replay.run(self.inputs)
        if failed is not None:
            path, old, new = failed
            raise UnrecordableError(f"the function is not the same in two calls: {path}: {old} -> {new}")
        self.require(results, structure)


def _kind_of(value: Any) -> Any:
    return type(value), getattr(value, "shape", None), getattr(value, "dtype", None)


def _briefly(value: Any) -> str:
    return repr(value) if getattr(value, "size", 1) == 1 else f"arrays of {type(value).__name__}"
