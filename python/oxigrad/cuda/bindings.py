"""The CUDA driver by the package ``cuda-bindings``."""

import contextlib
import ctypes
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from oxigrad.cuda import compiler
from oxigrad.cuda.errors import DeviceError, DeviceLostError, DriverUnavailableError, error_of

# A deferred call of the driver: a function that runs no Python code, and its arguments. It returns a tuple whose first
# item is the status, 0 for success.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


class Pinned:
    """Page-locked host memory: its address, and its bytes as a writable buffer."""

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.bytes: memoryview = memoryview((ctypes.c_char * max(size, 1)).from_address(address)).cast("B")


def described(api: Any, status: Any) -> str:
    """The name of a status, and the driver's text for it."""
    outcome, text = api.cuGetErrorString(status)
    return f"{status.name} ({text.decode()})" if int(outcome) == 0 and text else str(status)


class Driver:
    """The driver by ``cuda.bindings.driver``, as far as steps use it.

    Each method raises a `DeviceError`; those with a ``device`` or a ``stream`` require `current`.
    """

    def __init__(self, api: Any) -> None:
        self._api = api
        #: State of each device that steps keep, with the lifetime of the driver: see `oxigrad.cuda.device`.
        self.records: dict[int, Any] = {}
        self._contexts: dict[int, Any] = {}
        self._streams: dict[int, int] = {}  # one stream for each device
        self._has_pools: dict[int, bool] = {}
        self._architectures: dict[int, str] = {}

    def _checked(self, device: int | None, returned: tuple[Any, ...]) -> Any:
        """The value of a call, without the status that precedes it."""
        if returned[0]:
            self.fail(device, returned[0])
        return returned[1] if len(returned) > 1 else None

    def fail(self, device: int | None, status: Any) -> None:
        """Raises the error of a status that is not 0."""
        status = self._api.CUresult(int(status))
        where = "" if device is None else f"cuda:{device}: "
        raise error_of(status.name, f"{where}{described(self._api, status)}")

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
        return name.split(b"\0")[0].decode(errors="replace")  # the rest of the buffer is spaces

    def devices(self) -> list[tuple[str, str]]:
        """The UUID and the name of each device that the process sees, by number."""
        names = []
        for device in range(self._checked(None, self._api.cuDeviceGetCount())):
            # Since CUDA 13 the one that knows parts of a device has the plain name.
            function = getattr(self._api, "cuDeviceGetUuid_v2", self._api.cuDeviceGetUuid)
            number = uuid.UUID(bytes=bytes(self._checked(device, function(device)).bytes))
            names.append((f"GPU-{number}", self._label(device)))
        return names

    def name(self, device: int) -> str:
        """The name of a device and its compute capability."""
        major, minor = self._capability(device)
        return f"{self._label(device)}, compute capability {major}.{minor}"

    def check(self, device: int) -> None:
        """Raises `DriverUnavailableError` or `CompilerUnavailableError` if kernels cannot be compiled for a device."""
        if device in self._architectures:
            return
        try:
            capability, label = self._capability(device), f"cuda:{device} ({self._label(device)})"
            number = self._checked(None, self._api.cuDriverGetVersion())
        except DeviceError as error:
            raise DriverUnavailableError(str(error)) from error
        candidates = compiler.architectures(capability, label)
        refused: list[str] = []
        for architecture in candidates:
            try:
                with self.current(device):
                    module = self._loaded(device, compiler.TRIVIAL, architecture)
                    try:
                        self.function(module, "trivial")
                    finally:
                        self.unload(module)
            except DeviceLostError as error:
                raise DriverUnavailableError(str(error)) from error
            except (DeviceError, compiler.CompileError) as error:
                refused.append(f"{architecture}: {error}")
            else:
                self._architectures[device] = architecture
                return
        raise DriverUnavailableError(
            f"{label}: the driver, which is of CUDA {number // 1000}.{number % 1000 // 10}, cannot load kernels of "
            f"{compiler.compiler()} ({'; '.join(refused)}): expected an nvidia-cuda-nvrtc that is no newer than the "
            "driver"
        )

    @contextlib.contextmanager
    def current(self, device: int) -> Iterator[None]:
        """Makes the primary context of a device current on the calling thread, and restores the previous one."""
        self._checked(device, self._api.cuCtxPushCurrent(self._context(device)))
        try:
            yield
        finally:
            self._api.cuCtxPopCurrent()

    def entered(self, device: int) -> tuple[Call, Call]:
        """The calls that make the context of a device current, and the one before."""
        return (self._api.cuCtxPushCurrent, (self._context(device),)), (self._api.cuCtxPopCurrent, ())

    def load(self, device: int, text: str) -> Any:
        """A module with the kernels of CUDA text, compiled or loaded from the disk cache. Raises `CompileError`."""
        self.check(device)
        return self._loaded(device, text, self._architectures[device])

    def _loaded(self, device: int, text: str, architecture: str) -> Any:
        """A module with the kernels of a text for an architecture, or by PTX for a virtual one."""
        code = compiler.compile_text(text, architecture).code
        with self._undisturbing():
            return self._checked(device, self._api.cuLibraryLoadData(code, None, None, 0, None, None, 0))

    def unload(self, module: Any) -> None:
        """Frees a module that nothing uses any more. May wait for the device."""
        with self._undisturbing():
            self._checked(None, self._api.cuLibraryUnload(module))

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module, loaded on the device."""
        kernel = self._checked(None, self._api.cuLibraryGetKernel(module, name.encode()))
        with self._undisturbing():
            return self._checked(None, self._api.cuKernelGetFunction(kernel))  # which loads it, if that was deferred

    @contextlib.contextmanager
    def _undisturbing(self) -> Iterator[None]:
        """Calls that a capture of any stream by any thread would else refuse, and be ended by."""
        mode = self._api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        before = self._checked(None, self._api.cuThreadExchangeStreamCaptureMode(mode))
        try:
            yield
        finally:
            self._api.cuThreadExchangeStreamCaptureMode(before)

    def launch(self, device: int, function: Any, grid: int, block: int, stream: int, arguments: int) -> Call:
        """The call that launches a kernel; ``arguments`` is the address of an array of pointers to its arguments."""
        return self._api.cuLaunchKernel, (function, grid, 1, 1, block, 1, 1, 0, self._stream(stream), arguments, 0)

    def _stream(self, stream: int) -> Any:
        return self._api.CUstream(stream)

    def allocate(self, size: int, stream: int) -> int:
        """The address of device memory, valid for work on the stream."""
        with self._undisturbing():
            if self.free_waits():
                return int(self._checked(None, self._api.cuMemAlloc(size)))
            return int(self._checked(None, self._api.cuMemAllocAsync(size, self._stream(stream))))

    def free(self, address: int, stream: int) -> None:
        """Frees device memory once the work on the stream so far is done; where `free_waits`, once all work is."""
        with self._undisturbing():
            if self.free_waits():
                self._checked(None, self._api.cuMemFree(address))
            else:
                self._checked(None, self._api.cuMemFreeAsync(address, self._stream(stream)))

    def free_waits(self) -> bool:
        """Whether `free` waits for the device, which has no pools of memory in the order of streams."""
        device = int(self._checked(None, self._api.cuCtxGetDevice()))
        if device not in self._has_pools:
            attribute = self._api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
            has_pools = self._checked(device, self._api.cuDeviceGetAttribute(attribute, device))
            self._has_pools[device] = bool(has_pools)
        return not self._has_pools[device]

    def pinned(self, size: int) -> Pinned:
        """Page-locked host memory, which belongs to the process until `unpin`."""
        flags = self._api.CU_MEMHOSTALLOC_PORTABLE
        with self._undisturbing():
            return Pinned(int(self._checked(None, self._api.cuMemHostAlloc(max(size, 1), flags))), size)

    def unpin(self, memory: Pinned) -> None:
        """Frees page-locked memory. May wait for the device."""
        with self._undisturbing():
            self._checked(None, self._api.cuMemFreeHost(memory.address))

    def upload(self, to: int, source: int, size: int, stream: int) -> None:
        """Copies page-locked memory to a device."""
        self._checked(None, self._api.cuMemcpyHtoDAsync(to, source, size, self._stream(stream)))

    def write(self, device: int, to: int, content: bytes, after: Any) -> None:
        """Writes to memory of a device while a stream is captured. Waits for the event ``after`` and for this copy."""
        with self._undisturbing():
            if device not in self._streams:
                flags = int(self._api.CUstream_flags.CU_STREAM_NON_BLOCKING)
                self._streams[device] = int(self._checked(device, self._api.cuStreamCreate(flags)))
            stream = self._stream(self._streams[device])
            self._checked(device, self._api.cuStreamWaitEvent(stream, after, 0))
            self._checked(device, self._api.cuMemcpyHtoDAsync(to, content, len(content), stream))
            self._checked(device, self._api.cuStreamSynchronize(stream))

    def download(self, to: int, source: int, size: int, stream: int) -> Call:
        """The call that copies memory of a device to page-locked memory."""
        return self._api.cuMemcpyDtoHAsync, (to, source, size, self._stream(stream))

    def event(self) -> Any:
        """A new event, without timing."""
        return self._checked(None, self._api.cuEventCreate(int(self._api.CUevent_flags.CU_EVENT_DISABLE_TIMING)))

    def record(self, event: Any, stream: int) -> Call:
        """The call that records an event: it is done once the work on the stream so far is."""
        return self._api.cuEventRecord, (event, self._stream(stream))

    def is_done(self, event: Any) -> bool:
        """Whether the work before the event is done."""
        with self._undisturbing():
            (status,) = self._api.cuEventQuery(event)
        if status == self._api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._checked(None, (status,))
        return True

    def wait(self, event: Any) -> None:
        """Waits on the host until the work before the event is done."""
        with self._undisturbing():
            self._checked(None, self._api.cuEventSynchronize(event))

    def destroy(self, event: Any) -> None:
        """Frees an event. Does not wait for it."""
        with self._undisturbing():
            self._checked(None, self._api.cuEventDestroy(event))

    def synchronize(self) -> None:
        """Waits on the host until all work on the device is done."""
        self._checked(None, self._api.cuCtxSynchronize())

    def is_capturing(self, stream: int) -> bool:
        """Whether the work on the stream is captured into a graph instead of run."""
        returned = self._api.cuStreamIsCapturing(self._stream(stream))
        # The default stream cannot be used while a stream is captured that waits for it.
        if returned[0] == self._api.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
            return True
        return int(self._checked(None, returned)) != 0
