"""The page of times, from files as `versus.py --json` writes them."""

import copy
import json
from typing import Any

import pytest

import times_page

MACHINE = {
    "cpu": "a processor",
    "cores": 2,
    "isa": "AVX2",
    "threads": 2,
    "python": "3.11.7",
    "libraries": {"numpy": "2.4.6", "torch": "missing"},
    "small": False,
}


def run(name: str, median: float, *, wrong: bool = False, unsteady: bool = False, **machine: Any) -> dict[str, Any]:
    """A run of one row."""
    ours = {"name": "oxigrad", "role": "ours", "median": median}
    peer = {"name": "a peer", "role": "peer", "median": 3 * median, "ratio": {"of_medians": 3.0}}
    goals = [{"row": name, "goal": "at least 2x a peer", "found": "3x", "word": "reached"}]
    row = {"row": name, "contestants": [ours, peer], "goals": goals, "wrong": wrong, "unsteady": unsteady}
    return {"machine": {**MACHINE, **machine}, "rows": [row]}


def test_a_line_has_our_time_and_those_of_others_as_multiples():
    text = times_page.page([run("a row", 2.5e-3), run("gradbench ode", 1e-6, unsteady=True)])
    assert "a processor, 2 cores, AVX2, 2 threads for each library; Python 3.11.7, numpy 2.4.6." in text
    rows, gradbench = text.split("## GradBench")
    assert "| a row | 2.5 ms | a peer 3x |  | 2x a peer: reached |" in rows
    assert "| ode | 1 us (unsteady) | a peer 3x |  | 2x a peer: reached |" in gradbench


def test_the_last_file_counts_and_wrong_rows_are_left_out():
    text = times_page.page([run("a row", 1.0), run("another", 1.0, wrong=True), run("a row", 2.0)])
    assert "| a row | 2 s |" in text
    assert "another" not in text


def test_rows_that_measure_bytes_are_left_out():
    given = run("a row", 1.0)
    given["rows"].append({"row": "wheel", "bytes": 3, "goals": []})
    text = times_page.page([given])
    assert "| a row | 1 s |" in text
    assert "wheel" not in text


def test_the_ceiling_and_rows_of_peers_alone():
    given = run("a row", 1.0)
    given["rows"][0]["contestants"] = [
        {"name": "a peer", "role": "peer", "median": 1.0},
        {"name": "a limit", "role": "ceiling", "median": 0.5, "ratio": {"of_medians": 0.5}},
    ]
    assert "| a row |  | a peer 1 s | a limit 0.5x |" in times_page.page([given])


@pytest.mark.parametrize(
    ("word", "of_ceiling", "expected"),
    [
        ("MISSED", 0.5, "4x a peer: MISSED (at most 6x)"),
        ("reached", 0.5, "4x a peer: reached"),
        ("MISSED", 1.5, "4x a peer: MISSED"),  # we are faster than the ceiling
        ("MISSED", None, "4x a peer: MISSED"),
    ],
)
def test_a_missed_goal_has_what_the_ceiling_would_reach(word, of_ceiling, expected):
    given = run("a row", 1.0)
    (row,) = given["rows"]
    row["goals"] = [{"row": "a row", "goal": "at least 4x a peer", "found": "3x", "word": word}]
    if of_ceiling is not None:
        ratio = {"of_medians": of_ceiling}
        row["contestants"].append({"name": "a limit", "role": "ceiling", "median": of_ceiling, "ratio": ratio})
        row["goals"].append({"row": "a row", "goal": "at least 0.9x a limit", "found": "0.5x", "word": word})
        expected += f", 0.9x a limit: {word}"
    assert f"| {expected} |" in times_page.page([given])


def test_records_of_processors_follow_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(times_page, "RECORDS", tmp_path / "records")
    for cpu, median in (("a processor", 1.0), ("another", 2.0), ("a processor", 3.0)):
        given = run("a row", median, cpu=cpu, date="2026-11-30")
        given["rows"][0]["contestants"][0] |= {"first": 0.25, "seconds": [median]}
        times_page.keep([given], times_page.RECORDS)
    text = times_page.science(times_page.RECORDS)
    assert text.count(times_page.TITLE) == 1
    first, second = text.split("2026-11-30: ")[1:]
    assert first.startswith("a processor, 2 cores") and "| a row | 3 s (first call 250 ms) | a peer 3x |" in first
    assert second.startswith("another, 2 cores") and "| a row | 2 s (first call 250 ms) | a peer 3x |" in second
    assert "seconds" not in (times_page.RECORDS / "another_avx2.json").read_text()


@pytest.mark.parametrize("arguments", [["--science"], []])
def test_the_command_prints_tables_of_records_again(tmp_path, monkeypatch, arguments):
    file, page = tmp_path / "run.json", tmp_path / "page.md"
    file.write_text(json.dumps(run("a row", 1.0, date="2026-11-30")))
    page.write_text(f"A page of before.\n\n{times_page.TITLE}\n\nTables of before.\n")
    monkeypatch.setattr(times_page, "RECORDS", tmp_path / "records")
    times_page.keep([run("of a record", 1.0, date="2026-11-29")], times_page.RECORDS)
    assert times_page.main([str(file), *arguments, "--page", str(page)]) == 0
    text = page.read_text()
    assert "Tables of before" not in text
    before, after = text.split(times_page.TITLE)
    assert ("A page of before." in before) == bool(arguments)
    assert ("| a row |" in before, "| a row |" in after) == (not arguments, bool(arguments))
    assert ("of a record" in after) != bool(arguments)


@pytest.mark.parametrize(("key", "other"), [("cpu", "another"), ("threads", 1), ("python", "3.14"), ("libraries", {})])
def test_machines_are_not_mixed(key, other):
    with pytest.raises(ValueError, match=key):
        times_page.page([run("a row", 1.0), run("another", 1.0, **{key: other})])


def test_small_arrays_are_refused():
    with pytest.raises(ValueError, match="--small"):
        times_page.page([run("a row", 1.0, small=True)])


def test_the_command_writes_the_page_or_says_what_is_wrong(tmp_path, capsys):
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    given, other = run("a row", 1.0), copy.deepcopy(run("b row", 1.0))
    for file, each in zip(files, (given, other), strict=True):
        file.write_text(json.dumps(each))
    page = tmp_path / "page.md"
    assert times_page.main([*map(str, files), "--page", str(page), "--note", "Nothing else ran."]) == 0
    assert "| b row | 1 s |" in page.read_text()
    assert "Nothing else ran." in page.read_text()
    other["machine"]["cpu"] = "another"
    files[1].write_text(json.dumps(other))
    assert times_page.main([*map(str, files), "--page", str(page)]) == 1
    assert "another" in capsys.readouterr().err
