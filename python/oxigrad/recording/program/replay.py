"""Programs that the core replays."""

import numpy as np

from oxigrad._core import Entry, EntryId, Replay
from oxigrad.recording.bits import has_bits_of_core, is_same
from oxigrad.recording.targets import Target, function_of

# The product of the core, and those of NumPy.
_PRODUCT = Target("op", "matmul")
_PRODUCTS = (("operator", "matmul"), ("numpy", "matmul"), ("numpy", "dot"), ("method", "dot"))
_FLOATS = ("<f4", "<f8")

# The loops of a program: the first entry of each, the number of entries of a repetition, and that of repetitions.
Loops = list[tuple[int, int, int]]


def replay_of(entries: list[Entry], outputs: list[EntryId], *, of_file: int | None = None) -> Replay:
    """The program of the entries; raises `RuleError` where they are not those of one.

    In a program ``of_file``, one of so many in a file, a call with too large integers or arrays raises `StateError`.
    """
    return Replay(entries, [output.id for output in outputs], is_same, has_bits_of_core, of_file=of_file)


def reassociated(entries: list[Entry]) -> list[Entry]:
    """The entries with products of the core in the place of NumPy's, of matrices and vectors of one dtype."""
    return [_of_core(entry) if _is_product(entry, entries) else entry for entry in entries]


def _of_core(entry: Entry) -> Entry:
    function, permuted = function_of(_PRODUCT), entry.is_permuted
    return Entry("call", target=_PRODUCT, function=function, args=entry.args, type=entry.type, is_permuted=permuted)


def _is_product(entry: Entry, entries: list[Entry]) -> bool:
    if entry.target not in _PRODUCTS or entry.named or not all(type(arg) is EntryId for arg in entry.args):
        return False
    return all(_is_factor(entries[arg.id]) for arg in entry.args)


def _is_factor(entry: Entry) -> bool:
    value = entry.value if entry.kind == "constant" else None
    shape, dtype = (value.shape, value.dtype.str) if isinstance(value, np.ndarray) else entry.type or ((), "")
    return len(shape) in (1, 2) and dtype in _FLOATS
