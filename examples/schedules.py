"""Draws every schedule, over 100 steps.

python examples/schedules.py
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oxigrad import schedules as s

STEPS = 100
COLUMNS = 5

# A panel each: its title, and the schedules in it by how they are labelled.
PANELS: dict[str, dict[str, s.Schedule]] = {
    "constant, linear": {"constant(0.3)": s.constant(0.3), "linear(1, 0.1, 80)": s.linear(1, 0.1, 80)},
    "polynomial": {f"power={power}": s.polynomial(1, 80, power=power) for power in (0.5, 2, 4)},
    "cosine": {"cosine(1, 80, 0.1)": s.cosine(1, 80, 0.1), "power=3": s.cosine(1, 80, 0.1, power=3)},
    "one_minus_sqrt": {"one_minus_sqrt(1, 80)": s.one_minus_sqrt(1, 80)},
    "rex": {f"beta={beta}": s.rex(1, 80, beta=beta) for beta in (0.5, 0.9)},
    "exponential": {f"rate={rate}": s.exponential(1, rate) for rate in (0.98, 0.95)},
    "inverse_power, inverse_time": {
        "power=0.5": s.inverse_power(1, 0.1, 0.5),
        "power=2": s.inverse_power(1, 0.1, 2),
        "inverse_time(1, 0.5, 10)": s.inverse_time(1, 0.5, 10),
    },
    "step": {"step(1, 25, 0.5)": s.step(1, 25, 0.5)},
    "multistep": {"multistep(1, (30, 80), 0.3)": s.multistep(1, (30, 80), 0.3)},
    "piecewise": {kind: s.piecewise((0.1, 1, 0.4), (30, 80), kind) for kind in ("constant", "linear", "cosine")},
    "cosine_restarts": {
        "growth=2": s.cosine_restarts(1, 14, growth=2),
        "decay=0.6": s.cosine_restarts(1, 25, decay=0.6),
    },
    "cyclic": {
        "triangular2": s.cyclic(0.1, 1, 15, 10, "triangular2"),
        "exp_range": s.cyclic(0.1, 1, 10, mode="exp_range", gamma=0.98),
    },
    "one_cycle": {"one_cycle(1, 100)": s.one_cycle(1, 100), "back=60": s.one_cycle(1, 100, back=60)},
    "rsqrt, noam": {"rsqrt(1, 20)": s.rsqrt(1, 20), "noam(4, 20, 4)": s.noam(4, 20, 4)},
    "warmup, warmup_cosine": {
        "warmup(rex(1, 80), 20)": s.warmup(s.rex(1, 80), 20),
        "warmup_cosine(1, 20, 100)": s.warmup_cosine(1, 20, 100),
    },
    "cooldown": {"cooldown(exponential(1, 0.99), 70, 20)": s.cooldown(s.exponential(1, 0.99), 70, 20)},
    "wsd": {kind: s.wsd(1, 10, 60, 30, interpolation=kind) for kind in ("linear", "sqrt")},
    "join, staircase, clip": {
        "join": s.join((0.2, s.linear(1, 0, 60)), (30,)),
        "staircase": s.staircase(s.linear(1, 0, 10), 10),
        "clip": s.clip(s.exponential(1, 0.97), 0.3, 0.8),
    },
    "add, multiply": {
        "0.5 * cyclic + 0.3": 0.5 * s.cyclic(0, 1, 10) + 0.3,
        "linear * cyclic": s.linear(1, 0.2, 100) * s.cyclic(0.2, 1, 10),
    },
}


def observed() -> list[float]:
    """Values of `plateau` for a loss that falls in some stretches and stagnates in others."""
    schedule = s.plateau(1.0, factor=0.5, patience=5)
    losses = np.repeat([5.0, 4.0, 3.5, 3.4], 25) - np.tile(np.minimum(np.arange(25), 12) * 0.05, 4)
    return [schedule.observe(loss) for loss in losses]


def panel(axes: Axes, title: str, curves: dict[str, s.Schedule]) -> None:
    """Draws schedules: called with all steps at once."""
    steps = np.arange(STEPS + 1)
    for label, schedule in curves.items():
        axes.plot(steps, np.broadcast_to(schedule(steps), steps.shape), label=label)
    axes.set(title=title, ylim=(-0.05, 1.1))
    axes.legend(fontsize=7)


def main(output: Path = Path("output")) -> Path:
    """Draws all panels; returns where the picture is."""
    rows = -(-(len(PANELS) + 1) // COLUMNS)
    figure = Figure(figsize=(3.2 * COLUMNS, 2.4 * rows), layout="constrained")
    grid = figure.subplots(rows, COLUMNS).ravel()
    for axes, (title, curves) in zip(grid, PANELS.items(), strict=False):
        panel(axes, title, curves)
    last = grid[len(PANELS)]
    last.plot(observed(), label="plateau(1, 0.5, patience=5)")
    last.set(title="plateau", ylim=(-0.05, 1.1))
    last.legend(fontsize=7)
    path = output / "schedules.png"
    output.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=75)
    return path


if __name__ == "__main__":
    print(f"picture: {main()}")
