"""Steps that are taken piece by piece: after an error they tell which parameters are ahead, and are completed.

Slots lie in host memory for parameters on a device: gradients and parameters come down, and parameters go up. Or they
lie in a file larger than memory. Whole pieces of it are read and written, at the speed of the disk, not single pages.
"""

import itertools
import mmap
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from oxigrad import _core
from oxigrad._core import StateError
from oxigrad.ops.backends import resolved
from oxigrad.ops.backends.memory.file_transfers import FileDevice
from oxigrad.ops.backends.memory.torch_transfers import device_of
from oxigrad.ops.backends.memory.transfers import Copies
from oxigrad.step.parameters.executor import HOST, executor_of
from oxigrad.step.placement.ring import SMALLEST, Ring, packed, piece_size
from oxigrad.step.placement.slices import Measures, aligned, sliced
from oxigrad.step.plan.announcements import Assignments, named, updated
from oxigrad.step.slice import Slice
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.state.file import StateFile
from oxigrad.torch.step.offload import pieces
from oxigrad.torch.step.offload.host import HostMemory
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.plan import (
    TensorParameter,
    TensorPlace,
    clips,
    measuring_norm,
    needs_all,
    places_of,
    refuse_shared_memory,
)
from oxigrad.torch.step.resolved import TensorStep, all_parameters, is_recorded, lists_of

# The pieces that are on their way at the same time; the bytes of a piece of a file; and the part of the memory limit
# that a piece may take which is one parameter. Slots of larger parameters stay mapped.
_PLACES, _PIECE, _SHARE = 4, 1 << 24, 1 / 32


class PieceSteps:
    """The steps of an optimizer whose slots lie in host memory or in a ``file``, and sums of its micro-batches.

    Pieces measure the norm that clips gradients of a device too; that of gradients in host memory is measured before.
    """

    memory: HostMemory

    def __init__(self, memory: HostMemory, file: StateFile | None = None) -> None:
        self.memory, self._file = memory, file
        # The bytes of a piece, and those of a place of a file that slots of a parameter may take.
        self._piece, self._largest = memory.piece or SMALLEST, 0
        # The groups and their parameters that some were chosen of.
        self._groups = _core.Signature([], {})
        self._chosen: set[int] = set()
        # The memory of sums, which later steps use too, by the parameter.
        self._memory: Any = torch.utils.weak.WeakTensorKeyDictionary()
        #: The parameters that have a sum, with their names.
        self.sums: dict[Any, str] = {}
        self._lock, self._measured = _core.Lock(), Measures()
        self._ring: Ring[pieces.TensorPiece] = Ring(self._copies, threads=memory.threads, within=torch.no_grad)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._ring.begin(None)
        if self._file is not None:
            self._ring.release()
        self._is_begun = False
        self._measured.clear()
        #: The partial sums of all pieces, in a step that measures them before it writes.
        self._measures: Measures | None = None
        #: The norm of all gradients, in a step that scales them by it once it is measured.
        self._norm: Measures | None = None
        #: The gradients that a step has begun with, where all were added; None before.
        self._taken: dict[int, Any] | None = None
        #: The step of the parameters that are not updated piece by piece, and the scale of the loss.
        self._resident: TensorStep | None = None
        self._scale: float | None = None
        #: The bytes of gradients that may not have been used yet.
        self._waiting = 0

    def _copies(self, device: Any) -> Copies:
        """The copies between host memory and a device of parameters, or the file."""
        return device_of(device) if self._file is None else FileDevice(self._file)

    # --- the parameters -----------------------------------------------------------------------------------------------

    def holds(self, opt: Any, p: Any) -> bool:
        """Whether the state of a parameter is in host memory; of a file, whether the parameter is updated there."""
        if self._file is not None:
            return _is_in_host_memory(p)
        lists = lists_of(opt)
        if not self._groups.holds(lists, {}):
            params, self._groups = all_parameters(opt), _core.Signature(lists, {})
            self._chosen = _chosen(params, self.memory.fraction)
            if self.memory.piece is None:
                self._piece = piece_size(sum(2 * p.nbytes for p in params))
        return id(p) in self._chosen

    def streams(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated by pieces, and its gradient can be used before all gradients are final."""
        if needs_all(opt) or not self.holds(opt, p):
            return False
        if self._file is None:
            return True
        is_clipped_later = clips(opt) and opt._backward.measured is None
        return not is_clipped_later and bool(opt.state.get(p)) and (self._is_begun or self._file.is_beyond_memory)

    def _accepts(self, opt: Any) -> bool:
        """Whether a step with gradients none of which has been used is taken by pieces: not one of a small file."""
        if self._file is None:
            return True
        if not self._file.is_large or opt._backward is not None or is_recorded(opt.param_groups):
            return False
        return all(self.holds(opt, place.tensor) for place in places_of(opt) if place.tensor.grad is not None)

    def _check(self, opt: Any, places: Sequence[TensorPlace]) -> None:
        """Raises for parameters that a step cannot take."""
        name = type(opt).__name__
        if is_recorded(opt.param_groups):
            raise ValueError(f"{name}: state_device='host' excludes differentiable=True and capturable=True")
        for place in places:
            if conversion.is_distributed(place.tensor):
                raise RuntimeError(f"{place.path}: state_device='host' is not supported for a DTensor")
        for place in places:
            opt.check_gradient(place.path, place.tensor)
        refuse_shared_memory(places, gradients=True)
        if needs_all(opt) and not all(self.holds(opt, place.tensor) for place in places):
            raise ValueError(f"{name}: fraction is {self.memory.fraction}: expected 1 if a rule needs all gradients")

    # --- steps --------------------------------------------------------------------------------------------------------

    def _begin(self, opt: Any) -> None:
        """Begins a step."""
        self.finish_sums()
        self._ring.begin(None)
        self._is_begun = True
        is_clipped = clips(opt) and not needs_all(opt)
        self._norm = ((opt._backward and opt._backward.measured) or self._measured) if is_clipped else None

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters that are a step ahead of the others, after an error in a step."""
        return self._ring.ahead if self._is_begun else []

    @property
    def is_under_way(self) -> bool:
        """Whether a step was begun and is not finished."""
        return self._is_begun and bool(self._ring.pieces)

    def reset(self) -> None:
        """Begins anew with another state; an update that is under way ends first, and has no effect."""
        if self._is_begun:
            self._ring.abandon()
            self._ring.join_devices()
            self._begin_anew()

    def stream(self, opt: Any, places: Sequence[TensorPlace], marks: Assignments) -> None:
        """Adds parameters whose gradients are final, to be updated before ``step()`` ends, and makes ``marks``.

        No interrupt comes between. `advance` begins the copies. Of gradients in host memory few wait at once: others
        are used before.
        """
        size = 0 if self._file is None else sum(place.tensor.grad.nbytes for place in places)
        if self._waiting + size > _PIECE:
            self._use()
            self._waiting = 0
        self._waiting += size
        if not self.is_under_way:
            self._begin(opt)
        with conversion.kept_on_error(opt.state, [place.tensor for place in places]):
            added = self._pieces(opt, places, streams=True)
            _core.Stepper().write(None, _core.Writes(assignments=[*self._ring.additions(added), *marks]))
        self._added(places)
        if self._file is not None and any(piece.is_mapped for piece in added):
            with self._file.writing_back():
                self._use()

    def advance(self) -> None:
        """Lets copies and updates go on beside the backward."""
        if self._ring.pieces:
            self._ring.advance_beside()

    def _use(self) -> None:
        """Waits for all that pieces which are there still have to do."""
        self._ring.join()
        self._ring.worker.run(self._ring.advance)

    def take(self, opt: Any, scale: float | None, loss: Any) -> bool:
        """Takes a step, or completes one that an error has ended.

        False, with nothing done, where it is not to be taken by pieces.

        No key stops it: an interrupt comes before the step, or is raised when it has ended. It is taken in a `turn`.
        """
        if not self.is_under_way:
            if not self._accepts(opt):
                return False
            self._begin(opt)
        self._ring.join()
        add: Callable[[], None] = lambda: None  # noqa: E731
        if self._taken is not None:
            self._check_same(opt)
        else:
            try:
                add = self._prepared(opt, scale, loss)
            except Exception:
                if not self._ring.pieces:
                    self._begin_anew()
                raise
        self._ring.worker.run(lambda: (add(), self._finish(opt, loss)))
        return True

    def turn(self) -> AbstractContextManager[None]:
        """A block with a step. Threads take steps one after the other."""
        return self._lock.stepping()

    def _prepared(self, opt: Any, scale: float | None, loss: Any) -> Callable[[], None]:
        """The function that adds all gradients that are there, and the parameters that are not updated by pieces.

        Nothing of it can fail.
        """
        places = [place for place in places_of(opt) if place.tensor.grad is not None]
        self._check(opt, places)
        here, others = list[TensorPlace](), list[TensorPlace]()
        for place in places:
            (here if self.holds(opt, place.tensor) else others).append(place)
        if (norm := self._norm) is not None:
            measure = measuring_norm(opt, norm)
            for place in others if self._file is None else here:
                measure(place, *(conversion.local(t).cpu() for t in (place.tensor.grad, place.tensor)))
        with conversion.kept_on_error(opt.state):
            resident = None
            if others:
                square = None if self._norm is None else self._norm.square
                resident = TensorStep(opt, scaled=scale is not None, places=others, square=square)
            added = self._pieces(opt, here, scale, loss)

        def add() -> None:
            self._ring.add(added)
            self._added(here)
            self._resident, self._scale = resident, scale
            self._taken = {id(place.tensor): place.tensor.grad for place in places}

        return add

    def _pieces(
        self,
        opt: Any,
        places: Sequence[TensorPlace],
        scale: float | None = None,
        loss: Any = None,
        *,
        streams: bool = False,
    ) -> list[pieces.TensorPiece]:
        """The pieces of parameters, whose copies begin after the work that their devices were given so far.

        The versions of the parameters are raised: a backward does not read what the update will have changed.
        """
        square = None if self._norm is None or self._file is None else self._norm.square
        batch, is_first = HostBatch(opt, places, scale=scale, loss=loss, square=square), not self._ring.pieces
        if is_first:
            self._begin_pieces(batch, streams=streams)
        if self._measures is not None:
            batch.measure_in(self._measures)
        added = self._cut(batch)
        for p in batch.plan.parameters:
            torch.autograd.graph.increment_version(p.tensor)
        self._ring.prepare(added)
        return added

    def _begin_pieces(self, batch: HostBatch, *, streams: bool) -> None:
        """Begins a step that has a batch, whose pieces are measured before any is used where they can be.

        That is for values over all parameters. Slots of a file are read once more for all sums, unless gradients are
        used in the backward; gradients of a device are not: all of them would wait in host memory.
        """
        units = [batch.unit(p) for p in batch.plan.parameters]
        count, size = _PLACES, self.memory.piece or 0
        if self._file is not None:
            # Slots of a parameter that cannot be cut stay mapped where they take more.
            self._largest = max(int(_SHARE * self._file.memory_limit), mmap.PAGESIZE)
            self._piece = size = min(_PIECE, self._largest)
            is_measured = not streams and any(unit > 1 for unit in units)
        else:
            is_measured = batch.plan.needs_all
            count = None if is_measured else count
        sums = self._measured if self._file is None else Measures()
        self._measures = sums if is_measured and all(units) else None
        self._ring.begin(count, size=size, fold=self._measures and self._measures.fold)

    def _cut(self, batch: HostBatch) -> list[pieces.TensorPiece]:
        """The parameters of a batch in pieces; in one where their step needs all at once."""
        plan, file = batch.plan, self._file
        totals = {id(p.tensor): (self._memory[p.tensor], True) for p in plan.parameters if p.tensor in self.sums}
        parameters = plan.parameters if file is None else _in_order(batch, file)
        if plan.needs_all and batch.measures is None:
            # In the order of the plan, by which their values are summed.
            cut = [[Slice(p.text, p, 0, conversion.local(p.tensor).numel()) for p in plan.parameters]]
        else:
            cut = pieces.cut(batch, parameters, self._size_of(batch), self._piece)
        return [pieces.TensorPiece(batch, each, totals, file=file, largest=self._largest) for each in cut]

    def _size_of(self, batch: HostBatch) -> Callable[[Slice], int]:
        """The function that returns the bytes of a place that a slice takes: with its gradient, or with its slots."""
        if self._file is None:
            return lambda each: 2 * aligned(each.count * each.leaf.dtype.itemsize)

        def size_of(each: Slice) -> int:
            count = sum(aligned(tensor.nbytes) for _, tensor in batch.plan.slots[each.path].arrays())
            return count * each.count // max(conversion.local(each.leaf.tensor).numel(), 1)

        return size_of

    def _finish(self, opt: Any, loss: Any) -> None:
        """Finishes the step that is under way, in the thread of the worker."""
        if not self._is_begun:  # a step that an interrupt of the wait for it has not stopped
            return
        self._ring.close()
        if self._measures is not None:
            self._measures.complete()
        self._ring.advance()
        if self._resident is not None:
            with torch.no_grad():
                self._resident.take(opt, 1.0 if self._scale is None else self._scale, loss)
            self._resident = None
        self._ring.join_devices()
        for batch in {id(piece.batch): piece.batch for piece in self._ring.pieces.values()}.values():
            batch.count()
        self._begin_anew()

    def _check_same(self, opt: Any) -> None:
        """Raises `RuntimeError` for other gradients than those of the step that an error has ended."""
        taken = self._taken or {}
        if any(p.grad is not None and taken.get(id(p)) is not p.grad for p in all_parameters(opt)):
            raise RuntimeError(
                f"the step before was ended by an error, {updated(self.ahead)}, and there are other "
                "gradients: expected synchronize() first, which completes it"
            )

    def synchronize(self, opt: Any) -> None:
        """Completes a step that an error has ended."""
        with self._lock.stepping():
            if self._is_begun and self._taken is not None:
                self._ring.join()
                self._ring.worker.run(lambda: self._finish(opt, None))

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
            self._ring.begin(_PLACES, size=self.memory.piece or 0)
        sized = [each for place in places for each in self._sliced(place, totals[id(place.tensor)][0])]
        added = [pieces.TensorPiece(None, each, totals) for each in packed(sized, self._piece, pieces.device_of)]
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
        unit = int(g.is_contiguous() and conversion.local(total).is_contiguous())
        size_of: Callable[[Slice], int] = lambda each: aligned(each.count * g.element_size())  # noqa: E731
        return sliced(place.path, place, g.numel(), size_of, self._piece, unit=unit)

    def _added(self, places: Sequence[TensorPlace]) -> None:
        for place in places:
            self.sums.pop(place.tensor, None)

    def finish_sums(self) -> None:
        """Waits until all gradients are added. After an error, to call it again continues; no key stops an addition."""
        if not self._is_begun and self._ring.pieces:
            self._use()
            self._ring.begin(None)

    def drop_sums(self) -> None:
        """Begins all sums anew."""
        if not self._is_begun:
            self._ring.abandon()
            self._ring.begin(None)
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


def _is_in_host_memory(p: Any) -> bool:
    """Whether a parameter in host memory and its gradient can be updated where they are."""
    if conversion.is_distributed(p) or p.device.type != "cpu" or p.grad is None or p.grad.layout is not torch.strided:
        return False
    tensor, gradient = conversion.local(p.data), p.grad
    return executor_of(tensor) is HOST and gradient.dtype == p.dtype and resolved(gradient) is gradient


def _in_order(batch: HostBatch, file: StateFile) -> list[TensorParameter]:
    """The parameters of a batch in the order of their slots in the file, once these are checked."""
    plan = batch.plan
    _core.Stepper().prepare(batch.host_parameters([*map(plan.read, plan.tensors)], plan.slots))

    def start(p: TensorParameter) -> int:
        """The first byte in the file of the slots of a parameter."""
        return min((file.start_of(tensor) or 0 for _, tensor in plan.slots[p.text].arrays()), default=0)

    return sorted(plan.parameters, key=start)
