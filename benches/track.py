"""Measures the checkout and adds it to the history: a line a row of `versus.py`, and a line a benchmark of `counts.py`.

    python benches/track.py [--rows PATTERN,...] [--samples N] [--threads N] [--only rows|counts] [--measured FILE]

Run it on a quiet machine, on a commit. With --measured the rows are those that `versus.py --json FILE` has measured of the checkout. A row that is unsteady, and a checkout with uncommitted changes (its revision ends
in a plus sign), are recorded as such. `make report` draws what there is.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import history
import machine
import versus
import wheels


def main(arguments: list[str]) -> int:
    """Measures and records; returns the exit status."""
    parser = versus.parser(__doc__)
    parser.add_argument("--only", choices=("rows", "counts"), help="not both")
    parser.add_argument("--measured", type=Path, metavar="FILE", help="rows that versus.py has measured")
    parser.add_argument("--history", type=Path, default=history.FOLDER, metavar="FOLDER", help="where to add lines")
    options = parser.parse_args(arguments)
    revision, date = here()
    status = 0
    if options.only != "counts":
        status = _time(options, revision, date)
    if options.only != "rows":
        _count(options.history / history.COUNTS, revision, date)
    return status


def here() -> tuple[str, str]:
    """The revision that is checked out, with a plus sign where something is not committed, and the day of its commit."""
    changed = wheels.git("status", "--porcelain", "--untracked-files=no", "--", *wheels.SOURCES)
    return wheels.git("rev-parse", "--short=9", "HEAD") + "+" * bool(changed), wheels.git("log", "-1", "--format=%cs")


def _time(options: argparse.Namespace, revision: str, date: str) -> int:
    if options.measured:
        measured = json.loads(options.measured.read_text(encoding="utf-8"))
        header, rows = measured["machine"], measured["rows"]
    else:
        header, outcomes = versus.run(options)
        rows = [outcome.data for outcome in outcomes]
    found = [history.of_outcome(header, data, revision=revision, date=date) for data in rows]
    records, file = [record for record in found if record], options.history / history.ROWS
    history.append(file, records)
    print(f"\n{len(records)} rows of {revision} added to {file}")
    return int(not rows or any(data.get("wrong") for data in rows))


def _count(file: Path, revision: str, date: str) -> None:
    if shutil.which("valgrind") is None:
        print("instructions: SKIPPED: valgrind is not installed (Debian: apt-get install valgrind)", file=sys.stderr)
        return
    import counts

    used = ", ".join(counts.toolchain().values())
    common = {"revision": revision, "date": date, "processor": machine.describe(1)["cpu"], "toolchain": used}
    records = [history.Record(row=row, instructions=n, **common) for row, n in counts.count().items()]
    history.append(file, records)
    print(f"{len(records)} counts of {revision} added to {file}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
