"""The table of workers, its live form, and the time line of a training."""

import copy
import io
import itertools
import logging
import pickle
import time
from collections import Counter
from typing import Any

import jobs
import numpy as np
import pytest

from oxigrad import distributed, optim
from oxigrad.distributed import Span, Timeline, WorkerReport, WorkerReports
from oxigrad.distributed.messages.reports.clock import Clock, waiting
from oxigrad.distributed.messages.reports.table import Display


def train(comm: Any, make: Any, steps: int = 4) -> Any:
    """Trains; returns the worker's own counts, the table of all workers, and the time line."""
    model = {"w": np.ones((4, 3)), "b": np.zeros(3)}
    with make(comm.size) as opt:
        opt.record_timeline(100)
        model = opt.start(model)
        for _ in range(steps):
            opt.minimize(lambda model: (model["w"] ** 2).sum() + (model["b"] ** 2).sum(), model)
        own = opt._own_report()
        reports = opt.report(gather=True, batch_size=8)
        return own, reports, opt.timeline()


@pytest.mark.parametrize("name", sorted(jobs.METHODS))
def test_every_wrapper_gathers_what_each_worker_counts(name: str) -> None:
    results = distributed.run(lambda comm: train(comm, jobs.METHODS[name]), workers=2)
    for rank, (own, reports, timeline) in enumerate(results):
        assert [each.rank for each in reports] == [0, 1]
        found = reports[rank]
        assert (found.accepted, found.dropped, found.stale) == (own.accepted, own.dropped, own.stale)
        assert found.step == own.step and found.waited == own.waited and found.refused == own.refused
        assert reports == results[0][1] and dict(timeline) == dict(results[0][2])
        for each in timeline.values():
            assert sum(span.kind == "step" for span in each) == 4 and sum(span.kind == "compute" for span in each) == 3
            assert all(span.begin <= span.end for span in each)


def test_the_table_fits_and_has_every_row() -> None:
    reports = WorkerReports(
        [WorkerReport(rank, 10**7, 10**6, Counter(dict.fromkeys(range(30), 10**5))) for rank in range(3)],
    )
    assert max(map(len, repr(reports).splitlines())) <= 100
    assert [row["rank"] for row in reports.rows] == [0, 1, 2]
    assert all(row["updates/s"] is None and len(row["staleness"]) == 29 for row in reports.rows)
    assert reports._repr_html_().count("<tr>") == 4
    for copied in (copy.deepcopy(reports), pickle.loads(pickle.dumps(reports))):  # noqa: S301
        assert copied == reports and repr(copied) == repr(reports)
    assert repr(WorkerReports([])) == "rank"


def test_a_report_is_the_same_after_a_message() -> None:
    for report in (WorkerReport(3), WorkerReport(1, 2, 3, Counter({0: 4, 7: 1}), 5, step=6, rate=0.1)):
        assert WorkerReport.unpacked(report.packed()) == report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_live_table_replaces_the_one_before_on_a_terminal_alone() -> None:
    display, terminal, file = Display(), Terminal(), io.StringIO()
    for text in ("a\nb", "c"):
        display.show(text, terminal)
    assert terminal.getvalue() == "a\nb\n\x1b[2A\x1b[Jc\n"
    for text in ("a\nb", "c"):
        display.show(text, file)
    assert file.getvalue() == "a\nb\nc\n"


def test_rank_0_prints_the_live_table(capsys: pytest.CaptureFixture[str]) -> None:
    def worker(comm: Any) -> Any:
        opt = distributed.LargeBatch(optim.SGD(0.1))
        opt.update({"w": np.ones(2)}, {"w": np.ones(2)})
        return repr(opt.report(gather=True, live=True))

    assert capsys.readouterr().err == ""
    tables = distributed.run(worker, workers=2)
    assert capsys.readouterr().err == f"{tables[0]}\n"


def test_a_clock_counts_nested_waits_once_and_failed_steps_never() -> None:
    clock = Clock()
    clock.record(3)
    with waiting():  # outside of a step
        pass
    for fails in (False, True, False):
        try:
            with clock, waiting(), waiting():
                time.sleep(0.01)
                if fails:
                    raise ValueError
        except ValueError:
            pass
    assert clock.steps == 2 and clock.waited >= 0.03
    kinds = [span.kind for span in clock.spans()]
    assert kinds == ["compute", "wait", "step"]  # the last three
    waits = [span for span in clock.spans() if span.kind == "wait"]
    assert all(a.end <= b.begin for a, b in itertools.pairwise(waits))
    clock.record(0)
    assert clock.spans() == []


def test_a_timeline_draws_a_lane_for_each_worker() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    timeline = Timeline({1: [Span("step", 5.0, 7.0), Span("wait", 5.5, 6.0)], 0: [Span("compute", 4.0, 5.0)]})
    ax = timeline.plot(figure.Figure().subplots())
    drawn = {
        (each.get_label(), *np.round(path.get_extents().bounds, 6).tolist())
        for each in ax.collections
        for path in each.get_paths()
    }
    assert {bounds[1:] for bounds in drawn} == {(0.0, -0.4, 1.0, 0.8), (1.0, 0.6, 2.0, 0.8), (1.5, 0.6, 0.5, 0.8)}
    assert timeline.seconds(1) == {"compute": 0.0, "step": 1.5, "wait": 0.5}


def test_log_records_carry_rank_and_step() -> None:
    def worker(comm: Any) -> Any:
        opt, records = distributed.LargeBatch(optim.SGD(0.1)), io.StringIO()
        handler, log = logging.StreamHandler(records), logging.Logger(f"worker {comm.rank}")
        handler.setFormatter(logging.Formatter("%(rank)d %(step)d %(message)s"))
        handler.addFilter(distributed.WorkerFilter(opt))
        log.addHandler(handler)
        model = {"w": np.ones(2)}
        for _ in range(2):
            log.info("before")
            model = opt.update(model, {"w": np.ones(2)})
        log.info("after")
        return records.getvalue().splitlines()

    found = distributed.run(worker, workers=2)
    assert found == [[f"{rank} 0 before", f"{rank} 1 before", f"{rank} 2 after"] for rank in range(2)]
