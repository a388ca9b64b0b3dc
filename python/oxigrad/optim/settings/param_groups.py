"""Patterns of key paths, which assign parameters to groups: the first pattern that matches wins.

A pattern is matched with the keys of a path joined by dots, without quotes: ``0.bias`` for the key ``"0.bias"`` of a
dict and for the field ``bias`` of the item 0 alike. A glob or regular expression with a double quote is matched with
the printed path instead (``"0.bias"``, quoted), which distinguishes the two.
"""

import dataclasses
import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oxigrad import _core, tree
from oxigrad._core import StructureError
from oxigrad._typing import Array

# A glob, a compiled regular expression that must match the whole path, or a predicate of the path and the array.
Pattern = str | re.Pattern[str] | Callable[[str, Array], bool]


@dataclasses.dataclass(frozen=True)
class Matrices:
    """A predicate that matches matrices, but those at key paths that match a glob.

    Args:
        excluded: globs of key paths that do not match.
        more_axes: whether parameters of more than two axes match too.
    """

    excluded: tuple[str, ...] = ()
    more_axes: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.excluded, Iterable) or not all(isinstance(glob, str) for glob in self.excluded):
            raise TypeError(f"excluded is {self.excluded!r}: expected globs of key paths")
        object.__setattr__(self, "excluded", tuple(self.excluded))

    def __call__(self, path: str, array: Array) -> bool:
        """Whether a parameter, given by its printed path, is a matrix that no glob excludes."""
        axes = len(array.shape)
        is_matrix = axes >= 2 if self.more_axes else axes == 2
        return is_matrix and not any(matches(pattern, path, array) for pattern in self.excluded)


def matches(pattern: Pattern, path: str, array: Array) -> bool:
    """Whether a parameter, by its printed path, matches a glob, regular expression or predicate of path and array.

    >>> matches("layers.*.bias", "layers.0.bias", None), matches(re.compile(r"head[.].*"), "tail.w", None)
    (True, False)
    >>> matches("*.bias", '"0.bias"', None), matches('"*.bias"', "0.bias", None)
    (True, False)
    """
    if '"' in path and '"' not in _text(pattern):
        path = _core.tree_unquoted(path)
    if isinstance(pattern, str):
        return fnmatch.fnmatchcase(path, pattern)
    if isinstance(pattern, re.Pattern):
        return pattern.fullmatch(path) is not None
    return bool(pattern(path, array))


def _text(pattern: Pattern) -> str:
    """The text of a glob or regular expression; empty for a predicate."""
    return pattern if isinstance(pattern, str) else pattern.pattern if isinstance(pattern, re.Pattern) else ""


def first_match(patterns: Mapping[Pattern, Any], path: str, array: Array) -> int | None:
    """The index of the first pattern that a parameter matches; None without a match."""
    return next((at for at, pattern in enumerate(patterns) if matches(pattern, path, array)), None)


def check(patterns: Any) -> None:
    """Raises `TypeError` where ``patterns`` is not a mapping from patterns."""
    if not isinstance(patterns, Mapping):
        raise TypeError(f"groups is {patterns!r}: expected a dict from patterns, in order of precedence")
    for pattern in patterns:
        is_text = isinstance(pattern, str) or (isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str))
        if not (is_text or callable(pattern)):
            raise TypeError(f"the pattern {pattern!r}: expected a glob, a compiled regular expression or a predicate")


def check_matched(patterns: Mapping[Pattern, Any], parameters: Iterable[tuple[str, Array]]) -> None:
    """Raises `StructureError` where a glob or regular expression matches no parameter, given as printed path and array.

    A pattern whose parameters all match an earlier pattern is accepted. A predicate may match nothing: it may be
    written for many models.
    """
    parameters = list(parameters)
    for pattern in patterns:
        if not _text(pattern) and callable(pattern):
            continue
        if not any(matches(pattern, path, array) for path, array in parameters):
            shown = repr(_text(pattern))
            paths = [path for path, _ in parameters]
            near = _whole(pattern, paths) or _near(_text(pattern), paths)
            raise StructureError(f"the pattern {shown} matches no parameter of the model{near}")


def chosen(groups: Mapping[Pattern, Mapping[str, Any]], model: Any) -> Callable[[str, Array], Mapping[str, Any]]:
    """The values of the first pattern in ``groups`` that a parameter matches, as a function of path and array.

    Raises `TypeError` where a value is not a dict, or a pattern not a pattern, and `StructureError` as `check_matched`.
    """
    check(groups)
    for pattern, values in groups.items():
        if not isinstance(values, Mapping):
            raise TypeError(f"the group {pattern!r}: found {values!r}, expected a dict of hyperparameters")
    check_matched(groups, [(str(path), array) for path, array in tree.parameters(model).items()])
    of_group, none = list(groups.values()), dict[str, Any]()

    def values_of(path: str, array: Array) -> Mapping[str, Any]:
        at = first_match(groups, path, array)
        return none if at is None else of_group[at]

    return values_of


def _whole(pattern: Pattern, paths: list[str]) -> str:
    """A suggestion of the pattern that matches whole paths, where one matches a part of some; empty otherwise."""
    text = _text(pattern)
    if isinstance(pattern, re.Pattern):
        meant, kind = re.compile(f".*({text}).*", pattern.flags), "regular expression"
    else:
        meant, kind = f"*{text}*", "glob"
    path = next((path for path in paths if matches(meant, path, None)), None)
    shown = meant.pattern if isinstance(meant, re.Pattern) else meant
    return "" if path is None else f", but a part of {path}: a {kind} matches the whole path, as {shown!r} does"


def _near(pattern: str, paths: list[str]) -> str:
    """A suggestion of parameters with paths similar to a pattern, for error messages."""
    words = {word for path in paths for word in re.split(r'[."]+', path) if word}
    meant = [
        match for word in re.findall(r"[\w-]+", pattern) for match in difflib.get_close_matches(word, words - {word})
    ]
    near = f"; near: {', '.join(dict.fromkeys(meant))}" if meant else ""
    some = ", ".join(paths[:5]) + (", ..." if paths[5:] else "")
    return f"{near}; there are {some}" if paths else ""


def plain(pattern: Pattern) -> Any:
    """A pattern as plain data; raises `TypeError` for a predicate."""
    if isinstance(pattern, str):
        return pattern
    if isinstance(pattern, re.Pattern):
        flags = pattern.flags & ~re.UNICODE
        return {"regex": pattern.pattern, **({"flags": flags} if flags else {})}
    if isinstance(pattern, Matrices):
        return {"matrices": {"excluded": [*pattern.excluded], "more_axes": pattern.more_axes}}
    raise TypeError(f"the pattern {pattern!r}: expected a glob or regular expression, which has a configuration")


def from_plain(pattern: Any) -> Pattern:
    """The pattern that `plain` returned as plain data."""
    if not isinstance(pattern, dict):
        return pattern
    if "matrices" in pattern:
        fields = pattern["matrices"]
        return Matrices(tuple(fields["excluded"]), fields["more_axes"])
    return re.compile(pattern["regex"], pattern.get("flags", 0))
