"""The page of times beside other libraries: `docs/design/times.md`, from files that `versus.py --json` and `gradbench --json` wrote.

    python benches/times_page.py FILE [FILE ...] [--page FILE]

A row that is in several files is taken from the last one, so that a few rows can be measured again; machines are not mixed: files of another
processor, number of threads or version than the first one are refused. A row that was unsteady says so, and one whose result was wrong is left out.

    python benches/times_page.py --science FILE [FILE ...]

The files of the rows of `--rows science` are written to `benches/history/science`, one file a kind of processor. Of the page, their tables alone are
printed again.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import measure

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "times.md"
RECORDS = Path(__file__).resolve().parent / "history" / "science"
TITLE = "## Programs and functions as scientists write them"
HEAD = """\
# Times beside other libraries

<!-- Printed by `make times`: do not edit. -->

Each line is a row of `make versus` or `make gradbench`. It shows our median time, and the times of other libraries as
multiples of ours: above 1, oxigrad is faster. The ceiling is a program that does only the necessary work. The last column has the goal of the row:
a multiple of the time of a library, or a time. After a missed goal, "at most" is the multiple that the time of the ceiling would reach. All
libraries evaluate the same formulas, in turn. Their results were checked before timing. Compile times are not counted.

"""


def main(arguments: list[str]) -> int:
    """Writes the page; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what versus.py wrote")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="where to write (docs/design/times.md)")
    parser.add_argument("--science", action="store_true", help="keep the files, and print their tables alone again")
    parser.add_argument("--note", default="", metavar="TEXT", help="a sentence about the run, such as what else ran")
    options = parser.parse_args(arguments)
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in options.files]
    try:
        if options.science:
            keep(runs, RECORDS)
            text = options.page.read_text(encoding="utf-8").partition(TITLE)[0]
        else:
            text = page(runs, options.note)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    options.page.write_text(text.rstrip() + "\n" + science(RECORDS), encoding="utf-8")
    return 0


def keep(runs: list[dict[str, Any]], folder: Path) -> None:
    """Writes runs on one machine to the file of its processor, without the single times."""
    rows = same_machine(runs)
    for row in rows:
        for contestant in row["contestants"]:
            contestant.pop("seconds", None)
    machine = runs[0]["machine"]
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "_", f"{machine['cpu']} {machine['isa']}".lower()).strip("_")
    (folder / f"{name}.json").write_text(
        json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8"
    )


def science(folder: Path) -> str:
    """The tables of the files that were kept, one a processor."""
    parts = []
    for file in sorted(folder.glob("*.json")):
        run = json.loads(file.read_text(encoding="utf-8"))
        rows = {row["row"].removeprefix("gradbench "): row for row in run["rows"]}
        parts.append(f"{run['machine']['date']}: {described(run['machine'])}\n{table(rows)}\n")
    return "\n".join([f"\n{TITLE}\n", *parts]) if parts else ""


def page(runs: list[dict[str, Any]], note: str = "") -> str:
    """The page; raises `ValueError` for runs on several machines, and for one with small arrays."""
    known = {row["row"]: row for row in same_machine(runs)}
    ours = {name: row for name, row in known.items() if not name.startswith("gradbench ")}
    theirs = {name.removeprefix("gradbench "): row for name, row in known.items() if name not in ours}
    parts = [HEAD + described(runs[0]["machine"]) + (f"{note}\n" if note else "")]
    parts += [f"## {title}\n\n{table(rows)}\n" for title, rows in (("Rows", ours), ("GradBench", theirs)) if rows]
    return "\n".join(parts)


def same_machine(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of runs, of several with one name the last; raises `ValueError` for runs on several machines, and for one with small arrays."""
    machine = runs[0]["machine"]
    for run in runs:
        if run["machine"].get("small"):
            raise ValueError("found a run with --small, whose times mean nothing")
        for key in ("cpu", "threads", "python", "libraries"):
            if run["machine"][key] != machine[key]:
                raise ValueError(
                    f"found {key} {run['machine'][key]!r} beside {machine[key]!r}: expected runs on one machine"
                )
    # Rows without contestants measure bytes.
    rows = {row["row"]: row for run in runs for row in run["rows"] if row.get("contestants") and not row["wrong"]}
    return list(rows.values())


def described(machine: dict[str, Any]) -> str:
    """The machine, in a sentence."""
    libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items() if version != "missing")
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['isa']}, {machine['threads']} threads for each library; "
        f"Python {machine['python']}, {libraries}.\n"
    )


def table(rows: dict[str, dict[str, Any]]) -> str:
    """A line for each row."""
    lines = ["| row | ours | others | ceiling | goals |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join((name, *cells(row)))} |" for name, row in rows.items()]
    return "\n".join(lines)


def cells(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """Our time, those of the others, that of the ceiling, and the goals."""
    named = {
        role: [each for each in row["contestants"] if each["role"] == role] for role in ("ours", "peer", "ceiling")
    }
    ours = " ".join(measure.duration(each["median"]) + first(each) for each in named["ours"])
    ours += " (unsteady)" if row["unsteady"] else ""
    others, ceiling = (", ".join(map(compared, named[role])) for role in ("peer", "ceiling"))
    goals = ", ".join(outcome(goal, row["contestants"]) for goal in row.get("goals", []))
    return ours, others, ceiling, goals


def outcome(goal: dict[str, Any], contestants: list[dict[str, Any]]) -> str:
    """A goal and whether it was reached; for one that was missed, how much faster than the peer the ceiling is."""
    target = re.sub(r"^[\d.]+(?=x )", lambda found: f"{float(found[0]):.3g}", goal["goal"].removeprefix("at least "))
    text = f"{target}: {goal['word']}"
    ratios = {
        role: {
            each["name"]: each["ratio"]["of_medians"]
            for each in contestants
            if each["role"] == role and "ratio" in each
        }
        for role in ("peer", "ceiling")
    }
    peers = [ratio for name, ratio in ratios["peer"].items() if goal["goal"].endswith(f"x {name}")]
    ceiling = next(iter(ratios["ceiling"].values()), 1.0)
    if goal["word"] != "MISSED" or not peers or ceiling >= 1.0:
        return text
    return f"{text} (at most {peers[0] / ceiling:.3g}x)"


def compared(contestant: dict[str, Any]) -> str:
    """Another one's time, as a multiple of ours where there is ours."""
    found = (
        f"{contestant['ratio']['of_medians']:.3g}x" if "ratio" in contestant else measure.duration(contestant["median"])
    )
    return f"{contestant['name']} {found}{first(contestant)}"


def first(contestant: dict[str, Any]) -> str:
    """The time of the first call, and the mean of the 50 calls after it, where a row has them."""
    named = {"first": "first call", "early": "then 50 calls of"}
    found = [f"{text} {measure.duration(contestant[key])}" for key, text in named.items() if key in contestant]
    return f" ({', '.join(found)})" if found else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
