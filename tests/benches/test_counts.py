"""Instruction counts: parsing, recording, and the limit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import counts
import wheels
from counts import Counts

NOW = {"replay": 1000, "step": 2000}
HERE = {"rustc": "1.95.0", "valgrind": "3.19"}


def test_the_recorded_counts_are_of_the_benchmarks_that_there_are() -> None:
    source = (counts.ROOT / "rust" / "core" / "benches" / "counts.rs").read_text(encoding="utf-8")
    blocks = re.findall(r"#\[library_benchmark\]\n((?:#\[.*\n)+)fn (\w+)", source)
    named = {f"{f} {case}" for cases, f in blocks for case in re.findall(r"#\[bench::(\w+)", cases)}
    recorded = Counts.read(counts.FILE)
    assert recorded.instructions.keys() == named
    assert len(named) >= 15
    assert recorded.toolchain.keys() == {"rustc", "valgrind", "libc", "machine"}


def test_counts_are_parsed_from_the_output_of_gungraun() -> None:
    def line(f: str, case: str, instructions: int) -> str:
        metrics = {"Ir": {"values": {"new": instructions, "old": 7}}, "Dr": {"values": {"new": 1}}}
        profiles = [{"tool": "Callgrind", "data": {"total": {"metrics": metrics}}}]
        return json.dumps({"function_name": f, "id": case, "profiles": profiles})

    printed = ["warning: something", line("replay", "1000", 5), "", line("step", "bfloat16", 6)]
    assert counts.parse(printed) == {"replay 1000": 5, "step bfloat16": 6}


def test_a_percent_more_instructions_is_the_limit() -> None:
    assert counts.is_within({"replay": 1010, "step": 100}, NOW)
    assert not counts.is_within({"replay": 1011, "step": 2000}, NOW)
    text = counts.table({"replay": 1011, "step": 1000}, NOW)
    assert re.search(r"replay +1,000 +1,011 +\+1.10%  TOO MANY", text)
    assert re.search(r"step +2,000 +1,000 +-50.00%  fewer", text)


@pytest.mark.parametrize("now", [{"replay": 1000}, {**NOW, "new": 1}])
def test_benchmarks_that_are_not_recorded_are_named(now: dict[str, int]) -> None:
    with pytest.raises(SystemExit, match=r"differ in (step|new): record them with --record"):
        counts.differences(now, NOW)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, int]]:
    """Runs the gate with these counts; returns its status, and how often the recorded revision was counted again."""

    def run(
        found: dict[str, int], rebuilt: dict[str, int], here: dict[str, str], *arguments: str, call: int = 1
    ) -> tuple[int, int]:
        file, calls = tmp_path / "counts.json", []
        if not file.exists():
            Counts(HERE, NOW).write(file)
        monkeypatch.setattr(counts, "FILE", file)
        monkeypatch.setattr(counts, "toolchain", lambda: here)
        monkeypatch.setattr(counts, "count", lambda: found)
        monkeypatch.setattr(counts, "rule_calls", lambda: {"custom_vjp": call})
        monkeypatch.setattr(counts, "baseline", lambda: calls.append(1) or ("abc", rebuilt))
        monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
        return counts.main(list(arguments)), len(calls)

    return run


def test_the_file_judges_the_rows_it_has(gate: Callable[..., tuple[int, int]]) -> None:
    assert gate({"replay": 1005, "step": 1900}, {}, HERE) == (0, 0)


def test_a_failing_count_is_repeated_on_this_machine(gate: Callable[..., tuple[int, int]]) -> None:
    more = {"replay": 1100, "step": 2000}
    assert gate(more, NOW, HERE) == (1, 1)
    assert gate(more, {"replay": 1095, "step": 2000}, HERE) == (0, 1)  # this machine counts more


def test_another_toolchain_counts_for_itself(gate: Callable[..., tuple[int, int]]) -> None:
    newer = HERE | {"rustc": "1.99.0"}
    assert gate(NOW, {"replay": 900, "step": 2000}, newer) == (1, 1)  # what the compiler gave, the change took
    assert gate(NOW, NOW, newer) == (0, 1)


def test_counts_that_are_recorded_pass(gate: Callable[..., tuple[int, int]]) -> None:
    more = {"replay": 1500, "step": 2000}
    assert gate(more, NOW, HERE, "--record") == (0, 0)
    assert gate(more, NOW, HERE) == (0, 0)


@pytest.mark.parametrize(("arguments", "status"), [([], 0), (["--require"], 1)])
def test_missing_valgrind_is_reported(
    arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert counts.main(arguments) == status
    assert "SKIPPED: valgrind is not installed" in capsys.readouterr().err


def test_a_call_of_a_rule_has_a_limit(gate: Callable[..., tuple[int, int]], capsys: pytest.CaptureFixture) -> None:
    assert gate(NOW, {}, HERE, call=counts.RULE_CALL) == (0, 0)
    assert gate(NOW, {}, HERE, call=counts.RULE_CALL + 1) == (1, 0)
    assert "64,001  TOO MANY" in capsys.readouterr().out


def test_a_shallow_clone_has_no_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "git", lambda *arguments: "true")
    with pytest.raises(SystemExit, match="git fetch --unshallow"):
        counts.baseline()
