"""The CUDA driver as far as steps use it: a protocol, and its implementation by the package ``cuda-bindings``.

Streams, kernels and events are handles of the driver, memory is an address. All work is enqueued on a stream of the array library;
nothing waits but `Driver.wait`. The driver and its bindings are loaded at the first call of `driver`.
"""

import contextlib
import ctypes
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from oxigrad.cuda import compiler

# A call of the driver that is made later: a function that runs no Python code, and its arguments. It returns a tuple whose first
# item is the status, 0 for success.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


class DeviceError(RuntimeError):
    """A call of the CUDA driver failed. Its message names the device and the status."""


class DeviceLostError(DeviceError):
    """A device is gone, or its context is unusable after an earlier error: the process must be started again."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A device is out of memory."""


class DriverUnavailableError(DeviceError):
    """There is no CUDA driver, no device, or the package ``cuda-bindings`` is not installed."""


class CaptureError(DeviceError):
    """A step that is captured into a CUDA graph needs what cannot be captured: memory, a compilation, or numbers of the host."""


class Pinned:
    """Page-locked host memory: its address, and its bytes as a writable buffer."""

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.bytes = memoryview((ctypes.c_char * max(size, 1)).from_address(address)).cast("B")


class Driver(Protocol):
    """The functions of the driver. Each raises a `DeviceError`; those with a ``device`` or a ``stream`` require `current`."""

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

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module."""
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
        """Frees device memory once the work on the stream so far is done."""
        ...

    def pinned(self, size: int) -> Pinned:
        """Page-locked host memory, which belongs to the process until `unpin`."""
        ...

    def unpin(self, memory: Pinned) -> None:
        """Frees page-locked memory."""
        ...

    def upload(self, to: int, source: int, size: int, stream: int) -> None:
        """Copies page-locked memory to a device."""
        ...

    def write(self, device: int, to: int, content: bytes) -> None:
        """Writes to memory of a device now, whatever its streams do, also while one is captured. Waits for this copy alone."""
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
        raise DriverUnavailableError(f"the CUDA driver cannot be used: {_described(api, status)}")
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


def _described(api: Any, status: Any) -> str:
    """The name of a status, and the driver's text for it."""
    found, text = api.cuGetErrorString(status)
    return f"{status.name} ({text.decode()})" if int(found) == 0 and text else str(status)


# Statuses after which no call of the process on this device succeeds.
_LOST = {
    "CUDA_ERROR_DEINITIALIZED",
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA_ERROR_NO_DEVICE",
    "CUDA_ERROR_INVALID_DEVICE",
    "CUDA_ERROR_INVALID_CONTEXT",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_LAUNCH_TIMEOUT",
    "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_SYSTEM_NOT_READY",
    "CUDA_ERROR_UNKNOWN",
}


def error_of(name: str, message: str) -> DeviceError:
    """The error of the status with this name."""
    if name == "CUDA_ERROR_OUT_OF_MEMORY":
        return DeviceMemoryError(message)
    if name.startswith("CUDA_ERROR_STREAM_CAPTURE"):
        return CaptureError(message)
    return DeviceLostError(message) if name in _LOST else DeviceError(message)


class BindingsDriver:
    """The driver by ``cuda.bindings.driver``."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._contexts: dict[int, Any] = {}
        self._streams: dict[int, int] = {}  # a stream of its own on each device

    def _checked(self, device: int | None, returned: tuple[Any, ...]) -> Any:
        """The value of a call, without the status that precedes it."""
        if returned[0]:
            self.fail(device, returned[0])
        return returned[1] if len(returned) > 1 else None

    def fail(self, device: int | None, status: Any) -> None:
        """See `Driver.fail`."""
        status = self._api.CUresult(int(status))
        where = "" if device is None else f"cuda:{device}: "
        raise error_of(status.name, f"{where}{_described(self._api, status)}")

    def _context(self, device: int) -> Any:
        """The primary context of a device, which PyTorch and CuPy use, too."""
        if device not in self._contexts:
            self._contexts[device] = self._checked(device, self._api.cuDevicePrimaryCtxRetain(device))
        return self._contexts[device]

    def _capability(self, device: int) -> tuple[int, int]:
        attribute = self._api.CUdevice_attribute
        major, minor = (
            self._checked(device, self._api.cuDeviceGetAttribute(each, device))
            for each in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        return major, minor

    def _label(self, device: int) -> str:
        name = self._checked(device, self._api.cuDeviceGetName(256, device))
        return name.rstrip(b"\0").decode(errors="replace")

    def name(self, device: int) -> str:
        """See `Driver.name`."""
        major, minor = self._capability(device)
        return f"{self._label(device)}, compute capability {major}.{minor}"

    def check(self, device: int) -> None:
        """See `Driver.check`."""
        try:
            capability = self._capability(device)
        except DeviceError as error:
            raise DriverUnavailableError(str(error)) from error
        compiler.architecture(capability, f"cuda:{device} ({self._label(device)})")

    @contextlib.contextmanager
    def current(self, device: int) -> Iterator[None]:
        """See `Driver.current`."""
        self._checked(device, self._api.cuCtxPushCurrent(self._context(device)))
        try:
            yield
        finally:
            self._api.cuCtxPopCurrent()

    def entered(self, device: int) -> tuple[Call, Call]:
        """See `Driver.entered`."""
        return (self._api.cuCtxPushCurrent, (self._context(device),)), (self._api.cuCtxPopCurrent, ())

    def load(self, device: int, text: str) -> Any:
        """See `Driver.load`."""
        architecture = compiler.architecture(self._capability(device), f"cuda:{device} ({self._label(device)})")
        code = compiler.compile_text(text, architecture).code
        return self._checked(device, self._api.cuLibraryLoadData(code, None, None, 0, None, None, 0))

    def function(self, module: Any, name: str) -> Any:
        """See `Driver.function`."""
        kernel = self._checked(None, self._api.cuLibraryGetKernel(module, name.encode()))
        return self._api.CUfunction(int(kernel))  # a kernel without a context, which that of the stream runs

    def launch(self, device: int, function: Any, grid: int, block: int, stream: int, arguments: int) -> Call:
        """See `Driver.launch`."""
        return self._api.cuLaunchKernel, (function, grid, 1, 1, block, 1, 1, 0, self._stream(stream), arguments, 0)

    def _stream(self, stream: int) -> Any:
        return self._api.CUstream(stream)

    def allocate(self, size: int, stream: int) -> int:
        """See `Driver.allocate`."""
        return int(self._checked(None, self._api.cuMemAllocAsync(size, self._stream(stream))))

    def free(self, address: int, stream: int) -> None:
        """See `Driver.free`."""
        self._checked(None, self._api.cuMemFreeAsync(address, self._stream(stream)))

    def pinned(self, size: int) -> Pinned:
        """See `Driver.pinned`."""
        flags = self._api.CU_MEMHOSTALLOC_PORTABLE
        return Pinned(int(self._checked(None, self._api.cuMemHostAlloc(max(size, 1), flags))), size)

    def unpin(self, memory: Pinned) -> None:
        """See `Driver.unpin`."""
        self._checked(None, self._api.cuMemFreeHost(memory.address))

    def upload(self, to: int, source: int, size: int, stream: int) -> None:
        """See `Driver.upload`."""
        self._checked(None, self._api.cuMemcpyHtoDAsync(to, source, size, self._stream(stream)))

    def write(self, device: int, to: int, content: bytes) -> None:
        """See `Driver.write`."""
        mode = self._api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        before = self._checked(device, self._api.cuThreadExchangeStreamCaptureMode(mode))
        try:
            if device not in self._streams:
                flags = int(self._api.CUstream_flags.CU_STREAM_NON_BLOCKING)
                self._streams[device] = int(self._checked(device, self._api.cuStreamCreate(flags)))
            stream = self._stream(self._streams[device])
            self._checked(device, self._api.cuMemcpyHtoDAsync(to, content, len(content), stream))
            self._checked(device, self._api.cuStreamSynchronize(stream))
        finally:
            self._api.cuThreadExchangeStreamCaptureMode(before)

    def download(self, to: int, source: int, size: int, stream: int) -> Call:
        """See `Driver.download`."""
        return self._api.cuMemcpyDtoHAsync, (to, source, size, self._stream(stream))

    def event(self) -> Any:
        """See `Driver.event`."""
        return self._checked(None, self._api.cuEventCreate(int(self._api.CUevent_flags.CU_EVENT_DISABLE_TIMING)))

    def record(self, event: Any, stream: int) -> Call:
        """See `Driver.record`."""
        return self._api.cuEventRecord, (event, self._stream(stream))

    def is_done(self, event: Any) -> bool:
        """See `Driver.is_done`."""
        (status,) = self._api.cuEventQuery(event)
        if status == self._api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._checked(None, (status,))
        return True

    def wait(self, event: Any) -> None:
        """See `Driver.wait`."""
        self._checked(None, self._api.cuEventSynchronize(event))

    def is_capturing(self, stream: int) -> bool:
        """See `Driver.is_capturing`."""
        return int(self._checked(None, self._api.cuStreamIsCapturing(self._stream(stream)))) != 0
