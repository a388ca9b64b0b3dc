"""The CUDA driver of the process, or another in tests.

Streams, kernels and events are handles of the driver; memory is an address. All work is enqueued on a stream of the
array library. Nothing waits unless its docstring says so. The driver and its bindings are loaded at the first call of
`driver`.
"""

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator

from oxigrad.cuda.bindings import Call, Driver, Pinned, described
from oxigrad.cuda.errors import CaptureError, DeviceError, DeviceLostError, DeviceMemoryError, DriverUnavailableError

__all__ = [
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


@functools.cache
def bindings_driver() -> Driver:
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
    return Driver(api)


# The source of the driver that steps use: the process's driver, or another in tests.
_source: Callable[[], Driver] = bindings_driver


def driver() -> Driver:
    """The driver that steps use. Raises `DriverUnavailableError` with the reason if it is unavailable."""
    return _source()


def run(used: Driver, device: int, call: Call) -> None:
    """Executes a call; raises its error."""
    function, arguments = call
    if status := function(*arguments)[0]:
        used.fail(device, status)


@contextlib.contextmanager
def replaced(other: Driver) -> Iterator[Driver]:
    """A context that replaces the driver, for tests."""
    global _source  # noqa: PLW0603 - one driver a process, or a test's
    before, _source = _source, lambda: other
    try:
        yield other
    finally:
        _source = before
