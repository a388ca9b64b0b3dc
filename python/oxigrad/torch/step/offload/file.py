"""Steps whose slots lie in a file larger than memory, ``state_device=path``: pieces are read, updated, written.

Reads and writes of whole pieces take the disk's time, where faults of the pages of the mapped file take several times
as much.
"""

import mmap
from collections.abc import Sequence
from typing import Any

from oxigrad import _core
from oxigrad.ops.backends import resolved
from oxigrad.ops.backends.memory.file_transfers import FileDevice
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.placement.ring import Ring
from oxigrad.stepping.placement.slices import Slice, aligned
from oxigrad.stepping.plan.announcements import Assignments
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.state.file import StateFile
from oxigrad.torch.step.offload.pieces import FilePiece, cut
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.offload.steps import PieceSteps
from oxigrad.torch.step.plan import TensorParameter, TensorPlace, clips, needs_all, places_of
from oxigrad.torch.step.resolved import is_recorded

# The bytes of a piece, and the number of pieces that are read, updated or written at the same time.
_PIECE, _PLACES = 1 << 24, 4
# The part of the memory limit that a piece may take, where it is a parameter that cannot be cut. Slots of larger ones
# stay mapped.
_SHARE = 1 / 32


class FileSteps(PieceSteps):
    """The steps of an optimizer whose slots lie in a file, once that is large beside the memory.

    After an error of the disk, as of a step in host memory, `ahead` names the parameters with elements that are
    updated, and the step can be completed.
    """

    def __init__(self, file: StateFile) -> None:
        self._file, self._device = file, FileDevice(file)
        super().__init__(Ring(lambda _: self._device, within=torch.no_grad), collects=False)

    def _begin_anew(self) -> None:
        self._ring.release()
        super()._begin_anew()
        #: The bytes of gradients that may not have been used yet.
        self._waiting = 0

    def streams(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated by pieces once its gradient is final: its slots lie in a large file."""
        is_clipped_later = clips(opt) and opt._backward.norm.whole is None
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
        if (
            conversion.is_distributed(p)
            or p.device.type != "cpu"
            or p.grad is None
            or p.grad.layout is not torch.strided
        ):
            return False
        tensor, gradient = conversion.local(p.data), p.grad
        return executor_of(tensor) is HOST and gradient.dtype == p.dtype and resolved(gradient) is gradient

    def _begin(self, opt: Any) -> None:
        # Slots of a parameter that cannot be cut stay mapped where they take more.
        self._largest = max(int(_SHARE * self._file.memory_limit), mmap.PAGESIZE)
        self._ring.begin(_PLACES, size=min(_PIECE, self._largest))
        super()._begin(opt)

    def _cut(self, batch: HostBatch, *, is_whole: bool) -> list[FilePiece]:
        """The parameters of a batch in pieces, in the order of the file."""
        plan = batch.plan
        _core.Stepper().prepare(batch.host_parameters([*map(plan.read, plan.tensors)], plan.slots))

        def start(p: TensorParameter) -> int:
            """The first byte in the file of the slots of a parameter."""
            return min((self._file.start_of(tensor) or 0 for _, tensor in plan.slots[p.text].arrays()), default=0)

        def size_of(each: Slice) -> int:
            count = sum(aligned(tensor.nbytes) for _, tensor in plan.slots[each.path].arrays())
            return count * each.length // max(conversion.local(each.leaf.tensor).numel(), 1)

        slices = cut(batch, sorted(plan.parameters, key=start), size_of, min(_PIECE, self._largest), is_whole=is_whole)
        return [FilePiece(batch, each, self._file, self._largest) for each in slices]

    def reset(self) -> None:
        """Begins anew with another state; what is on its way to the file ends first: its places are used again."""
        super().reset()
        self._device.join()
