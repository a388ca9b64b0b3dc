"""Detection of deadlocks: a thread waits for an optimizer whose holder waits for this thread.

A step may call functions of the user: schedules, rules, signal handlers. One that waits for a thread which itself waits
for the optimizer would never return. Which thread a thread waits for is read from its stack.
"""

import concurrent.futures
import concurrent.futures.thread
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from oxigrad._core import StateError
from oxigrad.ops.backends.memory.worker import Future

# The functions that wait for other threads, and those that run a future in a thread.
_JOIN = threading.Thread.join.__code__
_FUTURES = {
    concurrent.futures.Future.result.__code__,
    concurrent.futures.Future.exception.__code__,
    Future.join.__code__,
    Future.wait.__code__,
}
_WAITING = {_JOIN, *_FUTURES, concurrent.futures.wait.__code__, concurrent.futures.as_completed.__code__}
_RUN = concurrent.futures.thread._WorkItem.run.__code__
_RUN_OF_OURS = Future.run.__code__


def refuse_deadlock(holder: int) -> None:
    """Raises `StateError` where the thread of identifier ``holder`` waits for this one, itself or by way of others."""
    this_thread, frames = threading.get_ident(), sys._current_frames()
    running = {id(future): thread for thread, frame in frames.items() for future in _run_by(frame)}
    seen, waiting = set[int](), [holder]
    while waiting:
        thread = waiting.pop()
        if thread == this_thread and seen:
            raise StateError(
                "the optimizer is in use by a thread that waits for this one, so that neither would go on: a function "
                "that a step "
                "calls, such as a schedule, cannot wait for a thread that uses the optimizer"
            )
        if thread not in seen and thread in frames:
            seen.add(thread)
            waiting += _waited_for(frames[thread], running)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _run_by(frame: FrameType) -> list[Any]:
    """The futures that a thread runs."""
    of_ours = [each.f_locals["self"] for each in _stack(frame) if each.f_code is _RUN_OF_OURS]
    return of_ours + [each.f_locals["self"].future for each in _stack(frame) if each.f_code is _RUN]


def _waited_for(frame: FrameType, running: dict[int, int]) -> list[int]:
    """The identifiers of the threads that a thread waits for; ``running`` are those that run futures."""
    threads: list[int | None] = []
    for each in _stack(frame):
        if each.f_code not in _WAITING or each.f_locals.get("timeout") is not None:
            continue  # With a time-out it goes on by itself.
        if each.f_code is _JOIN:
            threads.append(each.f_locals["self"].ident)
        elif each.f_code in _FUTURES:
            threads.append(running.get(id(each.f_locals["self"])))
        else:
            threads += [running.get(id(future)) for future in each.f_locals["fs"]]
    return [thread for thread in threads if thread is not None]
