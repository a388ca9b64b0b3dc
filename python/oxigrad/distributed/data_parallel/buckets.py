"""Sums of gradients over workers in buckets: flat buffers, each of which is exchanged while the next ones are filled.

The sum of an element is taken in the order of ranks, whatever bucket it is in, so that bits do not depend on buckets.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.engines.background import Running
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.messages.message import Layout


def cut(specs: Mapping[str, GradientSpec], order: Iterable[str], limit: int) -> list[list[str]]:
    """The key paths in ``order``, in buckets of one dtype that are closed once they have ``limit`` bytes.

    >>> specs = {name: GradientSpec(np.zeros(size)) for name, size in {"a": 1, "b": 3, "c": 1}.items()}
    >>> cut(specs, "abc", 16)
    [['a', 'b'], ['c']]
    """
    closed: list[list[str]] = []
    filling: dict[np.dtype, list[str]] = {}
    filled: dict[np.dtype, int] = {}
    for path in order:
        spec = specs[path]
        filling.setdefault(spec.dtype, []).append(path)
        filled[spec.dtype] = filled.get(spec.dtype, 0) + spec.nbytes
        if filled[spec.dtype] >= limit:
            closed.append(filling.pop(spec.dtype))
            del filled[spec.dtype]
    return [*closed, *filling.values()]


class Bucket:
    """One bucket: the layout of its gradients in a flat buffer, which holds their sums over workers after an exchange."""

    def __init__(self, specs: Mapping[str, GradientSpec]) -> None:
        self._layout = Layout(specs)
        (self.buffer,) = self._layout.empty()
        self.views = self._layout.views([self.buffer])

    def fill(self, gradients: Mapping[str, np.ndarray]) -> None:
        """Copies gradients into the buffer: zeros for those that are missing."""
        for path, view in self.views.items():
            view[...] = gradients.get(path, 0)


class Buckets:
    """The buckets of parameters in the order in which they are exchanged.

    ``begin`` fills the next bucket and starts its exchange in a thread; ``finish`` does it for the others, and waits for all.
    """

    def __init__(self, specs: Mapping[str, GradientSpec], order: Sequence[str], limit: int) -> None:
        self.order = tuple(order)
        self._specs = specs
        self._buckets = [Bucket({path: specs[path] for path in paths}) for paths in cut(specs, order, limit)]
        self._numbers = {path: number for number, bucket in enumerate(self._buckets) for path in bucket.views}
        self._running: list[Running] = []

    def fits(self, specs: Mapping[str, GradientSpec], order: Sequence[str]) -> bool:
        """Whether the buckets are those of parameters in this order."""
        return self.order == tuple(order) and (specs is self._specs or all(specs[p] == self._specs[p] for p in order))

    @property
    def begun(self) -> int:
        """The number of buckets whose exchange has begun."""
        return len(self._running)

    def has_begun(self, path: str) -> bool:
        """Whether the exchange of the gradient of a parameter has begun."""
        return self._numbers.get(path, self.begun) < self.begun

    def next_paths(self) -> Iterable[str]:
        """The key paths of the next bucket; none where all have begun."""
        return self._buckets[self.begun].views if self.begun < len(self._buckets) else ()

    def begin(self, gradients: Mapping[str, np.ndarray], communicator: Communicator, seconds: float) -> None:
        """Fills the next bucket with gradients, and begins its exchange."""
        bucket = self._buckets[self.begun]
        bucket.fill(gradients)
        self._running.append(
            communicator.begin(lambda: communicator.all_reduce([bucket.buffer], op="sum", timeout=seconds))
        )

    def finish(self, gradients: Mapping[str, np.ndarray], communicator: Communicator, seconds: float) -> None:
        """Completes all sums; ``gradients`` are those of buckets that have not begun.

        Raises the error of an exchange once none is under way.
        """
        if not self._running and len(self._buckets) == 1:  # there is nothing to overlap
            self._buckets[0].fill(gradients)
            communicator.all_reduce([self._buckets[0].buffer], op="sum", timeout=seconds)
        else:
            try:
                while self.begun < len(self._buckets):
                    self.begin(gradients, communicator, seconds)
                for running in self._running:
                    running.result()
            finally:
                self.drop()

    def mean(self, count: int) -> dict[str, np.ndarray]:
        """The means of ``count`` gradients by key path, as views of the buffers, whose sums it divides."""
        for bucket in self._buckets if count != 1 else ():
            np.divide(bucket.buffer, bucket.buffer.dtype.type(count), out=bucket.buffer)
        return {path: view for bucket in self._buckets for path, view in bucket.views.items()}

    def drop(self) -> None:
        """Waits for the exchanges that have begun, and forgets their results and errors."""
        for running in self._running:
            running.wait()
        self._running.clear()
