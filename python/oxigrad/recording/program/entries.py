"""The entries of a recording, in little memory."""

from collections.abc import Iterator
from dataclasses import replace

from oxigrad._core import EntryId
from oxigrad.recording.program.views import ids_in
from oxigrad.recording.trace import Entry
from oxigrad.recording.traced import with_leaves

# The loops of a program: the first entry of each, the number of entries of a repetition, and that of repetitions.
Loops = list[tuple[int, int, int]]


class Entries:
    """The entries of a recording, of which the calls of loops take the memory of one repetition."""

    def __init__(self, entries: list[Entry], loops: Loops) -> None:
        # Entries that are there once, and for each loop the number of repetitions, and for each entry of a repetition a
        # call with the steps of the ids that it reads, or the entries of all.
        self._parts: list[list[Entry] | tuple[int, list[tuple[Entry, list[int]] | list[Entry]]]] = []
        before = 0
        for start, period, count in loops:
            end = start + period * count
            self._parts.append(entries[before:start])
            self._parts.append((count, [_repeated(entries[at:end:period]) for at in range(start, start + period)]))
            before = end
        self._parts.append(entries[before:])

    def __iter__(self) -> Iterator[Entry]:
        for part in self._parts:
            if isinstance(part, list):
                yield from part
                continue
            count, repeated = part
            for at in range(count):
                for each in repeated:
                    yield each[at] if isinstance(each, list) else _call(*each, at)


def _repeated(entries: list[Entry]) -> tuple[Entry, list[int]] | list[Entry]:
    """The first of a loop's calls, with the steps of the ids that it reads; all of them where they differ otherwise."""
    first, second, *_ = entries
    ids = [ids_in((entry.args, entry.named)) for entry in (first, second)]
    steps = [other.id - one.id for one, other in zip(*ids, strict=True)]
    are_alike = all((entry.is_float, entry.is_permuted) == (first.is_float, first.is_permuted) for entry in entries)
    return (first, steps) if first.kind == "call" and are_alike else entries


def _call(first: Entry, steps: list[int], at: int) -> Entry:
    """The call in a repetition."""
    left = iter(steps)
    args, named = with_leaves(
        (first.args, first.named), lambda leaf: EntryId(leaf.id + at * next(left)) if type(leaf) is EntryId else leaf
    )
    return replace(first, args=args, named=named)
