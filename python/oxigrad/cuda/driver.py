"""The CUDA driver as far as steps use it: a protocol, and the driver of the process.

Streams, kernels and events are handles of the driver, memory is an address. All work is enqueued on a stream of the array library;
nothing waits but what says so. The driver and its bindings are loaded at the first call of `driver`.
"""

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from oxigrad.cuda.bindings import BindingsDriver, Call, Pinned, described
from oxigrad.cuda.errors import CaptureError, DeviceError, DeviceLostError, DeviceMemoryError, DriverUnavailableError

__all__ = [
    "BindingsDriver",
    "Call",
    "CaptureError",
    "DeviceError",
    "DeviceLostError",
    "DeviceMemoryError",
    "Driver",
    "DriverUnavailableError",
    "Pinned",
    "bindings_driver",
    "driver",
    "replaced",
    "run",
]


class Driver(Protocol):
    """The functions of the driver. Each raises a `DeviceError`; those with a ``device`` or a ``stream`` require `current`."""

    #: What steps keep of each device, as long as the driver: see `oxigrad.cuda.device`.
    kept: dict[int, Any]

    def name(self, device: int) -> str:
        """The name of a device and its compute capability."""
        ...

    def check(self, device: int) -> None:
        """Raises `DriverUnavailableError` or `CompilerUnavailableError` where kernels cannot be compiled for a device."""
        ...

    def current(self, device: int) -> contextlib.AbstractContextManager[None]:
        """Makes the primary context of a device current on the calling thread, and the one before afterwards."""
        ...

    def load(self, device: int, text: str) -> Any:
        """A module with the kernels of CUDA text, compiled for a device or read from the disk. Raises `CompileError`."""
        ...

    def unload(self, module: Any) -> None:
        """Frees a module that nothing uses any more. May wait for the device."""
        ...

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module, loaded on the device."""
        ...

    def launch(self, device: int, function: Any, grid: int, block: int, stream: int, arguments: int) -> Call:
        """The call that launches a kernel; ``arguments`` is the address of an array of pointers to its arguments."""
        ...

    def entered(self, device: int) -> tuple[Call, Call]:
        """The calls that make the context of a device current, and the one before."""
        ...

    def fail(self, device: int, status: Any) -> None:
        """Raises the error of a status that is not 0."""
        ...

    def allocate(self, size: int, stream: int) -> int:
        """The address of device memory, valid for work on the stream."""
        ...

    def free(self, address: int, stream: int) -> None:
        """Frees device memory once the work on the stream so far is done; where `free_waits`, once all work is."""
        ...

    def free_waits(self) -> bool:
        """Whether `free` waits for the device, which has no pools of memory in the order of streams."""
        ...

    def pinned(self, size: int) -> Pinned:
        """Page-locked host memory, which belongs to the process until `unpin`."""
        ...

    def unpin(self, memory: Pinned) -> None:
        """Frees page-locked memory. May wait for the device."""
        ...

    def upload(self, to: int, source: int, size: int, stream: int) -> None:
        """Copies page-locked memory to a device."""
        ...

    def write(self, device: int, to: int, content: bytes, after: Any) -> None:
        """Writes to memory of a device while a stream is captured. Waits for the event ``after`` and for this copy."""
        ...

    def download(self, to: int, source: int, size: int, stream: int) -> Call:
        """The call that copies memory of a device to page-locked memory."""
        ...

    def event(self) -> Any:
        """A new event, without timing."""
        ...

    def record(self, event: Any, stream: int) -> Call:
        """The call that records an event: it is done once the work on the stream so far is."""
        ...

    def is_done(self, event: Any) -> bool:
        """Whether the work before the event is done."""
        ...

    def wait(self, event: Any) -> None:
        """Waits on the host until the work before the event is done."""
        ...

    def destroy(self, event: Any) -> None:
        """Frees an event. Does not wait for it."""
        ...

    def synchronize(self) -> None:
        """Waits on the host until all work on the device is done."""
        ...

    def is_capturing(self, stream: int) -> bool:
        """Whether the work on the stream is captured into a graph instead of run."""
        ...


@functools.cache
def bindings_driver() -> "Driver":
    """The driver of this process, by ``cuda-bindings``; raises `DriverUnavailableError` with the reason."""
    try:
        api = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DriverUnavailableError(
            f"the package cuda-bindings cannot be imported ({error}): expected pip install 'oxigrad[cuda]'"
        ) from error
    try:
        status = api.cuInit(0)[0]
    except (RuntimeError, OSError) as error:  # the library of the driver cannot be found
        raise DriverUnavailableError(f"there is no CUDA driver: {str(error).splitlines()[0]}") from error
    if int(status) != 0:
        raise DriverUnavailableError(f"the CUDA driver cannot be used: {described(api, status)}")
    return BindingsDriver(api)


# The source of the driver that steps use: that of the process, or another in tests.
_source: Callable[[], Driver] = bindings_driver


def driver() -> Driver:
    """The driver that steps use; raises `DriverUnavailableError` with the reason where there is none."""
    return _source()


def run(used: Driver, device: int, call: Call) -> None:
    """Makes a call now; raises its error."""
    function, arguments = call
    if status := function(*arguments)[0]:
        used.fail(device, status)


@contextlib.contextmanager
def replaced(other: Driver) -> Iterator[Driver]:
    """Uses another driver for as long as it is entered, for tests."""
    global _source  # noqa: PLW0603 - one driver a process, or that of a test
    before, _source = _source, lambda: other
    try:
        yield other
    finally:
        _source = before
