"""A CUDA driver in host memory: its devices' memory is the host's, and its kernels run on the host at once.

`MockDriver` has the functions of `oxigrad.cuda.driver.Driver`. Kernels are compiled by g++ (see `executor`) when they are
launched. Each call is recorded in `calls` by its name and arguments. A name in `failures` makes a call fail: the value is
the number of calls of this name that still succeed, and the name of the status. While a stream is in `capturing`, launches on it are
recorded for `replay` instead of run, and calls that a capture does not allow fail.

A driver that is ``deferred`` runs the work on a stream once the host waits for it, as late as a device may, and gives memory that was
freed in the order of a stream to the next allocation of its size there, while earlier work may still use it.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections import Counter
from collections.abc import Iterator
from typing import Any

import executor

from oxigrad.cuda import tables
from oxigrad.cuda.driver import Call, DeviceError, Pinned
from oxigrad.cuda.errors import error_of

SUCCESS = (0,)
#: Texts are compiled for one test each, which takes longer than their runs.
FLAGS = ("-O0",)


class Event:
    """An event: whether it was recorded, and whether the work before it is done."""

    def __init__(self) -> None:
        self.done = True  # as one that was never recorded
        self.stream = 0


class MockDriver:
    """See the documentation of the module."""

    def __init__(self, devices: int = 2) -> None:
        self.devices = devices
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.failures: dict[str, tuple[int, str]] = {}
        self.capturing: set[int] = set()
        self.graph: list[Call] = []
        self.memory: dict[int, Any] = {}
        self.contexts: list[int] = []
        #: Whether events are done as soon as they are recorded; otherwise once the host waits for them.
        self.immediate = True
        self.deferred = False
        self.records: dict[int, Any] = {}
        self.events: set[Event] = set()
        self.modules: list[str] = []
        #: Whether memory is freed in the order of streams.
        self.has_pools = True
        self._queues: dict[int, list[Any]] = {}
        self._pool: dict[tuple[int, int], list[Any]] = {}
        self._statuses: list[str] = [""]
        self._pinned: dict[int, Any] = {}

    # --- what tests read -----------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """The number of calls by name, without those that change nothing: of contexts, of captures, of names."""
        silent = {"current", "enter", "is_capturing", "name", "event", "is_done", "function", "check", "free_waits"}
        return dict(Counter(name for name, _ in self.calls if name not in silent))

    def alive(self) -> dict[str, int]:
        """The number of handles by kind that were made and not freed."""
        kinds = {"memory": self.memory, "pinned": self._pinned, "events": self.events, "modules": self.modules}
        return {kind: len(found) for kind, found in kinds.items()}

    def launches(self) -> list[tuple[Any, ...]]:
        """The launches: the entry, the grid, the block and the stream of each."""
        return [arguments for name, arguments in self.calls if name == "launch"]

    def forget(self) -> None:
        """Forgets the calls so far."""
        self.calls.clear()

    @contextlib.contextmanager
    def capture(self, stream: int) -> Iterator[None]:
        """Captures the work on a stream, for `replay`."""
        self.graph = []
        self.capturing.add(stream)
        try:
            yield
        finally:
            self.capturing.discard(stream)

    def replay(self, stream: int = 1) -> None:
        """Runs what was captured, on a stream."""
        for function, arguments in self.graph:
            self._run(stream, lambda function=function, arguments=arguments: function(*arguments))

    def _run(self, stream: int, work: Any) -> None:
        """Runs the work now, or with what is deferred on the stream."""
        if self.deferred:
            self._queues.setdefault(stream, []).append(work)
        else:
            work()

    def _flush(self, stream: int, event: Event | None = None) -> None:
        """Runs what is deferred on a stream, up to an event."""
        queue = self._queues.get(stream, [])
        while queue and not (event and event.done):
            queue.pop(0)()

    # --- the protocol --------------------------------------------------------------------------------------------------

    def _called(self, name: str, *arguments: Any, stream: int | None = None, captured: bool = False) -> None:
        """Records a call; raises the error that is due, or that of a call which a capture does not allow."""
        self.calls.append((name, arguments))
        left, status = self.failures.get(name, (0, ""))
        if status:
            self.failures[name] = left - 1, status
            if left <= 0:
                raise error_of(status, f"mock: {name}: {status}")
        if self.capturing and not captured and (stream is None or stream in self.capturing):
            raise error_of("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", f"mock: {name} during a capture")

    def _made(self, name: str, *arguments: Any, run: Any, stream: int) -> Call:
        """A call that is made later: it returns a status."""

        def call() -> tuple[Any, ...]:
            try:
                self._called(name, *arguments, stream=stream, captured=True)
            except DeviceError:
                self._statuses.append(self.failures[name][1])
                return (len(self._statuses) - 1,)
            if stream in self.capturing:
                self.graph.append((run, ()))
            else:
                self._run(stream, run)
            return SUCCESS

        return call, ()

    def name(self, device: int) -> str:
        """See `Driver.name`."""
        self._called("name", device, captured=True)
        return f"mock device {device}, compute capability 9.0"

    def check(self, device: int) -> None:
        """See `Driver.check`."""
        self._called("check", device, captured=True)

    @contextlib.contextmanager
    def current(self, device: int) -> Iterator[None]:
        """See `Driver.current`."""
        if device >= self.devices:
            raise error_of("CUDA_ERROR_INVALID_DEVICE", f"cuda:{device}: there are {self.devices} devices")
        self._called("current", device, captured=True)
        self.contexts.append(device)
        try:
            yield
        finally:
            self.contexts.pop()

    def entered(self, device: int) -> tuple[Call, Call]:
        """See `Driver.entered`."""

        def enter() -> tuple[Any, ...]:
            self.contexts.append(device)
            return SUCCESS

        def leave() -> tuple[Any, ...]:
            self.contexts.pop()
            return SUCCESS

        return (enter, ()), (leave, ())

    def fail(self, device: int, status: Any) -> None:
        """See `Driver.fail`."""
        raise error_of(self._statuses[status], f"cuda:{device}: {self._statuses[status]}")

    def load(self, device: int, text: str) -> str:
        """See `Driver.load`."""
        self._called("load", device)
        self.modules.append(text)
        return text

    def unload(self, module: str) -> None:
        """See `Driver.unload`."""
        self._called("unload")
        self.modules.remove(module)

    def function(self, module: str, name: str) -> tuple[str, str]:
        """See `Driver.function`."""
        self._called("function", name, captured=True)
        return module, name

    def launch(
        self, device: int, function: tuple[str, str], grid: int, block: int, stream: int, arguments: int
    ) -> Call:
        """See `Driver.launch`."""
        text, entry = function

        def call() -> tuple[Any, ...]:
            assert self.contexts and self.contexts[-1] == device, "another context is current"
            address = ctypes.c_void_p.from_address(arguments).value
            assert address is not None
            packed = ctypes.string_at(address, tables.LAUNCH_SIZE)  # a launch copies its arguments
            made, _ = self._made(
                "launch",
                entry,
                grid,
                block,
                stream,
                run=lambda: executor.compile_text(text, *FLAGS).launch(entry, grid, block, packed),
                stream=stream,
            )
            return made()

        return call, ()

    def allocate(self, size: int, stream: int) -> int:
        """See `Driver.allocate`."""
        self._called("allocate", size, stream, stream=stream)
        if self._pool.get((stream, size)):
            buffer = self._pool[stream, size].pop()
        else:
            buffer = ctypes.create_string_buffer(b"\xa5" * (size + 256), size + 256)  # not zeros, as on a device
        address = -(-ctypes.addressof(buffer) // 256) * 256
        self.memory[address] = buffer
        return address

    def free(self, address: int, stream: int) -> None:
        """See `Driver.free`."""
        self._called("free", address, stream, stream=stream, captured=not self.has_pools)
        buffer = self.memory.pop(address)
        if self.deferred:
            self._pool.setdefault((stream, len(buffer) - 256), []).append(buffer)

    def free_waits(self) -> bool:
        """See `Driver.free_waits`."""
        self._called("free_waits", captured=True)
        return not self.has_pools

    def pinned(self, size: int) -> Pinned:
        """See `Driver.pinned`."""
        self._called("pinned", size)
        buffer = ctypes.create_string_buffer(max(size, 1))
        self._pinned[ctypes.addressof(buffer)] = buffer
        return Pinned(ctypes.addressof(buffer), size)

    def unpin(self, memory: Pinned) -> None:
        """See `Driver.unpin`."""
        self._called("unpin")
        del self._pinned[memory.address]

    def _copy(self, to: int, source: int, size: int) -> Any:
        """A copy that is made later, when page-locked memory is still there."""

        def copy() -> None:
            spans = [(at, at + len(buffer)) for at, buffer in self._pinned.items()]
            assert any(low <= at < high for low, high in spans for at in (to, source)), "no page-locked memory"
            ctypes.memmove(to, source, size)

        return copy

    def upload(self, to: int, source: int, size: int, stream: int) -> None:
        """See `Driver.upload`."""
        self._called("upload", to, size, stream, stream=stream)
        self._run(stream, self._copy(to, source, size))

    def write(self, device: int, to: int, content: bytes, after: Event) -> None:
        """See `Driver.write`."""
        self._called("write", device, to, content, captured=True)
        assert after in self.events, "the event was freed"
        self._flush(after.stream, after)
        ctypes.memmove(to, content, len(content))

    def download(self, to: int, source: int, size: int, stream: int) -> Call:
        """See `Driver.download`."""
        return self._made("download", source, size, stream, run=self._copy(to, source, size), stream=stream)

    def event(self) -> Event:
        """See `Driver.event`."""
        self._called("event", captured=True)
        self.events.add(made := Event())
        return made

    def destroy(self, event: Event) -> None:
        """See `Driver.destroy`."""
        self._called("destroy", captured=True)
        self.events.remove(event)

    def record(self, event: Event, stream: int) -> Call:
        """See `Driver.record`."""

        assert event in self.events, "the event was freed"

        def run() -> None:
            event.done = self.immediate or self.deferred

        def call() -> tuple[Any, ...]:
            if stream not in self.capturing:
                event.done, event.stream = False, stream
            return made()

        made, _ = self._made("record", stream, run=run, stream=stream)
        return call, ()

    def is_done(self, event: Event) -> bool:
        """See `Driver.is_done`."""
        self._called("is_done", captured=True)
        return event.done

    def wait(self, event: Event) -> None:
        """See `Driver.wait`."""
        self._called("wait")
        self._flush(event.stream, event)
        event.done = True

    def synchronize(self) -> None:
        """See `Driver.synchronize`."""
        self._called("synchronize")
        for stream in [*self._queues]:
            self._flush(stream)

    def is_capturing(self, stream: int) -> bool:
        """See `Driver.is_capturing`."""
        self._called("is_capturing", stream, captured=True)
        return stream in self.capturing
