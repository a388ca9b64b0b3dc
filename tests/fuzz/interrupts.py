"""Interrupts at every point of a call at which Python handles signals, and what has to hold after each of them."""

from __future__ import annotations

import dis
import functools
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import numpy as np

# Python handles signals at the end of calls, at the begin of functions and at jumps back.
CHECKS = ("CALL", "RESUME", "JUMP_BACKWARD")
# The seconds after which a thread that steps waits for a lock that nobody gives back.
PATIENCE = 20.0


@functools.cache
def points(code: CodeType) -> frozenset[int]:
    """The offsets of the instructions that follow one at which Python handles signals, with the same handler of exceptions.

    An interrupt is raised at the next instruction here, but at the end of the call by Python, so that another handler would get it: that of
    a ``return`` of a call in a ``with`` block follows the block.
    """
    found, previous = set(), None
    for instruction in dis.get_instructions(code):
        if previous is not None and handler(code, previous) == handler(code, instruction.offset):
            found.add(instruction.offset)
        name = instruction.opname
        is_point = name.startswith(CHECKS) and "INTRINSIC" not in name
        previous = instruction.offset if is_point else None
        if name.startswith("JUMP_BACKWARD"):
            found.add(instruction.argval)
    return frozenset(found)


@functools.cache
def handlers(code: CodeType) -> list[tuple[int, int, int]]:
    """The begin and the end of each part of a function that has a handler of exceptions, and the offset of this."""
    return [(entry.start, entry.end, entry.target) for entry in dis._parse_exception_table(code)]  # type: ignore[attr-defined]


def handler(code: CodeType, offset: int) -> int | None:
    """The offset of the handler of exceptions that an instruction raises; None where the caller gets them."""
    return next((target for start, end, target in handlers(code) if start <= offset < end), None)


class Interrupt:
    """A block in which this thread gets a `KeyboardInterrupt` at the point with the number ``at``; it counts them."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.count, self.where = at, 0, ""

    def __enter__(self) -> Interrupt:
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is Interrupt.__exit__.__code__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._reached

    def _reached(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode" and frame.f_lasti in points(frame.f_code):
            if self.count == self.at:
                self.count += 1
                self.where = "".join(traceback.format_stack(frame)[-6:])
                raise KeyboardInterrupt
            self.count += 1
        return self._reached


def count_points(call: Callable[[], Any]) -> int:
    """The number of points of a call."""
    with Interrupt() as interrupt:
        call()
    return interrupt.count


def snapshot(value: Any) -> Any:
    """A copy of numbers and arrays in plain data, which compares by bytes."""
    if isinstance(value, dict):
        return {str(key): snapshot(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [snapshot(item) for item in value]
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return array.dtype.name, array.shape, array.tobytes()
    return value


class Way:
    """A way of stepping. A subclass makes a model and an optimizer; each of its steps is determined by the number of the step."""

    #: Whether the step that an interrupt has ended is completed by `complete`, whatever is ahead.
    completes = True

    def step(self, number: int) -> None:
        """Takes the step with this number."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """All that steps change, but slots of parameters that no step has updated. Keys of a parameter begin with its name."""
        raise NotImplementedError

    def ahead(self) -> list[str]:
        """The parameters that a step which an interrupt has ended has updated."""
        return []

    def names(self) -> list[str]:
        """The names of all parameters."""
        return []

    def complete(self) -> None:
        """Completes a step that an interrupt has ended, if there is one."""


def on_a_thread(call: Callable[[], Any]) -> None:
    """Calls a function on another thread; raises its error, and `TimeoutError` where it waits for ever."""
    errors: list[BaseException] = []
    torch: Any = sys.modules.get("torch")
    # PyTorch's products have other bits with other numbers of threads, and a new thread has the default.
    threads = torch and torch.get_num_threads()

    def run() -> None:
        try:
            if threads:
                torch.set_num_threads(threads)
            call()
        except BaseException as error:  # noqa: BLE001  raised below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise TimeoutError("a lock was not given back")
    if errors:
        raise errors[0]


def expected_states(make: Callable[[], Way], warm: int) -> list[Any]:
    """The states before a step after ``warm`` ones, after it, and after two more."""
    way, found = make(), []
    for number in range(warm + 3):
        if number >= warm:
            found.append(snapshot(way.state()))
        way.step(number)
    return [*found, snapshot(way.state())]


def faults(make: Callable[[], Way], warm: int, numbers: Callable[[int], Iterator[int]]) -> list[str]:
    """What is wrong after interrupts at points of the step after ``warm`` ones; ``numbers`` chooses among so many."""
    states = expected_states(make, warm)
    way = made(make, warm)
    count = count_points(lambda: way.step(warm))
    found = []
    for at in numbers(count):
        way = made(make, warm)
        interrupt = Interrupt(at)
        try:
            with interrupt:
                way.step(warm)
        except KeyboardInterrupt:
            why = fault(way, warm, states)
        except BaseException as error:  # noqa: BLE001  reported
            why = f"it became {error!r}"
        else:
            why = "" if snapshot(way.state()) == states[1] else "the interrupt was dropped, and the step too"
        if why:
            found.append(f"point {at} of {count}: {why}\n{interrupt.where}")
    return found


def made(make: Callable[[], Way], warm: int) -> Way:
    """A way after ``warm`` steps."""
    way = make()
    for number in range(warm):
        way.step(number)
    return way


def fault(way: Way, warm: int, states: list[Any]) -> str:
    """What is wrong after an interrupt in the step; empty if nothing is."""
    try:
        ahead = way.ahead()
        if not {*ahead} <= {*way.names()}:
            return f"names of no parameters are ahead: {ahead}"
        on_a_thread(way.complete)
        if ahead and not way.completes:
            if wrong := [name for name in way.names() if not _is_at(way, name, states[name in ahead])]:
                return f"{wrong} {'differ'} from what {ahead} says"
            if len(ahead) < len(way.names()):
                return ""
        state = snapshot(way.state())
        if state not in states[:2]:
            return f"the state is neither that before the step nor that after it: {difference(state, states)}"
        done = states.index(state)
        on_a_thread(lambda: [way.step(number) for number in range(warm + done, warm + 3)])
        return "" if snapshot(way.state()) == states[3] else "the steps after it differ"
    except BaseException as error:  # noqa: BLE001  reported
        return f"{error!r}\n{''.join(traceback.format_exception(error)[-4:])}"


def _is_at(way: Way, name: str, expected: dict[str, Any]) -> bool:
    """Whether a parameter and its slots, but for counts, are as in a state."""
    found = {key: value for key, value in snapshot(way.state()).items() if f"{key} ".startswith(f"{name} ")}
    return all(expected.get(key, value) == value for key, value in found.items() if not key.endswith(" step"))


def difference(state: Any, states: list[Any]) -> str:
    """Which parts of a state are those before the step, and which are those after it."""
    before, after = states[:2]
    kinds = {}
    for key in state:
        is_before, is_after = state[key] == before.get(key), state[key] == after.get(key)
        kinds[key] = "same" if is_before and is_after else "before" if is_before else "after" if is_after else "neither"
    return str(kinds)
