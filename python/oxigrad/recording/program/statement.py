"""A recorded call as a program that the core replays: which entries may be part of a run."""

import math
from typing import Any, Literal

import numpy as np

from oxigrad._core import MOST_SMALL, Entry, EntryId, Replay, is_computed_in_core
from oxigrad.recording.bits import has_bits_of_core, is_same
from oxigrad.recording.program.extrema import EXTREMA, extremum
from oxigrad.recording.program.views import (
    FLOATS,
    SCATTER,
    VIEWS,
    Member,
    array_type,
    ids_in,
    is_out_of_order,
    is_permuted,
    is_small_view,
    scatter,
    view,
)
from oxigrad.recording.targets import ARITHMETIC, OPS_OF_OPERATORS, Target, function_of

# NumPy's ufuncs that give the bits of ops of the core, by other names than these.
_ALIASES = {"true_divide": "divide", "absolute": "abs", "fabs": "abs"}
_UFUNCS = ARITHMETIC | {"sqrt", "square", "reciprocal", "maximum", "minimum", "where"}
# Ops whose results are truth values; those of bits are of truth values alone.
_TRUTHS = set(
    """less less_equal greater greater_equal equal not_equal logical_and logical_or logical_xor logical_not isnan
    isfinite isinf""".split()
)
_OF_BITS = {"and_": "logical_and", "or_": "logical_or", "xor": "logical_xor", "invert": "logical_not"}
_TO_SHAPES = (("op", "reshape"), ("op", "broadcast_to"))
# Those that give an array in another shape, in the order of its elements.
_RESHAPES = (("op", "reshape"), ("op", "expand_dims"), ("op", "squeeze"))
_FOLDS = (("op", "sum"), ("op", "mean"))
_JOINS = (("op", "concat"), ("op", "stack"))
# Those of NumPy's functions for small matrices that runs call.
_OF_MATRICES = {("op", name) for name in ("inv", "solve", "det", "cholesky", "cofactor")}
# The product of the core, and those of NumPy, of which the first two are one function.
_PRODUCT = Target("op", "matmul")
_PRODUCTS = (("operator", "matmul"), ("numpy", "matmul"), ("numpy", "dot"), ("method", "dot"))
# Those that NumPy computes with the bits of the core, whatever it repeats.
_EXACT = ("add", "subtract", "multiply", "divide")
# Those whose bits depend on NumPy's vector code.
_EXTREMA = ("maximum", "minimum")
_TRUTH = "|b1"
# The precisions of scalars, in the order of promotion.
_PRECISIONS = ("float", *FLOATS)

# The loops of a program: the first entry of each, the number of entries of a repetition, and that of repetitions.
Loops = list[tuple[int, int, int]]


def reassociated(entries: list[Entry]) -> list[Entry]:
    """The entries with products of the core in the place of NumPy's."""
    return [_of_core(entry, entries) for entry in entries]


def replay_of(entries: list[Entry], outputs: list[EntryId]) -> Replay:
    """The program of the entries; raises `RuleError` where they are not those of one."""
    spread = _spread(entries, outputs)
    return Replay(entries, [output.id for output in outputs], is_same, _Statement(entries, spread), spread)


class _Statement:
    """The entries of a program as the core takes them: of calls that are alike, the parts of the first one."""

    def __init__(self, entries: list[Entry], spread: set[int]) -> None:
        self._entries, self._spread = entries, spread
        # The number of the calls of each key.
        self._numbers: dict[Any, int] = {}
        # The dtypes in which truth values are computed, by the ids of the entries, and by the numbers of the calls.
        self._compared: dict[int, str] = {}
        self._compared_by: dict[int, str] = {}

    @staticmethod
    def reach(target: tuple[str, str]) -> Literal["types", "view", "fold"]:
        """The part of a program on which a statement depends, besides the types of the arguments."""
        return "view" if target in VIEWS else "fold" if target in _FOLDS else "types"

    def of(self, at: int) -> tuple[int, tuple[Any, ...] | None]:
        """The number of the call of an entry, and the parts that the core needs of the first one of this number."""
        number, stated = self._numbered(at)
        if number in self._compared_by:
            self._compared[at] = self._compared_by[number]
        return number, stated

    def _numbered(self, at: int) -> tuple[int, tuple[Any, ...] | None]:
        entry = self._entries[at]
        target, args = tuple(entry.target), entry.args
        member = self._truth(entry) if _is_of_truths(entry) else _member(entry, self._entries)
        is_identity = at in self._spread or _is_identity(entry, self._entries)
        part = member and (tuple(member[1]), tuple(member[2]), member[3] and tuple(member[3][0]))
        are_entries = all(type(arg) is EntryId for arg in args)
        key: Any = (
            target,
            len(args) if are_entries else _without_ids(args),
            _without_ids(entry.named) if entry.named else None,
            entry.type,
            is_identity,
            part,
        )
        number = self._numbers.get(key)
        if number is not None:
            return number, None
        number = self._numbers[key] = len(self._numbers)
        if member is not None and _TRUTH in member[2]:
            self._compared_by[number] = member[2][0]
        shape = None if entry.type is None else list(entry.type[0])
        return number, (target, entry.function, shape, is_identity, member)

    def _truth(self, entry: Entry) -> Member | None:
        """The part of a run that a call may be whose result is an array of truth values; None for any other."""
        kind, name = entry.target
        if entry.named or entry.type is None or not all(type(arg) is EntryId for arg in entry.args):
            return None
        read = [self._entries[arg.id] for arg in entry.args]
        of_bits = _OF_BITS.get(name) if all(map(_is_of_truths, read)) else None
        op = OPS_OF_OPERATORS.get(name, of_bits) if kind == "operator" else name
        if op not in _TRUTHS or kind not in ("op", "operator", "numpy"):
            return None
        dtypes = [each.type[1] for each in read if each.type and each.type[0] and not _is_of_truths(each)]
        compared = [self._compared[arg.id] for arg in entry.args if arg.id in self._compared]
        dtype = next(iter([*dtypes, *compared]), None)
        if dtype not in FLOATS or not all(_fits(each, dtype, with_scalars=True) for each in read):
            return None
        return op, list(entry.type[0]), [dtype, _TRUTH], None


def _spread(entries: list[Entry], outputs: list[EntryId]) -> set[int]:
    """The calls of `broadcast_to` that are read by elementwise calls alone, which repeat their arguments themselves."""
    spread = {at for at, entry in enumerate(entries) if _is_repeated_array(entry, entries)}
    spread -= {output.id for output in outputs}
    if not spread:
        return spread
    others: set[int] = set()
    for entry in entries:
        of = spread.intersection(entry.reads())
        if of and not _repeats(entry, entries, of):
            others |= of
    return spread - others


def _is_repeated_array(entry: Entry, entries: list[Entry]) -> bool:
    """Whether an array with dimensions, in order, of the dtype of the result is repeated."""
    if entry.target != _TO_SHAPES[1] or entry.type is None or type(entry.args[0]) is not EntryId:
        return False
    of = entries[entry.args[0].id]
    return of.type is not None and of.type[0] != () and of.type[1] == entry.type[1] and not of.is_permuted


def _repeats(entry: Entry, entries: list[Entry], spread: set[int]) -> bool:
    """Whether an elementwise call gives the same result where arguments that are ``spread`` are not repeated."""
    if _op(entry) not in _EXACT or entry.type is None:
        return False
    others = (entries[arg.id] for arg in entry.args if type(arg) is EntryId and arg.id not in spread)
    if entry.is_permuted or any(map(is_permuted, others)) or _elementwise(entry, entries) is None:
        return False
    shapes = []
    for arg in entry.args:
        of = entries[entries[arg.id].args[0].id if arg.id in spread else arg.id]
        shapes.append(np.shape(of.value) if of.kind == "constant" else () if of.type is None else of.type[0])
    extents = entry.type[0]
    return all(
        any(len(shape) >= back and shape[-back] == extents[-back] for shape in shapes)
        for back in range(1, len(extents) + 1)
    )


def _is_identity(entry: Entry, entries: list[Entry]) -> bool:
    """Whether a call gives its first argument: an array in the shape that it has, and in the order in memory."""
    if entry.target not in _TO_SHAPES or entry.type is None or type(entry.args[0]) is not EntryId:
        return False
    of = entries[entry.args[0].id]
    keeps_order = (
        entry.target.name == "reshape" or not of.is_permuted
    )  # small arrays are repeated in the order of their indices
    return keeps_order and entry.type[0] != () and of.type == entry.type


def _member(entry: Entry, entries: list[Entry]) -> Member | None:
    """The part of a run that a call may be; None for any other."""
    if entry.target in _FOLDS:
        return _sum(entry, entries)
    if entry.target in EXTREMA:
        return extremum(entry, entries)
    if entry.target == _PRODUCT or entry.target in _PRODUCTS[:2]:
        return _product(entry, entries)
    if entry.target in _RESHAPES and (member := _reshape(entry, entries)):
        return member
    if entry.target in _OF_MATRICES:
        return _of_matrices(entry, entries)
    if entry.target in _JOINS:
        return _joined(entry, entries)
    if entry.target == SCATTER:
        return scatter(entry, entries)
    return view(entry, entries) if entry.target in VIEWS else _elementwise(entry, entries)


def _product(entry: Entry, entries: list[Entry]) -> Member | None:
    """The same of a product of matrices or vectors, whose shape is the rows, the inner length and the columns.

    None for any other.
    """
    if entry.named or entry.type is None or not all(type(arg) is EntryId for arg in entry.args):
        return None
    (one, dtype), (other, its) = (array_type(entries[arg.id]) for arg in entry.args)
    are_permuted = any(is_out_of_order(entries[arg.id], entries) for arg in entry.args)
    if dtype != its or dtype not in FLOATS or are_permuted or not {len(one), len(other)} <= {1, 2}:
        return None
    if entry.target != _PRODUCT and not _are_factors_of_numpy(entry, entries):
        return None
    return "matmul", [one[0] if len(one) == 2 else 1, one[-1], other[1] if len(other) == 2 else 1], [dtype], None


def _are_factors_of_numpy(entry: Entry, entries: list[Entry]) -> bool:
    """Whether the factors of a product lie in a run as in the function: NumPy's bits depend on that."""
    factors = [_factor(entries[arg.id], entries) for arg in entry.args]
    shape, _ = entry.type or ((), "")
    # NumPy multiplies a matrix with its own transpose otherwise, and arguments may be one array.
    may_be_one = len(shape) == 2 and shape[0] == shape[1] and all(each and each.kind != "call" for each in factors)
    return None not in factors and not may_be_one


def _factor(entry: Entry, entries: list[Entry]) -> Entry | None:
    """The array of a view, with its strides; None where these are others in a run."""
    while entry.kind == "call" and entry.target in VIEWS and type(entry.args[0]) is EntryId:
        of = entries[entry.args[0].id]
        if ids_in((entry.args[1:], entry.named)):  # a run copies such elements
            is_row = type(entry.args[-1]) is EntryId and len((entry.type or ((),))[0]) == 1 and of.target not in VIEWS
            return of if is_row else None
        if entry.target == _TO_SHAPES[1]:
            return None
        entry = of
    return entry


def _of_core(entry: Entry, entries: list[Entry]) -> Entry:
    """The entry with the product of the core in the place of NumPy's, of matrices and vectors of one dtype."""
    if entry.target not in _PRODUCTS or entry.named or not all(type(arg) is EntryId for arg in entry.args):
        return entry
    types = [array_type(entries[arg.id]) for arg in entry.args]
    fits = all(len(shape) in (1, 2) and dtype in FLOATS for shape, dtype in types)
    if not fits:
        return entry
    function, permuted = function_of(_PRODUCT), entry.is_permuted
    return Entry("call", target=_PRODUCT, function=function, args=entry.args, type=entry.type, is_permuted=permuted)


def _of_matrices(entry: Entry, entries: list[Entry]) -> Member | None:
    """The same for a function of a square matrix and a right side, with the shape of both; None for any other."""
    are_entries = all(type(arg) is EntryId for arg in entry.args)
    if entry.named or entry.type is None or not are_entries or not 1 <= len(entry.args) <= 2:
        return None
    (extents, _), *others = types = [array_type(entries[arg.id]) for arg in entry.args]
    fits = len(extents) == 2 and extents[0] == extents[1] > 0 and all(len(shape) in (1, 2) for shape, _ in others)
    is_out = any(is_out_of_order(entries[arg.id], entries) for arg in entry.args)
    if not fits or is_out or any(dtype != "<f8" for _, dtype in (entry.type, *types)) or 0 in entry.type[0]:
        return None
    return entry.target.name, [extent for shape, _ in types for extent in shape], ["<f8"], None


def _joined(entry: Entry, entries: list[Entry]) -> Member | None:
    """The same of arrays that are joined along an axis; None for any other."""
    axis = (entry.named or {}).get("axis")
    if type(axis) is not int or entry.type is None or not all(type(arg) is EntryId for arg in entry.args):
        return None
    read, (shape, dtype) = [entries[arg.id] for arg in entry.args], entry.type
    are_in_order = not any(is_out_of_order(each, entries) for each in (entry, *read))
    types = map(array_type, read)
    fits = are_in_order and dtype in FLOATS and all(its == dtype and 0 not in extents for extents, its in types)
    return (entry.target.name, list(shape), [dtype], ([axis], False)) if fits else None


def _reshape(entry: Entry, entries: list[Entry]) -> Member | None:
    """The same of an array in another shape; None for any other."""
    if entry.type is None or not entry.type[0] or type(entry.args[0]) is not EntryId:
        return None
    if any(ids_in((entry.args[1:], entry.named))):
        return None
    of = entries[entry.args[0].id]
    shape, dtype = array_type(of)
    fits = shape and not is_permuted(of) and dtype == entry.type[1] and dtype in FLOATS
    return (entry.target.name, list(shape), [dtype], None) if fits else None


def _sum(entry: Entry, entries: list[Entry]) -> Member | None:
    """The same of a sum or a mean of an elementwise call; None for any other."""
    if entry.named.keys() != {"axis", "keepdims"} or entry.type is None or type(entry.args[0]) is not EntryId:
        return None
    of = entries[entry.args[0].id]
    member = _elementwise(of, entries) if of.kind == "call" else None
    if member is None or not member[1] or [entry.type[1]] != member[2]:
        return None
    axis, keepdims = entry.named["axis"], entry.named["keepdims"]
    if axis is None:
        return (entry.target.name, member[1], member[2], None) if keepdims is False and not entry.type[0] else None
    axes = axis if type(axis) is tuple else (axis,)
    if not (axes and all(type(each) is int for each in axes) and type(keepdims) is bool):
        return None
    return entry.target.name, member[1], member[2], ([*axes], keepdims)


def _elementwise(entry: Entry, entries: list[Entry]) -> Member | None:
    """The same of an elementwise call; None for any other."""
    op = _op(entry)
    if op is None or entry.named or not all(type(arg) is EntryId for arg in entry.args):
        return None
    if (precision := _precision(entry)) is not None:
        precisions = [precision_of for arg in entry.args if (precision_of := _precision(entries[arg.id])) is not None]
        fits = (
            bool(precisions)
            and len(precisions) == len(entry.args)
            and max(precisions, key=_PRECISIONS.index) == precision
        )
        return (op, [], precisions, None) if fits else None
    if entry.type is None or entry.type[1] not in FLOATS or not entry.type[0]:
        return None
    if not _has_bits_of_core(entry, op, entries):
        return None
    read = [entries[arg.id] for arg in entry.args]
    fits = all(_fits(each, entry.type[1], with_scalars=op in _EXACT) for each in read) and all(
        not is_permuted(each) or _is_read(each, entry, entries) for each in read
    )
    return (op, list(entry.type[0]), [entry.type[1]], None) if fits else None


def _is_read(argument: Entry, entry: Entry, entries: list[Entry]) -> bool:
    """Whether a run reads an array in another order: a repeated one, or a view of a small one for results in order."""
    if is_permuted(entry):
        return False
    is_small = math.prod((entry.type or ((),))[0]) <= MOST_SMALL
    return _is_repeated_array(argument, entries) or (is_small and is_small_view(argument, entries))


def _op(entry: Entry) -> str | None:
    """The op of the core that a call of an elementwise function may be; None where its bits may be others."""
    kind, name = entry.target
    if kind == "operator":
        op, same_bits = OPS_OF_OPERATORS.get(name), ARITHMETIC
    elif kind == "numpy":
        op, same_bits = _ALIASES.get(name, name), _UFUNCS
    else:
        return name if kind in ("op", "rule") else None
    return op if op in same_bits else None


def _has_bits_of_core(entry: Entry, op: str, entries: list[Entry]) -> bool:
    """Whether the function of an elementwise call gives the bits of the core."""
    kind = entry.target.kind
    if kind != "rule" and op in _EXTREMA:
        return has_bits_of_core(op)
    if op == "where" and kind != "rule":
        return _is_of_truths(entries[entry.args[0].id])
    return kind != "op" or op == "abs" or is_computed_in_core(op, _precision(entries[entry.args[0].id]) == "float")


def _precision(entry: Entry) -> str | None:
    """The precision of a float of Python or NumPy, or of an integer that is a constant; None for any other value."""
    if entry.kind == "constant":
        value = entry.value
        if type(value) in (float, int):
            return "float"
        is_scalar = isinstance(value, (np.ndarray, np.generic)) and value.shape == () and value.dtype.str in FLOATS
        return value.dtype.str if is_scalar else None
    if entry.is_float:
        return "float"
    return entry.type[1] if entry.type is not None and entry.type[0] == () and entry.type[1] in FLOATS else None


def _fits(argument: Entry, dtype: str, *, with_scalars: bool) -> bool:
    """Whether an argument is an array of this dtype or of truth values, or a number; NumPy's scalars if asked for."""
    if _is_of_truths(argument):
        return True
    if argument.kind == "constant":
        value = argument.value
        return type(value) in (float, int) or (
            isinstance(value, (np.ndarray, np.generic))
            and (value.ndim > 0 or with_scalars)
            and value.dtype.str == dtype
        )
    if argument.type is None:
        return argument.is_float
    return argument.type[1] == dtype and (with_scalars or len(argument.type[0]) > 0)


def _is_of_truths(entry: Entry) -> bool:
    """Whether the value of an entry is an array of truth values with dimensions."""
    if entry.kind == "constant":
        return isinstance(entry.value, np.ndarray) and entry.value.dtype == bool and entry.value.ndim > 0
    return entry.type is not None and entry.type[1] == _TRUTH and entry.type[0] != ()


def _without_ids(value: Any) -> Any:
    """A hashable value that is equal for arguments that differ in entries alone."""
    if type(value) is EntryId:
        return EntryId
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_without_ids, value))
    if isinstance(value, dict):
        return (dict, *((key, _without_ids(part)) for key, part in value.items()))
    if isinstance(value, slice):
        return (slice, *map(_without_ids, (value.start, value.stop, value.step)))
    if isinstance(value, (float, complex)):
        return (type(value), repr(value))  # which tells -0.0 from 0.0
    try:
        hash(value)
    except TypeError:
        return (type(value), id(value))
    return (type(value), value)
