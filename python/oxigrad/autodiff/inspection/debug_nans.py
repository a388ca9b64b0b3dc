"""A search for the operation that produces the first NaN, forward and in the reverse replay."""

import contextlib
import linecache
from collections.abc import Iterator, Sequence
from typing import Any

from oxigrad import xp
from oxigrad._core import NonFiniteError, Tape, Variable, plain, set_debug_nans
from oxigrad._names import calling_frame
from oxigrad.ops.backends import is_array, is_smooth


class _Search:
    """The entries with the lines that recorded them, by tape and number, and whether a search is running."""

    def __init__(self) -> None:
        self.entries: dict[tuple[int, int], tuple[Variable, str]] = {}
        self.is_running = False


_search = _Search()


@contextlib.contextmanager
def debug_nans() -> Iterator[None]:
    """A context in which an operation that gives NaN raises `NonFiniteError`.

    The error names the operation and the line of the program. Recorded operations are checked when they are computed,
    for tapes that the same thread opens inside of the context. Cotangents are checked after each reverse replay. The
    error then names the operation whose derivative is NaN first, and the line that recorded it. Arguments that are NaN
    already are not errors of an operation that keeps them. Arrays on a device are synchronized. Outside of the context
    nothing is checked, and recording costs the same.

    >>> import oxigrad as ox
    >>> with debug_nans():
    ...     try:
    ...         ox.grad(lambda x: xp.sqrt(x) * 0.0)(0.0)
    ...     except ox.NonFiniteError as error:
    ...         print(str(error).partition(";")[0])
    the derivative of sqrt gives NaN
    """
    former = set_debug_nans(True)
    try:
        yield
    finally:
        set_debug_nans(former)
        if not former:
            _search.entries.clear()


def recorded(tape: Tape, number: int, name: str, variable: Variable) -> None:
    """Keeps the line of a new entry; raises `NonFiniteError` if its value is NaN."""
    if _search.is_running:
        return
    line = _line()
    _search.entries[id(tape), number] = variable, line
    if _has_nan(variable):
        raise NonFiniteError(f"{name} gives NaN, at {line}")


def pulled(tape: Tape, seeds: Sequence[tuple[int, Any]], cotangents: list[Any]) -> None:
    """Raises `NonFiniteError` if a cotangent of a replay is NaN, with the entry of the first NaN."""
    if _search.is_running or not any(map(_has_nan, cotangents)) or any(_has_nan(seed) for _, seed in seeds):
        return
    _search.is_running = True
    try:
        name, line = _first(tape, [(tape.variable(number), seed) for number, seed in seeds])
    finally:
        _search.is_running = False
    raise NonFiniteError(f"the derivative of {name} gives NaN; recorded at {line}")


def _first(tape: Tape, seeds: list[tuple[Variable, Any]]) -> tuple[str, str]:
    """The op of the last entry that makes a NaN from a cotangent without NaN, and the line that recorded it."""
    entries = tape.entries()
    variables = [tape.variable(number) for number in range(len(entries))]
    cotangents = tape.pull(seeds, variables)
    for number in range(len(entries) - 1, -1, -1):
        kind, arguments, _ = entries[number]
        active = [variables[argument] for argument in arguments if entries[argument][0] != "constant"]
        recorded = _search.entries.get((id(tape), number))
        if recorded is None or not active or _has_nan(cotangents[number]):
            continue
        variable, line = recorded
        if any(map(_has_nan, tape.pull([(variable, cotangents[number])], active))):
            return kind, line
    return "an operation", "an unknown line"


def _has_nan(value: Any) -> bool:
    value = plain(value)
    if isinstance(value, tuple):
        return any(map(_has_nan, value))
    if isinstance(value, dict):
        return any(map(_has_nan, value.values()))
    if not is_smooth(value):
        return False
    is_nan = xp.isnan(value)
    return bool(xp.any(is_nan)) if is_array(is_nan) else bool(is_nan)


def _line() -> str:
    """The file, the line and its text of the innermost frame outside of this package."""
    frame = calling_frame()
    file, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, number).strip()
    return f"{file}:{number}" + (f": {text}" if text else "")
