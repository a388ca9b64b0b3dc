"""Tables of the documentation, printed between two comments of a page."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


@dataclasses.dataclass(frozen=True)
class PrintedTable:
    """The table ``name`` of a page of ``docs``, between two comments."""

    page: str
    name: str

    @property
    def path(self) -> Path:
        """The file of the page."""
        return DOCS / self.page

    @property
    def _pattern(self) -> re.Pattern[str]:
        begin = f"<!-- {self.name}, printed by make generated -->\n"
        return re.compile(f"(?<={re.escape(begin)}).*?(?=<!-- end -->\n)", re.DOTALL)

    def printed(self) -> str:
        """The table as the page has it; empty where it has none."""
        found = self._pattern.search(self.path.read_text(encoding="utf-8"))
        return found[0] if found else ""

    def print(self, table: str) -> None:
        """Writes the table into the page; raises `ValueError` for a page without the comments."""
        page, count = self._pattern.subn(lambda _: table, self.path.read_text(encoding="utf-8"))
        if count != 1:
            raise ValueError(f"{self.page} has {count} tables {self.name}: expected one, between two marks")
        self.path.write_text(page, encoding="utf-8")


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, with a line for each row."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def cells(line: str) -> list[str]:
    """The cells of a line of a table in Markdown."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
