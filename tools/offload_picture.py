"""Draws what overlaps in steps with the state in host memory: ``python tools/offload_picture.py`` writes docs/offload.svg.

The copies and updates are those of the schedule of `oxigrad.torch` and `oxigrad.optim`, over a simulated device, bus and host. A test
checks that the file is what it draws.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from oxigrad.stepping.device.transfers import Action, Schedule

PATH = Path(__file__).parent.parent / "docs" / "offload.svg"
LAYERS = 8
LANES = ("device", "gradients down", "host", "parameters up")
COLORS = {
    "forward": "#c9ced6",
    "backward": "#8d99ae",
    "down": "#e07a5f",
    "measure": "#f2cc8f",
    "add": "#f2cc8f",
    "update": "#3d7dca",
    "up": "#81b29a",
}
# What a bar stands for, in the legend.
MEANINGS = {
    "forward": "forward",
    "backward": "backward",
    "down": "a gradient goes down",
    "measure": "its norm, or its sum with micro-batches before",
    "update": "update of master weights and moments",
    "up": "a parameter goes up",
}


@dataclasses.dataclass(frozen=True)
class Machine:
    """Milliseconds of one layer of ``parameters``, in bfloat16 with master weights and moments of float32, by bytes over bytes a second."""

    parameters: float = 25e6
    bus: float = 50e9
    memory: float = 200e9
    forward: float = 1.5
    backward: float = 3.0

    def cost(self, kind: str) -> float:
        """The milliseconds of an action."""
        moved = {
            "down": 2 / self.bus,
            "up": 2 / self.bus,
            "update": 28 / self.memory,
            "measure": 2 / self.memory,
            "add": 6 / self.memory,
        }
        return 1e3 * self.parameters * moved[kind] if kind in moved else getattr(self, kind)


@dataclasses.dataclass(frozen=True)
class Bar:
    """The work of a lane on a layer, from ``start`` to ``stop``."""

    lane: str
    kind: str
    layer: int
    start: float
    stop: float


class TimeLine:
    """The bars of a panel. Each lane does one thing at a time."""

    def __init__(self, machine: Machine, *, clips: bool = False) -> None:
        self.machine, self.clips = machine, clips
        self.bars: list[Bar] = []
        self.free = dict.fromkeys(LANES, 0.0)

    def add(self, lane: str, kind: str, layer: int, earliest: float) -> float:
        """Adds a bar, and returns when it ends."""
        start = max(earliest, self.free[lane])
        stop = self.free[lane] = start + self.machine.cost(kind)
        self.bars.append(Bar(lane, kind, layer, start, stop))
        return stop

    def layers(self, *, forward: bool = True) -> list[float]:
        """A forward, if it is wanted, and a backward on the device; returns when each gradient is final."""
        for layer in range(LAYERS) if forward else ():
            self.add("device", "forward", layer, 0.0)
        return [self.add("device", "backward", layer, 0.0) for layer in reversed(range(LAYERS))]

    def run(self, schedule: Schedule, finals: Sequence[float], released: float = 0.0, update: str = "update") -> float:
        """Lets a schedule take the gradients, of layers from the last to the first; returns when all is done."""
        events: list[tuple[float, int, Action | str]] = []
        for time in finals:
            heapq.heappush(events, (time, len(events), "final"))
        heapq.heappush(events, (finals[-1], len(events), "close"))
        heapq.heappush(events, (released, len(events), "release"))
        number, end = len(events), finals[-1]
        while events:
            end, _, event = heapq.heappop(events)
            if isinstance(event, Action):
                schedule.finish(event)
            else:
                {"final": schedule.add, "close": schedule.close, "release": schedule.release}[event]()
            for action in schedule.begin():
                number += 1
                heapq.heappush(events, (self._begin(action, end, update), number, action))
        return end

    def _begin(self, action: Action, now: float, update: str) -> float:
        lane = {"down": "gradients down", "up": "parameters up"}.get(action.kind, "host")
        kind = update if action.kind == "update" else action.kind
        if (kind == "up" and update == "add") or (kind == "measure" and not self.clips):
            return now  # A sum stays in host memory; without clipping a delayed step measures nothing.
        return self.add(lane, kind, LAYERS - 1 - action.piece, now)


def panels(machine: Machine) -> Iterator[tuple[str, TimeLine]]:
    """The time lines of all modes, with their titles."""
    after = TimeLine(machine)
    finals = after.layers()
    after.run(Schedule(4), [finals[-1]] * LAYERS)
    yield 'state_device="host": all gradients are there, then step()', after

    inside = TimeLine(machine)
    inside.run(Schedule(4), inside.layers())
    yield "in_backward=True: each gradient leaves the device when it is final", inside

    clipped = TimeLine(machine, clips=True)
    clipped.run(Schedule(None, measures=True), clipped.layers())
    yield "in_backward=True, max_norm: updates begin when the norm of all is known", clipped

    parts = TimeLine(machine)
    added = parts.run(Schedule(4), parts.layers(), update="add")
    parts.run(
        Schedule(4), [max(final, added) for final in parts.layers()]
    )  # the sums of the micro-batch before come first
    yield "in_backward=True, no_step(): the sum of two micro-batches is in host memory", parts

    delayed = TimeLine(machine)
    first = delayed.layers()[-1]
    down = first + LAYERS * machine.cost("down")
    delayed.free["device"] = down  # step() returns when gradients are in host memory
    second = delayed.layers()[-1]
    delayed.run(Schedule(None, measures=True, holds=True), [first] * LAYERS, released=second)
    yield "delay=1: updates run beside the next forward and backward, and take effect after it", delayed


# --- the picture -----------------------------------------------------------------------------------------------------------

WIDTH, LEFT, ROW, BAR, TOP = 860, 120, 18, 14, 46


def text_at(x: float, y: float, text: str, style: str = "") -> str:
    """An element of SVG with a text."""
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{escape(text)}</text>'


def drawn(machine: Machine) -> str:
    """The picture as SVG."""
    lines = [*panels(machine)]
    longest = max(bar.stop for _, line in lines for bar in line.bars)
    scale = (WIDTH - LEFT - 20) / longest
    height = len(LANES) * ROW + 46
    size, font = f"{WIDTH} {TOP + len(lines) * height}", "DejaVu Sans, Helvetica, Arial, sans-serif"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="{font}" font-size="11" fill="#222">',
        f'<rect width="{WIDTH}" height="{TOP + len(lines) * height}" fill="#fff"/>',
    ]
    for number, (kind, meaning) in enumerate(MEANINGS.items()):
        x, y = 10 + 285 * (number % 3), 8 + 17 * (number // 3)
        parts += [
            f'<rect x="{x}" y="{y}" width="12" height="12" fill="{COLORS[kind]}"/>',
            text_at(x + 17, y + 10, meaning),
        ]
    for number, (title, line) in enumerate(lines):
        top = TOP + number * height
        parts.append(text_at(10, top + 14, title, ' font-weight="bold"'))
        for at, lane in enumerate(LANES):
            y = top + 22 + at * ROW
            parts.append(text_at(10, y + 11, lane))
            for bar in (bar for bar in line.bars if bar.lane == lane):
                parts.append(
                    f'<rect x="{LEFT + scale * bar.start:.1f}" y="{y}" width="{scale * (bar.stop - bar.start):.1f}" height="{BAR}" '
                    f'fill="{COLORS[bar.kind]}" stroke="#fff" stroke-width="0.5"/>'
                )
        end = max(bar.stop for bar in line.bars)
        x, y = LEFT + scale * end, top + 22 + len(LANES) * ROW
        parts.append(
            f'<path d="M{LEFT} {y}H{x:.1f}M{x:.1f} {top + 20}V{y + 4}" stroke="#222" stroke-width="0.7" fill="none"/>'
        )
        parts.append(text_at(x, y + 14, f"{end:.0f} ms", ' text-anchor="end"'))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PATH.write_text(drawn(Machine()), encoding="utf-8")
