"""The history of measurements: files of JSON lines in `benches/history`, one line for each row and revision.

`rows.jsonl` has the rows of `versus.py`, `counts.jsonl` the instruction counts. Lines are only ever added. Records compare
between revisions where they are of one processor; those of small arrays (`small`) and of an unsteady machine do not.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("history")
ROWS, COUNTS = "rows.jsonl", "counts.jsonl"


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Somebody's time over ours: the ratio of medians, and the 10th and 90th percentile of the ratios of a round."""

    name: str
    ratio: float
    p10: float
    p90: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """One row at one revision: its ratios to the fastest other library and to the ceiling, or its instructions."""

    row: str
    revision: str
    date: str
    processor: str
    isa: str = ""
    threads: int = 0
    samples: int = 0
    seconds: float | None = None
    peer: Ratio | None = None
    ceiling: Ratio | None = None
    unsteady: bool = False
    small: bool = False
    toolchain: str = ""
    instructions: int | None = None

    def line(self) -> str:
        """The record as a line of JSON, without empty fields."""
        return json.dumps({k: v for k, v in dataclasses.asdict(self).items() if v not in (None, "", 0, False)})


class HistoryError(ValueError):
    """A line is no record."""


def parse(text: str, name: str = "history") -> list[Record]:
    """The records of a file's text, in order; raises `HistoryError`, which names the line, where one is no record."""
    return [_record(line, f"{name}:{number}") for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _record(line: str, place: str) -> Record:
    try:
        data = json.loads(line)
        for kind in ("peer", "ceiling"):
            if data.get(kind) is not None:
                data[kind] = Ratio(**data[kind])
        record = Record(**data)
    except (ValueError, TypeError, AttributeError) as error:
        raise HistoryError(f"{place}: {error}") from error
    for ratio in (record.peer, record.ceiling):
        if ratio and not all(math.isfinite(x) and x > 0 for x in (ratio.ratio, ratio.p10, ratio.p90)):
            raise HistoryError(f"{place}: found {ratio}: expected positive ratios")
    return record


def read(file: Path) -> list[Record]:
    """The records of a file; none where there is no file."""
    return parse(file.read_text(encoding="utf-8"), file.name) if file.exists() else []


def append(file: Path, records: Iterable[Record]) -> None:
    """Adds records at the end, whole lines at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write("".join(record.line() + "\n" for record in records))


def of_outcome(header: dict[str, Any], data: dict[str, Any], *, revision: str, date: str) -> Record | None:
    """The record of a row of `versus.py` by its plain data; none where nothing was timed, or a result is wrong."""
    contestants = data.get("contestants", [])
    ours = next((c for c in contestants if c["role"] == "ours"), None)
    if ours is None or data["wrong"]:
        return None
    return Record(
        row=data["row"],
        revision=revision,
        date=date,
        processor=header["cpu"],
        isa=header["isa"],
        threads=header["threads"],
        samples=len(ours["seconds"]),
        seconds=ours["median"],
        peer=_nearest(c for c in contestants if c["role"] == "peer" and not c["name"].startswith("oxigrad")),
        ceiling=_nearest(c for c in contestants if c["role"] == "ceiling"),
        unsteady=data["unsteady"],
        small=header["small"],
    )


def _nearest(contestants: Iterable[dict[str, Any]]) -> Ratio | None:
    """The ratio of the fastest."""
    fastest = min(contestants, key=lambda c: c["median"], default=None)
    if fastest is None or not all(math.isfinite(x) and x > 0 for x in fastest["ratio"].values()):
        return None
    return Ratio(fastest["name"], fastest["ratio"]["of_medians"], fastest["ratio"]["p10"], fastest["ratio"]["p90"])


def revisions(records: Sequence[Record]) -> list[str]:
    """Each revision once, in the order of the file."""
    return list(dict.fromkeys(record.revision for record in records))


def latest(records: Iterable[Record]) -> dict[tuple[str, str], Record]:
    """The last record of each row and revision: what was measured again replaces what was before."""
    return {(record.row, record.revision): record for record in records}
