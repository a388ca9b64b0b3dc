"""Recorded calls: a program each, with the structure of its result, and audits, which compare it with the function."""

import functools
from typing import Any, Literal

import numpy as np

from oxigrad import tree
from oxigrad._core import Entry, EntryId, Guards, Replay
from oxigrad.recording import bits, files
from oxigrad.recording.captures import Captures
from oxigrad.recording.inputs import Inputs, Key
from oxigrad.recording.program.replay import reassociated, replay_of


class Case:
    """A recorded call: its program, and the structure of its result."""

    def __init__(
        self,
        inputs: Inputs,
        entries: list[Entry],
        outputs: list[EntryId],
        result: tree.Structure,
        values: list[Any],
        captures: Captures,
        *,
        reassociate: bool = False,
    ) -> None:
        self.inputs: Inputs = inputs.described()
        self.key: Key = inputs.key
        # The recording is one for a state of these guards.
        self.captures = captures
        self.guards: tuple[Guards, list[int]] = captures.guards, [flat for _, _, flat in captures.inputs]
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
        # Results that the caller may write to: a call gives a copy of one that is a constant.
        self.writable: list[int] = [
            at for at, value in enumerate(values) if isinstance(value, np.ndarray) and value.flags.num & _WRITABLE
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


# --- audits -----------------------------------------------------------------------------------------------------------

Audit = Literal["powers", "always", "never"] | int
OnStale = Literal["raise", "warn"]

# The flag of arrays that are written to. The attribute of its name warns for those of `broadcast_arrays`.
_WRITABLE = 0x0400
# Calls between audits, after the powers of two below it.
_MOST = 1024
_NEVER = (1 << 64) - 2


class StaleRecordingError(RuntimeError):
    """Raised where an audit finds that a constant of a recording has changed: the function gives another result.

    Results since the call ``last_good`` may be wrong. ``path`` is where the results differ, ``call`` the number of this
    call, of which nothing is returned; the next call records anew.
    """

    __module__ = "oxigrad"
    path: str
    last_good: int
    call: int

    def __init__(self, name: str, path: str, last_good: int, call: int) -> None:
        super().__init__(
            f"{name}: the recording is stale: results since call {last_good} may be wrong, call {call} differs from "
            f"the function at {path}. A constant has changed: what it reads otherwise than by arguments and names"
        )
        self.path, self.last_good, self.call = path, last_good, call


def check_schedule(audit: Audit, on_stale: OnStale) -> None:
    """Raises `ValueError` for an unknown schedule, and for an unknown choice of what follows."""
    is_number = type(audit) is int and audit >= 1
    if not is_number and audit not in ("powers", "always", "never"):
        raise ValueError(f"record: audit is {audit!r}, expected 'powers', 'always', 'never' or a number of calls")
    if on_stale not in ("raise", "warn"):
        raise ValueError(f"record: on_stale is {on_stale!r}, expected 'raise' or 'warn'")


def next_call(audit: Audit, call: int) -> int:
    """The number of the first call after this one that is audited: the second is, unless none are."""
    if audit == "never":
        return _NEVER
    if audit == "always" or call == 1:
        return call + 1
    if audit == "powers":
        return 1 << call.bit_length() if call < _MOST else (call // _MOST + 1) * _MOST
    return (call // audit + 1) * audit


def difference(replayed: Any, result: Any, error: Exception | None) -> str | None:
    """The place in which a replay differs from the function; None if it does not."""
    return f"an exception: {type(error).__name__}: {error}" if error is not None else bits.difference(replayed, result)
