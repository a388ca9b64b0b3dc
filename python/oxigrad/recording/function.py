"""The transform `record`: a function that is recorded once for each kind of arguments, and replayed after that."""

import functools
import inspect
import threading
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, cast

from oxigrad import _core, tree
from oxigrad._core import BatchLevel, RecordedFunction, Replay, StateError, StructureError, Variable
from oxigrad._names import check_callable, check_flags, name_of
from oxigrad._tables import Table
from oxigrad._typing import P, R
from oxigrad.recording import files
from oxigrad.recording.answers import answering
from oxigrad.recording.bits import is_alike
from oxigrad.recording.captures import Captures, is_input
from oxigrad.recording.cases import (
    Audit,
    Case,
    OnStale,
    StaleRecordingError,
    check_schedule,
    difference,
    loops_shown,
    next_call,
    plural,
    saved,
)
from oxigrad.recording.inputs import Inputs, Key, Why, change, copies, is_constant, is_small, restore
from oxigrad.recording.shadows import release, shadowed
from oxigrad.recording.trace import Trace, line
from oxigrad.recording.traced import UnrecordableError

# After so many kinds of calls that were refused, no other is recorded.
_MOST_REFUSED = 64


class Recorded(RecordedFunction, Generic[P, R]):
    """A function that is replayed: see `record`. The core calls it, and `_otherwise` where no recording fits."""

    def __init__(
        self, f: Callable[..., Any], limit: int, audit: Audit, on_stale: OnStale, *, reassociate: bool
    ) -> None:
        functools.update_wrapper(self, f)
        self.__wrapped__ = f
        self._limit, self._on_stale, self._reassociate = limit, on_stale, reassociate
        self._schedule: Audit = audit
        self._lock = threading.Lock()
        # Held during a first call: a function that waits for a call of itself in another thread goes on.
        self._first_call = threading.Lock()
        # What the function captured when it was recorded, one for each state of the guards.
        self._captures: list[Captures] = []
        self._refusal: str | None = None
        self._refused: dict[Any, str] = {}
        self._cases: dict[Any, list[Case]] = {}
        self._last: Any = None
        # The recordings that were kept, also before something captured has changed, and calls of the function as it is.
        self._count = self._count_eager = 0
        self._has_warned = False
        # Whether a first call has changed what the function reads: it may have filled a cache.
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

    def _otherwise(self, args: Any, named: Any, failed: Any, raised: Exception | None, asked: int) -> Any:
        """The result of a call that was no replay: a check has ``failed``, a replay has ``raised``, or nothing fits.

        The core has ``asked`` so many recordings. One thread records, while the function runs as it is in others.
        """
        if any(isinstance(leaf, (Variable, BatchLevel)) for leaf in tree.leaves((args, named))):
            return self.__wrapped__(*args, **named)
        if self._refusal is not None or _core.is_watched():
            return self._eager(args, named)
        if raised is not None:  # the function itself raises it, or another one
            self._why = Why("an exception", "", raised)
            return self._eager(args, named)
        if not self._first_call.acquire(blocking=False):
            self._why = Why("not recorded", "", "a first call is under way")
            return self._eager(args, named)
        try:
            captures, changed = self._present()
            if captures is None:
                self._why = Why(*changed) if changed else self._why
                return self._begin(args, named)
            inputs = self._inputs(args, named, captures)
            if not self._settle(inputs.key, asked):
                if failed is not None or self._last is not None:
                    self._why = Why(*failed) if failed is not None else inputs.difference(self._last)
                return self._record(args, named, inputs, captures)
        finally:
            self._first_call.release()
        return cast("Callable[..., Any]", self)(*args, **named)

    def _present(self) -> tuple[Captures | None, tuple[str, Any, Any] | None]:
        """The captures whose guards hold, or None, and what has changed since the last ones."""
        states = [(captures, captures.changed()) for captures in self._captures] or [(None, None)]
        held = next((captures for captures, changed in states if changed is None), None)
        return held, states[-1][1]

    def _eager(self, args: Any, named: Any) -> Any:
        self._count_eager += 1
        return self.__wrapped__(*args, **named)

    # --- recording ----------------------------------------------------------------------------------------------------

    def _begin(self, args: Any, named: Any) -> Any:
        """Finds what the function captures, at the first call or in a new state of its guards, and records."""
        if self._count >= self._limit:
            self._warn_of_limit()
            return self._eager(args, named)
        try:
            captures = Captures(self.__wrapped__)
            for path, value in captures.trees():
                if any(isinstance(leaf, (Variable, BatchLevel)) for leaf in tree.leaves(value)):
                    raise UnrecordableError(f"{path} has variables")
        except UnrecordableError as error:
            self._refuse(str(error))
            return self._eager(args, named)
        with self._lock:
            for case in [case for cases in self._cases.values() for case in cases if not case.captures.may_return()]:
                self._discard(case)
            used = {id(case.captures) for cases in self._cases.values() for case in cases}
            self._captures, self._last = [*(each for each in self._captures if id(each) in used), captures], None
        return self._record(args, named, self._inputs(args, named, captures), captures)

    def _inputs(self, args: Any, named: Any, captures: Captures) -> Inputs:
        return Inputs(*tree.flatten((args, named)), captures, with_ints=self._with_ints)

    def _refuse_kind(self, key: Key, reason: str) -> None:
        """Runs the function as it is for arguments of this kind."""
        self._refused[key] = reason
        self._why = Why("not recorded", "", reason)

    def _refuse(self, reason: str) -> None:
        """Runs the function as it is from now on."""
        self._refusal = reason
        self._forget()
        self._why = Why("not recorded", "", reason)

    def _record(self, args: Any, named: Any, inputs: Inputs, captures: Captures) -> Any:
        refusal = self._refused.get(inputs.key)
        if refusal is None and len(self._refused) >= _MOST_REFUSED:
            refusal = f"{_MOST_REFUSED} kinds of calls were refused"
        if refusal is not None:
            self._why = Why("not recorded", "", refusal)
        elif self._count < self._limit:
            return self._first(args, named, inputs, captures)
        else:
            self._warn_of_limit()
        return self._eager(args, named)

    def _first(self, args: Any, named: Any, inputs: Inputs, captures: Captures) -> Any:
        """The result of the call that is recorded, the only one of the function."""
        trace, before = Trace(line, has_truths=captures.has_truths), copies(inputs.values)
        try:
            inputs.require_constants()
            function, args_traced, named_traced, shadows = shadowed(trace, inputs, captures, (args, named))
        except UnrecordableError as error:
            return self._unrecorded(inputs.key, str(error), args, named)
        try:
            with answering(captures, trace):
                result = _core.call_traced(function, args_traced, named_traced, trace)
            del args_traced, named_traced, function
            leaves, structure = _flat(result, trace)
            is_leaf = len(leaves) == 1 and leaves[0] is result
            is_ours = trace.refusal is not None and not any(isinstance(leaf, Variable) for leaf in leaves)
            odd = next((leaf for leaf in leaves if not (is_input(leaf) or is_constant(leaf))), None)
            outputs = [] if trace.refusal else trace.outputs(leaves)
            values = [shadows.plain(leaf) for leaf in leaves]
            result = values[0] if is_leaf else shadows.plain(result) if is_ours else tree.unflatten(structure, values)
            del leaves
            if shadows.is_held(result):
                trace.refuse_result("the function returns values of the call in an object")
            trace.require_result([*inputs.values, *values])
        except Exception as error:  # noqa: BLE001 - the call raises the function's own
            trace.close()
            self._with_ints = self._with_ints and not any(type(value) is int for value in inputs.values)
            restore(inputs.values, before)
            shadows.undo()
            reason, each = trace.text(error), error
            result = values = function = args_traced = named_traced = None  # noqa: F841 - they hold values too
            while each is not None:  # frames hold values of the call
                each.__traceback__, each = None, each.__context__
            left = shadows.retire()
            del shadows
            release(trace, *left)
            result = self._unrecorded(inputs.key, reason, args, named)
            self._warn(f"cannot be recorded, and ran twice in this call: {reason}")
            return result
        except BaseException:
            trace.close()
            shadows.settle()
            raise
        path = shadows.settle()
        reason = trace.refusal or (f"the function returns a {type(odd).__name__}" if odd is not None else None)
        trace.close()
        left = shadows.retire()
        del shadows
        if release(trace, *left):
            reason = reason or "the function keeps values of the call, in a cache or a container"
        del left
        changed = f"the function changes {path}" if path else change(before, inputs, captures)
        if reason is not None:
            self._refuse_kind(inputs.key, reason)
            return result
        if changed is not None:
            if self._has_changed:
                self._refuse(changed)
            self._has_changed, self._why = True, Why("not recorded", "", changed)
            return result
        case = Case(inputs, trace.entries, outputs, structure, values, captures, reassociate=self._reassociate)
        case.first = (before, copies(values)) if is_small([*before, *values]) else None
        with self._lock:
            if any(each is captures for each in self._captures):
                self._cases.setdefault(inputs.key, []).append(case)
                self._last = case.inputs
                self._count += 1
        return result

    def _unrecorded(self, key: Key, reason: str, args: Any, named: Any) -> Any:
        self._refuse_kind(key, reason)
        return self._eager(args, named)

    def _settle(self, key: Key, asked: int) -> bool:
        """Gives new recordings for arguments of a kind to the core; tells whether it has others than it ``asked``."""
        with self._lock:
            is_any_added = asked != sum(case.is_added for cases in self._cases.values() for case in cases)
            for case in [case for case in self._cases.get(key, ()) if not case.is_added]:
                try:
                    replay = case.replay
                except Exception as error:  # noqa: BLE001 - the function took the arguments, and its program need not
                    self._drop(case, f"{type(error).__name__}: {error}")
                    continue
                first = case.first[0] if case.first is not None and self._schedule != "never" else None
                following = next_call(self._schedule, 1)
                self._add(*case.guards, *case.key, replay, case.structure, case.writable, case, following, first)
                case.is_added = is_any_added = True
        return is_any_added

    # --- audits -------------------------------------------------------------------------------------------------------

    def _audit(self, args: Any, named: Any, replayed: Any, case: Case, call: int, is_proof: bool) -> tuple[Any, int]:
        """The result of an audited call, and the number of the call that is audited next."""
        following, captures = next_call(self._schedule, call), case.captures
        inputs = self._inputs(args, named, captures)
        before = copies(inputs.values)
        result, error = self._itself(args, named)
        if (reason := change(before, inputs, captures)) is not None:
            self._drop(case, reason)
        elif (path := difference(error or case.compared(inputs.values, replayed, result), result, error)) is not None:
            self._differ(args, named, case, call, path, result, error)
        else:
            case.last_audit = call
            case.first = None if is_proof else case.first
            result = replayed if case.reassociate else result
        if error is not None:
            raise error
        return result, following

    def _itself(self, args: Any, named: Any) -> tuple[Any, Exception | None]:
        """The result of the function itself, or its error."""
        try:
            return self.__wrapped__(*args, **named), None
        except Exception as error:  # noqa: BLE001 - raised again
            return None, error

    def _differ(
        self, args: Any, named: Any, case: Case, call: int, path: str, result: Any, error: Exception | None
    ) -> None:
        """A replay differs: at the second call the function is not recordable, later its constants have changed."""
        if case.first is not None or case.last_audit == 1:
            self._drop(case, f"the function does not give the same bits in two calls, at {path}")
            return
        if difference(result, *self._itself(args, named)) is not None:
            self._refuse(f"the function differs from itself, at {path}")
            warnings.warn(f"{name_of(self.__wrapped__)} differs from itself, and runs as it is: {path}", stacklevel=5)
            return
        with self._lock:
            self._cases, self._last, self._captures = {}, None, []
            self._count = 0
            self._forget()
        stale = StaleRecordingError(name_of(self.__wrapped__), path, case.last_audit, call)
        self._why = Why("stale", case.last_audit, path)
        if self._on_stale == "raise":
            raise stale from error
        warnings.warn(str(stale), stacklevel=5)

    def _discard(self, case: Case) -> None:
        self._cases = {key: [each for each in cases if each is not case] for key, cases in self._cases.items()}
        self._cases = {key: cases for key, cases in self._cases.items() if cases}
        self._remove(case)

    def _drop(self, case: Case, reason: str) -> None:
        """Runs the function as it is for arguments of the kind of a recording, which is dropped."""
        self._discard(case)
        self._refuse_kind(case.key, reason)

    def _is_verified(self, case: Case) -> bool:
        """Whether the replay of a first call that is kept gives its bits; it is dropped where it does not."""
        if case.first is None:
            return True
        inputs, expected = case.first
        results, failed = case.exact.run(inputs)
        if failed is None and all(map(is_alike, results, expected)):
            return True
        self._drop(case, "the replay does not give the same bits as the first call")
        return False

    def _warn(self, text: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(f"{name_of(self.__wrapped__)} {text}", stacklevel=4)

    def _warn_of_limit(self) -> None:
        self._warn(f"was recorded {self._limit} times and runs as it is where no recording fits: {self.why}")

    def save(self, file: Any) -> None:
        """Writes the recordings to a file, which `ox.load_recording` reads in another process.

        ``file`` is a path, or a binary file object such as `io.BytesIO`, which then has the recordings as bytes.
        Arrays that the function captures are saved with their present values. Raises `StateError` where nothing is
        recorded, and for arguments or results in other containers than lists, tuples and dicts.
        """
        present, every = self._present()[0], [case for cases in self._cases.values() for case in cases]
        cases = [saved(case) for case in every if case.captures is present and self._is_verified(case)]
        if not cases:
            raise StateError(
                f"{name_of(self.__wrapped__)} has no recording: call it once" + (f" ({self.why})" if self.why else "")
            )
        files.save(file, name_of(self.__wrapped__), cases)

    # --- what it shows ------------------------------------------------------------------------------------------------

    @property
    def recordings(self) -> list[Replay]:
        """The programs, in the order of recording."""
        return [case.replay for cases in self._cases.values() for case in cases]

    def _sizes(self) -> list[tuple[str, Case, tuple[int, int, int, int, int]]]:
        """The kind of each recording, and the sizes of its program."""
        return [(str(key), case, case.replay.sizes()) for key, cases in self._cases.items() for case in cases]

    def __repr__(self) -> str:
        counts = [plural(len(self.recordings), "recording"), plural(self.replays, "replay")]
        lines = [f"record({name_of(self.__wrapped__)}): {', '.join(counts)}"]
        if self._count_eager:
            lines[0] += f", {plural(self._count_eager, 'call')} without"
        for key, case, (recorded, replayed, runs, fused, constants) in self._sizes():
            lines.append(
                f"  {key}: {recorded} entries, {replayed} replayed, {fused} of them in {plural(runs, 'run')}, "
                f"{plural(constants, 'constant')}, {plural(case.checks, 'check')}{loops_shown(case)}"
            )
        lines.extend(f"  {key}: not recorded: {reason}" for key, reason in self._refused.items())
        if self._refusal is not None:
            lines.append(f"  not recorded: {self._refusal}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *_ = repr(self).splitlines()
        columns = ("arguments", "entries", "replayed", "in runs", "runs", "constants", "checks", "not recorded")
        rows = [
            (key, *map(str, (recorded, replayed, fused, runs, constants, case.checks)), "")
            for key, case, (recorded, replayed, runs, fused, constants) in self._sizes()
        ]
        refused = {**{str(key): reason for key, reason in self._refused.items()}, "all": self._refusal or ""}
        rows += [(key, *[""] * 6, reason) for key, reason in refused.items() if reason]
        return Table(columns, rows, head)._repr_html_()

    def __reduce__(self) -> str:
        return name_of(self.__wrapped__)  # a copy is the object itself, and a pickle its name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


def _flat(result: Any, trace: Trace) -> tuple[list[Any], tree.Structure]:
    """The leaves and the structure of a result; refuses a function with a result that is no tree, which is one leaf."""
    try:
        return tree.flatten(result)
    except StructureError as error:
        trace.refuse(str(error))
        return [result], tree.flatten(0.0)[1]


def record(
    f: Callable[P, R],
    *,
    limit: int = 8,
    audit: Audit = "powers",
    on_stale: OnStale = "raise",
    reassociate: bool = False,
) -> Recorded[P, R]:
    """A function that gives the results of ``f``, recorded at the first call and replayed, without its code, later.

    Args:
        f: function of arrays, numbers and trees of them, without effects.
        limit: largest number of recordings that are kept.
        audit: calls whose replay is compared with a call of ``f``: "powers" (2, 4, 8, ... 1,024 and every 1,024th),
            "always", "never", or the number of calls from one audit to the next.
        on_stale: what an audit does where results differ: "raise" `StaleRecordingError`, or "warn".
        reassociate: whether the core computes small products of matrices and vectors. They then depend on no BLAS, and
            differ from NumPy's in last bits.

    Each call reads the inputs: the arguments, and the arrays, numbers and trees that ``f`` names as globals, closure
    cells and defaults. The attributes of a method's object are inputs, and so are the inputs of plain functions that
    ``f`` calls by name. A function that writes to its inputs runs unrecorded. Branches on data are checked: another
    branch is recorded beside the first, up to ``limit`` times.

    All else that ``f`` reads is a constant, and audits compare it: ``f`` runs after its replay, and structure, dtypes
    and bits must be the same. The result has `why` (path, old and new value: why the last call was no replay, or
    None), `recordings` (the programs) and `save`. Only NumPy arrays are recorded: with arrays of other libraries the
    function runs unrecorded. See docs/recording.md.

    Raises `TypeError` for what is not callable, and for generators and coroutines; `ValueError` for a ``limit`` below 1
    and for another ``audit`` or ``on_stale``. A call raises `StaleRecordingError` where an audit finds that a constant
    has changed, before it returns anything; with ``on_stale="warn"`` it warns, and returns the result of ``f``.

    >>> import numpy as np
    >>> from oxigrad import xp
    >>> g = record(lambda x, c: xp.sum(xp.exp(x) * c))
    >>> x = np.zeros(3)
    >>> float(g(x, 2.0)), float(g(x, 3.0))
    (6.0, 9.0)
    """
    check_callable(f, "record")
    check_flags(reassociate=reassociate)
    if not isinstance(limit, int) or limit < 1:
        raise ValueError(f"record: limit is {limit!r}, expected an integer, at least 1")
    check_schedule(audit, on_stale)
    if isinstance(f, Recorded):
        return f
    if inspect.iscoroutinefunction(f) or inspect.isgeneratorfunction(f):
        raise TypeError("record: found a generator or a coroutine, expected a function that returns its result")
    return Recorded(f, limit, audit, on_stale, reassociate=reassociate)
