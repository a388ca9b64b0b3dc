"""The errors of the CUDA driver, by its statuses."""


class DeviceError(RuntimeError):
    """A call of the CUDA driver failed. Its message names the device and the status.

    Base class of more specific errors.
    """


class DeviceLostError(DeviceError):
    """A device is gone, or its context is unusable after an earlier error: the process must be started again."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A device is out of memory: free arrays there, or use a smaller model or slots of fewer bits."""


class DriverUnavailableError(DeviceError):
    """There is no CUDA driver, no device, or the package ``cuda-bindings`` is not installed.

    ``pip install oxigrad[cuda]`` installs it; without it, update rules are called on arrays.
    """


class CaptureError(DeviceError):
    """A captured step needs work that a CUDA graph cannot hold: an allocation, a compilation, or host numbers.

    Take a step before the capture, which prepares all of this.
    """


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
