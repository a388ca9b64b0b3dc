"""Compares two revisions of oxigrad: decides whether the new one is slower.

    python benches/compare.py BASE [--rows PATTERN,...] [--samples N]
    python benches/compare.py --small

BASE is a revision of git; the new version is the checkout as it is, with what is not committed. Both are built as release
wheels into ``target/compare``. Each row (`workloads.py`) runs in two processes, one a version, which take turns in random
order; a round's ratio is new / base. New processes start several times, since where things lie in memory stays the same
for the life of a process and may cost some percent.

A row is SLOWER or faster where the median of the ratios differs from 1 by more than max(5 %, 6 MAD of the ratios), and the
same where it surely lies within 5 %; otherwise the answer is "cannot tell". What comes out slower is measured once more, by
new processes, and counts only where it does again. The exit status is 1 where a row is slower, 2 where one does not run
on the new version; "cannot tell" fails nothing. With --small every row runs once, the checkout on both sides: it shows
that rows run.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ratios
import wheels
from measure import duration, matches
from ratios import Answer, Decision

SIDES = ("base", "new")
WORKER = Path(__file__).with_name("worker.py")


class RowFailedError(Exception):
    """A row does not run on one side."""

    def __init__(self, side: str, why: str) -> None:
        super().__init__(f"does not run on {side}: {why}")
        self.side = side


class Worker:
    """A process that times rows over the package of one folder."""

    def __init__(self, side: str, folder: Path, threads: int) -> None:
        self.side = side
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONHASHSEED": "0"}
        command = [sys.executable, str(WORKER), str(folder), str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, **request: Any) -> float:
        """The seconds that it answers."""
        assert self.process.stdin
        assert self.process.stdout
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: its answer is missing then
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.side} ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RowFailedError(self.side, answer["error"])
        return answer["seconds"]

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        with self.process:
            pass  # its input ends, and so does it


class Comparison:
    """Two folders, and how much is measured: rounds a row, spread over so many pairs of processes."""

    def __init__(self, folders: Sequence[Path], samples: int, pairs: int, seconds: float, threads: int) -> None:
        self.folders, self.threads, self.seconds = folders, threads, seconds
        self.rounds = [samples // pairs + (i < samples % pairs) for i in range(min(pairs, samples))]
        self.shuffle = random.Random(0).shuffle

    def measure(self, rows: Sequence[str]) -> dict[str, "Timing"]:
        """Times of each row, on both sides in turn."""
        timings = {row: Timing() for row in rows}
        for rounds in self.rounds:
            base, new = (Worker(side, folder, self.threads) for side, folder in zip(SIDES, self.folders, strict=True))
            with base, new:
                for row, timing in timings.items():
                    try:
                        self._row([base, new], row, rounds, timing)
                    except RowFailedError as error:
                        timing.failure = error
        return timings

    def _row(self, workers: list[Worker], row: str, rounds: int, timing: "Timing") -> None:
        slowest = max(worker.ask(row=row) for worker in workers)
        calls = max(1, round(self.seconds / max(slowest, 1e-9)))
        for _ in range(rounds):
            order = list(workers)
            self.shuffle(order)
            seconds = {worker.side: worker.ask(calls=calls) / calls for worker in order}
            for side in SIDES:
                timing.seconds[side].append(seconds[side])


class Timing:
    """Seconds of a call on each side, a round after the other, or why there are none."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {side: [] for side in SIDES}
        self.failure: RowFailedError | None = None

    def decision(self) -> Decision:
        """The answer of its ratios."""
        pairs = zip(self.seconds["new"], self.seconds["base"], strict=True)
        return ratios.decide([] if self.failure else [new / base for new, base in pairs])


def main(arguments: list[str]) -> int:
    """Builds, measures and prints; returns the exit status."""
    import workloads

    options = _options(arguments)
    rows = [row for row in workloads.ROWS if matches(row, options.rows)]
    if not rows:
        print(f"no row matches {options.rows}; there are {', '.join(workloads.ROWS)}")
        return 2
    new = wheels.of_checkout()
    base = new if options.small or _is_checked_out(options.base) else wheels.of_revision(options.base)
    if options.small:
        options.samples, options.pairs, options.seconds = 1, 1, 0.0
    comparison = Comparison((base, new), options.samples, options.pairs, options.seconds, options.threads)
    timings = comparison.measure(rows)
    decisions = {row: timing.decision() for row, timing in timings.items()}
    again = [row for row, decision in decisions.items() if decision.answer is Answer.SLOWER]
    if again:
        print(f"measured once more: {', '.join(again)}")
        for row, timing in comparison.measure(again).items():
            timings[row], decisions[row] = timing, ratios.confirm(decisions[row], timing.decision())
    print(table(timings, decisions))
    return status(timings, decisions)


def _is_checked_out(base: str) -> bool:
    found = wheels.is_checked_out(base)
    if found:
        print(f"the sources of the wheel are those of {base}: it is compared with itself")
    return found


def status(timings: dict[str, Timing], decisions: dict[str, Decision]) -> int:
    """2 where a row fails on the new side, 1 where one is slower, 0 otherwise."""
    if any(timing.failure and timing.failure.side == "new" for timing in timings.values()):
        return 2
    return int(any(decision.answer is Answer.SLOWER for decision in decisions.values()))


def table(timings: dict[str, Timing], decisions: dict[str, Decision]) -> str:
    """The answers, one a line."""
    lines = [f"{'row':<36} {'base':>10} {'new':>10} {'new/base':>9} {'limit':>7}  answer"]
    for row, timing in timings.items():
        if timing.failure:
            lines.append(f"{row:<36} {timing.failure}: {decisions[row].answer}")
            continue
        base, new = (duration(statistics.median(timing.seconds[side])) for side in SIDES)
        decision = decisions[row]
        lines.append(f"{row:<36} {base:>10} {new:>10} {decision.ratio:>9.3f} {decision.limit:>6.1%}  {decision.answer}")
    return "\n".join(lines)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", metavar="BASE", help="a revision of git, 0b9ec5a or later")
    parser.add_argument("--rows", default="", metavar="PATTERN,...", help="only rows whose name has or matches this")
    parser.add_argument("--samples", type=int, default=50, metavar="N", help="rounds for each row (default 50)")
    parser.add_argument("--pairs", type=int, default=5, metavar="N", help="pairs of processes (default 5)")
    parser.add_argument("--seconds", type=float, default=5e-3, metavar="S", help="of one sample (default 0.005)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="for oxigrad and NumPy alike")
    parser.add_argument("--small", action="store_true", help="run each row once, without BASE")
    options = parser.parse_args(arguments)
    if bool(options.base) == options.small:
        parser.error("expected either BASE, a revision to compare with (make compare BASE=main), or --small")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
