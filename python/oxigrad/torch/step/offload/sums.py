"""Sums of the gradients of micro-batches in host memory: each gradient is copied down, added there, and given back."""

import dataclasses
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from oxigrad._core import StateError
from oxigrad.ops.backends.memory.worker import Worker
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.device.piece_run import packed
from oxigrad.stepping.plan.announcements import named
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.offload.pieces import Addend, SumPiece, aligned, check_dtype
from oxigrad.torch.step.offload.run import HostRun, Ring
from oxigrad.torch.step.plan import TensorPlace


@dataclasses.dataclass
class _Sum:
    """The memory of the sum of a parameter's gradients, which is used in later steps too."""

    parameter: "weakref.ref[Any]"
    path: str
    total: Any
    is_empty: bool = True

    def is_of(self, p: Any, dtype: Any) -> bool:
        """Whether it has a place for each element of a parameter."""
        return self.parameter() is p and self.total.shape == p.shape and self.total.dtype == dtype


class GradientSums:
    """The sums of the gradients of micro-batches, by parameter, in memory that is not page-locked.

    Args:
        ring: the memory of copies.
        worker: the worker of all steps of the optimizer.
        size: the bytes of a piece.
        places: the number of pieces that are on their way at the same time.
        dtype: the dtype of the sums; None for that of each gradient.
    """

    def __init__(self, ring: Ring, worker: Worker, *, size: int, places: int, threads: int | None, dtype: Any) -> None:
        self._ring, self._worker = ring, worker
        self._size, self._places, self._threads, self._dtype = size, places, threads, dtype
        self._sums: dict[int, _Sum] = {}
        self._run: HostRun | None = None
        # The parameters whose gradients are on their way. A second one waits for the first, so that they are added in
        # order.
        self._adding: set[int] = set()

    def __contains__(self, p: Any) -> bool:
        total = self._sums.get(id(p))
        return total is not None and not total.is_empty and total.parameter() is p

    def check_none(self) -> None:
        """Raises `StateError` while there are gradients: a copy of the optimizer would lack them."""
        paths = [total.path for total in self._sums.values() if not total.is_empty]
        if paths:
            raise StateError(
                f"{named(paths)}: gradients of micro-batches are in host memory: expected step() or zero_grad() before "
                "the optimizer is copied"
            )

    def add(self, opt: Any, places: Sequence[TensorPlace]) -> None:
        """Begins to add the gradients of parameters. `advance` lets the copies go on.

        Raises `RuntimeError` for a gradient of another dtype than its parameter, and `MemoryError` where there is none
        for a sum.
        """
        for place in places:
            check_dtype(place.path, place.tensor.grad, place.tensor)
        if any(id(place.tensor) in self._adding for place in places):
            self.finish(opt)
        sums = [self._sum(place) for place in places]
        parts = [each for place, total in zip(places, sums, strict=True) for each in self._parts(place, total)]
        if self._run is None:
            self._run = HostRun(self._ring, self._places, None, self._worker, threads=self._threads)
        pieces = [SumPiece(each) for each in packed(parts, self._size, lambda addend: addend.gradient.device)]
        self._run.prepare([(pieces, None)])
        self._run.add([(pieces, None)])
        for place, total in zip(places, sums, strict=True):
            total.is_empty = False
            self._adding.add(id(place.tensor))

    def _sum(self, place: TensorPlace) -> _Sum:
        """The sum of a parameter's gradients; a new one has no values."""
        p = place.tensor
        dtype = self._dtype if half(p) and self._dtype is not None else p.dtype
        total = self._sums.get(id(p))
        if total is None or not total.is_of(p, dtype):
            try:
                memory = torch.empty_like(p.data, dtype=dtype, device="cpu")
            except RuntimeError as error:
                raise MemoryError(
                    f"{place.path}: no host memory of {p.numel() * dtype.itemsize:,} bytes for the sum of gradients: "
                    f"{error}"
                ) from error
            total = self._sums[id(p)] = _Sum(weakref.ref(p), place.path, memory)
        return total

    def _parts(self, place: TensorPlace, total: _Sum) -> Iterator[tuple[Addend, int]]:
        """A gradient in parts of at most the bytes of a piece, with their bytes.

        A whole one where its elements lie in another order.
        """
        g, of_all = conversion.local(place.tensor.grad), conversion.local(total.total)
        if g.nbytes <= self._size or not (g.is_contiguous() and of_all.is_contiguous()):
            yield Addend(place.path, g, of_all, total.is_empty), aligned(g.nbytes)
            return
        count = max(self._size // g.element_size(), 1)
        for part, of_sum in zip(g.view(-1).split(count), of_all.view(-1).split(count), strict=True):
            yield Addend(place.path, part, of_sum, total.is_empty), aligned(part.nbytes)

    def advance(self, opt: Any) -> None:
        """Lets copies and additions go on beside the backward."""
        if self._run is not None:
            self._run.advance_beside(opt)

    def finish(self, opt: Any) -> None:
        """Waits until all gradients are added. After an error, to call it again continues; no key stops an addition."""
        run = self._run
        if run is not None:
            run.join()
            self._worker.run(lambda: self._end(opt, run))

    def _end(self, opt: Any, run: HostRun) -> None:
        run.finish(opt)
        self._run = None
        self._adding.clear()

    def of(self, places: Sequence[TensorPlace]) -> dict[int, Any]:
        """The sums that there are of these parameters, by identity."""
        chosen = [place.tensor for place in places if place.tensor in self]
        return {id(p): conversion.local(self._sums[id(p)].total) for p in chosen}

    def drop(self, places: Sequence[TensorPlace]) -> None:
        """Begins the sums of these parameters anew: a step has them."""
        for place in places:
            if place.tensor in self:
                self._sums[id(place.tensor)].is_empty = True

    def clear(self) -> None:
        """Begins all sums anew."""
        if self._run is not None:
            self._run.abandon()
        self._run = None
        self._adding.clear()
        self._sums = {key: total for key, total in self._sums.items() if total.parameter() is not None}
        for total in self._sums.values():
            total.is_empty = True
