"""Recorded calls: a program each, with the structure of its result, as the core replays and files hold it."""

import functools
from typing import Any

import numpy as np

from oxigrad import tree
from oxigrad._core import Entry, EntryId, Replay
from oxigrad.recording import files
from oxigrad.recording.inputs import Inputs, Key
from oxigrad.recording.program.statement import reassociated, replay_of


class Case:
    """A recorded call: its program, and the structure of its result."""

    def __init__(
        self,
        inputs: Inputs,
        entries: list[Entry],
        outputs: list[EntryId],
        result: tree.Structure,
        *,
        reassociate: bool = False,
    ) -> None:
        self.inputs: Inputs = inputs.described()
        self.key: Key = inputs.key
        self.entries: list[Entry] = entries
        self.outputs: list[EntryId] = outputs
        self.structure: tree.Structure = result
        self.reassociate = reassociate
        self.checks: int = sum(entry.kind == "check" for entry in entries)
        # The inputs and results of the first call, until another one is audited.
        self.first: tuple[list[Any], list[Any]] | None = None
        self.last_audit = 1
        # Whether the core replays it.
        self.is_added = False
        # Results that are constants: a call gives a copy of each.
        self.copied: list[int] = [
            at for at, output in enumerate(outputs) if isinstance(entries[output.id].value, np.ndarray)
        ]

    @functools.cached_property
    def replay(self) -> Replay:
        """The program, which is made where it is asked for: many functions are called once for arguments of a kind."""
        return replay_of(reassociated(self.entries) if self.reassociate else self.entries, self.outputs)

    @functools.cached_property
    def exact(self) -> Replay:
        """The program with the products of the function, which audits compare."""
        return replay_of(self.entries, self.outputs) if self.reassociate else self.replay

    def compared(self, values: list[Any], replayed: Any, result: Any) -> Any:
        """The values that an audit compares with the ``result`` of the function: a replay with its products.

        Where another branch is taken with them, that is the result itself.
        """
        if not self.reassociate:
            return replayed
        exact, failed = self.exact.run(values)
        return result if exact is None or failed is not None else tree.unflatten(self.structure, exact)


def saved(case: Case) -> files.Saved:
    """A recorded call as a file has it: captured inputs are constants."""
    inputs = case.inputs
    captured, entries = iter(inputs.captured()), []
    count = sum("value" not in kind for kind in inputs.leaves)
    for entry in case.entries:
        is_captured = entry.kind == "input" and count <= 0
        count -= entry.kind == "input"
        entries.append(Entry("constant", value=next(captured)) if is_captured else entry)
    arguments, result = (tree.unflatten(each, range(len(each))) for each in (inputs.key.structures[0], case.structure))
    return files.Saved(arguments, inputs.leaves, entries, case.outputs, result, case.replay.loops())


def loops_shown(case: Case) -> str:
    """The loops of the entries that were recorded, if there are any."""
    loops = case.replay.loops()
    repeated, stated = sum(period * count for _, period, count in loops), sum(period for _, period, _ in loops)
    return f"; {repeated} entries are in {plural(len(loops), 'loop')}, stated by {stated}" if loops else ""


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
