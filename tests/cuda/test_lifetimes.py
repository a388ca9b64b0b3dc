"""Lifetimes of objects of the driver: when memory is written, how many objects there are, and when they are freed.

The driver is deferred in most tests: work on a stream runs as late as it may, and memory is given to the next allocation of its stream
while earlier work may still use it.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver

from oxigrad import optim
from oxigrad.cuda import counter, device, memory
from oxigrad.cuda.driver import run
from oxigrad.optim import AdamW

STREAM = arrays.LEGACY_STREAM


def model_of(value: float = 1.0, size: int = 5) -> dict[str, Any]:
    return {"w": arrays.Array(np.full(size, value, np.float32)), "b": arrays.Array(np.full(3, value, np.float32))}


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps arrays until the end of a test, as libraries keep the memory of work that has not run yet."""
    found, make = [], arrays.Array.__init__

    def made(self: Any, array: Any, *arguments: Any) -> None:
        make(self, array, *arguments)
        found.append(self._array)

    monkeypatch.setattr(arrays.Array, "__init__", made)


@pytest.fixture
def late(mock: MockDriver) -> MockDriver:
    mock.deferred = True
    return mock


def test_a_count_is_set_after_the_work_that_uses_its_memory(late: MockDriver) -> None:
    """Each optimizer gets the memory of the one before, whose steps have not run yet."""
    for taken in (0, 3, 7, 2):
        opt, model = AdamW(0.1, nonfinite="skip"), model_of()
        for _ in range(taken):
            opt.update(model, model_of())
        others = [AdamW(0.1, nonfinite="skip") for _ in range(2)]
        for other in others:
            other.update(model_of(), model_of())
            del other
        others.clear()
        gc.collect()
        last = AdamW(0.1, nonfinite="skip")
        for _ in range(2):
            last.update(model, model_of())
        assert (last.step, last.skipped) == (2, 0)
        del opt, last
        gc.collect()


def test_kernels_and_counts_agree_after_a_state_was_loaded(late: MockDriver) -> None:
    """Bias corrections tell which number of the step kernels have read."""
    here, there = ({"w": np.full(5, 1.0, np.float32)}, {"w": arrays.Array(np.full(5, 1.0, np.float32))})
    a, b = AdamW(0.1, nonfinite="skip"), AdamW(0.1, nonfinite="skip")
    for count in (1, 5, 2):
        for opt in (a, b):
            state = opt.state_dict() if opt.step else None
            if state is not None:
                opt.load_state_dict({**state, "step": count})
                assert opt.step == count
        for k in range(3):
            a.update(there, {"w": arrays.Array(np.full(5, 0.3 * k, np.float32))})
            b.update(here, {"w": np.full(5, 0.3 * k, np.float32)})
        assert a.step == b.step
    late.synchronize()
    assert arrays.host(there["w"]).tobytes() == here["w"].tobytes()


@pytest.mark.parametrize("replayed_on", [STREAM, 7])
def test_a_capture_sets_the_count_after_earlier_work_and_before_its_replays(replayed_on: int, late: MockDriver) -> None:
    model, grads, host = model_of(), model_of(0.5), {name: arrays.host(x) for name, x in model_of().items()}
    first = AdamW(0.1, nonfinite="skip")  # its steps have not run when its memory is given to the next
    for _ in range(4):
        first.update(model_of(), grads)
    del first
    gc.collect()
    opt, other = AdamW(0.1), AdamW(0.1)
    opt.update(model, grads)
    with late.capture(STREAM):
        opt.update(model, grads)
    for _ in range(3):
        late.replay(replayed_on)  # on any stream
    assert opt.step == 4
    for _ in range(4):
        other.update(host, {name: arrays.host(g) for name, g in grads.items()})
    for name, value in host.items():
        assert arrays.host(model[name]).tobytes() == value.tobytes()


def made_and_dropped(number: int, **options: Any) -> None:
    opt, model = AdamW(0.01 * (number + 1), **options), model_of()
    for _ in range(3):
        opt.update(model, model_of())
    if number % 3 == 0:
        assert opt.step == 3


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"nonfinite": "skip"}, {"loss_scale": 8.0}], ids=str)
@pytest.mark.parametrize("deferred", [False, True])
def test_twenty_optimizers_hold_no_more_than_one(deferred: bool, options: Any, mock: MockDriver) -> None:
    if options.get("loss_scale"):
        options = {"loss_scale": optim.LossScale(8.0)}
    mock.deferred = deferred
    found = []
    for number in range(20):
        made_and_dropped(number, **options)
        gc.collect()
        mock.synchronize()
        found.append(mock.alive())
    assert found[-1] == found[3], found
    assert found[-1]["memory"] == 0 and found[-1]["modules"] <= 2


def test_page_locked_memory_is_bounded_while_copies_are_under_way(late: MockDriver) -> None:
    opt, model = AdamW(0.1, nonfinite="skip"), model_of()
    kept = []  # each gradient lies elsewhere, so that each step uploads a row
    for _ in range(3 * memory.MOST_BUFFERS):
        kept.append(model_of())
        opt.update(model, kept[-1])
    assert late.alive()["pinned"] <= 2 * memory.MOST_BUFFERS + 4
    assert late.alive()["events"] == late.alive()["pinned"]
    assert late.counts()["wait"] >= memory.MOST_BUFFERS  # behind by more steps than that, the host waits for the oldest
    assert opt.step == 3 * memory.MOST_BUFFERS


def test_buffers_of_many_sizes_are_bounded(mock: MockDriver) -> None:
    staging = device.device_record(mock, 0).staging
    block = mock.allocate(1 << 26, 0)
    with mock.current(0):
        for number in range(200):
            staging.upload_parts([(block, bytes(1 + 100_000 * (number % 37)))], 0)
        large = sum(len(buffer) for buffer in mock._pinned.values())
        assert large <= memory.MOST_BYTES and len(mock._pinned) <= memory.MOST_BUFFERS
        staging.upload_parts([(block, bytes(memory.MOST_BYTES + 1))], 0)  # more than all others together
        assert len(mock._pinned) == 1 == len(mock.events)


def test_memory_is_freed_in_the_order_of_its_last_stream(late: MockDriver) -> None:
    opt, model = AdamW(0.1, nonfinite="skip"), model_of()
    opt.update(model, model_of())
    with arrays.stream(7):
        opt.update(model, model_of())
    late.forget()
    del opt
    gc.collect()
    assert {arguments[1] for name, arguments in late.calls if name == "free"} == {7}


@pytest.mark.parametrize("pools", [True, False])
def test_nothing_is_freed_in_a_capture_and_everything_after_it(pools: bool, mock: MockDriver) -> None:
    mock.has_pools = pools
    opt = AdamW(0.1)
    opt.update(model_of(), model_of())
    before = mock.alive()["memory"]
    with mock.capture(STREAM):
        mock.forget()
        del opt
        gc.collect()
        assert "free" not in mock.counts() and mock.alive()["memory"] == before
    AdamW(0.1).update(model_of(), model_of())
    gc.collect()
    mock.forget()
    if not pools:  # where freeing waits, memory is freed by the next allocation
        assert mock.alive()["memory"] <= before
        device.device_record(mock, 0).releases.free(may_wait=True)
    assert mock.alive()["memory"] == 0
    assert not {"wait", "synchronize"} & mock.counts().keys()


def test_a_finalizer_calls_nothing_that_waits(mock: MockDriver) -> None:
    mock.has_pools = False
    opts = [AdamW(0.1, nonfinite="skip") for _ in range(3)]
    for number in range(3):
        opts[number].update(model_of(), model_of())
    mock.forget()
    opts.clear()
    gc.collect()
    assert not {"free", "unpin", "unload", "wait", "synchronize"} & mock.counts().keys()


def test_modules_are_unloaded_with_the_last_step_that_uses_them(
    mock: MockDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "MOST_MODULES", 2)
    makers = [optim.SGD, optim.Adam, AdamW, optim.RMSprop, optim.Lion]
    opts = [(make(0.1), model_of()) for make in makers]
    for _ in range(2):
        for number in range(len(makers)):
            opts[number][0].update(opts[number][1], model_of())
        assert mock.alive()["modules"] == len(makers)  # each is in use
    del opts[1:]
    gc.collect()
    optim.Adagrad(0.1).update(model_of(), model_of())
    assert mock.alive()["modules"] == 1 + 2  # that in use, and the last ones
    opt, model = opts[0]
    opt.update(model, model_of())  # its kernels are still there


def test_all_kernels_of_a_plain_rule_are_loaded_before_a_capture(mock: MockDriver) -> None:
    opt, model, grads = AdamW(0.1), model_of(), model_of()
    opt.update(model, grads)
    assert [name for name, *_ in mock.launches()] == ["update_0"]
    mock.forget()
    with mock.capture(STREAM):
        opt.update(model, grads)
    assert len(mock.graph) > 1 and not {"function", "load"} & {name for name, _ in mock.calls}


def test_a_count_that_is_under_way_outlives_its_optimizer(late: MockDriver) -> None:
    """The memory to which it is copied is given to another optimizer only once that is done."""
    first = AdamW(0.1, nonfinite="skip")
    for _ in range(5):
        first.update(model_of(), model_of())
    del first
    gc.collect()
    opt = AdamW(0.1, nonfinite="skip")
    for _ in range(2):
        opt.update(model_of(), model_of())
    assert opt.step == 2


def test_threads_share_page_locked_memory(mock: MockDriver) -> None:
    staging, block, taken = device.device_record(mock, 0).staging, mock.allocate(64, 0), list[int]()
    with mock.current(0):
        for _ in range(8):
            staging.give(memory.Buffer(mock.pinned(4096), 4096, mock.event()))
    for event in mock.events:
        event.done = True

    def take() -> None:
        taken.extend(staging.take(10).pinned.address for _ in range(2))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 8 and block


def test_a_driver_is_freed_with_what_steps_keep_of_it() -> None:
    made = MockDriver()
    with made.current(0):
        found = counter.Counter(device.device_record(made, 0), 0, capturing=False)
        run(made, 0, made.record(found._spare.event, 0))
    gone = weakref.ref(made)
    del made, found
    gc.collect()
    assert gone() is None


def test_an_interpreter_ends_with_optimizers_alive() -> None:
    """Nothing is freed at exit, when the driver may be gone; nothing is printed either."""
    program = """
import sys; sys.path[:0] = sys.argv[1:]
import numpy as np, arrays, mock_driver, threading
from oxigrad.cuda import driver
from oxigrad.optim import AdamW
made = mock_driver.MockDriver()
driver._source = lambda: made
opt, model = AdamW(0.1, nonfinite="skip"), {"w": arrays.Array(np.ones(3, np.float32))}
opt.update(model, {"w": arrays.Array(np.ones(3, np.float32))})
cycle = [opt]; cycle.append(cycle)
def refuse(*arguments): raise AssertionError("a call at exit")
for name in ("free", "unpin", "destroy", "unload", "wait", "current"): setattr(made, name, refuse)
"""
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-c", program, str(tests / "emulators"), str(tests / "tables")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
