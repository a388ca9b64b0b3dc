"""Sums of gradients over workers in buckets: flat buffers, each of which is exchanged while the next ones are filled.

The sum of an element is taken in the order of ranks, whatever bucket it is in, so that bits do not depend on buckets. A
worker receives the sums of all elements, or those of its slices of the parameters alone.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel.division import split, whole
from oxigrad.distributed.data_parallel.tensor_buckets import Queued, TensorBucket
from oxigrad.distributed.engines.background import Running
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.messages.reduction import part_of
from oxigrad.extend import Slice

_UNDER_WAY = 2


def cut(specs: Mapping[str, GradientSpec], order: Iterable[str], limit: float) -> list[list[str]]:
    """The key paths in ``order``, in buckets of one dtype that are closed once they have ``limit`` bytes.

    >>> specs = {name: GradientSpec.of(np.zeros(size)) for name, size in {"a": 1, "b": 3, "c": 1}.items()}
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
    """One bucket: the layout of its gradients in a flat buffer, which holds their sums over workers after an exchange.

    With ``slices``, those of each worker by rank, the gradients are laid out by worker, and each receives the sums of
    its own. These are copied where the buffer is in ``memory``, bytes that several buckets use in turn. So many
    ``flags`` follow the gradients, numbers that are summed as well.
    """

    def __init__(
        self,
        specs: Mapping[str, GradientSpec],
        slices: Sequence[Sequence[Slice]] | None = None,
        memory: np.ndarray | None = None,
        flags: int = 0,
    ) -> None:
        self.paths: tuple[str, ...] = tuple(specs)
        self._is_whole = slices is None
        self._parts = [[each for each in part if each.path in specs] for part in (slices or [whole(specs)])]
        self._counts = [sum(each.count for each in part) for part in self._parts]
        (dtype,) = {spec.dtype for spec in specs.values()}
        size = sum(self._counts)
        self._sent = np.zeros(size + flags, dtype) if memory is None else memory[: size * dtype.itemsize].view(dtype)
        self.buffer: np.ndarray = self._sent[:size]
        self.flags: np.ndarray = self._sent[size:]
        ends = [*itertools.accumulate(self._counts[:-1])]
        self._views = [*map(split, np.split(self.buffer, ends), self._parts)]
        self._sums: np.ndarray | None = None
        self._is_shared = memory is not None

    @property
    def nbytes(self) -> int:
        """The bytes of the gradients of a worker."""
        return self.buffer.nbytes

    def fill(self, gradients: Mapping[str, np.ndarray]) -> None:
        """Copies gradients into the buffer: zeros for those that are missing."""
        for part, views in zip(self._parts, self._views, strict=True):
            for each, view in zip(part, views, strict=True):
                gradient = gradients.get(each.path)
                view[...] = 0 if gradient is None else gradient if self._is_whole else each.of(gradient)

    def begin(self, communicator: Communicator, timeout: float | None) -> Running:
        """As `exchange`, in a thread."""
        return communicator.begin(lambda: self.exchange(communicator, timeout))

    def exchange(self, communicator: Communicator, timeout: float | None) -> None:
        """Replaces the gradients in the buffer by their sums over workers."""
        if self._is_whole:
            communicator.all_reduce([self._sent], op="sum", timeout=timeout)
        else:
            part = communicator.reduce_scatter(self.buffer, self._counts, op="sum", timeout=timeout)
            if self._is_shared:
                self._sums = part.copy()

    def mean(self, count: int, rank: int) -> dict[str, np.ndarray]:
        """The means of ``count`` gradients by key path, as views of the buffer: of a rank's slices if there are any."""
        if self._is_whole:
            sums, paths, views = self.buffer, self.paths, self._views[0]
        else:
            paths, views = [each.path for each in self._parts[rank]], self._views[rank]
            sums, self._sums = self._sums, None
            if sums is None:
                sums = self.buffer[part_of(self._counts, rank, len(self._counts), self.buffer.size)]
            else:
                views = split(sums, self._parts[rank])
        if count != 1:
            np.divide(sums, sums.dtype.type(count), out=sums)
        return dict(zip(paths, views, strict=True))


class Buckets:
    """The buckets of parameters in the order in which they are exchanged.

    With a ``group`` they are tensors: see `agreed_group`. ``begin`` fills the next bucket and starts its exchange in a
    thread; ``finish`` does it for the others, and waits for all. With ``slices`` two exchanges are under way at most:
    ``begin`` waits for the one before them.
    """

    def __init__(
        self,
        specs: Mapping[str, GradientSpec],
        order: Sequence[str],
        limit: float,
        slices: Sequence[Sequence[Slice]] | None = None,
        flags: int = 0,
        group: Any = None,
    ) -> None:
        self.order: tuple[str, ...] = tuple(order)
        self.slices: Sequence[Sequence[Slice]] | None = slices
        self._specs, self._limit, self._flags = specs, limit, flags
        specs_of_each = [{path: specs[path] for path in paths} for paths in cut(specs, order, limit)]
        # Where workers keep their own sums alone, buckets take turns in the memory of two.
        most = max((sum(spec.nbytes for spec in each.values()) for each in specs_of_each), default=0)
        is_ring = slices is not None and len(specs_of_each) > _UNDER_WAY
        self._ring = [np.empty(most, np.uint8) for _ in range(_UNDER_WAY)] if is_ring else []
        self._buckets: list[Bucket] | list[TensorBucket] = [
            TensorBucket(each, group) for each in specs_of_each if group
        ] or [
            Bucket(
                each,
                slices,
                self._ring[number % _UNDER_WAY] if is_ring else None,
                flags if number == len(specs_of_each) - 1 else 0,
            )
            for number, each in enumerate(specs_of_each)
        ]
        self._numbers = {path: number for number, bucket in enumerate(self._buckets) for path in bucket.paths}
        #: The numbers beside the gradients in the last bucket: set before it begins, their sums afterwards.
        self.flags: np.ndarray = self._buckets[-1].flags if self._buckets else np.zeros(0)
        #: The exchanges that have begun.
        self.running: list[Running | Queued] = []

    def fits(
        self,
        specs: Mapping[str, GradientSpec],
        order: Sequence[str],
        limit: float,
        slices: Sequence[Sequence[Slice]] | None,
        flags: int,
    ) -> bool:
        """Whether the buckets are for parameters in this order, with this limit, these slices and so many flags."""
        is_same = (self.order, self._limit, self._flags) == (tuple(order), limit, flags) and slices is self.slices
        return is_same and (specs is self._specs or self.has_specs({path: specs[path] for path in order}))

    def has_specs(self, specs: Mapping[str, GradientSpec]) -> bool:
        """Whether all of these parameters are in the buckets, with these shapes and dtypes."""
        return specs is self._specs or specs.items() <= self._specs.items()

    def __len__(self) -> int:
        """The number of buckets."""
        return len(self._buckets)

    @property
    def nbytes(self) -> int:
        """The bytes of the buffers."""
        return sum(each.nbytes for each in (self._ring or self._buckets))

    @property
    def begun(self) -> int:
        """The number of buckets whose exchange has begun."""
        return len(self.running)

    def has_begun(self, path: str) -> bool:
        """Whether the exchange of the gradient of a parameter has begun."""
        return self._numbers.get(path, self.begun) < self.begun

    def is_blocked(self, has_all: Callable[[Iterable[str]], bool]) -> bool:
        """Whether a bucket that has all of its gradients waits for another one, which does not."""
        return any(has_all(bucket.paths) for bucket in self._buckets[self.begun + 1 :])

    def next_paths(self) -> Iterable[str]:
        """The key paths of the next bucket; none where all have begun."""
        return self._buckets[self.begun].paths if self.begun < len(self._buckets) else ()

    def begin(self, gradients: Mapping[str, Any], communicator: Communicator, timeout: float | None) -> None:
        """Fills the next bucket with gradients, and begins its exchange."""
        bucket = self._buckets[self.begun]
        if (
            self._ring and self.begun >= _UNDER_WAY
        ):  # The exchange of the bucket that had this memory, and those before it, are to end.
            self.running[-_UNDER_WAY].wait()
        bucket.fill(gradients)
        self.running.append(bucket.begin(communicator, timeout))

    def finish(
        self, gradients: Mapping[str, Any], communicator: Communicator, timeout: float | None, flags: np.ndarray
    ) -> None:
        """Completes all sums; ``gradients`` belong to buckets that have not begun, ``flags`` to the last one.

        Raises the error of an exchange once none is under way.
        """
        if self._buckets and len(self.running) < len(self._buckets):
            self.flags[:] = flags
        if not self.running and len(self._buckets) == 1:  # there is nothing to overlap
            self._buckets[0].fill(gradients)
            self._buckets[0].exchange(communicator, timeout)
        else:
            try:
                while self.begun < len(self._buckets):
                    self.begin(gradients, communicator, timeout)
                for running in self.running:
                    running.result()
            finally:
                self.drop()

    def mean(self, count: int, rank: int) -> dict[str, Any]:
        """The means of ``count`` gradients by key path, as views of the buffers, whose sums it divides.

        See `Bucket.mean`.
        """
        means: dict[str, Any] = {}
        for bucket in self._buckets:
            means |= bucket.mean(count, rank)
        return means

    def drop(self) -> None:
        """Waits for the exchanges that have begun, and forgets their results and errors."""
        for running in self.running:
            running.wait()
        self.running.clear()
