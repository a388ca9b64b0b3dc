"""A picture of when the workers of a training computed, stepped and waited."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad.distributed.messages.reports.clock import Span

COLORS = {"compute": "tab:blue", "step": "tab:green", "wait": "tab:orange"}


def packed(spans: Sequence[Span]) -> np.ndarray:
    """The spans as an array of numbers, three for each."""
    kinds = [*COLORS]
    return np.array([(kinds.index(span.kind), span.begin, span.end) for span in spans], np.float64).ravel()


def unpacked(numbers: np.ndarray) -> list[Span]:
    """The spans in an array that `packed` made."""
    kinds = [*COLORS]
    return [Span(kinds[int(kind)], begin, end) for kind, begin, end in numbers.reshape(-1, 3).tolist()]


class Timeline(Mapping[int, Sequence[Span]]):
    """Spans of workers by rank: ``compute`` between steps, ``step``, and ``wait`` in steps; see `Wrapper.timeline`.

    Args:
        spans: spans of time by the rank of the worker.

    >>> timeline = Timeline(
    ...     {0: [Span("step", 5.0, 7.0), Span("wait", 5.5, 6.0)], 1: [Span("step", 5.0, 6.0)]}
    ... )
    >>> timeline
    Timeline(workers: 2, spans: 3, seconds: 2)
    >>> timeline.seconds(0)
    {'compute': 0.0, 'step': 1.5, 'wait': 0.5}
    """

    def __init__(self, spans: Mapping[int, Sequence[Span]]) -> None:
        self._spans = {rank: [Span(*each) for each in of_worker] for rank, of_worker in sorted(spans.items())}

    def __getitem__(self, rank: int) -> Sequence[Span]:
        return self._spans[rank]

    def __iter__(self) -> Any:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def seconds(self, rank: int) -> dict[str, float]:
        """The seconds of each kind of a worker's spans, where waits are not parts of steps."""
        totals = dict.fromkeys(COLORS, 0.0)
        for span in self._spans[rank]:
            totals[span.kind] += span.end - span.begin
        return {**totals, "step": max(0.0, totals["step"] - totals["wait"])}

    def _ends(self) -> tuple[float, float]:
        spans = [span for of_worker in self._spans.values() for span in of_worker]
        return min((span.begin for span in spans), default=0.0), max((span.end for span in spans), default=0.0)

    def plot(self, ax: Any = None) -> Any:
        """Draws a lane for each worker by matplotlib, on the axes ``ax`` or on pyplot's; returns the axes.

        >>> from matplotlib.figure import Figure
        >>> ax = Timeline({0: [Span("step", 5.0, 7.0)], 1: []}).plot(Figure().subplots())
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['worker 0', 'worker 1']
        """
        ax = importlib.import_module("matplotlib.pyplot").gca() if ax is None else ax
        start = self._ends()[0]
        for kind, color in COLORS.items():  # waits are drawn over the steps that they are parts of
            for lane, of_worker in enumerate(self._spans.values()):
                bars = [(span.begin - start, span.end - span.begin) for span in of_worker if span.kind == kind]
                ax.broken_barh(bars, (lane - 0.4, 0.8), facecolors=color, label=kind if lane == 0 else None)
        ax.set(xlabel="seconds", yticks=range(len(self)), yticklabels=[f"worker {rank}" for rank in self])
        ax.set_ylim(len(self) - 0.5, -0.5)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(COLORS), frameon=False)
        return ax

    def __repr__(self) -> str:
        begin, end = self._ends()
        return (
            f"Timeline(workers: {len(self)}, spans: {sum(map(len, self._spans.values()))}, seconds: {end - begin:.3g})"
        )
