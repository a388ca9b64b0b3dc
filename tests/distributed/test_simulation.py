"""The simulation of many workers: deterministic, and backup workers shorten a step as they should."""

import dataclasses
import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "backup_workers.py"))
Assumptions, main, simulate, train = (EXAMPLE[name] for name in ("Assumptions", "main", "simulate", "train"))

EXACT = Assumptions(compute=0.01, spread=0.0, stall=0.0, latency=0.0, handling=0.0)


def test_the_same_seed_gives_the_same_run() -> None:
    first, again, other = (simulate(20, 18, 10, seed=seed) for seed in (3, 3, 4))
    assert first.times.tobytes() == again.times.tobytes() != other.times.tobytes()
    assert (first.accepted, first.dropped) == (again.accepted, again.dropped)
    assert train(5, 4, seed=3).tobytes() == train(5, 4, seed=3).tobytes()


def test_without_variation_a_step_takes_the_time_of_a_gradient() -> None:
    for workers in (1, 7):
        np.testing.assert_allclose(np.diff(simulate(workers, workers, 5, assumptions=EXACT).times), 0.01)
    costly = Assumptions(compute=0.01, spread=0.0, stall=0.0, latency=0.001, handling=0.0001)
    assert simulate(1, 1, 100, assumptions=costly).step_time == pytest.approx(0.01 + 2 * 0.001 + 2 * 0.0001, rel=1e-2)


def test_two_of_three_do_not_wait_for_a_slow_worker() -> None:
    """One of three workers is 0.3 s slow a step."""
    slow = Assumptions(compute=0.02, spread=0.05, stall=0.0, slow={1: 0.3})
    three, two = (simulate(3, replicas, 40, assumptions=slow) for replicas in (3, 2))
    assert three.step_time / two.step_time > 8
    assert three.dropped == 0 < two.dropped <= 4
    assert (three.accepted, two.accepted) == (120, 80)


def test_backup_workers_shorten_the_step_of_many() -> None:
    times = [simulate(100, 100 - backups, 20).step_time for backups in (0, 2, 5, 20)]
    assert times == sorted(times, reverse=True) and times[0] > 2 * times[-1]


@pytest.mark.parametrize("workers", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_thousands_of_workers(workers: int) -> None:
    aggregated = 95 * workers // 100
    steps = 3000 // workers + 1
    run = simulate(workers, aggregated, steps)
    assert run.accepted == steps * aggregated and len(run.times) == steps


def test_a_coordinator_saturates_by_the_bytes_of_gradients() -> None:
    """With n workers a step takes 2 n transfers at least."""
    wide = dataclasses.replace(EXACT, gradient_bytes=1e6, bandwidth=1e9)
    few, many = (simulate(workers, workers, 5, assumptions=wide) for workers in (2, 100))
    assert few.step_time == pytest.approx(0.01 + 3 * 0.001, rel=0.1) and few.load < 0.5
    np.testing.assert_allclose(np.diff(many.times), 2 * 100 * 0.001)
    assert 0.9 < many.load <= 1
    assert (many.accepted, many.dropped) == (500, 0)


def test_more_gradients_a_step_learn_better() -> None:
    accuracies = [np.mean([train(replicas, 20, seed=seed)[-1] for seed in range(3)]) for replicas in (1, 10, 100)]
    assert accuracies == sorted(accuracies) and accuracies[-1] > 0.8


def test_the_program_prints_what_it_assumes_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    arguments = ["--workers", "1", "10", "--backups", "0", "0.2", "--steps", "5", "--picture", str(tmp_path / "a.svg")]
    rows = main(arguments)
    printed = capsys.readouterr().out
    assert [(row.workers, row.backups) for row in rows] == [(1, 0), (10, 0), (10, 2)]
    assert printed.startswith("Assumed: a gradient takes 1 s") and "no losses, no deaths" in printed
    picture = (tmp_path / "a.svg").read_bytes()
    main([*arguments[:-1], str(tmp_path / "b.svg")])
    assert (tmp_path / "b.svg").read_bytes() == picture


def test_the_program_shows_where_a_coordinator_saturates(capsys: pytest.CaptureFixture[str]) -> None:
    rows = main(["--workers", "1", "50", "--backups", "0", "--steps", "3", "--gradient-bytes", "1e8"])
    assert [row[0] for row in rows] == [1, 50]
    assert rows[0][1] < 0.5 < rows[1][1] <= 1
    assert rows[0][2] < rows[1][2]
    assert "1e+08 bytes a gradient at 1.25e+09 bytes/s" in capsys.readouterr().out
