"""A function that a step calls waits for a thread that uses the optimizer: an error in that thread, and no deadlock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim


def by_join(use: Callable[[], None]) -> None:
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()


def by_way_of_another(use: Callable[[], None]) -> None:
    by_join(lambda: by_join(use))


def by_result(use: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(use).result()


def by_shutdown(use: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(use)


def by_wait(use: Callable[[], None]) -> None:
    with ThreadPoolExecutor(2) as pool:
        wait([pool.submit(use), pool.submit(time.sleep, 0.1)])


USES: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda opt, model: opt.update(model, {"w": np.ones(2)}),
    "state_dict": lambda opt, model: opt.state_dict(),
    "build": lambda opt, model: opt.build(model),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("waits", [by_join, by_way_of_another, by_result, by_shutdown, by_wait])
def test_a_schedule_that_waits_for_a_thread_that_uses_the_optimizer(waits: Any, name: str) -> None:
    errors: list[BaseException] = []

    def use() -> None:
        try:
            USES[name](opt, {"w": np.ones(2)})
        except ox.StateError as error:
            errors.append(error)

    def schedule(step: int) -> float:
        if not errors:
            waits(use)
        return 0.5

    opt, model = optim.SGD(schedule), {"w": np.zeros(2)}
    model = opt.update(model, {"w": np.ones(2)})
    assert "waits for this one" in str(errors[0])
    assert len(errors) == 1
    assert opt.step == 1
    np.testing.assert_array_equal(model["w"], -0.5)
    opt.update(model, {"w": np.ones(2)})


def test_a_wait_that_ends_and_a_slow_schedule_are_none() -> None:
    def waiting(step: int) -> float:
        if step == 0:
            thread = threading.Thread(target=lambda: opt.update({"w": np.zeros(2)}, {"w": np.ones(2)}))
            threads.append(thread)
            thread.start()
            thread.join(timeout=0.5)
        return 0.5

    threads: list[threading.Thread] = []
    opt = optim.SGD(waiting)
    opt.update({"w": np.zeros(2)}, {"w": np.ones(2)})
    threads[0].join()
    assert opt.step == 2

    def slow(step: int) -> float:
        time.sleep(0.3)
        return 0.5

    other = optim.SGD(slow)
    users = [threading.Thread(target=lambda: other.update({"w": np.zeros(2)}, {"w": np.ones(2)})) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert other.step == 4
