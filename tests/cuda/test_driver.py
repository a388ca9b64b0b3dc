"""The driver by ``cuda-bindings``: the calls that it makes of the bindings, and the errors that statuses become."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from oxigrad import cuda
from oxigrad.cuda import driver


class Result(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900


class Bindings:
    """The module ``cuda.bindings.driver`` as far as it is used: functions that record their arguments and succeed."""

    CUresult = Result
    CU_MEMHOSTALLOC_PORTABLE = 1

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.results: dict[str, tuple[Any, ...]] = {
            "cuGetErrorString": (0, b"the driver's text"),
            "cuDeviceGetName": (0, b"A card\0\0"),
            "cuDeviceGetAttribute": (0, 9),
            "cuStreamIsCapturing": (0, 1),
            "cuMemAllocAsync": (0, 4096),
            "cuLibraryGetKernel": (0, 77),
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
    used = driver.BindingsDriver(bindings)
    function = used.function("library", "update_0")
    assert bindings.calls == [("cuLibraryGetKernel", "library", b"update_0")]
    assert function == ("CUfunction", 77)
    call, arguments = used.launch(0, function, 12, 256, 99, 4321)
    assert names(bindings) == ["cuLibraryGetKernel"]  # nothing is launched yet
    call(*arguments)
    assert bindings.calls[-1] == ("cuLaunchKernel", function, 12, 1, 1, 256, 1, 1, 0, ("CUstream", 99), 4321, 0)


def test_the_context_is_put_back(bindings: Bindings) -> None:
    used = driver.BindingsDriver(bindings)
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
    used = driver.BindingsDriver(bindings)
    bindings.results["cuMemAllocAsync"] = (status, 0)
    with pytest.raises(error, match=rf"{status.name} \(the driver's text\)") as raised:
        used.allocate(100, 0)
    assert type(raised.value) is error
    with pytest.raises(error, match="^cuda:3: "):
        used.fail(3, int(status))


def test_an_event_that_is_not_done_is_no_error(bindings: Bindings) -> None:
    used = driver.BindingsDriver(bindings)
    bindings.results["cuEventQuery"] = (Result.CUDA_ERROR_NOT_READY,)
    assert not used.is_done("event")
    bindings.results["cuEventQuery"] = (Result.CUDA_SUCCESS,)
    assert used.is_done("event")
    bindings.results["cuEventQuery"] = (Result.CUDA_ERROR_ILLEGAL_ADDRESS,)
    with pytest.raises(cuda.DeviceLostError):
        used.is_done("event")


def test_memory_is_written_whatever_is_captured(bindings: Bindings) -> None:
    used = driver.BindingsDriver(bindings)
    bindings.results["cuMemcpyHtoDAsync"] = (Result.CUDA_ERROR_ILLEGAL_ADDRESS,)
    with pytest.raises(cuda.DeviceLostError):
        used.write(0, 4096, b"16 bytes of them")
    modes = [call[1] for call in bindings.calls if call[0] == "cuThreadExchangeStreamCaptureMode"]
    assert modes[1] == "before"  # the mode of the thread is put back
    bindings.results["cuMemcpyHtoDAsync"] = (0,)
    used.write(0, 4096, b"16 bytes of them")
    assert bindings.calls[-3][:2] == ("cuMemcpyHtoDAsync", 4096) and names(bindings)[-2] == "cuStreamSynchronize"
    assert names(bindings).count("cuStreamCreate") == 1


def test_properties_of_a_device(bindings: Bindings) -> None:
    used = driver.BindingsDriver(bindings)
    assert used.name(0) == "A card, compute capability 9.9"
    assert used.is_capturing(4) is True
    assert used.allocate(100, 4) == 4096


def test_copies_are_enqueued_on_the_stream(bindings: Bindings) -> None:
    used = driver.BindingsDriver(bindings)
    used.upload(4096, 8192, 100, 4)
    driver.run(used, 0, used.download(8192, 4096, 100, 4))
    driver.run(used, 0, used.record("event", 4))
    used.free(4096, 4)
    stream = ("CUstream", 4)
    assert bindings.calls == [
        ("cuMemcpyHtoDAsync", 4096, 8192, 100, stream),
        ("cuMemcpyDtoHAsync", 8192, 4096, 100, stream),
        ("cuEventRecord", "event", stream),
        ("cuMemFreeAsync", 4096, stream),
    ]


def test_every_function_exists_in_the_bindings(library: Any) -> None:
    """The names that the driver calls are those of the package."""
    real = library("cuda.bindings.driver")
    import inspect
    import re

    source = inspect.getsource(driver.BindingsDriver)
    for name in sorted(set(re.findall(r"self\._api\.(\w+)", source))):
        assert hasattr(real, name), name
