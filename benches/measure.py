"""Side-by-side timing: contestants that are checked first, then called in turn, round by round, in one process.

Absolute times on shared machines drift; the ratio of two calls of one round does not. A row is therefore the ratio of
medians, with the spread (10th to 90th percentile) of the ratios within a round.
"""

import contextlib
import dataclasses
import fnmatch
import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from machine import threads_limited

#: What the row that runs has begun, and ends with it, so that it disturbs no other row.
ENDINGS = contextlib.ExitStack()


class WrongResultError(Exception):
    """A contestant does not compute what the reference says, so its time means nothing."""


@dataclasses.dataclass(frozen=True)
class Ready:
    """A prepared contestant: `check` calls it and compares the result, `call` is the timed function.

    The first `early` calls after the check are timed apart: a recording audits many of its first 50 calls.
    """

    call: Callable[[], Any]
    check: Callable[[], None]
    early: int = 0


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A library's entry in a row: `prepare` sets it up, and raises `ImportError` if the library is missing.

    The role is "ours", "peer", "ceiling" (what no contestant can beat) or "baseline" (subtracted from the others).
    """

    name: str
    role: str
    prepare: Callable[[], Ready]


@dataclasses.dataclass(frozen=True)
class Goal:
    """The target of a row: a speedup of oxigrad over a peer or, without a peer, an upper bound."""

    target: float
    peer: str | None = None


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a run: rounds per row, and the pause before each call in seconds."""

    samples: int = 31
    pause: float = 0.005


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A goal, the measured result and its status: "reached", "MISSED", "UNSTEADY" or "not measured"."""

    row: str
    goal: str
    found: str
    word: str


@dataclasses.dataclass
class Outcome:
    """A row after its run: lines to print, verdicts on its goals, and everything as plain data."""

    lines: list[str]
    verdicts: list[Verdict]
    data: dict[str, Any]
    wrong: bool = False


@dataclasses.dataclass(frozen=True)
class Family:
    """A joint goal of several rows: the geometric mean of oxigrad's speedups over a peer, which each row names."""

    name: str
    target: float
    peers: Mapping[str, str]

    def verdict(self, outcomes: Sequence[Outcome]) -> Verdict:
        """The verdict on the outcomes of the goal's rows; other rows are ignored."""
        goal, unsteady, ratios = f"at least {self.target:g}x their peers, in the mean", False, []
        for data in (outcome.data for outcome in outcomes if outcome.data["row"] in self.peers):
            unsteady |= data["unsteady"]
            peer = self.peers[data["row"]]
            ratios += [c["ratio"]["of_medians"] for c in data["contestants"] if c["name"] == peer and "ratio" in c]
        if len(ratios) < len(self.peers):
            return Verdict(self.name, goal, f"{len(ratios)} of {len(self.peers)} rows", "not measured")
        mean = statistics.geometric_mean(ratios)
        word = "UNSTEADY" if unsteady else "reached" if mean >= self.target else "MISSED"
        return Verdict(self.name, goal, f"{mean:.3g}x", word)


def close(found: Any, expected: Any, *, what: str, relative: float = 0.0, absolute: float = 0.0) -> None:
    """Raises `WrongResultError` unless every element of `found` is near `expected`; NaN never is."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise WrongResultError(f"{what} has shape {found.shape}, the reference {expected.shape}")
    error = np.abs(found - expected)
    within = error <= absolute + relative * np.abs(expected)
    if not np.all(within):
        places = f"{np.sum(~within)} of {error.size} places"
        raise WrongResultError(f"{what} is off by up to {np.nanmax(error):.3g}, in {places}")


@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison. `build` makes the inputs and the contestants; a call's time is divided by `operations`.

    `samples` and `threads` are for a row that needs fewer than the others. Where it is `warm`, each call that is timed
    comes right after another one of the same contestant, as in a training loop; otherwise after the pause, with what
    the others left in the caches. Where ``first`` is set, the first call of each contestant is timed on its own: it
    records or compiles, and `check` comes after it.
    """

    name: str
    build: Callable[[], list[Contestant]]
    goals: tuple[Goal, ...] = ()
    operations: int = 1
    samples: int | None = None
    threads: int | None = None
    warm: bool = True
    first: bool = False

    def run(self, settings: Settings) -> Outcome:
        """Sets up, checks, times and sums up; a contestant that is wrong fails the row before anything is timed."""
        with ENDINGS, threads_limited(self.threads):
            return self._run(settings)

    def _run(self, settings: Settings) -> Outcome:
        ready, notes, wrong, contestants = {}, [], False, self.build()
        first: dict[str, float] = {}
        early: dict[str, float] = {}
        for contestant in contestants:
            try:
                made = contestant.prepare()
                if self.first:
                    first[contestant.name] = _time(made.call, settings.pause, warm=False)
                made.check()
                if made.early:
                    early[contestant.name] = _mean(made.call, made.early)
                ready[contestant.name] = made.call
            except ImportError as error:
                notes.append(f"{contestant.name}: missing ({error})")
            except WrongResultError as error:
                wrong = True
                notes.append(f"{contestant.name}: WRONG: {error}")
        rounds = min(settings.samples, self.samples or settings.samples)
        samples = {} if wrong else _rounds(ready, rounds, settings.pause, self.warm)
        return _Summary(
            self, [c for c in contestants if c.name in samples], samples, notes, wrong, first, early
        ).outcome()


def _rounds(calls: dict[str, Callable[[], Any]], rounds: int, pause: float, warm: bool) -> dict[str, list[float]]:
    """Seconds of each call, a round after the other; the order within a round is shuffled, with a fixed seed."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    order, shuffle = list(calls), random.Random(0).shuffle
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            shuffle(order)
            for name in order:
                samples[name].append(_time(calls[name], pause, warm))
            gc.collect()
    finally:
        gc.enable()
    return samples


def _time(call: Callable[[], Any], pause: float, warm: bool) -> float:
    """Seconds of one call, after a pause: worker threads of the contestant before spin on for milliseconds.

    It sleeps: a busy pause would use up the time slice, and a busy machine then interrupts the call itself.
    """
    time.sleep(pause)
    if warm:
        call()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _mean(call: Callable[[], Any], count: int) -> float:
    """Seconds of a call, the mean of several in a row."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The 10th, 50th and 90th percentile."""
    p10, p50, p90 = np.percentile(np.asarray(values), [10, 50, 90])
    return float(p10), float(p50), float(p90)


def matches(name: str, patterns: str) -> bool:
    """Whether a row's name has or matches one of the patterns, with commas between them; no pattern is in every name."""
    return any(pattern in name or fnmatch.fnmatch(name, pattern) for pattern in patterns.split(","))


def duration(seconds: float) -> str:
    """A time with three digits, in a unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


@dataclasses.dataclass
class _Summary:
    """The evaluation of the samples of a row."""

    row: Row
    contestants: list[Contestant]
    samples: dict[str, list[float]]
    notes: list[str]
    wrong: bool
    first: Mapping[str, float]
    early: Mapping[str, float]

    def outcome(self) -> Outcome:
        self._subtract_baseline()
        scaled = {name: [t / self.row.operations for t in times] for name, times in self.samples.items()}
        self.medians = {name: statistics.median(times) for name, times in scaled.items()}
        self.ours = next((c.name for c in self.contestants if c.role == "ours"), None)
        self.unsteady = self._is_unsteady()
        return Outcome(self._lines(), [self._verdict(goal) for goal in self.row.goals], self._data(scaled), self.wrong)

    def _subtract_baseline(self) -> None:
        for base in [c.name for c in self.contestants if c.role == "baseline"]:
            for c in self.contestants:
                if c.role in ("ours", "peer"):
                    pairs = zip(self.samples[c.name], self.samples[base], strict=True)
                    self.samples[c.name] = [time - bare for time, bare in pairs]

    def _is_unsteady(self) -> bool:
        steady = [c.name for c in self.contestants if c.role in ("ceiling", "baseline")][:1]
        spreads = [percentiles(self.samples[name]) for name in steady]
        return any(p90 > 2 * p10 for p10, _, p90 in spreads)

    def _ratio(self, name: str) -> tuple[float, float, float]:
        """The ratio of medians, theirs to ours, and the 10th and 90th percentile of the ratios within a round."""
        pairs = zip(self.samples[name], self.samples[self.ours], strict=True)
        p10, _, p90 = percentiles([theirs / ours for theirs, ours in pairs])
        return self.medians[name] / self.medians[self.ours], p10, p90

    def _lines(self) -> list[str]:
        count = len(next(iter(self.samples.values()), []))
        title = f"{self.row.name}   [{count} rounds{', UNSTEADY' if self.unsteady else ''}]"
        lines = [title, *(f"  {note}" for note in self.notes)]
        for c in self.contestants:
            line = f"  {c.role:<9} {c.name:<34} {duration(self.medians[c.name]):>10}"
            if self.ours and c.name != self.ours:
                ratio, p10, p90 = self._ratio(c.name)
                line += f" {ratio:>9.3g}x   ({p10:.3g} - {p90:.3g})"
            if c.name in self.first:
                line += f"   first call {duration(self.first[c.name])}"
            if c.name in self.early:
                line += f"   mean of the first calls {duration(self.early[c.name])}"
            lines.append(line)
        return lines

    def _verdict(self, goal: Goal) -> Verdict:
        name = self.row.name
        text = f"below {duration(goal.target)}" if goal.peer is None else f"at least {goal.target:g}x {goal.peer}"
        if self.ours not in self.medians or (goal.peer and goal.peer not in self.medians):
            return Verdict(name, text, "nothing", "not measured")
        if goal.peer is None:
            found, reached = duration(self.medians[self.ours]), self.medians[self.ours] < goal.target
        else:
            ratio = self._ratio(goal.peer)[0]
            found, reached = f"{ratio:.3g}x", ratio >= goal.target
        return Verdict(name, text, found, "UNSTEADY" if self.unsteady else "reached" if reached else "MISSED")

    def _data(self, scaled: dict[str, list[float]]) -> dict[str, Any]:
        def contestant(c: Contestant) -> dict[str, Any]:
            p10, p50, p90 = percentiles(scaled[c.name])
            data = {"name": c.name, "role": c.role, "median": p50, "p10": p10, "p90": p90, "seconds": scaled[c.name]}
            if self.ours and c.name != self.ours:
                data["ratio"] = dict(zip(("of_medians", "p10", "p90"), self._ratio(c.name), strict=True))
            if c.name in self.first:
                data["first"] = self.first[c.name]
            if c.name in self.early:
                data["early"] = self.early[c.name]
            return data

        return {
            "row": self.row.name,
            "operations": self.row.operations,
            "contestants": [contestant(c) for c in self.contestants],
            "notes": self.notes,
            "unsteady": self.unsteady,
            "wrong": self.wrong,
        }
