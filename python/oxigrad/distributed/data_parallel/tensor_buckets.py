"""Buckets of tensors on a device. Their sums do not travel over the host if the engine can sum tensors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import SparseRows
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel.division import split, whole
from oxigrad.distributed.errors import CommunicationError
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.extend import Parameters


def agreed_group(communicator: Communicator, leaves: Sequence[Any], seconds: float) -> Any:
    """The sums of the tensors of a model, where those of all workers can be summed where they are; None otherwise.

    All workers call it.
    """
    tensors: Callable[[Sequence[Any]], Any] | None = getattr(communicator, "tensors", None)
    if tensors is None:  # as of every engine but that of torch
        return None
    group = tensors(leaves)
    agreed = communicator.all_gather_v(np.array([group is not None]), timeout=seconds)
    return group if all(each[0] for each in agreed) else None


def on_host(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Gradients by key path, in host memory."""
    return {
        path: g if type(g) is np.ndarray or isinstance(g, SparseRows) else Parameters.on_host(g)
        for path, g in sums.items()
    }


class Queued:
    """An exchange that the device has in its queue: what reads its result on the device waits there."""

    def __init__(self, operation: Callable[[], None]) -> None:
        self._error: CommunicationError | None = None
        try:
            operation()
        except CommunicationError as error:  # where a backward begins it, the step that waits for it is repeated
            self._error = error

    def wait(self) -> None:
        """Returns at once: no call waits for a device."""

    def result(self) -> None:
        """As `wait`. Raises the error of the operation."""
        if self._error is not None:
            raise self._error


class TensorBucket:
    """One bucket on a device; see `oxigrad.distributed.data_parallel.buckets.Bucket`."""

    def __init__(self, specs: Mapping[str, GradientSpec], group: Any) -> None:
        self.paths: tuple[str, ...] = tuple(specs)
        self.flags: np.ndarray = np.zeros(0)
        self._group = group
        self._nbytes = sum(spec.nbytes for spec in specs.values())
        (dtype,) = {spec.dtype for spec in specs.values()}
        self._flat = group.flat(self._nbytes // dtype.itemsize, dtype)
        self._views = dict(zip(specs, split(self._flat, whole(specs)), strict=True))

    @property
    def nbytes(self) -> int:
        """The bytes of the gradients of a worker."""
        return self._nbytes

    def fill(self, gradients: Mapping[str, Any]) -> None:
        """Queues the copies of gradients into the bucket: zeros for those that are missing."""
        with self._group.queued():
            self._group.fill(self._views, gradients)

    def exchange(self, communicator: Communicator, timeout: float | None) -> None:
        """Queues the sums over workers."""
        with self._group.queued():
            self._group.sum(self._flat)

    def begin(self, communicator: Communicator, timeout: float | None) -> Queued:
        """As `exchange`, which does not wait."""
        return Queued(lambda: self.exchange(communicator, timeout))

    def mean(self, count: int, rank: int) -> dict[str, Any]:
        """The means of ``count`` gradients by key path, as views of the bucket."""
        self._group.join()
        if count != 1:
            self._group.divide(self._flat, count)
        return dict(self._views)
