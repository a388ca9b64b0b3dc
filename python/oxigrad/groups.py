"""Groups of parameters by key path: which pattern a parameter matches first."""

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# A glob, a compiled regular expression that must match the whole path, or a predicate of the path and the array.
Pattern = str | re.Pattern[str] | Callable[[str, Any], bool]


def matches(pattern: Pattern, path: str, array: Any) -> bool:
    """Whether a parameter is of a group: by glob (``*.bias``), regular expression or predicate of path and array.

    >>> matches("layers.*.bias", "layers.0.bias", None), matches(re.compile(r"head[.].*"), "tail.w", None)
    (True, False)
    """
    if isinstance(pattern, str):
        return fnmatch.fnmatchcase(path, pattern)
    if isinstance(pattern, re.Pattern):
        return pattern.fullmatch(path) is not None
    return bool(pattern(path, array))


def first_match(patterns: Mapping[Pattern, Any], path: str, array: Any) -> int | None:
    """The number of the first pattern that a parameter matches; None where it matches none."""
    return next((at for at, pattern in enumerate(patterns) if matches(pattern, path, array)), None)


def check(patterns: Any) -> None:
    """`TypeError` where something is no mapping from patterns."""
    if not isinstance(patterns, Mapping):
        raise TypeError(f"groups are {patterns!r}: expected a dict from patterns, in the order in which they are tried")
    for pattern in patterns:
        if not (isinstance(pattern, (str, re.Pattern)) or callable(pattern)):
            raise TypeError(f"the pattern {pattern!r} is no glob, no compiled regular expression and no predicate")


def plain(pattern: Pattern) -> Any:
    """A pattern as plain data; raises `TypeError` for a predicate."""
    if isinstance(pattern, str):
        return pattern
    if isinstance(pattern, re.Pattern):
        return {"regex": pattern.pattern}
    raise TypeError(f"the pattern {pattern!r} is a function: only globs and regular expressions can be written down")


def from_plain(pattern: Any) -> Pattern:
    """The pattern that `plain` wrote down."""
    return re.compile(pattern["regex"]) if isinstance(pattern, dict) else pattern


def table(rows: Iterator[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Rows of text as a table with a head, columns aligned."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
