"""The parser of Python while garbage is collected: see `_collect_no_garbage_in_parsing` of conftest.py."""

from __future__ import annotations

import ast
import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

TEXT = "\n".join(f"def f{number}(a):\n  return [a + {number} for b in c]" for number in range(100))


class Garbage:
    """An object in a cycle with itself, whose finalizer is a call."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.itself, self.call = self, call

    def __del__(self) -> None:
        self.call()


@pytest.fixture
def frequent_collections() -> Iterator[None]:
    thresholds, was_enabled = gc.get_threshold(), gc.isenabled()
    gc.set_threshold(5)
    gc.enable()  # a library that ran before may have disabled it
    yield
    gc.set_threshold(*thresholds)
    if not was_enabled:
        gc.disable()


def parsed(call: Callable[[], Any], times: int) -> int:
    for _ in range(times):
        for _ in range(20):
            Garbage(call)
        ast.parse(TEXT)
    return times


@pytest.mark.usefixtures("frequent_collections")
def test_a_finalizer_may_parse() -> None:
    assert parsed(lambda: ast.literal_eval("{'shape': (3,)}"), 50) == 50
    assert gc.isenabled()


@pytest.mark.usefixtures("frequent_collections")
def test_a_finalizer_may_let_another_thread_parse() -> None:
    ended, counts = threading.Event(), []

    def parse_headers() -> None:
        while not ended.is_set():
            counts.append(len(ast.parse("[{'shape': (3,)}]").body))

    thread = threading.Thread(target=parse_headers)
    thread.start()
    try:
        assert parsed(lambda: time.sleep(0.0001), 20) == 20
    finally:
        ended.set()
        thread.join()
    assert set(counts) == {1}
