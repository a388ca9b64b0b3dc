"""Sums over workers of tensors on a device, by the backend of the program's own process group, such as NCCL.

Nothing is copied to the host, and no call waits for the device: copies and exchanges are queued in a stream of their
own.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad.distributed.engines.torch.library import distributed, torch
from oxigrad.distributed.errors import WorkerLost


def is_direct(device: Any, backend: str) -> bool:
    """Whether a backend sends the tensors of a device from its memory: gloo copies those of CUDA to the host."""
    return device.type != "cpu" and backend != "gloo"


class TensorGroup:
    """Sums of flat tensors on one device over the processes of a group of torch, all of which call the same operations.

    Args:
        program: the process group of the program.
        device: that of the tensors.
    """

    def __init__(self, program: Any, device: Any) -> None:
        self._program, self._device = program, device
        self._size = distributed.get_world_size(program)
        self._streams = getattr(torch, device.type)
        self._stream = self._streams.Stream()

    @classmethod
    def of(cls, program: Any, tensors: Sequence[Any]) -> "TensorGroup | None":
        """The group of these tensors; None where they are not on one device, or travel over the host."""
        # The parts of a distributed tensor have other members than the program's group.
        if not tensors or not all(torch.is_tensor(each) and not hasattr(each, "to_local") for each in tensors):
            return None
        device, *others = {each.device for each in tensors}
        try:
            backend = program._get_backend(device).name()
        except RuntimeError:  # the group has none for this kind of device
            return None
        return None if others or not is_direct(device, backend) else cls(program, device)

    @contextlib.contextmanager
    def queued(self) -> Iterator[None]:
        """A context whose operations begin after the ones queued before it. Later operations do not wait for it."""
        self._stream.wait_stream(self._streams.current_stream())
        with self._streams.stream(self._stream):
            yield

    def join(self) -> None:
        """Lets the operations that follow wait for all that are queued."""
        self._streams.current_stream().wait_stream(self._stream)

    def flat(self, count: int, dtype: np.dtype) -> Any:
        """A flat tensor of zeros, of ``count`` elements at least, as many for each process."""
        whole = -(-count // self._size) * self._size
        return self._kept_until_used(torch.zeros(whole, dtype=getattr(torch, dtype.name), device=self._device))

    def fill(self, views: Mapping[str, Any], gradients: Mapping[str, Any]) -> None:
        """Copies gradients, tensors or arrays, into views by key path: zeros for those that are missing."""
        for path, view in views.items():
            if (gradient := gradients.get(path)) is None:
                view.zero_()
            else:
                tensor = torch.as_tensor(gradient, device=gradient.device).detach()
                view.copy_(self._kept_until_used(tensor), non_blocking=True)

    def _kept_until_used(self, tensor: Any) -> Any:
        """The tensor. Its memory stays reserved until the stream ends what is queued when the tensor is dropped.

        The allocator knows of the stream alone that the memory was allocated on, and gives it to others there at once.
        """
        if tensor.device.type != "cpu":
            tensor.record_stream(self._stream)
        return tensor

    def sum(self, flat: Any) -> None:
        """Replaces a flat tensor by its sum over the processes, each element in the order of their ranks.

        Raises `WorkerLost` where the backend tells that it cannot.
        """
        rows = torch.empty_like(flat)
        try:
            distributed.all_to_all_single(rows, flat, group=self._program)
            first, *others = rows.view(self._size, -1)
            for row in others:
                first.add_(row)
            distributed.all_gather_into_tensor(flat, first, group=self._program)
        except distributed.DistError as error:
            raise WorkerLost((), "a sum of tensors") from error

    @staticmethod
    def divide(flat: Any, count: int) -> None:
        """Divides a flat tensor by a number as the host does. CUDA multiplies by the inverse of a host's number."""
        flat.div_(torch.full((), count, dtype=flat.dtype, device=flat.device))

    @staticmethod
    def added(total: Any, gradient: Any) -> Any:
        """A sum of gradients, of float32 for those of half precision, which is no tensor of the user's."""
        if not torch.is_tensor(gradient):
            return gradient if total is None else total + gradient
        wide = gradient.detach().to(torch.float32 if gradient.dtype.itemsize == 2 else gradient.dtype, copy=True)
        return wide if total is None else torch.as_tensor(total, device=wide.device) + wide
