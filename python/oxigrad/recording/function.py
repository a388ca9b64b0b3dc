"""The transform `record`: a function that is recorded once for each kind of arguments, and replayed after that."""

import functools
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, cast

import numpy as np

from oxigrad import _core, tree
from oxigrad._core import BatchLevel, EntryId, RecordedFunction, Replay, StateError, Tape, Variable
from oxigrad._tables import Table
from oxigrad._typing import P, R
from oxigrad.recording import files
from oxigrad.recording.captures import SIMPLE, Captures
from oxigrad.recording.inputs import Inputs, Key, Why
from oxigrad.recording.program import Entries, replay_of
from oxigrad.recording.trace import Entry, Trace, is_same
from oxigrad.recording.traced import Traced, UnrecordableError
from oxigrad.recording.verification import Contents, FirstCall

# Arguments that a function may call: what they read is watched.
_CALLED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
# More kinds of calls that were refused are not remembered.
_MOST_REFUSED = 64


class _ChangedError(UnrecordableError):
    """Raised where a call changes what the function reads."""


class _Case:
    """A recorded call: its program, and the structure of its result."""

    def __init__(
        self, inputs: "Inputs", entries: list[Entry], outputs: list[EntryId], structure: tree.Structure
    ) -> None:
        self.inputs = inputs.described()
        self.entries: list[Entry] | Entries = entries
        self.outputs, self.structure = outputs, structure
        self.checks = sum(entry.kind == "check" for entry in entries)
        # The first call, until the replay has given its bits.
        self.first: FirstCall | None = None
        # Whether the core replays it.
        self.is_added = False
        # Results that are constants: a call gives a copy of each.
        self.copied = [at for at, output in enumerate(outputs) if isinstance(entries[output.id].value, np.ndarray)]

    @functools.cached_property
    def replay(self) -> Replay:
        """The program, which is made where it is asked for: many functions are called once for arguments of a kind."""
        return replay_of(list(self.entries), self.outputs)

    def shorten(self) -> None:
        """States the calls of loops once."""
        if isinstance(self.entries, list):
            self.entries = Entries(self.entries, self.replay.loops())


class Recorded(RecordedFunction, Generic[P, R]):
    """A function that is replayed: see `record`. The core calls it, and `_otherwise` where no recording fits."""

    def __init__(self, f: Callable[..., Any], limit: int) -> None:
        functools.update_wrapper(self, f)
        self.__wrapped__ = f
        self._limit = limit
        self._lock = threading.Lock()
        self._captures: Captures | None = None
        self._refusal: str | None = None
        self._refused: dict[Any, str] = {}
        self._cases: dict[Any, list[_Case]] = {}
        self._last: Any = None
        self._counts = {"recordings": 0, "eager": 0}
        self._has_warned = False
        # Whether a call has changed what the function reads: the first one may fill a cache.
        self._has_changed = False
        # Whether integers are inputs: they are until a function does not take traced ones.
        self._with_ints = True

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **named: P.kwargs) -> R:
            """The result of the function."""
            ...

    @property
    def why(self) -> Why | None:
        """Why the last call was not a replay; None where it was one."""
        return self._why

    def _otherwise(self, args: Any, named: Any, failed: Any, raised: Exception | None) -> Any:
        """The result of a call that was no replay: a check has ``failed`` in the last recording that fits, or a replay has ``raised``."""
        leaves, structure = tree.flatten((args, named))
        if any(isinstance(leaf, (Variable, BatchLevel)) for leaf in leaves):
            return self.__wrapped__(*args, **named)
        if self._refusal is not None or _core.is_watched():
            return self._eager(args, named)
        if raised is not None:  # the function itself raises it, or another one
            self._why = Why("an exception", "", raised)
            return self._eager(args, named)
        captures = self._captures
        changed = None if captures is None else captures.changed()
        if captures is None or changed is not None:
            if self._counts["recordings"] >= self._limit:
                self._why = Why(*changed) if changed else self._why
                self._warn()
                return self._eager(args, named)
            return self._begin(args, named, changed)
        inputs = Inputs(leaves, structure, captures, with_ints=self._with_ints)
        if self._settle(inputs.key):
            return cast("Callable[..., Any]", self)(*args, **named)
        if failed is not None:
            self._why = Why(*failed)
        elif inputs.key not in self._cases and self._last is not None:
            self._why = inputs.difference(self._last)
        return self._record(args, named, inputs, captures)

    def _eager(self, args: Any, named: Any) -> Any:
        self._counts["eager"] += 1
        return self.__wrapped__(*args, **named)

    # --- recording -----------------------------------------------------------------------------------------------------

    def _begin(self, args: Any, named: Any, changed: Any) -> Any:
        """Finds what the function captures, at the first call or after it has changed, and records."""
        with self._lock:
            if changed is not None:
                self._why = Why(*changed)
                self._cases, self._last = {}, None
            try:
                captures = Captures(self.__wrapped__, (args, named))
                for path, value in captures.trees():
                    if any(isinstance(leaf, (Variable, BatchLevel)) for leaf in tree.leaves(value)):
                        raise UnrecordableError(f"{path} has variables")
            except UnrecordableError as error:
                self._refuse(str(error))
                return self._eager(args, named)
            self._captures = captures
            self._restart(captures.guards, [flat for _, _, flat in captures.inputs])
        inputs = Inputs(*tree.flatten((args, named)), captures, with_ints=self._with_ints)
        return self._record(args, named, inputs, captures)

    def _refuse_kind(self, key: Key, reason: str) -> None:
        """Runs the function as it is for arguments of this kind."""
        if len(self._refused) < _MOST_REFUSED:
            self._refused[key] = reason
        self._why = Why("not recorded", "", reason)

    def _refuse(self, reason: str) -> None:
        """Runs the function as it is from now on."""
        self._refusal = reason
        self._restart(None, [])
        self._why = Why("not recorded", "", reason)

    def _record(self, args: Any, named: Any, inputs: "Inputs", captures: Captures) -> Any:
        refusal = self._refused.get(inputs.key)
        if refusal is not None or self._counts["recordings"] >= self._limit:
            if refusal is None:
                self._warn()
            else:
                self._why = Why("not recorded", "", refusal)
            return self._eager(args, named)
        try:
            _require_watchable(inputs)
            captures.add_classes((args, named))
        except UnrecordableError as error:
            self._refuse_kind(inputs.key, str(error))
            return self._eager(args, named)
        before = [np.array(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in inputs.values]
        result = self.__wrapped__(*args, **named)
        self._counts["recordings"] += 1
        try:
            _require_unchanged(before, inputs, captures)
            copies = {id(leaf): copy for leaf, copy in zip(inputs.values, before, strict=True)}
            case, inputs = self._traced(inputs, captures, result)
            first = FirstCall(inputs.values, result)
            if first.is_small:
                case.first = first.snapshot(copies)
            else:
                first.verify(case.replay, case.structure)
        except _ChangedError as error:
            if self._has_changed:
                self._refuse_kind(inputs.key, str(error))
            self._has_changed, self._why = True, Why("not recorded", "", str(error))
        except UnrecordableError as error:
            self._refuse_kind(inputs.key, str(error))
        except Exception as error:  # noqa: BLE001 - the function took the arguments, and need not take traced ones
            self._refuse_kind(inputs.key, f"{type(error).__name__}: {error}")
        else:
            with self._lock:
                if captures is self._captures:
                    self._cases.setdefault(inputs.key, []).append(case)
                    self._last = case.inputs
            if case.first is None:
                self._settle(inputs.key)
        return result

    def _settle(self, key: Key) -> bool:
        """Gives recordings for arguments of a kind to the core, if there are some that it has not; tells whether there were."""
        is_any_added = False
        for case in [case for case in self._cases.get(key, ()) if not case.is_added]:
            if self._is_verified(key, case):
                with self._lock:
                    if not case.is_added:
                        case.is_added = is_any_added = True
                        self._add(*key, case.replay, case.structure, case.copied)
                        case.shorten()
        return is_any_added

    def _is_verified(self, key: Key, case: _Case) -> bool:
        """Whether a recording gives the bits of its first call, which is asked before it is first replayed; it is dropped where it does not."""
        first = case.first
        if first is None:
            return True
        try:
            first.verify(case.replay, case.structure)
        except Exception as error:  # noqa: BLE001 - the function took the arguments, and its replay need not
            with self._lock:
                self._cases = {at: [each for each in cases if each is not case] for at, cases in self._cases.items()}
                self._cases = {at: cases for at, cases in self._cases.items() if cases}
            is_ours = isinstance(error, UnrecordableError)
            self._refuse_kind(key, str(error) if is_ours else f"{type(error).__name__}: {error}")
            return False
        case.first = None
        return True

    def _traced(self, inputs: "Inputs", captures: Captures, result: Any) -> tuple[_Case, "Inputs"]:
        """The recorded call, in which integers are constants where the function does not take traced ones."""
        try:
            return _recorded(inputs, captures, result), inputs
        except Exception:
            if not (self._with_ints and any(type(value) is int for value in inputs.values)):
                raise
        self._with_ints = False
        leaves = inputs.leaves[: inputs.places[0][1]]
        inputs = Inputs(leaves, inputs.key.structures[0], captures, with_ints=False)
        return _recorded(inputs, captures, result), inputs

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{_name(self.__wrapped__)} was recorded {self._limit} times and runs as it is where no recording fits: {self.why}",
                stacklevel=4,
            )

    def save(self, file: Any) -> None:
        """Writes the recordings to a file, which `ox.load_recording` reads in another process.

        Arrays that the function captures are saved with their present values. Raises `StateError` where nothing is recorded, and for
        arguments or results in other containers than lists, tuples and dicts.
        """
        by_key = [(key, case) for key, cases in self._cases.items() for case in cases]
        cases = [_saved(case) for key, case in by_key if self._is_verified(key, case)]
        if not cases:
            raise StateError(
                f"{_name(self.__wrapped__)} has no recording: call it once" + (f" ({self.why})" if self.why else "")
            )
        files.save(file, _name(self.__wrapped__), cases)

    # --- what it shows ---------------------------------------------------------------------------------------------------

    @property
    def recordings(self) -> list[Replay]:
        """The programs, in the order of recording."""
        return [case.replay for cases in self._cases.values() for case in cases]

    def __repr__(self) -> str:
        counts = [_plural(len(self.recordings), "recording"), _plural(self.replays, "replay")]
        lines = [f"record({_name(self.__wrapped__)}): {', '.join(counts)}"]
        if self._counts["eager"]:
            lines[0] += f", {_plural(self._counts['eager'], 'call')} without"
        for key, cases in self._cases.items():
            for case in cases:
                recorded, replayed, runs, fused, constants = case.replay.sizes()
                lines.append(
                    f"  {key}: {recorded} entries, {replayed} replayed, {fused} of them in {_plural(runs, 'run')}, "
                    f"{_plural(constants, 'constant')}, {_plural(case.checks, 'check')}{_loops(case)}"
                )
        lines.extend(f"  {key}: not recorded: {reason}" for key, reason in self._refused.items())
        if self._refusal is not None:
            lines.append(f"  not recorded: {self._refusal}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *_ = repr(self).splitlines()
        columns = ("arguments", "entries", "replayed", "in runs", "runs", "constants", "checks", "not recorded")
        rows = []
        for key, cases in self._cases.items():
            for case in cases:
                recorded, replayed, runs, fused, constants = case.replay.sizes()
                rows.append((str(key), *map(str, (recorded, replayed, fused, runs, constants, case.checks)), ""))
        refused = {**{str(key): reason for key, reason in self._refused.items()}, "all": self._refusal or ""}
        rows += [(key, *[""] * 6, reason) for key, reason in refused.items() if reason]
        return Table(columns, rows, head)._repr_html_()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


def _saved(case: _Case) -> files.Saved:
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


def _loops(case: _Case) -> str:
    """The loops of the entries that were recorded, if there are any."""
    loops = case.replay.loops()
    repeated, stated = sum(period * count for _, period, count in loops), sum(period for _, period, _ in loops)
    return f"; {repeated} entries are in {_plural(len(loops), 'loop')}, stated by {stated}" if loops else ""


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _name(f: Any) -> str:
    return getattr(f, "__qualname__", None) or repr(f)


def _require_watchable(inputs: Inputs) -> None:
    """Raises `UnrecordableError` for an argument that is no tree of arrays and plain values."""
    leaves = inputs.leaves[: inputs.places[0][1]]
    for at, (leaf, kind) in enumerate(zip(leaves, inputs.key.leaves, strict=False)):
        if not (kind.is_input or isinstance(leaf, (*SIMPLE, *_CALLED))):
            raise UnrecordableError(f"{inputs.path(at)} is a {type(leaf).__name__}, whose state is not watched")


def _require_unchanged(before: list[Any], inputs: Inputs, captures: Captures) -> None:
    """Raises `UnrecordableError` where the function has changed its arguments, or what it captures."""
    changed = captures.changed()
    now = Inputs(inputs.leaves[: inputs.places[0][1]], inputs.key.structures[0], captures, with_ints=inputs.with_ints)
    if changed is not None or now.key != inputs.key:
        raise _ChangedError(f"the function changes {changed[0] if changed else now.difference(inputs).path}")
    for at, (old, new) in enumerate(zip(before, now.values, strict=True)):
        if not is_same(old, new):
            raise _ChangedError(f"the function changes an array that it reads, number {at}")


def _line() -> str:
    """The line of the first frame outside of this package and NumPy."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("oxigrad", "numpy"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _recorded(inputs: Inputs, captures: Captures, expected: Any) -> _Case:
    """Calls a copy of the function with traced values, and returns what it did; raises `UnrecordableError` for another result."""
    trace = Trace(_line)
    pairs = zip(inputs.leaves, inputs.key.leaves, strict=True)
    traced = [trace.input(leaf) if kind.is_input else leaf for leaf, kind in pairs]
    trees, at = [], 0
    for (_, count), structure in zip(inputs.places, inputs.key.structures, strict=True):
        trees.append(tree.unflatten(structure, traced[at : at + count]))
        at += count
    (args, named), *captured = trees
    contents = Contents([*captures.held, *trees])
    try:
        with Tape() as constants:  # the arrays that the function makes, and assigns to
            result = _core.call_traced(captures.copied(captured), args, named)
    finally:
        is_changed = contents.restore()
    if is_changed:
        raise _ChangedError("the function changes a list, a dictionary or an attribute that it was given or reads")
    leaves, structure = tree.flatten(result)
    leaves = [leaf.value if isinstance(leaf, Variable) and constants.owns(leaf) else leaf for leaf in leaves]
    outputs = trace.outputs(leaves)
    values = (leaf.held if isinstance(leaf, Traced) else leaf for leaf in leaves)
    FirstCall(inputs.values, expected).require(values, structure)
    return _Case(inputs, trace.entries, outputs, structure)


def record(f: Callable[P, R], *, limit: int = 8) -> Recorded[P, R]:
    """A function that gives the results of ``f``, recorded at the first call and replayed, without its Python code, at later ones.

    Args:
        f: function of arrays, numbers and trees of them, without effects.
        limit: largest number of recordings that are kept.

    A replay has the bits of the function. Arrays and numbers in its arguments, globals, closures and defaults are inputs: they are
    read at each call. Branches on data are checked, and what else the function reads is guarded; where anything differs, the function
    runs as it is and is recorded again, up to ``limit`` times, after which a warning names what differs. Functions with effects,
    random numbers or the clock run as they are, and so does a function inside of a derivative or of another recording. The result has
    `why` (path, old, new: why the last call was no replay, or None), `recordings` (the programs) and `save`; its ``repr`` says what was
    recorded. Arrays are those of NumPy: over other libraries the function runs as it is. See docs/recording.md.

    Raises `TypeError` for what is not callable, and for generators and coroutines; `ValueError` for a ``limit`` below 1.

    >>> import numpy as np
    >>> from oxigrad import xp
    >>> g = record(lambda x, c: xp.sum(xp.exp(x) * c))
    >>> x = np.zeros(3)
    >>> float(g(x, 2.0)), float(g(x, 3.0))
    (6.0, 9.0)
    """
    if not callable(f):
        raise TypeError(f"record: found {f!r}, expected a function")
    if isinstance(f, Recorded):
        return f
    if limit < 1:
        raise ValueError(f"record: limit is {limit}, expected at least 1")
    if inspect.iscoroutinefunction(f) or inspect.isgeneratorfunction(f):
        raise TypeError("record: found a generator or a coroutine, expected a function that returns its result")
    return Recorded(f, limit)
