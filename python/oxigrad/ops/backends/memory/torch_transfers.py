"""Copies between device memory of PyTorch and host memory."""

from typing import Any

from oxigrad._names import library
from oxigrad._typing import Array, Device
from oxigrad.ops.backends.memory.transfers import DONE, Copies, Event

torch: Any = library("torch", "copies of tensors need PyTorch")


class HostDevice(Copies):
    """Copies that are done at once: of parameters in host memory, and on devices without streams."""

    def memory(self, count: int) -> Array:
        """New host memory of ``count`` bytes."""
        return torch.empty(count, dtype=torch.uint8, device="cpu")

    def like(self, array: Array) -> Array:
        """A new tensor in host memory with the shape, dtype and order of a tensor."""
        return torch.empty_like(array, device="cpu")

    def copy_down(self, source: Array, target: Array) -> Event:
        """Copies a tensor."""
        target.copy_(source)
        return DONE

    copy_up = copy_down


class CudaDevice(Copies):
    """Copies on two streams of a CUDA device, one in each direction, between its memory and page-locked host memory."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._down, self._up = torch.cuda.Stream(device), torch.cuda.Stream(device)
        self.mark()

    def memory(self, count: int) -> Array:
        """New page-locked host memory of ``count`` bytes."""
        return torch.empty(count, dtype=torch.uint8, device="cpu", pin_memory=True)

    def like(self, array: Array) -> Array:
        """A new tensor in page-locked host memory with the shape, dtype and order of a tensor."""
        return torch.empty_like(array, device="cpu", pin_memory=True)

    def mark(self) -> None:
        """Lets later copies begin after the work in the current stream."""
        self._marked = torch.cuda.current_stream(self._device).record_event()

    def copy_down(self, source: Array, target: Array) -> Event:
        """Begins a copy on the stream down."""
        return self._copied(self._down, source, target)

    def copy_up(self, source: Array, target: Array) -> Event:
        """Begins a copy on the stream up."""
        return self._copied(self._up, source, target)

    def _copied(self, stream: Any, source: Array, target: Array) -> Event:
        stream.wait_event(self._marked)
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
            end = stream.record_event()
            return Event(end.query, end.synchronize)

    def join(self) -> None:
        """Lets the current stream wait for the copies up."""
        torch.cuda.current_stream(self._device).wait_stream(self._up)


def device_of(device: Device) -> HostDevice | CudaDevice:
    """The copies of a device of PyTorch."""
    return CudaDevice(device) if device.type == "cuda" else HostDevice()
