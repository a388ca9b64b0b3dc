"""The driver by ``cuda-bindings``: the calls that it makes of the bindings, and the errors that statuses become."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from oxigrad import cuda
from oxigrad.cuda import bindings as real_driver
from oxigrad.cuda import compiler, driver


class Result(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906


class Bindings:
    """The module ``cuda.bindings.driver`` as far as it is used: functions that record their arguments and succeed."""

    CUresult = Result
    CU_MEMHOSTALLOC_PORTABLE = 1

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.results: dict[str, tuple[Any, ...]] = {
            "cuGetErrorString": (0, b"the driver's text"),
            "cuDeviceGetName": (0, b"A card\0" + 249 * b" "),
            "cuDeviceGetAttribute": (0, 9),
            "cuStreamIsCapturing": (0, 1),
            "cuCtxGetDevice": (0, 1),
            "cuMemAlloc": (0, 8192),
            "cuMemAllocAsync": (0, 4096),
            "cuLibraryLoadData": (0, "library"),
            "cuLibraryGetKernel": (0, 77),
            "cuKernelGetFunction": (0, "function"),
            "cuDriverGetVersion": (0, 12080),
            "cuDevicePrimaryCtxRetain": (0, "context"),
            "cuThreadExchangeStreamCaptureMode": (0, "before"),
            "cuStreamCreate": (0, 5),
        }

    class _Names:
        def __getattr__(self, name: str) -> int:
            return hash(name) % 1000

    CUdevice_attribute = CUstreamCaptureMode = CUstream_flags = CUevent_flags = _Names()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            return lambda value: (name, value)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, *arguments))
            return self.results.get(name, (0,))

        return call


@pytest.fixture
def bindings() -> Bindings:
    return Bindings()


def names(bindings: Bindings) -> list[str]:
    return [name for name, *_ in bindings.calls]


def test_a_launch_passes_one_array_of_pointers(bindings: Bindings) -> None:
    used = driver.Driver(bindings)
    function = used.function("library", "update_0")
    assert bindings.calls[0] == ("cuLibraryGetKernel", "library", b"update_0")
    assert function == "function" and ("cuKernelGetFunction", 77) in bindings.calls
    call, arguments = used.launch(0, function, 12, 256, 99, 4321)
    assert "cuLaunchKernel" not in names(bindings)  # nothing is launched yet
    call(*arguments)
    assert bindings.calls[-1] == ("cuLaunchKernel", function, 12, 1, 1, 256, 1, 1, 0, ("CUstream", 99), 4321, 0)


def test_the_context_is_put_back(bindings: Bindings) -> None:
    used = driver.Driver(bindings)
    with pytest.raises(ValueError, match="inside"), used.current(1):
        raise ValueError("inside")
    assert names(bindings) == ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuCtxPopCurrent"]
    with used.current(1):
        pass
    assert names(bindings).count("cuDevicePrimaryCtxRetain") == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (Result.CUDA_ERROR_INVALID_VALUE, cuda.DeviceError),
        (Result.CUDA_ERROR_OUT_OF_MEMORY, cuda.DeviceMemoryError),
        (Result.CUDA_ERROR_ILLEGAL_ADDRESS, cuda.DeviceLostError),
        (Result.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuda.CaptureError),
    ],
)
def test_statuses_become_errors(bindings: Bindings, status: Result, error: type[Exception]) -> None:
    used = driver.Driver(bindings)
    bindings.results["cuMemAllocAsync"] = (status, 0)
    with pytest.raises(error, match=rf"{status.name} \(the driver's text\)") as raised:
        used.allocate(100, 0)
    assert type(raised.value) is error
    with pytest.raises(error, match="^cuda:3: "):
        used.fail(3, int(status))


def test_an_event_that_is_not_done_is_no_error(bindings: Bindings) -> None:
    used = driver.Driver(bindings)
    bindings.results["cuEventQuery"] = (Result.CUDA_ERROR_NOT_READY,)
    assert not used.is_done("event")
    bindings.results["cuEventQuery"] = (Result.CUDA_SUCCESS,)
    assert used.is_done("event")
    bindings.results["cuEventQuery"] = (Result.CUDA_ERROR_ILLEGAL_ADDRESS,)
    with pytest.raises(cuda.DeviceLostError):
        used.is_done("event")


def test_memory_is_written_after_an_event_whatever_is_captured(bindings: Bindings) -> None:
    used = driver.Driver(bindings)
    bindings.results["cuMemcpyHtoDAsync"] = (Result.CUDA_ERROR_ILLEGAL_ADDRESS,)
    with pytest.raises(cuda.DeviceLostError):
        used.write(0, 4096, b"16 bytes of them", "event")
    modes = [call[1] for call in bindings.calls if call[0] == "cuThreadExchangeStreamCaptureMode"]
    assert modes[1] == "before"  # the mode of the thread is put back
    bindings.results["cuMemcpyHtoDAsync"] = (0,)
    used.write(0, 4096, b"16 bytes of them", "event")
    own = ("CUstream", 5)
    assert bindings.calls[-4:-1] == [
        ("cuStreamWaitEvent", own, "event", 0),
        ("cuMemcpyHtoDAsync", 4096, b"16 bytes of them", 16, own),
        ("cuStreamSynchronize", own),
    ]
    assert names(bindings).count("cuStreamCreate") == 1


CALLS: dict[str, Any] = {
    "cuMemAllocAsync": lambda used: used.allocate(100, 4),
    "cuMemFreeAsync": lambda used: used.free(4096, 4),
    "cuMemHostAlloc": lambda used: used.pinned(100),
    "cuMemFreeHost": lambda used: used.unpin(driver.Pinned(id(bytearray(8)), 8)),
    "cuLibraryUnload": lambda used: used.unload("library"),
    "cuKernelGetFunction": lambda used: used.function("library", "update_0"),
    "cuEventQuery": lambda used: used.is_done("event"),
    "cuEventSynchronize": lambda used: used.wait("event"),
    "cuEventDestroy": lambda used: used.destroy("event"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_would_end_a_capture_are_made_in_its_relaxed_mode(name: str, bindings: Bindings) -> None:
    bindings.results |= {"cuMemHostAlloc": (0, id(bytearray(100)))}
    CALLS[name](driver.Driver(bindings))
    at, modes = names(bindings).index(name), [n for n in names(bindings) if "CaptureMode" in n]
    assert len(modes) == 2 and bindings.calls[-1] == ("cuThreadExchangeStreamCaptureMode", "before")
    assert names(bindings).index("cuThreadExchangeStreamCaptureMode") < at


def test_the_default_stream_beside_a_capture_counts_as_captured(bindings: Bindings) -> None:
    used = driver.Driver(bindings)
    bindings.results["cuStreamIsCapturing"] = (Result.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 0)
    assert used.is_capturing(0) is True
    bindings.results["cuStreamIsCapturing"] = (Result.CUDA_ERROR_ILLEGAL_ADDRESS, 0)
    with pytest.raises(cuda.DeviceLostError):
        used.is_capturing(0)


def test_memory_where_there_are_no_pools(bindings: Bindings) -> None:
    used = driver.Driver(bindings)
    bindings.results["cuDeviceGetAttribute"] = (0, 0)
    assert used.allocate(100, 4) == 8192 and used.free_waits()
    used.free(8192, 4)
    assert ("cuMemAlloc", 100) in bindings.calls and ("cuMemFree", 8192) in bindings.calls
    assert not {"cuMemAllocAsync", "cuMemFreeAsync"} & {*names(bindings)}


# --- a compiler and a driver that differ -------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The architectures that were compiled for, by an NVRTC 13.2 in words."""
    found: list[str] = []

    def compile_text(text: str, architecture: str) -> compiler.Binary:
        found.append(architecture)
        return compiler.Binary(architecture.encode(), architecture, "")

    made = compiler.Compiler((13, 2), "/lib/libnvrtc.so.13", (75, 80, 90, 120))
    monkeypatch.setattr(compiler, "compiler", lambda: made)
    monkeypatch.setattr(compiler, "compile_text", compile_text)
    return found


class Loading(Bindings):
    """A driver that loads some codes only, of a card with a compute capability."""

    def __init__(self, capability: tuple[int, int], accepted: set[bytes], *, late: bool = False) -> None:
        super().__init__()
        self.capability, self.accepted, self.late = capability, accepted, late

    class CUdevice_attribute:
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 0
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 1
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 2

    def cuDeviceGetAttribute(self, attribute: int, device: int) -> tuple[int, int]:
        return 0, (*self.capability, 1)[attribute]

    def cuLibraryLoadData(self, code: bytes, *arguments: Any) -> tuple[Any, ...]:
        self.calls.append(("cuLibraryLoadData", code))
        refused = code not in self.accepted and not self.late
        return (Result.CUDA_ERROR_UNSUPPORTED_PTX_VERSION, None) if refused else (0, code)

    def cuKernelGetFunction(self, kernel: Any) -> tuple[Any, ...]:
        """A driver that loads code late finds only here that it cannot."""
        code = [call[1] for call in self.calls if call[0] == "cuLibraryLoadData"][-1]
        return (0, "function") if code in self.accepted else (Result.CUDA_ERROR_NO_BINARY_FOR_GPU, None)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("capability", "accepted", "expected"),
    [
        ((9, 0), {b"sm_90", b"compute_90"}, ["sm_90"]),
        ((9, 0), {b"compute_90"}, ["sm_90", "compute_90"]),
        ((12, 1), {b"compute_120"}, ["compute_120"]),  # a card that is newer than the compiler
        ((10, 3), {b"compute_90"}, ["compute_90"]),
        ((9, 0), set(), ["sm_90", "compute_90"]),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),  # the same in every process
)
def test_what_is_compiled_for_is_what_the_driver_loads(
    capability: tuple[int, int], accepted: set[bytes], expected: list[str], late: bool, compiled: list[str]
) -> None:
    api = Loading(capability, accepted, late=late)
    used = driver.Driver(api)
    if not accepted:
        text = (
            r"^cuda:0 \(A card\): the driver, which is of CUDA 12\.8, cannot load kernels of NVRTC 13\.2 \(.*\) \(sm_90: .*; "
            "compute_90: .*\\): expected an nvidia-cuda-nvrtc that is no newer than the driver$"
        )
        with pytest.raises(cuda.DriverUnavailableError, match=text):
            used.check(0)
        return
    used.check(0)
    assert compiled == expected
    used.check(0)
    assert compiled == expected  # known
    assert used.load(0, "text") == expected[-1].encode() and compiled == [*expected, expected[-1]]
    assert names(api).count("cuLibraryUnload") == len(accepted & {each.encode() for each in expected}) or late


def test_a_device_that_is_lost_while_it_is_checked(bindings: Bindings, compiled: list[str]) -> None:
    bindings.results["cuLibraryLoadData"] = (Result.CUDA_ERROR_ILLEGAL_ADDRESS, None)
    bindings.results["cuDeviceGetAttribute"] = (0, 9)
    with pytest.raises(cuda.DriverUnavailableError, match="ILLEGAL_ADDRESS"):
        driver.Driver(bindings).check(0)
    assert len(compiled) == 1


def test_properties_of_a_device(bindings: Bindings) -> None:
    used = driver.Driver(bindings)
    assert used.name(0) == "A card, compute capability 9.9"
    assert used.is_capturing(4) is True
    assert used.allocate(100, 4) == 4096


def test_copies_are_enqueued_on_the_stream(bindings: Bindings) -> None:
    used = driver.Driver(bindings)
    used.upload(4096, 8192, 100, 4)
    driver.run(used, 0, used.download(8192, 4096, 100, 4))
    driver.run(used, 0, used.record("event", 4))
    stream = ("CUstream", 4)
    assert bindings.calls == [
        ("cuMemcpyHtoDAsync", 4096, 8192, 100, stream),
        ("cuMemcpyDtoHAsync", 8192, 4096, 100, stream),
        ("cuEventRecord", "event", stream),
    ]


def test_every_function_exists_in_the_bindings(library: Any) -> None:
    """The names that the driver calls are those of the package."""
    real = library("cuda.bindings.driver")
    import inspect
    import re

    source = inspect.getsource(real_driver.Driver)
    for name in sorted(set(re.findall(r"self\._api\.(\w+)", source))):
        assert hasattr(real, name), name
