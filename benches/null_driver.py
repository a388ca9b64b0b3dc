"""A CUDA driver that does nothing, and PyTorch's tensors of the host that pose as those of a device: what is left of a step is host time."""

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

from oxigrad.cuda import driver

_DONE = (lambda: (0,)), ()


class NullDriver:
    """A `oxigrad.cuda.driver.Driver` whose calls succeed and change nothing. Addresses that it gives are read by nobody."""

    def __init__(self) -> None:
        self._next, self._pinned = 1 << 20, dict[int, Any]()
        self.records: dict[int, Any] = {}

    def name(self, device: int) -> str:
        """The name of a device."""
        return f"device {device} of no driver"

    def check(self, device: int) -> None:
        """Nothing."""

    @contextlib.contextmanager
    def current(self, device: int) -> Iterator[None]:
        """Nothing."""
        yield

    def entered(self, device: int) -> Any:
        """Two calls that do nothing."""
        return _DONE, _DONE

    def load(self, device: int, text: str) -> str:
        """The text, not compiled."""
        return text

    def function(self, module: str, name: str) -> str:
        """The name."""
        return name

    def launch(self, *arguments: Any) -> Any:
        """A call that does nothing."""
        return _DONE

    download = record = launch

    def fail(self, device: int, status: Any) -> None:
        """Never called: each call succeeds."""
        raise AssertionError(status)

    def allocate(self, size: int, stream: int) -> int:
        """Another address for each call."""
        self._next += size + 256
        return self._next

    def pinned(self, size: int) -> Any:
        """Memory of the host."""
        buffer = ctypes.create_string_buffer(max(size, 1))
        self._pinned[ctypes.addressof(buffer)] = buffer
        return driver.Pinned(ctypes.addressof(buffer), size)

    def event(self) -> object:
        """An event that is done."""
        return object()

    def is_done(self, event: object) -> bool:
        """Always."""
        return True

    def is_capturing(self, stream: int) -> bool:
        """Never."""
        return False

    def free_waits(self) -> bool:
        """Never."""
        return False

    def nothing(self, *arguments: Any) -> None:
        """Nothing."""

    free = unpin = unload = upload = write = wait = destroy = synchronize = nothing


@contextlib.contextmanager
def posing() -> Iterator[None]:
    """A context in which tensors in host memory are described, and stepped over, as those of a CUDA device."""
    from oxigrad.ops.backends import DeviceMemory, dtype_name
    from oxigrad.ops.backends.torch import TorchAdapter
    from oxigrad.step.parameters.executor import DEVICE
    from oxigrad.step.plan import assignment, plan
    from oxigrad.torch.step import plan as tensor_plan

    def device_memory(self: Any, array: Any) -> DeviceMemory:
        return DeviceMemory(array.data_ptr(), 0, dtype_name(array.dtype), tuple(array.shape), array.is_contiguous())

    replaced: list[tuple[Any, str, Any]] = [
        (TorchAdapter, "device_memory", device_memory),
        (TorchAdapter, "current_stream", lambda self, array, device: 0),
        *[
            (module, "executor_of", lambda array, elementwise=True: DEVICE)
            for module in (plan, assignment, tensor_plan)
        ],
    ]
    before = [getattr(owner, name) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        with driver.replaced(NullDriver()):
            yield
    finally:
        for (owner, name, _), value in zip(replaced, before, strict=True):
            setattr(owner, name, value)
