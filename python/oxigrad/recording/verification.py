"""The proof that a recording gives the bits of its function: its replay on the arguments of the first call, compared with the result of that call.

The proof is made before the recording is replayed or saved. Where the first call's arrays take much memory it is made at once.
"""

import functools
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from oxigrad import tree
from oxigrad._core import Replay, Structure, compute_in_rule, have_same_bits
from oxigrad.recording.deferred import Deferred
from oxigrad.recording.reads import EMPTY, is_unchanging, slots_of
from oxigrad.recording.trace import is_same
from oxigrad.recording.traced import Traced, UnrecordableError

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


class Contents:
    """The contents of lists, dictionaries and objects, as they are before a call that may change them."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._of: dict[int, tuple[Any, Any]] = {}
        for value in values:
            self._add(value)

    def _add(self, value: Any) -> None:
        if id(value) in self._of or isinstance(value, _WITHOUT_CONTENTS):
            return
        parts: Iterable[Any] = ()
        if isinstance(value, (tuple, list)):
            parts = value
        elif isinstance(value, dict):
            parts = value.values()
        elif hasattr(value, "__dict__"):
            parts = (vars(value),)
        elif not slots_of(value):
            return
        self._of[id(value)] = value, _contents(value)
        for part in parts:
            self._add(part)

    def restore(self) -> bool:
        """Undoes changes; returns whether there were any. A value that is replaced by equal plain data is none."""
        changed = [each for each in self._of.values() if not _are_alike(each[1], _contents(each[0]))]
        for holder, before in changed:
            if isinstance(holder, list):
                list.__setitem__(holder, slice(None), [part for _, part in before])
            elif isinstance(holder, dict):
                dict.clear(holder)
                dict.update(holder, before)
            else:
                for name, part in before:
                    object.__setattr__(holder, name, part) if part is not EMPTY else object.__delattr__(holder, name)
        return bool(changed)


_WITHOUT_CONTENTS = (type, types.ModuleType, np.ndarray, np.generic, float, int, str, Traced)


def _contents(holder: Any) -> list[tuple[Any, Any]]:
    """The places of a container, or the slots of an object, and what they hold."""
    if isinstance(holder, (tuple, list)):
        return list(enumerate(holder))
    return list(dict.items(holder) if isinstance(holder, dict) else slots_of(holder).items())


def _are_alike(before: list[tuple[Any, Any]], now: list[tuple[Any, Any]]) -> bool:
    return len(before) == len(now) and all(
        place == its and (old is new or (is_unchanging(old) and is_unchanging(new) and is_same(old, new)))
        for (place, old), (its, new) in zip(before, now, strict=True)
    )


def _kind_of(value: Any) -> Any:
    return type(value), getattr(value, "shape", None), getattr(value, "dtype", None)


def _briefly(value: Any) -> str:
    return repr(value) if getattr(value, "size", 1) == 1 else f"arrays of {type(value).__name__}"


@functools.cache
def has_bits_of_core(op: str) -> bool:
    """Whether NumPy computes ``maximum`` or ``minimum`` of arrays with the bits of the core.

    Of zeros of both signs, and of two NaNs, the result depends on NumPy's vector code, and so on the processor. Each pair of these is looked
    at in each place of an array, of arrays in order, with steps, and with a number.
    """
    return all(_is_alike(op, dtype, bits) for dtype, bits in (("f4", _NANS_OF_32), ("f8", _NANS_OF_64)))


_NANS_OF_32 = np.array([0x7FC00123, 0xFFC00000], "u4")
_NANS_OF_64 = np.array([0x7FF8000000000123, 0xFFF8000000000000], "u8")
# More elements than a vector has, and some after the last whole one.
_LENGTH = 67


def _is_alike(op: str, dtype: str, nans: np.ndarray) -> bool:
    special = np.concatenate([np.array([0.0, -0.0, 1.0, np.inf], dtype), nans.view(dtype)])
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    # Rows of a length without a common divisor with the number of pairs, so that each pair is in each place of one.
    x, y = (np.resize(each, (each.size, _LENGTH)) for each in pairs)
    wide = np.repeat(np.stack([x, y]), 2, axis=2)
    operands = [
        (x, y),
        tuple(wide[..., ::2]),
        *((x, number) for number in special),
        *((number, y) for number in special),
    ]
    for a, b in operands:
        in_order = [np.ascontiguousarray(np.broadcast_to(each, x.shape)) for each in (a, b)]
        if not have_same_bits(compute_in_rule(op, in_order), getattr(np, op)(a, b)):
            return False
    return True
