"""Steps whose slots lie in a file that memory cannot hold, ``state_device=path``: pieces of them are read, updated and written.

Reads and writes of whole pieces take the disk's time, where faults of the pages of the mapped file take several times as much.
"""

import mmap
from collections.abc import Iterator, Sequence
from typing import Any

from oxigrad import _core
from oxigrad.ops.backends import resolved
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.state.file import StateFile
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.devices import FileDevice
from oxigrad.torch.step.offload.pieces import Pair, Part, Piece, RulePiece, aligned, divided, packed, viewed, whole
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.offload.run import HostRun, Ring
from oxigrad.torch.step.offload.steps import PieceSteps, clips, is_together
from oxigrad.torch.step.plan import TensorPlace, places_of, refuse_shared_memory
from oxigrad.torch.step.resolved import is_recorded
from oxigrad.torch.step.slots import TensorSlots

# The bytes of a piece, and the number of pieces that are read, updated or written at the same time.
_PIECE, _PLACES = 1 << 24, 4
# The part of the memory limit that a piece may take, where it is a parameter that cannot be cut. Slots of larger ones stay mapped.
_SHARE = 1 / 32


class FilePiece(Piece):
    """Parts of parameters in host memory whose slots are read from the file into a place, updated there, and written back.

    In the place they lie as in the file, so that slots which are side by side there are read at once. Slots stay mapped where they
    take more than ``largest`` bytes.
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
        # The first bytes of slots in the place of the piece; and the ranges of the file: begin there, begin in the place, and bytes.
        self._seats: list[tuple[int, tuple[str, str], Any, int]] = []
        self._ranges: list[tuple[int, int, int]] = []
        self.size: int = 0
        if sum(tensor.nbytes for *_, tensor in tensors) <= largest:
            for start, number, key, tensor in tensors:
                self._seats.append((number, key, tensor, self._seat(start, tensor.nbytes)))
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

    def up(self, memory: Any) -> Iterator[Pair]:
        """The writes out of its place: the memory, and where they begin in the file."""
        return ((memory[at : at + count], start) for start, at, count in self._ranges)


class FileRulePiece(FilePiece, RulePiece):
    """A whole parameter whose rule is called on it, with the slots in a place."""


class FileSteps(PieceSteps):
    """The steps of an optimizer whose slots lie in a file, once that is large beside the memory.

    A step is whole even if a key stops it: it ends first. After an error of the disk, as of a step in host memory, `ahead` names
    the parameters with elements that are updated, and the step can be completed.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file
        self._device = FileDevice(file)
        self._measured = MeasuredNorm()
        super().__init__()

    def take(self, opt: Any, scale: float | None, loss: Any) -> bool:
        """Takes a step with the gradients that are there, or completes one that an error has ended.

        False, with nothing changed, for steps that are not taken by pieces: of a small file, or by a rule that needs all slots at once.
        """
        run = self._run
        if run is None:
            if not self._is_by_pieces(opt):
                return False
            places = [place for place in places_of(opt) if place.tensor.grad is not None]
            if not all(_is_simple(place.tensor) for place in places):
                return False
            run = self._begun(opt, places, scale, loss)
        else:
            run.join()
            self._check_same(opt)
        try:
            self._finish(opt, run, loss)
        except KeyboardInterrupt:  # Another one leaves the step to `synchronize`.
            self.synchronize(opt)
            raise
        return True

    def _is_by_pieces(self, opt: Any) -> bool:
        is_large = self._file.is_large
        return is_large and not (opt._backward is not None or is_together(opt) or is_recorded(opt.param_groups))

    def _begun(self, opt: Any, places: Sequence[TensorPlace], scale: float | None, loss: Any) -> HostRun:
        """A step whose pieces wait; everything is checked."""
        for place in places:
            opt.check_gradient(place.path, place.tensor)
        refuse_shared_memory(places, gradients=True)
        square = None
        if clips(opt):
            self._measured.clear()
            for place in places:
                self._measured.add(opt, place)
            square = self._measured.square
        is_elementwise, largest = opt.entry.rule.elementwise, self._largest
        parts = [places] if is_elementwise else [[place] for place in places]
        run = HostRun(Ring(min(_PIECE, largest), self._device), _PLACES, None)
        with conversion.kept_on_error(opt.state):
            batches = [HostBatch(opt, part, scale=scale, loss=loss, square=square) for part in parts]
            for batch in batches:
                _core.Stepper().prepare(
                    batch.program.host_parameters([*map(batch.plan.read, batch.plan.tensors)], batch.plan.slots)
                )
            if is_elementwise:
                pieces = [self._cut(batch, largest) for batch in batches]
            else:
                pieces = [
                    [FileRulePiece(batch, piece.parts, self._file, largest) for piece in whole(batch)]
                    for batch in batches
                ]
        pairs = zip(batches, pieces, strict=True)
        for batch, of_batch in sorted(pairs, key=lambda pair: pair[1][0].start if pair[1] else 0):
            run.add(of_batch, batch)
        self._run, self._taken = run, {id(place.tensor): place.tensor.grad for place in places}
        return run

    @property
    def _largest(self) -> int:
        """The bytes of slots that may be in a place."""
        return max(int(_SHARE * self._file.memory_limit), mmap.PAGESIZE)

    def _cut(self, batch: HostBatch, largest: int) -> list[FilePiece]:
        """The parameters of a batch in pieces, in the order of the file."""
        plan, size = batch.plan, min(_PIECE, largest)
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
        return [FilePiece(batch, each, self._file, largest) for each in packed(parts, size, lambda _: None)]

    def _start(self, slots: TensorSlots) -> int:
        """The first byte in the file of the slots of a parameter."""
        return min((self._file.start_of(tensor) or 0 for _, tensor in slots.arrays()), default=0)

    def _finish(self, opt: Any, run: HostRun, loss: Any) -> None:
        run.close()
        run.finish_beside(opt)
        run.join()
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
