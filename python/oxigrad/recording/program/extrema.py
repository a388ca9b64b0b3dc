"""Largest and smallest elements along axes as parts of runs."""

from oxigrad._core import Entry, EntryId
from oxigrad.recording.program.views import FLOATS, Member, array_type, is_permuted

EXTREMA = {(kind, name): name.removeprefix("a") for kind in ("op", "numpy") for name in ("max", "min", "amax", "amin")}


def extremum(entry: Entry, entries: list[Entry]) -> Member | None:
    """The same of the largest or smallest elements of an array in order; None for any other."""
    if len(entry.args) != 1 or type(entry.args[0]) is not EntryId or not entry.named.keys() <= {"axis", "keepdims"}:
        return None
    of = entries[entry.args[0].id]
    (shape, dtype), axis, keepdims = array_type(of), entry.named.get("axis"), entry.named.get("keepdims", False)
    if entry.type is None or dtype != entry.type[1] or dtype not in FLOATS or is_permuted(of) or 0 in shape:
        return None
    op = EXTREMA[entry.target.kind, entry.target.name]
    if axis is None:
        return (op, [*shape], [dtype], None) if shape and keepdims is False else None
    axes = axis if type(axis) is tuple else (axis,)
    fits = axes and all(type(each) is int for each in axes) and type(keepdims) is bool
    return (op, [*shape], [dtype], ([*axes], keepdims)) if fits else None
