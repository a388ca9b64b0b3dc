"""The history of measurements, and its picture."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import counts
import history
import report
import track
from history import HistoryError, Ratio, Record

# --- the history -----------------------------------------------------------------------------------------------------

HEADER = {"cpu": "A processor", "isa": "AVX2", "threads": 2, "small": False}


def record(row: str = "chain", revision: str = "abc", **others: Any) -> Record:
    shared = {"date": "2026-11-22", "processor": "A processor", "isa": "AVX2", "threads": 2}
    return Record(row=row, revision=revision, **(shared | others))


def contestant(name: str, role: str, median: float, ratio: float | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "role": role, "median": median, "seconds": [median] * 3}
    if ratio is not None:
        found["ratio"] = {"of_medians": ratio, "p10": ratio - 0.1, "p90": ratio + 0.1}
    return found


def test_a_record_has_the_fastest_other_library_and_the_ceiling() -> None:
    contestants = [
        contestant("oxigrad", "ours", 1.0),
        contestant("torch", "peer", 4.0, 4.0),
        contestant("jax", "peer", 3.0, 3.0),
        contestant("oxigrad, dense", "peer", 2.0, 2.0),
        contestant("memory", "ceiling", 0.9, 0.9),
    ]
    data = {"row": "chain", "contestants": contestants, "unsteady": True, "wrong": False}
    found = history.of_outcome(HEADER, data, revision="abc", date="2026-11-22")
    peer, ceiling = Ratio("jax", 3.0, 2.9, 3.1), Ratio("memory", 0.9, 0.8, 1.0)
    assert found == record(samples=3, seconds=1.0, peer=peer, ceiling=ceiling, unsteady=True)


@pytest.mark.parametrize(
    "data", [{"row": "wheel"}, {"contestants": [contestant("oxigrad", "ours", 1.0)], "wrong": True}]
)
def test_a_wrong_or_untimed_row_is_not_recorded(data: dict[str, Any]) -> None:
    assert history.of_outcome(HEADER, data, revision="abc", date="") is None


def test_rows_that_were_measured_before_are_recorded(tmp_path: Path) -> None:
    machine = {"cpu": "a processor", "isa": "AVX2", "threads": 2, "small": False}
    ours = contestant("oxigrad", "ours", 1e-3)
    rows = [{"row": "chain", "contestants": [ours], "wrong": False, "unsteady": False}, {"row": "missing"}]
    file = tmp_path / "versus.json"
    file.write_text(json.dumps({"machine": machine, "rows": rows}))
    assert track.main(["--only", "rows", "--measured", str(file), "--history", str(tmp_path)]) == 0
    (found,) = history.parse((tmp_path / history.ROWS).read_text())
    assert (found.row, found.processor, found.seconds) == ("chain", "a processor", 1e-3)


def test_records_are_added_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "history" / "rows.jsonl"
    first = record(seconds=1e-6, peer=Ratio("torch", 3.0, 2.5, 3.5), samples=31)
    second = record(revision="def+", unsteady=True, ceiling=Ratio("memory", 0.9, 0.8, 1.0))
    assert history.read(file) == []
    history.append(file, [first])
    history.append(file, [second])
    assert history.read(file) == [first, second]
    assert len(file.read_text().splitlines()) == 2
    assert history.revisions([first, second, first]) == ["abc", "def+"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "Expecting"),
        ("[]", "rows.jsonl:2"),
        ('{"row": "chain"}', "revision"),
        ('{"row": "a", "revision": "b", "date": "c", "processor": "d", "colour": 1}', "colour"),
        ('{"row": "a", "revision": "b", "date": "c", "processor": "d", "peer": {"name": "torch"}}', "ratio"),
        (record(peer=Ratio("torch", -1.0, 1.0, 1.0)).line(), "expected positive ratios"),
        (record(peer=Ratio("torch", math.nan, 1.0, 1.0)).line(), "expected positive ratios"),
    ],
)
def test_a_line_that_is_no_record_is_named(line: str, why: str) -> None:
    with pytest.raises(HistoryError, match=re.escape("rows.jsonl:2")) as raised:
        history.parse(record().line() + "\n" + line, "rows.jsonl")
    assert why in str(raised.value)


@pytest.mark.parametrize("name", [history.ROWS, history.COUNTS])
def test_the_recorded_history_can_be_read(name: str) -> None:
    for found in history.read(history.FOLDER / name):
        assert found.instructions or found.seconds


# --- the picture -----------------------------------------------------------------------------------------------------


def rows_of(*revisions: str, **others: Any) -> list[Record]:
    ratio = lambda x: Ratio("torch", x, 0.9 * x, 1.1 * x)  # noqa: E731
    return [
        record(row, revision, seconds=1.0, peer=ratio(2.0 + i), ceiling=ratio(0.9), **others)
        for i, revision in enumerate(revisions)
        for row in ("chain", "digits <step>")
    ]


def counts_of(*instructions: int) -> list[Record]:
    return [record("tape_replay", f"r{i}", instructions=n) for i, n in enumerate(instructions)]


def test_only_comparable_rows_share_a_panel() -> None:
    others = rows_of("a", processor="Another") + rows_of("b", threads=1)
    good, small, unsteady = rows_of("c"), rows_of("d", small=True), rows_of("e", unsteady=True)
    assert report.comparable([*others, *good, *small, *unsteady]) == good
    assert report.comparable(small) == small
    assert report.comparable([]) == []


def test_a_new_measurement_replaces_the_old_one() -> None:
    again = record("chain", "a", peer=Ratio("torch", 9.0, 8.0, 10.0))
    found = report.series([*rows_of("a", "b"), again], lambda r: r.peer)
    assert [ratio.ratio for ratio in found["chain"]] == [9.0, 3.0]


def test_instructions_are_relative_to_the_first_revision() -> None:
    changes = report.relative([*counts_of(1000, 1010, 990), record("new", "r1", instructions=5)])
    assert changes["new"] == [(1, 0.0)]
    assert [place for place, _ in changes["tape_replay"]] == [0, 1, 2]
    assert [change for _, change in changes["tape_replay"]] == pytest.approx([0.0, 1.0, -1.0])


@pytest.mark.parametrize(
    ("rows", "found"), [(rows_of("a", "b"), counts_of(100, 101)), ([], counts_of(100)), (rows_of("a"), [])]
)
def test_the_picture_is_drawn(rows: list[Record], found: list[Record], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one.svg", "two.svg"):
        report.save(report.draw(rows, found), tmp_path / name)
    text = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.svg").read_text(encoding="utf-8")
    shown = {r.row for r in (*rows, *(found if len(found) > 1 else []))}  # one count has not changed
    assert shown | {r.peer.name for r in rows if r.peer} <= texts(text)


def texts(picture: str) -> set[str | None]:
    return {element.text for element in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")}


def test_the_report_reads_the_history_and_says_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    pytest.importorskip("matplotlib")
    arguments = ["--history", str(tmp_path), "--out", str(tmp_path / "report.svg")]
    assert report.main(arguments) == 2
    assert "make track" in capsys.readouterr().out
    history.append(tmp_path / history.COUNTS, counts_of(1, 2))  # which are no times
    assert report.main(arguments) == 2
    assert not (tmp_path / "report.svg").exists()
    history.append(tmp_path / history.ROWS, rows_of("a"))
    assert report.main(arguments) == 0
    assert "digits" in (tmp_path / "report.svg").read_text(encoding="utf-8")


def test_the_readme_shows_the_picture_of_measured_rows_alone() -> None:
    """Each row of the recorded history, with a time of another library or of the ceiling; at least half of those of `versus.py`."""
    import rows

    measured = report.comparable(history.read(history.FOLDER / history.ROWS))
    names = {r.row for r in measured if r.peer or r.ceiling}
    is_shown = f"(docs/{report.OUT.name})" in (counts.ROOT / "README.md").read_text(encoding="utf-8")
    assert is_shown == report.OUT.exists() == bool(names)
    if is_shown:
        assert not any(r.small for r in measured)
        assert len(names) >= len([row for row in rows.ROWS if not row.name.startswith("gpu")]) / 2
        assert names <= texts(report.OUT.read_text(encoding="utf-8"))
