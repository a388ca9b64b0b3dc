"""Steps whose slots lie in a file larger than memory, ``state_device=path``: pieces are read, updated, written.

Reads and writes of whole pieces take the disk's time, where faults of the pages of the mapped file take several times
as much.
"""

import mmap
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from oxigrad import _core
from oxigrad.ops.backends import resolved
from oxigrad.ops.backends.memory.transfers import Copies, Event
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.placement.ring import Ring, packed
from oxigrad.stepping.plan.announcements import Assignments
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.state.file import StateFile
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.pieces import Slice, TensorPiece, Totals, aligned, divided, viewed, whole
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.offload.steps import PieceSteps, needs_all
from oxigrad.torch.step.plan import TensorPlace, clips, places_of
from oxigrad.torch.step.resolved import is_recorded
from oxigrad.torch.step.slots import TensorSlots

# The bytes of a piece, and the number of pieces that are read, updated or written at the same time.
_PIECE, _PLACES = 1 << 24, 4
# The part of the memory limit that a piece may take, where it is a parameter that cannot be cut. Slots of larger ones
# stay mapped.
_SHARE = 1 / 32


class FileDevice(Copies):
    """Copies between the file of slots and host memory, by a thread in each direction.

    In place of a tensor of the device a copy takes the number of the first byte in the file. Its end raises `OSError`
    where the disk fails. Whole pages go past the page cache, where the file system can: a file that memory cannot hold
    would push all else out of it.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file  # open for as long as there are copies
        self._threads: dict[str, ThreadPoolExecutor] = {}

    def memory(self, count: int) -> Any:
        """New host memory of so many bytes, which begins at a page."""
        return torch.frombuffer(mmap.mmap(-1, max(count, 1)), dtype=torch.uint8)

    def copy_down(self, source: Any, target: Any) -> Event:
        """Begins a read."""
        return self._begun("read", self._file.read, source, target)

    def copy_up(self, source: Any, target: Any) -> Event:
        """Begins a write."""
        return self._begun("write", self._file.overwrite, target, source)

    def _begun(self, kind: str, copy: Callable[[int, memoryview], None], start: int, memory: Any) -> Event:
        if kind not in self._threads:
            self._threads[kind] = ThreadPoolExecutor(1, f"oxigrad state {kind}")
        future = self._threads[kind].submit(copy, start, memoryview(memory.numpy()))
        return Event(future.done, future.result)

    def join(self) -> None:
        """Ends the threads, after a step."""
        for threads in self._threads.values():
            threads.shutdown()
        self._threads = {}


class FilePiece(TensorPiece):
    """Parts of parameters in host memory whose slots are read from the file into a place, updated, and written back.

    In the place they lie as in the file, so that slots which are side by side there are read at once. Slots stay mapped
    where they take more than ``largest`` bytes.
    """

    def __init__(self, batch: HostBatch, slices: Sequence[Slice], file: StateFile, largest: int) -> None:
        super().__init__(batch, slices)
        self._mapped, self._waits = self._slots(), True
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

    def _of_update(self, memory: Any) -> tuple[list[Any], list[Any], list[TensorSlots]]:
        placed: list[dict[tuple[str, str], Any]] = [{} for _ in self._mapped]
        for number, key, tensor, at in self._seats:
            placed[number][key] = viewed(memory, at, tensor)
        slots = [slots.in_memory(tensors) for slots, tensors in zip(self._mapped, placed, strict=True)]
        return self._gradients, self._weights, slots

    def down(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the reads into its place."""
        return [copies.copy_down(start, memory[at : at + count]) for start, at, count in self._ranges]

    def land(self, memory: Any) -> None:
        """Keeps the gradients, which the update reads."""

    def use(self, memory: Any) -> None:
        """Updates the parameters, and their slots in the place; then gives the gradients back."""
        super().use(memory)
        self._gradients = []

    def up(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the writes out of its place."""
        return [copies.copy_up(memory[at : at + count], start) for start, at, count in self._ranges]


class FileSteps(PieceSteps):
    """The steps of an optimizer whose slots lie in a file, once that is large beside the memory.

    After an error of the disk, as of a step in host memory, `ahead` names the parameters with elements that are
    updated, and the step can be completed.
    """

    def __init__(self, file: StateFile) -> None:
        self._file, self._device = file, FileDevice(file)
        super().__init__(self._new_ring())

    def _new_ring(self) -> Ring[Any]:
        return Ring(lambda _: self._device, within=torch.no_grad)

    def _begin_anew(self) -> None:
        self._ring = self._new_ring()  # without memory between steps
        super()._begin_anew()
        #: The bytes of gradients that may not have been used yet.
        self._waiting = 0

    def streams(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated by pieces once its gradient is final: its slots lie in a large file."""
        is_clipped_later = clips(opt) and opt._backward.measured_norm is None
        if is_clipped_later or needs_all(opt) or not opt.state.get(p) or not self._is_here(opt, p):
            return False
        return self._is_begun or self._file.is_beyond_memory

    def stream(self, opt: Any, places: Sequence[TensorPlace], marks: Assignments) -> None:
        """See `PieceSteps.stream`. Few gradients wait at once: others are used before."""
        size = sum(place.tensor.grad.nbytes for place in places)
        if self._waiting + size > _PIECE:
            self._use()
            self._waiting = 0
        self._waiting += size
        count = len(self._ring.pieces)
        super().stream(opt, places, marks)
        if any(self._ring.pieces[number].is_mapped for number in range(count, len(self._ring.pieces))):
            with self._file.writing_back():
                self._use()

    def _use(self) -> None:
        """Waits for the updates of all gradients that are there."""
        self._ring.join()
        self._ring.worker.run(self._ring.advance)

    def _accepts(self, opt: Any) -> bool:
        """False for steps of a small file, or by a rule that needs all slots at once."""
        if not self._file.is_large or opt._backward is not None or needs_all(opt) or is_recorded(opt.param_groups):
            return False
        return all(self._is_here(opt, place.tensor) for place in places_of(opt) if place.tensor.grad is not None)

    def _is_here(self, opt: Any, p: Any) -> bool:
        """Whether a parameter in host memory and its gradient can be updated where they are."""
        if conversion.is_distributed(p) or p.device.type != "cpu" or p.grad.layout is not torch.strided:
            return False
        tensor, gradient = conversion.local(p.data), p.grad
        return executor_of(tensor) is HOST and gradient.dtype == p.dtype and resolved(gradient) is gradient

    def _begin(self, opt: Any) -> None:
        # Slots of a parameter that cannot be cut stay mapped where they take more.
        self._largest = max(int(_SHARE * self._file.memory_limit), mmap.PAGESIZE)
        self._ring.begin(_PLACES, size=min(_PIECE, self._largest))
        self._is_begun = True

    def _measure(self, opt: Any, here: Sequence[TensorPlace], others: Sequence[TensorPlace]) -> None:
        if clips(opt):
            self._measured.clear()
            for place in here:
                self._measured.add(opt, place)

    def _norm(self, opt: Any) -> MeasuredNorm | None:
        return None if not clips(opt) else (opt._backward and opt._backward.measured_norm) or self._measured

    def _pieces(self, opt: Any, places: Sequence[TensorPlace], scale: float | None, loss: Any) -> list[Any]:
        """The pieces of parameters in the order of the file."""
        return sorted(super()._pieces(opt, places, scale, loss), key=lambda piece: piece.start)

    def _cut(self, batch: HostBatch, totals: Totals, *, is_called: bool) -> list[FilePiece]:
        """The parameters of a batch in pieces, in the order of the file."""
        plan, size = batch.plan, min(_PIECE, self._largest)
        _core.Stepper().prepare(batch.program.host_parameters([*map(plan.read, plan.tensors)], plan.slots))
        slices: list[tuple[Slice, int]] = []
        for p in sorted(plan.parameters, key=lambda p: self._start(plan.slots[p.text])):
            count = sum(aligned(tensor.nbytes) for _, tensor in plan.slots[p.text].arrays())
            elements = most = conversion.local(p.tensor).numel()
            if count > size and conversion.local(p.tensor.grad).is_contiguous():
                most = elements * size // count
            most -= most % mmap.PAGESIZE if mmap.PAGESIZE < most < elements else 0
            parts = [whole(p)] if is_called else divided(batch, p, most)
            slices += [(each, count * each.length // max(elements, 1)) for each in parts]
        return [FilePiece(batch, each, self._file, self._largest) for each in packed(slices, size, lambda _: None)]

    def _start(self, slots: TensorSlots) -> int:
        """The first byte in the file of the slots of a parameter."""
        return min((self._file.start_of(tensor) or 0 for _, tensor in slots.arrays()), default=0)

    def reset(self) -> None:
        """Begins anew with another state; what is on its way to the file ends first: its places are used again."""
        super().reset()
        self._device.join()
