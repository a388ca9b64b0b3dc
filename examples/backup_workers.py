"""Simulation of synchronous training with backup workers, by up to thousands of workers on one machine.

    python examples/backup_workers.py --picture docs/backup_workers.svg
    python examples/backup_workers.py --gradient-bytes 10e6 --workers 10 100 1000 10000 --backups 0.05 --steps 5

With ``--gradient-bytes`` it shows where a coordinator saturates: the share of time in which it sends and receives, and the time of
a step. The state machine of `SyncReplicas` is the real one (`oxigrad.distributed.decisions.replicas`); workers and network are events of
a virtual clock, so that a run takes no more time than its decisions, and gives the same numbers for the same seed. The model
is trained for real: a softmax regression, by the gradients that were accepted. `Assumptions` states what is assumed of workers
and network.
"""

import argparse
import dataclasses
import heapq
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from oxigrad.distributed.decisions.events import Clock, Join, Push, Step, Token, Verdict
from oxigrad.distributed.decisions.replicas import Replicas
from oxigrad.optim import SGD


@dataclasses.dataclass(frozen=True)
class Assumptions:
    """Assumptions of a simulation, in seconds.

    The time of a gradient is lognormal with the median ``compute`` and the standard deviation ``spread`` of its logarithm,
    independent of other gradients; with the probability ``stall`` it takes ``stall_factor`` times as long, as of a machine that
    pages or restarts a task. A message takes ``latency``; the coordinator takes ``handling`` for each message that it receives or
    sends, one after the other, and for a gradient, which it receives from each worker and returns as a mean to each, the time of
    ``gradient_bytes`` at ``bandwidth`` bytes a second. Messages are not lost, workers do not die, and every gradient costs the same. ``slow`` has further
    seconds for each gradient of some workers.
    """

    compute: float = 1.0
    spread: float = 0.1
    stall: float = 0.01
    stall_factor: float = 5.0
    latency: float = 0.005
    handling: float = 0.0001
    gradient_bytes: float = 0.0
    bandwidth: float = 1.25e9
    slow: Mapping[int, float] = dataclasses.field(default_factory=dict)

    @property
    def transfer(self) -> float:
        """The time that a gradient takes at the network port of a coordinator."""
        return self.gradient_bytes / self.bandwidth

    def __str__(self) -> str:
        size = (
            f", and {self.gradient_bytes:g} bytes a gradient at {self.bandwidth:g} bytes/s"
            if self.gradient_bytes
            else ""
        )
        return (
            f"a gradient takes {self.compute:g} s (lognormal, sigma {self.spread:g}), {self.stall_factor:g} times as long with "
            f"probability {self.stall:g}; a message {self.latency:g} s; the coordinator {self.handling:g} s a message{size}; "
            "no losses, no deaths"
        )


@dataclasses.dataclass
class Run:
    """A simulated run: the time at the end of each step, the numbers of accepted and dropped gradients, and the time that the coordinator was busy."""

    times: np.ndarray
    accepted: int
    dropped: int
    busy: float

    @property
    def step_time(self) -> float:
        """The mean time of a step."""
        return float(self.times[-1] / len(self.times))

    @property
    def load(self) -> float:
        """The share of the time in which the coordinator was busy."""
        return float(self.busy / self.times[-1])


class _Durations:
    """Times of gradients, drawn in blocks from a generator of each worker."""

    def __init__(self, seed: int, worker: int, assumptions: Assumptions) -> None:
        self._rng = np.random.default_rng([seed, worker])
        self._assumptions, self._more = assumptions, assumptions.slow.get(worker, 0.0)
        self._left: list[float] = []

    def next(self) -> float:
        """The time of the next gradient."""
        if not self._left:
            a = self._assumptions
            drawn = a.compute * np.exp(a.spread * self._rng.normal(size=64))
            drawn = np.where(self._rng.random(64) < a.stall, a.stall_factor, 1.0) * drawn
            self._left = (drawn + self._more).tolist()
        return self._left.pop()


def simulate(workers: int, replicas: int, steps: int, *, seed: int = 0, assumptions: Assumptions | None = None) -> Run:
    """Simulates steps by the first ``replicas`` gradients of ``workers`` workers."""
    a = assumptions or Assumptions()
    decisions = Replicas(replicas, workers)
    durations = [_Durations(seed, worker, a) for worker in range(workers)]
    numbers = [0] * workers
    events: list[tuple[float, int, Any]] = [(0.0, worker, Join(worker)) for worker in range(workers)]
    count, free, busy, accepted, dropped = workers, 0.0, 0.0, 0, 0
    times: list[float] = []
    loads: list[float] = []
    while len(times) < steps:
        arrived, _, event = heapq.heappop(events)
        cost = a.handling + (a.transfer if isinstance(event, Push) else 0.0)
        free, busy = max(free, arrived) + cost, busy + cost
        decisions.handle(Clock(free))
        for action in decisions.handle(event):
            if isinstance(action, Step):
                times.append(free)
                loads.append(busy)
                accepted += len(action.gradients)
            elif isinstance(action, Verdict):
                dropped += not action.accepted
            elif isinstance(action, Token):
                cost = a.handling + a.transfer
                free, busy = free + cost, busy + cost
                worker, count = action.worker, count + 1
                push = Push(worker, numbers[worker], action.step)
                numbers[worker] += 1
                heapq.heappush(events, (free + 2 * a.latency + durations[worker].next(), count, push))
    return Run(np.array(times), accepted, dropped, loads[-1])


# --- training ----------------------------------------------------------------------------------------------------------

CLASSES, FEATURES, BATCH = 10, 32, 4


def train(replicas: int, steps: int, *, seed: int = 0) -> np.ndarray:
    """The test accuracy after each step of a softmax regression, by the mean of ``replicas`` gradients of small batches."""
    rng = np.random.default_rng([seed, 1 << 32])
    centers = 0.55 * rng.normal(size=(CLASSES, FEATURES))

    def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(CLASSES, size=count)
        return centers[labels] + rng.normal(size=(count, FEATURES)), labels

    test, answers = drawn(2000)
    model, opt = {"weight": np.zeros((FEATURES, CLASSES))}, SGD(1.0)
    accuracy = np.empty(steps)
    for step in range(steps):
        x, labels = drawn(replicas * BATCH)
        scores = x @ model["weight"]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[np.arange(len(x)), labels] -= 1.0
        model = opt.update(model, {"weight": x.T @ shares / len(x)})
        accuracy[step] = np.mean(np.argmax(test @ model["weight"], axis=1) == answers)
    return accuracy


@dataclasses.dataclass
class Row:
    """One row of the table."""

    workers: int
    backups: int
    step_time: float
    dropped: float
    after_steps: float
    after_time: float


def table(
    workers: Sequence[int], shares: Sequence[float], steps: int, seconds: float, seed: int, assumptions: Assumptions
) -> list[Row]:
    """Rows for each number of workers, and each share of them that are backups."""
    rows = []
    numbers = {(count, round(share * count)) for count in workers for share in shares if round(share * count) < count}
    for count, backups in tqdm(sorted(numbers), "backup workers", disable=None, leave=False):
        run = simulate(count, count - backups, steps, seed=seed, assumptions=assumptions)
        accuracy = train(count - backups, steps, seed=seed)
        done = int(np.searchsorted(run.times, seconds, side="right"))
        at = float(accuracy[done - 1]) if done else 1 / CLASSES
        dropped = run.dropped / (run.accepted + run.dropped)
        rows.append(Row(count, backups, run.step_time, dropped, float(accuracy[-1]), at))
    return rows


def saturation(
    workers: Sequence[int], share: float, steps: int, seed: int, assumptions: Assumptions
) -> list[list[float]]:
    """For each number of workers: their number, the load of the coordinator, and the seconds of a step."""
    rows = []
    for count in tqdm(workers, "saturation", disable=None, leave=False):
        run = simulate(count, count - round(share * count), steps, seed=seed, assumptions=assumptions)
        rows.append([count, run.load, run.step_time])
    return rows


def draw(rows: Sequence[Row], steps: int, seconds: float, assumptions: Assumptions, picture: Path) -> None:
    """Draws the time of a step, and the accuracy after the same time, against the share of backup workers."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for count in sorted({row.workers for row in rows}):
        own = [row for row in rows if row.workers == count]
        shares = [100 * row.backups / count for row in own]
        label = f"{count} worker{'s' * (count > 1)}"
        left.plot(shares, [row.step_time for row in own], "o-", markersize=3, label=label)
        right.plot(shares, [row.after_time for row in own], "o-", markersize=3, label=label)
    left.set(xlabel="backup workers (%)", ylabel="seconds a step", ylim=(0, None))
    right.set(xlabel="backup workers (%)", ylabel=f"test accuracy after {seconds:g} s")
    left.legend(fontsize=8)
    figure.suptitle(f"Simulated: {assumptions}", fontsize=7)
    with rc_context({"svg.hashsalt": "oxigrad", "svg.fonttype": "none"}):
        figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)


def show_saturation(given: argparse.Namespace, assumptions: Assumptions) -> list[list[float]]:
    """Prints the table of `saturation`."""
    rows = saturation(given.workers, given.backups[0], given.steps, given.seed, assumptions)
    out = sys.stdout.write
    out(f"Assumed: {assumptions}.\n\n")
    out("workers  coordinator busy  s/step\n")
    for count, load, time in rows:
        out(f"{count:7}  {load:16.0%}  {time:6.2f}\n")
    return rows


def main(arguments: Sequence[str] | None = None) -> list[Any]:
    """Prints the table, and draws the picture."""
    parser = argparse.ArgumentParser(description="Simulates backup workers.")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 3, 10, 30, 100, 300, 1000])
    parser.add_argument("--backups", type=float, nargs="+", default=[0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=10.0, help="virtual time after which accuracies are compared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gradient-bytes", type=float, default=0.0, help="show where a coordinator saturates")
    parser.add_argument(
        "--bandwidth", type=float, default=Assumptions.bandwidth, help="bytes a second of a network port"
    )
    parser.add_argument("--picture", type=Path, help="a file for the picture, which takes matplotlib")
    given = parser.parse_args(arguments)
    assumptions = Assumptions(gradient_bytes=given.gradient_bytes, bandwidth=given.bandwidth)
    if given.gradient_bytes:
        return show_saturation(given, assumptions)
    rows = table(given.workers, given.backups, given.steps, given.seconds, given.seed, assumptions)
    out = sys.stdout.write
    out(f"Assumed: {assumptions}.\n")
    out(f"Trained: softmax regression, batches of {BATCH} a gradient, {given.steps} steps, seed {given.seed}.\n\n")
    out(f"workers  backups  s/step  dropped  accuracy after {given.steps} steps  after {given.seconds:g} s\n")
    for row in rows:
        out(
            f"{row.workers:7}  {row.backups:7}  {row.step_time:6.3f}  {row.dropped:6.1%}  {row.after_steps:23.3f}  "
            f"{row.after_time:10.3f}\n"
        )
    if given.picture:
        draw(rows, given.steps, given.seconds, assumptions, given.picture)
        out(f"picture: {given.picture}\n")
    return rows


if __name__ == "__main__":
    main()
