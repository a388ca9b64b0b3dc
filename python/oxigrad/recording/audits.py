"""Audits: which calls of a recording are compared with the function itself, and the error where they differ."""

from typing import Any, Literal

from oxigrad.recording import bits

Audit = Literal["powers", "always", "never"] | int
OnStale = Literal["raise", "warn"]

# Calls between audits, after the powers of two below it.
_MOST = 1024
_NEVER = (1 << 64) - 2


class StaleRecordingError(RuntimeError):
    """Raised where an audit finds that a constant of a recording has changed: the function gives another result.

    Results since the call ``last_good`` may be wrong. ``path`` is where the results differ, ``call`` the number of this
    call, of which nothing is returned; the next call records anew.
    """

    path: str
    last_good: int
    call: int

    def __init__(self, name: str, path: str, last_good: int, call: int) -> None:
        super().__init__(
            f"{name}: the recording is stale: results since call {last_good} may be wrong, call {call} differs from "
            f"the function at {path}. A constant has changed: what it reads otherwise than by arguments and names"
        )
        self.path, self.last_good, self.call = path, last_good, call


def check(audit: Audit, on_stale: OnStale) -> None:
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
