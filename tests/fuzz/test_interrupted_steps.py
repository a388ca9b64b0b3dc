"""Interrupts at the points of a step at which Python handles signals: each step is whole, or told, and nothing waits for ever.

``make test`` takes some points of each way of stepping, other ones with ``--fuzz-seconds``; the tests marked ``slow`` take all.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from interrupts import Interrupt, Way, count_points, faults
from ways_of_stepping import of_tensors, of_trees, of_wrappers

from oxigrad.ops.backends.memory.worker import Future, Worker
from oxigrad.step.state import block_file, write_back

POINTS = 6
TREES, WRAPPERS, TENSORS = of_trees(), of_wrappers(), [*of_tensors(Path())]


@pytest.fixture
def way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Way]:
    """The way of stepping of this name; files of slots are large beside the memory."""
    name = request.param
    if name == "optax":
        pytest.importorskip("oxigrad.optax")
    if name not in TENSORS:
        return {**TREES, **WRAPPERS}[name]
    pytest.importorskip("torch")
    monkeypatch.setattr(write_back, "memory_limit", lambda: float(1 << 17))
    monkeypatch.setattr(write_back, "is_large", lambda size: size > 0)
    monkeypatch.setattr(block_file, "LONG", 1)
    return of_tensors(tmp_path)[name]


def some(count: int, seconds: float | None) -> Iterator[int]:
    """Some points of a step: the same ones, or with a time for the fuzzer others."""
    generator = random.Random(0 if seconds is None else None)
    return iter(sorted(generator.sample(range(count), min(count, POINTS))))


WAYS = pytest.mark.parametrize("way", [*TREES, *WRAPPERS, *TENSORS], indirect=True)


@WAYS
@pytest.mark.parametrize("warm", [0, 2], ids=["first", "steady"])
def test_an_interrupt_leaves_a_whole_step(way: Callable[[], Way], warm: int, request: pytest.FixtureRequest) -> None:
    seconds = request.config.getoption("--fuzz-seconds")
    assert not faults(way, warm, lambda count: some(count, seconds))


@pytest.mark.slow
# Python drops an interrupt in a finalizer, and says so.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <finalize:pytest.PytestUnraisableExceptionWarning")
@WAYS
@pytest.mark.parametrize("warm", [0, 2], ids=["first", "steady"])
def test_an_interrupt_at_any_point_leaves_a_whole_step(way: Callable[[], Way], warm: int) -> None:
    assert not faults(way, warm, lambda count: iter(range(count)))


# --- the worker --------------------------------------------------------------------------------------------------------------


def interrupted(call: Callable[[], Any], at: int) -> bool:
    """Whether an interrupt at a point ends a call."""
    try:
        with Interrupt(at):
            call()
    except KeyboardInterrupt:
        return True
    return False


def test_work_is_done_or_not_begun_wherever_an_interrupt_comes() -> None:
    count = count_points(lambda: Worker().run(lambda: None))
    outcomes = set()
    for at in range(count):
        worker, done = Worker(), []
        interrupted(lambda worker=worker, done=done: worker.run(lambda: done.append(1)), at)
        number = len(done)
        worker.run(lambda done=done: done.append(2))  # which would wait for a lock that is taken
        assert done == [1] * number + [2]
        outcomes.add(number)
    assert outcomes == {0, 1}


def test_a_wait_that_is_interrupted_can_be_repeated() -> None:
    for begins in (True, False):
        count = count_points(lambda begins=begins: future_of(lambda: None, begins=begins).wait())
        for at in range(count):
            done: list[int] = []
            future = future_of(lambda done=done: done.append(1), begins=begins)
            interrupted(future.wait, at)
            future.wait()
            assert future.is_done() and len(done) <= begins
            number = len(done)
            if not begins:
                Worker().begin(future)  # too late
                future.join()
            assert len(done) == number


def future_of(work: Callable[[], Any], *, begins: bool) -> Future:
    """Work that has begun, or that no thread does."""
    future = Future(work)
    if begins:
        Worker().begin(future)
    return future


def test_an_error_of_the_work_is_raised_once() -> None:
    def work() -> None:
        raise ZeroDivisionError("in the work")

    with pytest.raises(ZeroDivisionError, match="in the work"):
        Worker().run(work)
    future = future_of(work, begins=True)
    future.join()
    with pytest.raises(ZeroDivisionError):
        future.result()
    future.result()


def test_work_has_the_context_of_the_caller() -> None:
    import numpy as np

    found: list[Any] = []
    with np.errstate(over="raise", under="ignore"):
        Worker().run(lambda: found.append((np.geterr(), threading.get_ident())))
        assert found[0][0] == np.geterr()
    assert found[0][1] != threading.get_ident()
