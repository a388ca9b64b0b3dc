"""Per-process state of a device: loaded kernels, page-locked memory, and resources to free."""

import collections
import weakref
from collections.abc import Iterable
from typing import Any

from oxigrad.cuda.driver import CaptureError, Driver
from oxigrad.cuda.memory import DeviceBlock, Releases, Staging

WARM_UP = "expected one step of this model before the capture (a warm-up step)"
# The number of modules that stay loaded though no step uses them.
MOST_MODULES = 128


class Module:
    """The loaded kernels of a text, by name. It is unloaded after the last step that uses it."""

    def __init__(self, device: "Device", text: str, names: Iterable[str]) -> None:
        driver = device.driver
        handle = driver.load(device.number, text)
        self._finalizer = weakref.finalize(self, device.releases.add_module, handle)
        self._finalizer.atexit = False  # the driver may be gone
        #: All of them, so that none is loaded in a capture.
        self.functions: dict[str, Any] = {name: driver.function(handle, name) for name in names}


class Device:
    """A device of a driver, one object a device: see `device_record`."""

    def __init__(self, driver: Driver, number: int) -> None:
        self.driver: Driver = driver
        self.number: int = number
        self.staging: Staging = Staging(driver, number)
        #: Buffers of counts of steps, which are held for long.
        self.counts: Staging = Staging(driver, number)
        self.releases: Releases = Releases(driver, number)
        self._modules: collections.OrderedDict[str, Module] = collections.OrderedDict()

    def load(self, text: str, names: Iterable[str], *, capturing: bool) -> Module:
        """The kernels of a text. Raises `CompileError`, and `CaptureError` during a capture."""
        module = self._modules.get(text)
        if module is None:
            if capturing:
                raise CaptureError(f"cuda:{self.number}: a kernel would be compiled during a capture: {WARM_UP}")
            self.releases.free(may_wait=True)
            module = self._modules[text] = Module(self, text, names)
            while len(self._modules) > MOST_MODULES:
                self._modules.popitem(last=False)
        else:
            self._modules.move_to_end(text)
        return module

    def allocate(self, size: int, stream: int, *, capturing: bool) -> DeviceBlock:
        """Memory of the device. Raises `CaptureError` during a capture."""
        if capturing:
            raise CaptureError(f"cuda:{self.number}: memory would be allocated during a capture: {WARM_UP}")
        return DeviceBlock(self.driver, self.releases, size, stream)


def device_record(driver: Driver, number: int) -> Device:
    """The device of a driver, one object a device."""
    if number not in driver.records:
        driver.records[number] = Device(driver, number)
    return driver.records[number]
