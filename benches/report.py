"""Draws the history of measurements as one picture, `docs/performance.svg`.

    python benches/report.py [--history FOLDER] [--out FILE]

Left: how many times as fast as the fastest other library each row is; in the middle: how near to its ceiling. A bar goes from the
10th to the 90th percentile of the newest measurement, and pale dots are the measurements before it; the name of the fastest other library
stands beside its bar. Right, where two revisions were counted: instructions of the core, relative to the first count of each benchmark. Rows are
of the processor that was measured last.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import history
from history import Ratio, Record

OUT = history.FOLDER.parents[1] / "docs" / "performance.svg"
NEW, OLD = "#1f5fa8", "#9db8d6"


def comparable(records: Sequence[Record]) -> list[Record]:
    """Records with the processor and thread count of the last one, without small and unsteady ones unless all are."""
    if not records:
        return []
    last = records[-1]
    alike = [r for r in records if (r.processor, r.threads) == (last.processor, last.threads)]
    return [r for r in alike if not (r.small or r.unsteady)] or alike


def series(records: Sequence[Record], of: Callable[[Record], Ratio | None]) -> dict[str, list[Ratio]]:
    """The ratios of each row, the newest last."""
    found: dict[str, list[Ratio]] = {}
    for record in history.latest(records).values():
        if ratio := of(record):
            found.setdefault(record.row, []).append(ratio)
    return found


def relative(records: Sequence[Record]) -> dict[str, list[tuple[int, float]]]:
    """The changes of each benchmark's instructions in percent, by the number of the revision."""
    place = {revision: i for i, revision in enumerate(history.revisions(records))}
    first: dict[str, int] = {}
    found: dict[str, list[tuple[int, float]]] = {}
    for record in history.latest(records).values():
        if record.instructions:
            start = first.setdefault(record.row, record.instructions)
            found.setdefault(record.row, []).append((place[record.revision], 100 * (record.instructions / start - 1)))
    return found


def draw(rows: Sequence[Record], counts: Sequence[Record]) -> Any:
    """The figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = comparable(rows)
    of_peers, of_ceilings = series(rows, lambda r: r.peer), series(rows, lambda r: r.ceiling)
    names = [name for name in dict.fromkeys(record.row for record in rows) if name in of_peers or name in of_ceilings]
    has_changes = len(history.revisions(counts)) > 1
    widths = (3, 2, 2.4) if has_changes else (3, 2)
    # Text stays text; identifiers are the same in each run.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "oxigrad", "font.size": 8}):
        figure = Figure(figsize=(1.6 * sum(widths) + 1.2, 1.6 + 0.19 * max(len(names), 18)), layout="constrained")
        peers, ceilings, *instructions = figure.subplots(1, len(widths), width_ratios=widths)
        _ratios(peers, names, of_peers, "times as fast as the fastest other library")
        _ratios(ceilings, names, of_ceilings, "of the ceiling's speed")
        peers.set_yticks(range(len(names)), names)
        fastest = peers.secondary_yaxis("right")
        fastest.set_yticks(range(len(names)), [of_peers[name][-1].name if name in of_peers else "" for name in names])
        fastest.tick_params(labelsize=6, labelcolor="#666666", length=0)
        for axes in instructions:
            _instructions(axes, counts)
        figure.suptitle(_title(rows), fontsize=8)
    return figure


def _title(rows: Sequence[Record]) -> str:
    if not rows:
        return "no row is measured yet"
    last = rows[-1]
    small = "; SMALL ARRAYS: only that rows run" if last.small else "; unsteady" if last.unsteady else ""
    return f"{last.revision} ({last.date}) on {last.processor}, {last.isa}, {last.threads} threads{small}"


def _ratios(axes: Any, names: list[str], found: dict[str, list[Ratio]], title: str) -> None:
    import matplotlib as mpl

    for y, name in enumerate(names):
        ratios = found.get(name, [])
        axes.plot([r.ratio for r in ratios[:-1]], [y] * len(ratios[:-1]), "o", color=OLD, markersize=3)
        if ratios:
            newest = ratios[-1]
            axes.plot([newest.p10, newest.p90], [y, y], color=NEW, linewidth=1.5, alpha=0.6)
            axes.plot([newest.ratio], [y], "o", color=NEW, markersize=4)
    axes.axvline(1, color="#444444", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_title(title, fontsize=9)
    axes.set_yticks(range(len(names)), [""] * len(names))
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.xaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5), numticks=30))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.grid(color="#dddddd", linewidth=0.5)


def _instructions(axes: Any, counts: Sequence[Record]) -> None:
    import matplotlib as mpl

    found = relative(counts)
    colors = mpl.colormaps["tab20"].colors
    for i, (name, points) in enumerate(found.items()):
        color = colors[i % len(colors)]
        axes.plot(*zip(*points, strict=True), "o-", markersize=3, linewidth=1, label=name, color=color)
    revisions = history.revisions(counts)
    axes.axhline(0, color="#444444", linewidth=0.8)
    axes.set_title("instructions of the core, change in percent", fontsize=9)
    axes.set_xticks(range(len(revisions)), revisions, rotation=90, fontsize=6)
    axes.grid(color="#dddddd", linewidth=0.5)
    if counts:
        axes.figure.legend(fontsize=6, ncols=6, loc="outside lower center")


def save(figure: Any, file: Path) -> None:
    """Writes it, with nothing that differs from run to run."""
    import matplotlib as mpl

    file.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "oxigrad"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def main(arguments: list[str]) -> int:
    """Reads and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=Path, default=history.FOLDER, metavar="FOLDER", help="where the lines are")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FILE", help="the picture")
    options = parser.parse_args(arguments)
    rows, counts = (history.read(options.history / name) for name in (history.ROWS, history.COUNTS))
    if not any(record.peer or record.ceiling for record in rows):
        print(f"{options.history} has no measured rows: make track adds some")
        return 2
    save(draw(rows, counts), options.out)
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
