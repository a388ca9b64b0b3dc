"""Steps whose slots lie in a file larger than memory, ``state_device=path``: pieces are read, updated, written.

Reads and writes of whole pieces take the disk's time, where faults of the pages of the mapped file take several times
as much.
"""

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oxigrad import _core
from oxigrad.ops.backends import resolved
from oxigrad.stepping.device.piece_run import packed
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.plan.announcements import Assignments
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.state.file import StateFile
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.devices import FileDevice
from oxigrad.torch.step.offload.pieces import Pair, Part, Piece, aligned, divided, viewed, whole
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.offload.run import HostRun, Ring
from oxigrad.torch.step.offload.steps import PieceSteps, is_together
from oxigrad.torch.step.plan import TensorPlace, clips, places_of, refuse_shared_memory
from oxigrad.torch.step.resolved import TensorStep, is_recorded
from oxigrad.torch.step.slots import TensorSlots

# The bytes of a piece, and the number of pieces that are read, updated or written at the same time.
_PIECE, _PLACES = 1 << 24, 4
# The part of the memory limit that a piece may take, where it is a parameter that cannot be cut. Slots of larger ones
# stay mapped.
_SHARE = 1 / 32


class FilePiece(Piece):
    """Parts of parameters in host memory whose slots are read from the file into a place, updated, and written back.

    In the place they lie as in the file, so that slots which are side by side there are read at once. Slots stay mapped
    where they take more than ``largest`` bytes.
    """

    def __init__(self, batch: HostBatch, parts: Sequence[Part], file: StateFile, largest: int) -> None:
        super().__init__(batch, parts)
        self._mapped = super()._slots(None)
        tensors = []
        for number, slots in enumerate(self._mapped):
            for key, tensor in slots.arrays():
                start = file.start_of(tensor)
                if start is not None and tensor.numel():
                    tensors.append((start, number, key, tensor))
        tensors.sort(key=lambda each: each[:2])
        # The first bytes of slots in the place of the piece; and the ranges of the file: begin there, begin in the
        # place, and bytes.
        self._seats: list[tuple[int, tuple[str, str], Any, int]] = []
        self._ranges: list[tuple[int, int, int]] = []
        self.size: int = 0
        if sum(tensor.nbytes for *_, tensor in tensors) <= largest:
            for start, number, key, tensor in tensors:
                self._seats.append((number, key, tensor, self._seat(start, tensor.nbytes)))
        #: Whether slots in the file are updated where they are mapped.
        self.is_mapped: bool = bool(tensors) and not self._seats
        #: The first byte in the file.
        self.start: int = tensors[0][0] if tensors else 0

    def _seat(self, start: int, count: int) -> int:
        """The first byte in the place of the ``count`` bytes of the file from ``start`` on."""
        before = self._ranges[-1] if self._ranges else (0, 0, 0)
        if self._ranges and before[0] == aligned(before[0]) and start == aligned(before[0] + before[2]):
            at = before[1] + start - before[0]
            self._ranges[-1] = (before[0], before[1], start - before[0] + count)
        else:
            # As far from the begin of a page as in the file, which reads of whole pages require.
            at = -(-self.size // mmap.PAGESIZE) * mmap.PAGESIZE + start % mmap.PAGESIZE
            self._ranges.append((start, at, count))
        self.size = aligned(at + count)
        return at

    def _placed(self, memory: Any) -> tuple[list[Any], list[Any]]:
        return self._gradients, self._weights

    def _slots(self, memory: Any) -> list[TensorSlots]:
        placed: list[dict[tuple[str, str], Any]] = [{} for _ in self._mapped]
        for number, key, tensor, at in self._seats:
            placed[number][key] = viewed(memory, at, tensor)
        return [slots.in_memory(tensors) for slots, tensors in zip(self._mapped, placed, strict=True)]

    def down(self, memory: Any) -> Iterator[Pair]:
        """The reads into its place: where they begin in the file, and the memory."""
        return ((start, memory[at : at + count]) for start, at, count in self._ranges)

    def landed(self, memory: Any) -> None:
        """Keeps the gradients, which the update reads."""

    def update(self, memory: Any) -> None:
        """Updates the parameters, and their slots in the place; then gives the gradients back."""
        super().update(memory)
        self._gradients = []

    def up(self, memory: Any) -> Iterator[Pair]:
        """The writes out of its place: the memory, and where they begin in the file."""
        return ((memory[at : at + count], start) for start, at, count in self._ranges)


class FileSteps(PieceSteps):
    """The steps of an optimizer whose slots lie in a file, once that is large beside the memory.

    After an error of the disk, as of a step in host memory, `ahead` names the parameters with elements that are
    updated, and the step can be completed.
    """

    def __init__(self, file: StateFile) -> None:
        super().__init__()
        self._file = file
        self._device = FileDevice(file)
        self._measured = MeasuredNorm()

    def _begin_anew(self) -> None:
        super()._begin_anew()
        #: The bytes of gradients that may not have been used yet.
        self._waiting = 0

    def streams(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated by pieces once its gradient is final: its slots lie in a large file."""
        is_clipped_later = clips(opt) and opt._backward.measured_norm is None
        if is_clipped_later or is_together(opt) or not opt.state.get(p) or not _is_simple(p):
            return False
        return self._run is not None or self._file.is_beyond_memory

    def stream(self, opt: Any, places: Sequence[TensorPlace], marks: Assignments) -> None:
        """See `PieceSteps.stream`. Few gradients wait at once: others are used before."""
        size = sum(place.tensor.grad.nbytes for place in places)
        run = self._begun()
        if self._waiting + size > _PIECE:
            self._use(opt, run)
            self._waiting = 0
        self._waiting += size
        with conversion.kept_on_error(opt.state, [place.tensor for place in places]):
            added = self._pairs(opt, places, None, None)
            self._add_marked(run, added, marks)
        if any(piece.is_mapped for pieces, _ in added for piece in pieces):
            with self._file.writing_back():
                self._use(opt, run)

    def _use(self, opt: Any, run: HostRun) -> None:
        """Waits for the updates of all gradients that are there."""
        run.join()
        self._worker.run(lambda: run.advance(opt))

    def take(self, opt: Any, scale: float | None, loss: Any) -> bool:
        """False for steps that are not taken by pieces: of a small file, or by a rule that needs all slots at once."""
        if self._run is None and not self._is_by_pieces(opt):
            return False
        if self._taken is None:
            places = [place for place in places_of(opt) if place.tensor.grad is not None]
            others = [place for place in places if not _is_simple(place.tensor)]
            if others and self._run is None:
                return False
            run = self._run or self._new_run()
            run.join()
            add = self._prepared(opt, run, places, others, scale, loss)
            self._worker.run(lambda: (add(), self._finish(opt, loss)))
        else:
            self._begun().join()
            self._check_same(opt)
            self._worker.run(lambda: self._finish(opt, loss))
        return True

    def _is_by_pieces(self, opt: Any) -> bool:
        is_large = self._file.is_large
        return is_large and not (opt._backward is not None or is_together(opt) or is_recorded(opt.param_groups))

    def _prepared(
        self,
        opt: Any,
        run: HostRun,
        places: Sequence[TensorPlace],
        others: Sequence[TensorPlace],
        scale: float | None,
        loss: Any,
    ) -> Callable[[], None]:
        """The function that adds all gradients that are there, once all is checked.

        ``others`` are taken with mapped slots, beside those of `stream`.
        """
        for place in places:
            opt.check_gradient(place.path, place.tensor)
        refuse_shared_memory(places, gradients=True)
        simple = [place for place in places if place not in others]
        if clips(opt):
            self._measured.clear()
            for place in simple:
                self._measured.add(opt, place)
        with conversion.kept_on_error(opt.state):
            resident = TensorStep(opt, scaled=scale is not None, places=others) if others else None
            added = self._pairs(opt, simple, scale, loss)
        run.prepare(added)

        def add() -> None:
            run.add(added)
            self._run, self._resident = run, resident
            self._taken = {id(place.tensor): place.tensor.grad for place in places}

        return add

    def _begun(self) -> HostRun:
        """The step that is on its way."""
        if self._run is None:
            self._run = self._new_run()
        return self._run

    def _new_run(self) -> HostRun:
        self._largest = max(int(_SHARE * self._file.memory_limit), mmap.PAGESIZE)
        return HostRun(Ring(min(_PIECE, self._largest), self._device), _PLACES, None, self._worker)

    def _pairs(
        self, opt: Any, places: Sequence[TensorPlace], scale: float | None, loss: Any
    ) -> list[tuple[list[FilePiece], HostBatch]]:
        """The pieces of parameters with their batches, in the order of the file."""
        norm = None if not clips(opt) else (opt._backward and opt._backward.measured_norm) or self._measured
        square = None if norm is None else norm.square
        is_elementwise = opt.entry.rule.elementwise
        parts = [places] if is_elementwise else [[place] for place in places]
        batches = [HostBatch(opt, part, scale=scale, loss=loss, square=square) for part in parts]
        for batch in batches:
            _core.Stepper().prepare(
                batch.program.host_parameters([*map(batch.plan.read, batch.plan.tensors)], batch.plan.slots)
            )
        pairs = [(self._cut(batch) if is_elementwise else self._whole(batch), batch) for batch in batches]
        return sorted(pairs, key=lambda pair: pair[0][0].start if pair[0] else 0)

    def _whole(self, batch: HostBatch) -> list[FilePiece]:
        """Each parameter of a batch in a piece of its own, whose rule is called."""
        return [FilePiece(batch, piece.parts, self._file, self._largest) for piece in whole(batch)]

    def _cut(self, batch: HostBatch) -> list[FilePiece]:
        """The parameters of a batch in pieces, in the order of the file."""
        plan, size = batch.plan, min(_PIECE, self._largest)
        parts: list[tuple[Part, int]] = []
        for p in sorted(plan.parameters, key=lambda p: self._start(plan.slots[p.text])):
            count = sum(aligned(tensor.nbytes) for _, tensor in plan.slots[p.text].arrays())
            elements = conversion.local(p.tensor).numel()
            most = (
                elements * size // count
                if count > size and conversion.local(p.tensor.grad).is_contiguous()
                else elements
            )
            divisions = divided(batch, p, most - most % mmap.PAGESIZE if mmap.PAGESIZE < most < elements else most)
            parts += [(part, count * (part.stop - part.start) // max(elements, 1)) for part in divisions]
        return [FilePiece(batch, each, self._file, self._largest) for each in packed(parts, size, lambda _: None)]

    def _start(self, slots: TensorSlots) -> int:
        """The first byte in the file of the slots of a parameter."""
        return min((self._file.start_of(tensor) or 0 for _, tensor in slots.arrays()), default=0)

    def _finish(self, opt: Any, loss: Any) -> None:
        run = self._run
        if run is None:  # a step that an interrupt of the wait for it has not stopped
            return
        if self._resident is not None:
            with torch.no_grad():
                self._resident.take(opt, 1.0, loss)
            self._resident = None
        run.finish(opt)
        self._begin_anew()

    def reset(self) -> None:
        """Begins anew with another state; what is on its way to the file ends first: its places are used again."""
        super().reset()
        self._device.join()


def _is_simple(p: Any) -> bool:
    """Whether a parameter in host memory and its gradient can be updated where they are."""
    if conversion.is_distributed(p) or p.device.type != "cpu" or p.grad.layout is not torch.strided:
        return False
    tensor, gradient = conversion.local(p.data), p.grad
    return executor_of(tensor) is HOST and gradient.dtype == p.dtype and resolved(gradient) is gradient
