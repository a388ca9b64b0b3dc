"""Parameters on a device with their state in host memory, ``state_device="host"``: the choice, and their steps."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import _core
from oxigrad._core import StateError
from oxigrad.ops.backends.memory.torch_transfers import device_of
from oxigrad.stepping.placement.ring import SMALLEST, Ring, packed, piece_size
from oxigrad.stepping.placement.slices import Slice, aligned, sliced
from oxigrad.stepping.plan.announcements import named, updated
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.offload import pieces
from oxigrad.torch.step.offload.pieces import TensorPiece
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.offload.steps import PieceSteps
from oxigrad.torch.step.plan import TensorPlace, needs_all
from oxigrad.torch.step.resolved import all_parameters, is_recorded, lists_of


@dataclasses.dataclass(frozen=True)
class HostMemory:
    """The value of ``state_device`` for a state in the memory of the host; ``"host"`` is ``HostMemory()``.

    Parameters stay on their device. A step copies gradients into host memory, in pieces; the core updates master
    weights and slots there, and the new parameters are copied back.

    Args:
        fraction: the share of the parameters' bytes whose state is in host memory, from 0 to 1: the largest parameters
            first, up to the first with which it is reached. The others are updated on their device.
        piece: the bytes of a piece, gradients and parameters together; by default a sixteenth of all parameters, from
            32 MiB to 128 MiB. Large pieces save time of the host; small ones overlap copies and updates.
        places: the number of pieces that are on their way at the same time.
        threads: the largest number of threads of an update, to leave processors to data loaders or a forward pass; by
            default `oxigrad.get_num_threads()`. No bit depends on it.

    Raises `ValueError` for values out of these ranges.

    >>> import torch
    >>> from oxigrad.torch import AdamW, HostMemory
    >>> weight = torch.nn.Parameter(torch.ones(3))  # on a GPU: device="cuda"
    >>> opt = AdamW([weight], lr=0.5, state_device=HostMemory(piece=1 << 20))
    >>> weight.sum().backward()
    >>> opt.step()
    >>> weight.detach(), opt.state[weight]["exp_avg"].device
    (tensor([0.4950, 0.4950, 0.4950]), device(type='cpu'))
    """

    fraction: float = 1.0
    piece: int | None = None
    places: int = 4
    threads: int | None = None

    def __post_init__(self) -> None:
        ranges = {
            "fraction": (0.0, 1.0),
            "piece": (1, 1 << 40),
            "places": (1, 1 << 20),
            "threads": (1, 1024),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is None and name in ("piece", "threads"):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise ValueError(f"{name} is {value!r}: expected a number from {low} to {high}")
            if name != "fraction" and int(value) != value:
                raise ValueError(f"{name} is {value!r}: expected a whole number")


class HostSteps(PieceSteps):
    """The steps of an optimizer whose state is in host memory, and the sums of gradients of its micro-batches."""

    def __init__(self, memory: HostMemory) -> None:
        self.memory = memory
        self._piece = memory.piece or SMALLEST
        # The groups and their parameters that some were chosen of.
        self._groups = _core.Signature([], {})
        self._chosen: set[int] = set()
        # The memory of sums, which later steps use too, by the parameter.
        self._memory: Any = torch.utils.weak.WeakTensorKeyDictionary()
        #: The parameters that have a sum, with their names.
        self.sums: dict[Any, str] = {}
        ring: Ring[Any] = Ring(lambda device: device_of(device), threads=memory.threads, within=torch.no_grad)
        super().__init__(ring, collects=True)

    def holds(self, opt: Any, p: Any) -> bool:
        """Whether the state of a parameter is in host memory."""
        lists = lists_of(opt)
        if not self._groups.holds(lists, {}):
            params, self._groups = all_parameters(opt), _core.Signature(lists, {})
            self._chosen = _chosen(params, self.memory.fraction)
            if self.memory.piece is None:
                self._piece = piece_size(sum(2 * p.nbytes for p in params))
        return id(p) in self._chosen

    _is_here = holds

    def streams(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated in host memory, and its gradient can go there before all are final."""
        return self.holds(opt, p) and not needs_all(opt)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _begin(self, opt: Any) -> None:
        self.finish_sums()
        super()._begin(opt)
        self._begin_ring(is_bounded=self._norm is None and not needs_all(opt), collects=self._norm is not None)

    def _begin_ring(self, *, is_bounded: bool = True, collects: bool = False) -> None:
        self._ring.begin(self.memory.places if is_bounded else None, size=self.memory.piece or 0, collects=collects)

    def _check(self, opt: Any, places: Sequence[TensorPlace]) -> None:
        name = type(opt).__name__
        if is_recorded(opt.param_groups):
            raise ValueError(f"{name}: state_device='host' excludes differentiable=True and capturable=True")
        for place in places:
            if conversion.is_distributed(place.tensor):
                raise RuntimeError(f"{place.path}: state_device='host' is not supported for a DTensor")
        super()._check(opt, places)
        if needs_all(opt) and not all(self.holds(opt, place.tensor) for place in places):
            raise ValueError(
                f"{name}: fraction is {self.memory.fraction}: expected 1 for rules that need all gradients at once"
            )

    def _cut(self, batch: HostBatch, *, is_whole: bool) -> list[TensorPiece]:
        norm, parameters = self._norm, batch.plan.parameters
        totals = {id(p.tensor): (self._memory[p.tensor], True) for p in parameters if p.tensor in self.sums}
        if is_whole:
            return [TensorPiece(batch, [Slice(p.text, p, 0, p.tensor.numel()) for p in parameters], totals)]
        size_of: Callable[[Slice], int] = lambda each: 2 * aligned(each.length * each.leaf.dtype.itemsize)  # noqa: E731
        slices = pieces.cut(batch, parameters, size_of, self._piece, is_whole=norm is not None)
        return [TensorPiece(batch, each, totals, norm) for each in slices]

    # --- micro-batches ------------------------------------------------------------------------------------------------

    def accumulate(self, places: Sequence[TensorPlace]) -> None:
        """Adds gradients of a micro-batch to their sums in host memory. `advance` begins the copies.

        Raises `RuntimeError` in the middle of a step, and for a gradient of another dtype than its parameter;
        `MemoryError` where there is none for a sum.
        """
        if self.is_under_way:
            raise RuntimeError(
                f"{places[0].path}: a gradient of a micro-batch, and {updated(self.ahead)} in "
                "a step that is not finished: expected step()"
            )
        totals = {id(place.tensor): (self._sum(place), place.tensor in self.sums) for place in places}
        if self._ring.is_finished:
            self._ring.join()
            self._begin_ring()
        sized = [each for place in places for each in self._sliced(place, totals[id(place.tensor)][0])]
        added = [TensorPiece(None, each, totals) for each in packed(sized, self._piece, pieces.device_of)]
        self._ring.prepare(added)
        self._ring.add(added)
        self.sums |= {place.tensor: place.path for place in places}

    def _sum(self, place: TensorPlace) -> Any:
        """The memory of the sum of a parameter's gradients, which is not page-locked; a new one has no values."""
        p = place.tensor
        total = self._memory.get(p)
        if total is None or total.shape != p.shape or total.dtype != p.dtype:
            try:
                total = torch.empty_like(p.data, device="cpu")
            except RuntimeError as error:
                raise MemoryError(
                    f"{place.path}: no host memory of {p.nbytes:,} bytes for the sum of gradients: {error}"
                ) from error
            self._memory[p] = total
            self.sums.pop(p, None)
        return total

    def _sliced(self, place: TensorPlace, total: Any) -> list[tuple[Slice, int]]:
        """A gradient in slices with their bytes."""
        g = conversion.local(place.tensor.grad)
        is_cut = g.is_contiguous() and conversion.local(total).is_contiguous()
        size_of: Callable[[Slice], int] = lambda each: aligned(each.length * g.element_size())  # noqa: E731
        return sliced(place.path, place, g.numel(), size_of, self._piece, is_cut=is_cut)

    def _added(self, places: Sequence[TensorPlace]) -> None:
        for place in places:
            self.sums.pop(place.tensor, None)

    def finish_sums(self) -> None:
        """Waits until all gradients are added. After an error, to call it again continues; no key stops an addition."""
        if not self._is_begun and self._ring.pieces:
            self._ring.join()
            self._ring.worker.run(self._ring.advance)
            self._begin_ring()

    def drop_sums(self) -> None:
        """Begins all sums anew."""
        if not self._is_begun:
            self._ring.abandon()
            self._begin_ring()
        self.sums.clear()

    def check_no_sums(self) -> None:
        """Raises `StateError` while there are sums: a copy of the optimizer would lack them."""
        if self.sums:
            raise StateError(
                f"{named([*self.sums.values()])}: gradients of micro-batches are in host memory: expected step() or "
                "zero_grad() before the optimizer is copied"
            )


def _chosen(params: Sequence[Any], fraction: float) -> set[int]:
    """The identities of the largest parameters that have a fraction of all bytes."""
    params = sorted(params, key=lambda p: -p.nbytes)
    *before, total = itertools.accumulate((p.nbytes for p in params), initial=0)
    return {id(p) for p, size in zip(params, before, strict=True) if fraction == 1 or size < fraction * total}
