"""oxigrad, its peers and the limit of the machine, side by side.

    python benches/versus.py [--rows PATTERN,...] [--samples N] [--threads N] [--json FILE] [--small]

Each row sets up all contestants, checks each against a float64 reference, and then calls them in turn, round by round:
right after an untimed call of the same contestant, as in a training loop, or, where the row says "cold caches" or the
data fit no cache, without one.
The ratio is the peer's median time over ours (above 1 we are faster), in brackets the 10th to 90th percentile of the
ratios within a round. A row whose ceiling spreads by more than 2 is UNSTEADY: it decides no goal, and should be run
again. The exit status is 1 where a result is wrong; a goal missed, or a peer not installed, is only reported.
`--rows science` are programs and functions as scientists write them, beside compilers. With --small every row runs once, on small arrays: it shows that rows run, and no time means anything.
"""

import argparse
import importlib
import json
import os
import sys
from typing import Any

import machine
import sizes


def main(arguments: list[str], suite: str = "rows") -> int:
    """Runs the rows that were asked for, of a package that has some; returns the exit status."""
    options = parser(__doc__).parse_args(arguments)
    header, outcomes = run(options, suite)
    if not outcomes:
        return 2
    wrong = [line for outcome in outcomes if outcome.wrong for line in outcome.lines]
    if options.small:
        return _status(wrong)

    rows = importlib.import_module(suite)
    ran = {outcome.data["row"] for outcome in outcomes}
    together = [family.verdict(outcomes) for family in rows.FAMILIES if ran & family.peers.keys()]
    print("\n" + _table([*(verdict for outcome in outcomes for verdict in outcome.verdicts), *together]))
    if options.json:
        _write(options.json, header, outcomes, together)
    return _status(wrong)


def _status(wrong: list[str]) -> int:
    """The exit status, given the lines of rows whose results are wrong, which are printed again after the long table."""
    if wrong:
        print("\nWrong results:", *wrong, sep="\n", file=sys.stderr)
    return int(bool(wrong))


def run(options: argparse.Namespace, suite: str = "rows") -> tuple[dict[str, Any], list[Any]]:
    """Runs the rows that were asked for and prints each; returns what the machine is, and their outcomes."""
    machine.limit_threads(options.threads)  # before the rows import the peers
    if options.small:
        sizes.shrink()
        options.samples, options.pause = 1, 0.0

    import measure

    rows = importlib.import_module(suite)
    header = machine.describe(options.threads)
    header |= {"samples": options.samples, "pause": options.pause, "small": options.small}
    print(_header(header))
    settings = measure.Settings(options.samples, options.pause)
    patterns = rows.GROUPS.get(options.rows, options.rows)
    outcomes = []
    for row in rows.ROWS:
        if measure.matches(row.name, patterns):
            outcomes.append(row.run(settings))
            print("\n" + "\n".join(outcomes[-1].lines), flush=True)
    if not outcomes:
        print(
            f"no row matches {options.rows}; there are {', '.join(row.name for row in rows.ROWS)}; {', '.join(rows.GROUPS)}"
        )
    return header, outcomes


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options of whatever runs rows."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", default="", metavar="PATTERN,...", help="only rows whose name has or matches this, or a set"
    )
    parser.add_argument("--samples", type=int, default=31, metavar="N", help="rounds for each row (default 31)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="for every library alike")
    parser.add_argument("--pause", type=float, default=0.005, metavar="S", help="before each call (default 0.005)")
    parser.add_argument("--json", metavar="FILE", help="write everything, each sample included")
    parser.add_argument("--small", action="store_true", help="run each row once, on small arrays, whatever the times")
    return parser


def _header(header: dict[str, Any]) -> str:
    libraries = ", ".join(f"{name} {version}" for name, version in header["libraries"].items())
    small = "\nSMALL ARRAYS, ONCE: the times mean nothing" if header["small"] else ""
    return (
        f"{header['cpu']}, {header['cores']} cores, {header['isa']}; {header['threads']} threads for each library\n"
        f"Python {header['python']}, {libraries}\n"
        f"{header['samples']} rounds, {header['pause'] * 1e3:g} ms of pause before each call, garbage collector off{small}"
    )


def _table(verdicts: list[Any]) -> str:
    """The goals, one a line."""
    lines = [(v.row, v.goal, v.found, v.word) for v in verdicts]
    widths = [max(map(len, column)) for column in zip(("row", "goal", "found", ""), *lines, strict=True)]
    table = [("row", "goal", "found", ""), tuple("-" * width for width in widths), *lines]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)


def _write(file: str, header: dict[str, Any], outcomes: list[Any], together: list[Any]) -> None:
    import dataclasses

    rows = [o.data | {"goals": [dataclasses.asdict(v) for v in o.verdicts]} for o in outcomes]
    with open(file, "w", encoding="utf-8") as out:
        families = [dataclasses.asdict(verdict) for verdict in together]
        json.dump({"machine": header, "rows": rows, "families": families}, out, indent=1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
