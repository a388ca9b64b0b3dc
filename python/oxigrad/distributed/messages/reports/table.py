"""The table of the workers of a training: steps, speed, waits, and what became of their gradients."""

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, SupportsIndex, TextIO

import numpy as np

from oxigrad.extend import Table


@dataclasses.dataclass
class WorkerReport:
    """Counts of one worker: its gradients, accepted in a step or dropped, and its times, where they are known.

    ``stale`` counts the gradients by staleness, the number of steps that others had taken since the worker read its
    parameters; ``refused`` counts the messages that were not valid, by reason. ``step`` is the step of the training,
    ``rate`` the worker's updates per second, and ``waited`` the seconds of its updates in which it waited for others or
    exchanged messages. They are None until the worker reports them; ``rate`` is None before its second update.
    """

    rank: int
    accepted: int = 0
    dropped: int = 0
    stale: Counter[int] = dataclasses.field(default_factory=Counter)
    bytes_sent: int = 0
    refused: Counter[str] = dataclasses.field(default_factory=Counter)
    step: int | None = None
    rate: float | None = None
    waited: float | None = None

    def count(self, *, accepted: bool, staleness: int | None = None) -> None:
        """Counts a gradient, and its staleness where that is known."""
        self.accepted += accepted
        self.dropped += not accepted
        if staleness is not None:
            self.stale[staleness] += 1

    def packed(self) -> np.ndarray:
        """The report as bytes of JSON."""
        return np.frombuffer(json.dumps(vars(self)).encode(), np.uint8)

    @classmethod
    def unpacked(cls, data: np.ndarray) -> "WorkerReport":
        """The report in bytes that `packed` made."""
        plain: dict[str, Any] = json.loads(data.tobytes())
        stale = Counter({int(staleness): count for staleness, count in plain["stale"].items()})
        return cls(**{**plain, "stale": stale, "refused": Counter(plain["refused"])})


class WorkerReports(list[WorkerReport]):
    """The reports of workers by rank: a list, whose ``repr`` is a table, in notebooks too; `rows` is the table as data.

    Args:
        reports: one report for each worker.
        batch_size: samples that a worker uses in an update; None counts updates.

    With ``batch_size``, the samples that a worker uses in an update, the table has samples per second; otherwise
    updates per second.

    >>> WorkerReports(
    ...     [WorkerReport(0, 4, 1, Counter({1: 2}), step=5, rate=2.0, waited=0.25)], batch_size=32
    ... )
    rank  step  samples/s  waited (s)  accepted  dropped  staleness  MB sent  refused
    0     5     64         0.25        4         1        1 (2x)     0        0
    """

    def __init__(self, reports: Iterable[WorkerReport], batch_size: int | None = None) -> None:
        super().__init__(reports)
        self.batch_size = batch_size

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each worker, by the names of columns; None for what is not known."""
        speed = "updates/s" if self.batch_size is None else "samples/s"
        return [
            {
                "rank": each.rank,
                "step": each.step,
                speed: None if each.rate is None else each.rate * (self.batch_size or 1),
                "waited (s)": each.waited,
                "accepted": each.accepted,
                "dropped": each.dropped,
                "staleness": {staleness: count for staleness, count in sorted(each.stale.items()) if staleness},
                "MB sent": each.bytes_sent / 1e6,
                "refused": sum(each.refused.values()),
            }
            for each in self
        ]

    def table(self) -> Table:
        """The table, of at most 100 columns."""
        rows = self.rows
        return Table(rows[0] if rows else ("rank",), [map(_cell, row.values()) for row in rows])

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return (WorkerReports, ([*self], self.batch_size))


class Display:
    """A table that is printed again and again: in the same place of a terminal, one below the other elsewhere."""

    def __init__(self) -> None:
        self._lines = 0

    def show(self, text: str, file: TextIO | None = None) -> None:
        """Prints a text, on a terminal in place of the one before; by default on the standard error stream."""
        stream: TextIO = file or sys.stderr
        above = f"\x1b[{self._lines}A\x1b[J" if self._lines and stream.isatty() else ""
        stream.write(f"{above}{text}\n")
        stream.flush()
        self._lines = text.count("\n") + 1


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{staleness} ({count}x)" for staleness, count in value.items()) or "0"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
