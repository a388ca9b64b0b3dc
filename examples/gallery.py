"""Draws the path of each optimizer down two valleys, Rosenbrock's and Beale's.

    python examples/gallery.py
    python examples/gallery.py --search

Each takes as many steps as the others, from the same place. Its learning rate is found by a search: of 1, 2, 3 and 5 times the powers of ten, the one
with the lowest value at the end, among those whose path does not leave the frame. ``--search`` repeats it, and prints the column
``valleys`` of the table of optimizers, ``python/oxigrad/optim/table/``; ``--search NAME`` that of one.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import oxigrad as ox
from oxigrad.optim.table.row import TABLE

STEPS = 400
COLUMNS = 4
CANDIDATES = [factor * 10.0**power for power in range(-6, 3) for factor in (1, 2, 3, 5)]

# --- the valleys ------------------------------------------------------------------------------------------------------


def rosenbrock(point: Any) -> Any:
    """A narrow curved valley; the minimum is at (1, 1)."""
    x, y = point[0], point[1]
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def beale(point: Any) -> Any:
    """A plain between steep walls; the minimum is at (3, 0.5)."""
    x, y = point[0], point[1]
    return (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2


@dataclass
class Valley:
    """A function of two numbers, where paths begin, where they should end, and the part of the plane to draw."""

    function: Callable[[Any], Any]
    start: tuple[float, float]
    minimum: tuple[float, float]
    x: tuple[float, float]
    y: tuple[float, float]

    def shows(self, point: np.ndarray) -> bool:
        """Whether a point is in the frame; NaN is not."""
        return self.x[0] < point[0] < self.x[1] and self.y[0] < point[1] < self.y[1]


VALLEYS = [
    Valley(rosenbrock, (-1.2, 1.0), (1.0, 1.0), (-1.7, 1.7), (-0.8, 2.2)),
    Valley(beale, (0.5, -1.0), (3.0, 0.5), (-0.5, 4.2), (-1.6, 1.4)),
]

# --- the optimizers, and the learning rates of the table of optimizers, which the search has found; Muon is for matrices -----------------------

RATES: dict[str, tuple[float, float]] = {name: row.valleys for name, row in TABLE.items() if row.valleys is not None}


def path(name: str, rate: float, valley: Valley, steps: int = STEPS) -> np.ndarray:
    """The points that an optimizer comes through, of shape (steps + 1, 2), or fewer where it leaves the frame."""
    optimizer = getattr(ox.optim, name)(learning_rate=rate)
    point = np.array(valley.start)
    points = [point.copy()]
    while len(points) <= steps and valley.shows(point):
        optimizer.minimize(valley.function, point)
        points.append(point.copy())
    return np.array(points)


def search(name: str, valley: Valley, steps: int = STEPS) -> float:
    """The learning rate, of `CANDIDATES`, with the lowest value at the end of a path in the frame."""
    paths = {rate: path(name, rate, valley, steps) for rate in CANDIDATES}
    ends = {rate: float(valley.function(points[-1])) for rate, points in paths.items() if valley.shows(points[-1])}
    return min(ends, key=lambda rate: ends[rate])


# --- the picture ------------------------------------------------------------------------------------------------------


def draw_valley(axes: Axes, valley: Valley) -> None:
    """The valley as contours of equal ratios, its minimum a cross."""
    x, y = np.meshgrid(np.linspace(*valley.x, 160), np.linspace(*valley.y, 160))
    axes.contourf(x, y, np.log10(valley.function(np.stack([x, y])) + 1e-3), levels=18, cmap="Greys_r", alpha=0.75)
    axes.plot(*valley.minimum, "x", color="black", markersize=5)
    axes.set(xlim=valley.x, ylim=valley.y, xticks=[], yticks=[])


def draw(paths: dict[str, list[np.ndarray]], file: Path) -> None:
    """Two panels for each optimizer, side by side: its paths down the valleys."""
    rows = -(-len(paths) // COLUMNS)
    figure = Figure(figsize=(3.6 * COLUMNS, 1.9 * rows), layout="constrained")
    panels = figure.subplots(rows, 2 * COLUMNS, squeeze=False).ravel()
    for number, (name, found) in enumerate(paths.items()):
        for axes, valley, points in zip(panels[2 * number :], VALLEYS, found, strict=False):
            draw_valley(axes, valley)
            axes.plot(*points.T, color="tab:blue", linewidth=1.0)
            axes.plot(*points[-1], "o", color="tab:orange", markersize=4)
            axes.set_title(f"{name} {RATES[name][VALLEYS.index(valley)]:g}", fontsize=8)
    for axes in panels[2 * len(paths) :]:
        axes.set_axis_off()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)


def main(output: Path = Path("output"), steps: int = STEPS) -> dict[str, list[float]]:
    """Draws all paths, prints how far down each came, and returns that: the value at the end of each valley."""
    begin = time.perf_counter()
    paths = {
        name: [path(name, *given, steps) for given in zip(rates, VALLEYS, strict=True)] for name, rates in RATES.items()
    }
    ends = {
        name: [float(valley.function(points[-1])) for valley, points in zip(VALLEYS, found, strict=True)]
        for name, found in paths.items()
    }
    print(f"{'after ' + str(steps) + ' steps':<18} {'rosenbrock':>12} {'beale':>12}")
    for name, values in ends.items():
        print(f"{name:<18} {values[0]:12.2e} {values[1]:12.2e}")
    draw(paths, output / "gallery.png")
    print(f"picture: {output / 'gallery.png'}, in {time.perf_counter() - begin:.1f} s")
    return ends


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N")
    parser.add_argument(
        "--search", nargs="*", metavar="NAME", help="print the learning rates of these optimizers, or of all"
    )
    options = parser.parse_args()
    if options.search is not None:
        for name in options.search or RATES:
            print(f"{name}: valleys=({', '.join(f'{search(name, valley):g}' for valley in VALLEYS)})", flush=True)
    else:
        main(steps=options.steps)
