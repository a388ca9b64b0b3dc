"""The real driver in tests: calls are recorded and may be made to fail, then go to `oxigrad.cuda.driver.Driver`.

`HardwareDriver` has what tests ask of a `mock_driver.MockDriver`, so that they run with both. Their arrays lie in page-locked memory,
which a device reads and writes at the same address (`PageLocked`). Streams, which tests call by small numbers, are created when they are
first used. A capture of the default stream, which CUDA does not allow, takes another stream for the time being.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver

from oxigrad.cuda import DeviceError, driver
from oxigrad.cuda.driver import Call

DEFAULT_STREAMS = (0, arrays.LEGACY_STREAM)
CAPTURED = 1000  # and the number of a default stream: the stream that is captured in its place
RESERVE, RESERVED = 65536, 1024  # bytes for all arrays that are made in a capture, and for each
FAILED = 10**6  # and a number: the status of a call that a test has let fail
# What tests set of a mock driver to make it another device.
MOCK_ONLY = ("deferred", "has_pools")
# Arguments that are recorded, where they are not those of the call.
RECORDED: dict[str, Callable[..., tuple[Any, ...]]] = {
    "upload": lambda to, source, size, stream: (to, size, stream),
    "launch": lambda device, function, grid, block, stream, arguments: (function[0], grid, block, stream),
}


class HardwareDriver:
    """See the documentation of the module. Functions that are not here go to the real driver as they are."""

    # How calls are recorded, and fail.
    counts, launches, forget, _called = MockDriver.counts, MockDriver.launches, MockDriver.forget, MockDriver._called

    def __init__(self) -> None:
        self._real: Any = driver.bindings_driver()
        self._api = self._real._api
        self.devices: int = self._checked(self._api.cuDeviceGetCount())
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.failures: dict[str, tuple[int, str]] = {}
        self.capturing: set[int] = set()  # calls that a capture does not allow are those which the driver refuses
        self.graph: list[Any] = []
        self.memory: dict[int, int] = {}
        self.contexts: list[int] = []
        self.records: dict[int, Any] = {}  # what the package keeps for each device of a driver
        #: Whether events are done when they are asked for; otherwise once the host waits for them.
        self.immediate = True
        self._streams: dict[tuple[int, int], int] = {}
        self._graphs: list[Any] = []
        self._failed: list[DeviceError] = []
        self._waited: set[int] = set()
        self.is_capturing_now = False
        self.replay_on = 0
        self.portable = self._api.CU_MEMHOSTALLOC_PORTABLE

    def _checked(self, returned: tuple[Any, ...]) -> Any:
        assert int(returned[0]) == 0, returned[0]
        return returned[1] if len(returned) > 1 else None

    def close(self) -> None:
        """Does all work that is left, and destroys what tests have made."""
        self.settle()
        for graph in self._graphs:
            self.call("cuGraphExecDestroy", graph)
        for (_, device), stream in self._streams.items():
            self.call("cuStreamDestroy", stream, device=device)

    def call(self, name: str, *arguments: Any, device: int = 0) -> Any:
        """A function of the driver on a device."""
        with self._real.current(device):
            return self._checked(getattr(self._api, name)(*arguments))

    def settle(self) -> None:
        """Waits until all work of all devices is done; not in a capture, which begins when it is."""
        for device in () if self.is_capturing_now else range(self.devices):
            self.call("cuCtxSynchronize", device=device)

    # --- streams and captures ------------------------------------------------------------------------------------------

    def handle(self, stream: int, device: int) -> int:
        """The handle of a stream that tests call by a number."""
        if (stream, device) not in self._streams:
            if stream in DEFAULT_STREAMS:
                return stream
            self._streams[stream, device] = int(
                self.call("cuStreamCreate", 0, device=device)
            )  # in order with the default stream
        return self._streams[stream, device]

    def _number(self, argument: Any) -> Any:
        """The number by which tests call a stream, if this is the handle of one."""
        found = [number for (number, _), handle in self._streams.items() if handle == argument]
        return found[0] % CAPTURED if found and isinstance(argument, int) else argument

    @contextlib.contextmanager
    def capture(self, stream: int) -> Iterator[None]:
        """Captures the work on a stream of the first device, for `replay`."""
        number = CAPTURED + stream if stream in DEFAULT_STREAMS else stream
        captured = self.handle(number, 0)
        self.settle()
        self.call("cuStreamBeginCapture", captured, self._api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
        self.is_capturing_now = True
        try:
            with arrays.stream(number):
                yield
        finally:
            self.is_capturing_now = False
            graph = self.call("cuStreamEndCapture", captured)
            self.replay_on = captured
            self._graphs.append(self.call("cuGraphInstantiate", graph, 0))
            self.graph = [None] * self._nodes(graph)
            self.call("cuGraphDestroy", graph)

    def _nodes(self, graph: Any) -> int:
        status, _, count = self._api.cuGraphGetNodes(graph)
        assert int(status) == 0, status
        return count

    def replay(self, stream: int | None = None) -> None:
        """Runs what was captured last, on the stream of the capture or another one."""
        self.call("cuGraphLaunch", self._graphs[-1], self.replay_on if stream is None else self.handle(stream, 0))

    # --- the protocol --------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if name in MOCK_ONLY:
            pytest.skip(f"by the mock driver only: its {name!r} is set")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._real, name):
            pytest.skip(f"by the mock driver only: its {name!r} is asked for")
        method = getattr(self._real, name)
        if name == "entered":
            return method

        def call(*arguments: Any) -> Any:
            recorded = RECORDED.get(name, lambda *given: given)(*map(self._number, arguments))
            if name == "launch":
                device, (_, function), *others = arguments
                arguments = (device, function, *others)
            elif name not in ("download", "record"):
                self._called(name, *recorded)
                return method(*arguments)
            return self._later(name, recorded, method(*arguments))

        return call

    def _later(self, name: str, recorded: tuple[Any, ...], made: Call) -> Call:
        """A call that is recorded when it is made."""

        def call(*arguments: Any) -> tuple[Any, ...]:
            try:
                self._called(name, *recorded)
            except DeviceError as error:
                self._failed.append(error)
                return (FAILED + len(self._failed) - 1,)
            return made[0](*arguments)

        return call, made[1]

    def fail(self, device: int, status: Any) -> None:
        """See `Driver.fail`."""
        if int(status) >= FAILED:
            raise self._failed[int(status) - FAILED]
        self._real.fail(device, status)

    @contextlib.contextmanager
    def current(self, device: int) -> Iterator[None]:
        """See `Driver.current`."""
        self._called("current", device)
        with self._real.current(device):
            self.contexts.append(device)
            try:
                yield
            finally:
                self.contexts.pop()

    def function(self, module: Any, name: str) -> tuple[str, Any]:
        """See `Driver.function`."""
        self._called("function", name)
        return name, self._real.function(module, name)

    def allocate(self, size: int, stream: int) -> int:
        """See `Driver.allocate`."""
        self._called("allocate", size, self._number(stream))
        address = self._real.allocate(size, stream)
        self.memory[address] = size
        return address

    def free(self, address: int, stream: int) -> None:
        """See `Driver.free`."""
        self._called("free", address, self._number(stream))
        self._real.free(address, stream)
        del self.memory[address]

    def record(self, event: Any, stream: int) -> Call:
        """See `Driver.record`."""
        function, arguments = self._later("record", (self._number(stream),), self._real.record(event, stream))

        def call(*given: Any) -> tuple[Any, ...]:
            self._waited.discard(int(event))
            return function(*given)

        return call, arguments

    def is_done(self, event: Any) -> bool:
        """See `Driver.is_done`; the work is done as soon as it is asked for, or not before the host has waited."""
        self._called("is_done")
        if self.immediate and not self._real.is_done(event):
            self._real.wait(event)
        return self.immediate or int(event) in self._waited

    def wait(self, event: Any) -> None:
        """See `Driver.wait`."""
        self._called("wait")
        self._real.wait(event)
        self._waited.add(int(event))


class PageLocked(arrays.Placement):
    """Arrays of tests in page-locked memory, which the first device can access."""

    def __init__(self, used: HardwareDriver) -> None:
        self._used = used
        self.blocks: list[tuple[int, int]] = []
        # Memory for arrays that are made in a capture, which allows no allocation.
        self._reserve = iter(range(self._block(RESERVE), self.blocks[0][0] + RESERVE, RESERVED))

    def _block(self, size: int) -> int:
        if self._used.is_capturing_now:
            assert size <= RESERVED, "an array that is made in a capture is large"
            return next(self._reserve)
        address = int(self._used.call("cuMemHostAlloc", size, self._used.portable))
        self.blocks.append((address, size))
        return address

    def place(self, array: np.ndarray) -> np.ndarray:
        """The array in page-locked memory, with the same strides and at the same distance from a multiple of 256 bytes."""
        low, high = np.lib.array_utils.byte_bounds(array)
        if any(start <= low < start + size for start, size in self.blocks):
            return array
        before, size = low % 256, high - low
        block = self._block(before + max(size, 1))
        ctypes.memmove(block + before, low, size)
        memory: Any = (ctypes.c_char * (before + size)).from_address(block)
        offset = before + array.ctypes.data - low if array.size else 0
        placed = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
        placed.flags.writeable = array.flags.writeable
        return placed

    def settle(self) -> None:
        """Waits until all work of the device is done."""
        self._used.settle()

    def handle(self, stream: int, device: int) -> int:
        """The handle of a stream that tests call by a number."""
        return self._used.handle(stream, device)

    def close(self) -> None:
        """Frees the memory of all arrays."""
        self.settle()
        while self.blocks:
            self._used.call("cuMemFreeHost", self.blocks.pop()[0])


@contextlib.contextmanager
def driver_and_arrays() -> Iterator[HardwareDriver]:
    """Steps and arrays of tests on the device of this machine."""
    made: Any = HardwareDriver()
    placement = PageLocked(made)
    try:
        with driver.replaced(made), arrays.placed_by(placement):
            yield made
    finally:
        placement.close()
        made.close()
