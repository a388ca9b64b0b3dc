"""Tables for people: text of at most 100 columns, which notebooks show as HTML."""

import html
import textwrap
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 100
_GAP = 2
# The least width of a column that is narrowed, and how much wider the first one stays: paths differ in their middles
# too.
_LEAST = 12
_FIRST = 2.0
_DITTO = "as above"


class Table(str):
    """A table as text, which is also its ``repr``; in a notebook, an HTML table.

    Args:
        head: titles of the columns.
        rows: rows of cells, each as long as ``head``.
        caption: line above the table.

    A table has at most 100 columns of text. Key paths, in its first column, are cut in the middle. Other cells continue
    in further lines, and a cell that repeats the cell above says so. The attributes have the whole cells.

    >>> Table(("parameter", "bytes"), [("w", "8"), ("bias", "16")])
    parameter  bytes
    w          8
    bias       16
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str

    def __new__(cls, head: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "") -> "Table":
        """The table of these cells; a caption is shown by notebooks alone."""
        names, cells = tuple(head), tuple(tuple(map(str, row)) for row in rows)
        table = super().__new__(cls, "\n".join(_lines((names, *cells))))
        table.head, table.rows, table.caption = names, cells, caption
        return table

    def __reduce__(self) -> tuple[type["Table"], tuple[object, ...]]:
        return (Table, (self.head, self.rows, self.caption))

    def __repr__(self) -> str:
        return str.__str__(self)

    def _repr_html_(self) -> str:
        body = "".join(_html_row(row, "td") for row in self.rows)
        table = f"<table><thead>{_html_row(self.head, 'th')}</thead><tbody>{body}</tbody></table>" if body else ""
        caption = "<br>".join(f"<code>{html.escape(line)}</code>" for line in self.caption.splitlines())
        return f"<div>{caption}{table}</div>"


def middle_cut(text: str, width: int) -> str:
    """The text; if it is wider than ``width``, its middle is cut.

    >>> middle_cut("encoder.layers.0.weight", 15)
    'encoder….weight'
    """
    if len(text) <= width:
        return text
    front = (width - 1) // 2
    return f"{text[:front]}…{text[len(text) - (width - 1 - front) :]}"


def _html_row(cells: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _lines(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table whose first row is its head."""
    widths = _widths([max(map(len, column)) for column in zip(*rows, strict=True)])
    above: Sequence[str] = [""] * len(widths)
    for row in rows:
        wrapped = [[middle_cut(row[0], widths[0])]]
        for cell, width, before in zip(row[1:], widths[1:], above[1:], strict=True):
            lines = _wrapped(cell, width)
            wrapped.append([_DITTO] if len(lines) > 1 and cell == before else lines)
        above = row
        for at in range(max(map(len, wrapped))):
            cells = [cell[at] if at < len(cell) else "" for cell in wrapped]
            yield (" " * _GAP).join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _widths(widths: list[int]) -> list[int]:
    """Widths of columns that fit: the widest one is narrowed, again and again."""
    while sum(widths) + _GAP * (len(widths) - 1) > WIDTH:
        widest = max(range(len(widths)), key=lambda at: widths[at] if at else widths[at] / _FIRST)
        if widths[widest] <= _LEAST:
            break
        widths[widest] -= 1
    return widths


def _wrapped(cell: str, width: int) -> list[str]:
    """The lines of a cell: broken between words, whose middle is left out where they are too long."""
    if len(cell) <= width:
        return [cell]
    words = " ".join(middle_cut(word, width) for word in cell.split())
    return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False) or [""]
