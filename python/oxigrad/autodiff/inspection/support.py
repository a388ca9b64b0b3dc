"""The catalogue of functions: their derivatives, up to which order, in which modes and for which array libraries."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, SupportsIndex, overload

from oxigrad._tables import Table

FILE = Path(__file__).with_name("support.tsv")
_MODES = ("forward", "reverse")
_SHOWN = 40


@dataclasses.dataclass(frozen=True)
class Support:
    """A function, and the derivatives of it that are tested against central differences."""

    #: The name within the library: ``linalg.norm`` for ``numpy.linalg.norm``.
    function: str
    #: "NumPy", "SciPy" or "Array API": whose name and arguments it has.
    origin: str
    #: The group of functions, as a heading.
    section: str
    #: The number of calls of different forms that are tested.
    calls: int
    #: The keyword arguments in these calls.
    keywords: tuple[str, ...]
    #: Whether it takes variables, by name space: the library's own name, as "np.*", and the name in `oxigrad.xp`,
    #: "xp.*".
    spaces: Mapping[str, bool]
    #: The highest tested order of derivatives; 0 if the result is a plain value, or if the function is refused.
    order: int
    #: "forward" and "reverse": for the second order, all four combinations of them.
    modes: tuple[str, ...]
    #: For each array library beside NumPy, the highest order at which all its tested calls pass. The standard's
    #: functions are tested for all libraries, the others for PyTorch.
    libraries: Mapping[str, int]
    #: Reason for which there are no derivatives.
    reason: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether a variable is refused, rather than a plain value given."""
        return bool(self.spaces) and not any(self.spaces.values())


_HEAD = ("function", "of", "order", "modes", "array libraries", "why not")


class Catalogue(tuple[Support, ...]):
    """Rows of `support`, which are shown as a table; notebooks show it as HTML."""

    __slots__ = ()

    def table(self) -> Table:
        """All rows as a table."""
        return Table(_HEAD, map(_cells, self), f"{len(self)} functions")

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Support: ...
    @overload
    def __getitem__(self, key: slice, /) -> "Catalogue": ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> "Support | Catalogue":
        return Catalogue(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)

    def __repr__(self) -> str:
        more = f"\n... {len(self) - _SHOWN} more, see table()" if len(self) > _SHOWN else ""
        return f"{self[:_SHOWN].table()}{more}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _cells(row: Support) -> tuple[str, ...]:
    libraries = ", ".join(f"{name} {order}" for name, order in row.libraries.items())
    return row.function, row.origin, str(row.order), ", ".join(row.modes), libraries, row.reason


def support(
    function: str | None = None,
    *,
    origin: Literal["NumPy", "SciPy", "Array API"] | None = None,
    library: str | None = None,
    order: int = 0,
    mode: Literal["forward", "reverse"] | None = None,
) -> Catalogue:
    """Catalogue of the functions that take variables, as the tests of this release have it.

    Args:
        function: its name, whole or without the modules that it is in; by default all functions.
        origin: the library whose name it has.
        library: an array library for whose arrays it has derivatives, such as "torch".
        order: the least order of derivatives.
        mode: "forward" or "reverse", where it must have derivatives.

    Returns rows, each with ``function``, ``origin``, ``order``, ``modes``, ``libraries``, ``keywords`` and ``reason``.
    A composed function has derivatives of higher orders too; the tests go to the second. Raises `KeyError` for a
    function that is not in the catalogue, and for a library without tested functions.

    >>> support("median")
    function  of     order  modes             array libraries  why not
    median    NumPy  2      forward, reverse  torch 2
    >>> [row.origin for row in support("sin")], support("argmax")[0].reason
    (['NumPy', 'Array API'], 'gives whole numbers')
    >>> len(support(library="torch", order=2)) > 600
    True
    """
    rows = read(FILE)
    if function is not None:
        rows = [row for row in rows if function in (row.function, row.function.rpartition(".")[2])]
        if not rows:
            raise KeyError(f"function is {function!r}: the catalogue has no function of this name")
    if library is not None:
        libraries = {name for row in read(FILE) for name in row.libraries}
        if library not in libraries:
            raise KeyError(f"library is {library!r}: expected one of {', '.join(sorted(libraries))}")
        rows = [row for row in rows if row.libraries.get(library, -1) >= order]
    return Catalogue(
        row
        for row in rows
        if row.order >= order and origin in (None, row.origin) and (mode is None or mode in row.modes)
    )


def row(function: str, origin: str, section: str, *, order: int, **others: Any) -> Support:
    """A row; both modes are tested to the same order."""
    fields = {"calls": 0, "keywords": (), "spaces": {}, "libraries": {}, "reason": "", **others}
    return Support(function, origin, section, order=order, modes=_MODES if order else (), **fields)


# --- the file ---------------------------------------------------------------------------------------------------------

_COLUMNS = ("section", "origin", "function", "calls", "keywords", "spaces", "order", "libraries", "reason")


def written(rows: Iterable[Support]) -> str:
    """The rows as lines of cells between tabulators."""
    lines = ["\t".join(_COLUMNS)]
    for row in rows:
        spaces = " ".join(f"{name}:{'yes' if answer else 'no'}" for name, answer in row.spaces.items())
        libraries = " ".join(f"{name}:{order}" for name, order in row.libraries.items())
        cells = (row.section, row.origin, row.function, str(row.calls), " ".join(row.keywords), spaces)
        lines.append("\t".join((*cells, str(row.order), libraries, row.reason)))
    return "\n".join(lines) + "\n"


@functools.cache
def read(file: Path) -> list[Support]:
    """The rows of a file that `written` has made."""
    return list(_parsed(file.read_text(encoding="utf-8")))


def _parsed(text: str) -> Iterator[Support]:
    for line in text.splitlines()[1:]:
        section, origin, function, calls, keywords, spaces, order, libraries, reason = line.split("\t")
        answers = {name: answer == "yes" for name, _, answer in (each.rpartition(":") for each in spaces.split())}
        orders = {name: int(of) for name, _, of in (each.rpartition(":") for each in libraries.split())}
        yield row(
            function,
            origin,
            section,
            calls=int(calls),
            keywords=tuple(keywords.split()),
            spaces=answers,
            order=int(order),
            libraries=orders,
            reason=reason,
        )
