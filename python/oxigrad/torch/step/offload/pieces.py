"""The slices of parameters that a place holds, and their updates by the core."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from oxigrad._core import ArrayMemoryError
from oxigrad.ops.backends import adapter_of
from oxigrad.ops.backends.memory.transfers import Event
from oxigrad.step.arrays.precision import half
from oxigrad.step.parameters.executor import HOST
from oxigrad.step.placement.ring import Piece, packed
from oxigrad.step.placement.slices import laid_out, laid_out_as_in_file, sliced
from oxigrad.step.slice import Slice
from oxigrad.torch.state import conversion
from oxigrad.torch.state.file import StateFile
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.plan import TensorParameter
from oxigrad.torch.step.slots import TensorSlots

# Sums of the gradients of earlier micro-batches, by the identity of the parameter; False for memory without values.
Totals = Mapping[int, tuple[Any, bool]]
_NO_TOTALS: Totals = MappingProxyType({})
# The key of a parameter in a place, beside those of its slots.
_WEIGHT = "", ""


class TensorPiece(Piece):
    """Slices of parameters that are copied, and updated, together.

    Without a ``file``, their gradients and parameters lie in its place. Gradients of the device are kept until their
    copy is done. A gradient is added to the total of its parameter, which the update then reads. Without a ``batch``,
    that is all. With a ``file``, their slots are read from it into the place, updated, and written back.

    Args:
        batch: the step of the parameters.
        slices: slices of parameters on one device, with gradients.
        totals: the sums of gradients.
        file: the file of the slots.
        largest: the bytes of slots from which on they stay mapped, and are updated where they are.
    """

    def __init__(
        self,
        batch: HostBatch | None,
        slices: Sequence[Slice],
        totals: Totals = _NO_TOTALS,
        *,
        file: StateFile | None = None,
        largest: int = 0,
    ) -> None:
        self.batch: Any = batch
        self.slices: Sequence[Slice] = slices
        self.paths: Sequence[str] = [each.path for each in slices]
        tensors = [each.leaf.tensor for each in slices]
        self._gradients = [each.of(conversion.local(p.grad)) for each, p in zip(slices, tensors, strict=True)]
        self._weights: list[Any] = []
        if batch is not None:  # The data's version is not that of the parameter, which autograd checks.
            self._weights = [each.of(conversion.local(p.data)) for each, p in zip(slices, tensors, strict=True)]
        for path, g, p in zip(self.paths, self._gradients, map(conversion.local, tensors), strict=True):
            if g.dtype != p.dtype:
                raise RuntimeError(
                    f"{path}: the gradient has dtype {g.dtype}: expected {p.dtype}, the dtype of the parameter"
                )
        sums = [(each, *totals.get(id(p), (None, False))) for each, p in zip(slices, tensors, strict=True)]
        self._sums = [(s if s is None else each.of(conversion.local(s)), is_begun) for each, s, is_begun in sums]
        self.device: Any = self._gradients[0].device
        self.size: int
        # Whether gradients and parameters come from a device, and whether they have not landed.
        self._is_elsewhere = self._lands = file is None
        #: Whether a step updates the mapped slots of the file in place.
        self.is_mapped: bool = False
        # The tensors in the place, each with the number of its slice, its key, its first byte, and one that is like it.
        self._seats: list[tuple[int, Any, int, Any]] = []
        # What is copied, each with its first byte in the place, and a tensor like it or its bytes.
        self._coming: list[tuple[Any, int, Any]] = []
        self._leaving: list[tuple[Any, int, Any]] = []
        if file is None:
            self._seat_arrays()
        else:
            self._seat_slots(file, largest)
        self._place: Any = None
        self._views: dict[tuple[int, int], Any] = {}

    def _seat_arrays(self) -> None:
        """Seats gradients and parameters: first all gradients, in the order of axes of the parameters."""
        likes = self._weights or self._gradients
        starts, self.size = laid_out(like.nbytes for like in (*likes, *self._weights))
        self._coming = [*zip(self._gradients, starts, likes, strict=False)]
        seats = zip(starts[len(likes) :], self._weights, strict=False)
        self._seats = [(number, _WEIGHT, *seat) for number, seat in enumerate(seats)]
        self._leaving = [(w, start, w) for *_, start, w in self._seats]
        self._coming += [seat for seat, each in zip(self._leaving, self.slices, strict=False) if self._reads(each.leaf)]

    def _seat_slots(self, file: StateFile, largest: int) -> None:
        """Seats slots as they lie in the file, unless they are to stay mapped."""
        tensors = [(number, key, tensor) for number, of in enumerate(self._slots) for key, tensor in of.arrays()]
        seats: list[tuple[int, int, tuple[str, str], Any]] = [
            (start, *each) for each in tensors if each[2].numel() and (start := file.start_of(each[2])) is not None
        ]
        seats.sort(key=lambda seat: seat[:2])
        self.is_mapped = sum(tensor.nbytes for *_, tensor in seats) > largest
        seats = [] if self.is_mapped else seats
        starts, ranges, self.size = laid_out_as_in_file([(start, tensor.nbytes) for start, *_, tensor in seats])
        self._seats = [(number, key, at, t) for (_, number, key, t), at in zip(seats, starts, strict=True)]
        self._coming = self._leaving = ranges

    def _reads(self, p: Any) -> bool:
        """Whether the update reads a parameter, rather than its master weights alone."""
        group = self.batch.plan.groups[p.group]
        return not (half(p) and group.precision.master and p.executor is HOST)

    @functools.cached_property
    def _slots(self) -> list[TensorSlots]:
        """The slots of each slice: views."""
        slots = [(each, self.batch.plan.slots[each.path], conversion.local(each.leaf.tensor)) for each in self.slices]
        return [of if each.count == p.numel() else of.within(each.first, each.stop) for each, of, p in slots]

    def _viewed(self, memory: Any, start: int, like: Any) -> Any:
        """A tensor in the place. Views are made once: a device waits while the host makes them."""
        if self._place is not memory:
            self._place, self._views = memory, {}
        key = start, id(like)
        if key not in self._views:
            self._views[key] = viewed(memory, start, like)
        return self._views[key]

    def _of_update(self, memory: Any) -> tuple[list[Any], list[Any], list[TensorSlots]]:
        """The gradients, of all micro-batches, the parameters, and their slots."""
        placed: list[dict[Any, Any]] = [{} for _ in self.slices]
        for number, key, start, like in self._seats:
            placed[number][key] = self._viewed(memory, start, like)
        weights = [of.pop(_WEIGHT, w) for of, w in zip(placed, self._weights, strict=True)]
        return (
            self._gradients,
            weights,
            [of.in_memory(each) if each else of for of, each in zip(self._slots, placed, strict=True)],
        )

    # --- stages -------------------------------------------------------------------------------------------------------

    def down(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the copies into the place: of gradients and parameters that the update reads, or of slots."""
        self._check()
        return [copies.copy_down(source, self._viewed(memory, *seat)) for source, *seat in self._coming]

    def land(self, memory: Any) -> None:
        """Gives gradients of the device back that are in host memory now, and adds them to their totals."""
        if not self._lands:
            return
        likes = self._coming[: len(self.slices)]
        gradients = [self._viewed(memory, *seat) for _, *seat in likes]
        self._lands, self._coming, self._gradients = False, [], []
        for (total, is_begun), g in zip(self._sums, gradients, strict=True):
            if total is not None:
                total.add_(g) if is_begun else total.copy_(g)
            self._gradients.append(g if total is None else total)

    def _check(self) -> None:
        """Raises `ArrayMemoryError` if memory of a parameter or gradient was freed or replaced since the step began."""
        adapter = adapter_of(self.slices[0].leaf.tensor)
        for each, w in zip(self.slices, self._weights, strict=False):
            if why := adapter.obstacle(w):
                raise ArrayMemoryError(f"{each.path}: the parameter has become {why}, in the middle of a step")
            if each.leaf.tensor.data.untyped_storage().data_ptr() != w.untyped_storage().data_ptr():
                raise ArrayMemoryError(f"{each.path}: the memory of the parameter was replaced in the middle of a step")
        for path, g in zip(self.paths, self._gradients, strict=False):  # without gradients once they were used
            if why := adapter.unreadable(g):
                raise ArrayMemoryError(f"{path}: the gradient has become {why}, in the middle of a step")

    def measure(self, memory: Any) -> None:
        """Measures the slices in their place."""
        self.batch.update(self.slices, *self._of_update(memory), measures=True)

    def use(self, memory: Any) -> None:
        """Updates parameters and slots, and gives the gradients back; rules are called on whole parameters."""
        if self.batch is not None:
            self._check()
            self.batch.update(self.slices, *self._of_update(memory))
        self._gradients = []

    def up(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the copies out of the place: of parameters, or of slots."""
        if self._is_elsewhere:
            self._check()
        return [copies.copy_up(self._viewed(memory, *seat), target) for target, *seat in self._leaving]


def cut(
    batch: HostBatch, parameters: Iterable[TensorParameter], size_of: Callable[[Slice], int], size: int
) -> Iterator[list[Slice]]:
    """The slices of parameters of a batch, in lists of at most ``size`` bytes; one that cannot be cut may be larger.

    A parameter is one slice whose rule is called, or sums what is not measured, or whose elements are not in order.
    """
    slices: list[tuple[Slice, int]] = []
    for p in parameters:
        slots = [tensor for _, tensor in batch.plan.slots[p.text].arrays()]
        tensor, *others = map(conversion.local, (p.tensor, p.tensor.grad, *slots))
        unit = batch.unit(p) if all(each.is_contiguous() for each in (tensor, *others)) else 0
        unit = 0 if unit > 1 and batch.measures is None else unit
        slices += sliced(p.text, p, tensor.numel(), size_of, size, unit=unit)
    return packed(slices, size, device_of)


def device_of(each: Slice) -> Any:
    """The device of the parameter."""
    return each.leaf.tensor.device


def viewed(memory: Any, start: int, like: Any) -> Any:
    """A tensor in host memory from this byte on, with another's shape and dtype, and its strides without gaps.

    With a number in place of the other tensor, it has so many bytes.
    """
    if isinstance(like, int):
        return memory[start : start + like]
    flat = memory[start : start + like.nbytes].view(like.dtype)
    return flat.as_strided(like.shape, like.stride()) if conversion.is_dense(like) else flat.view(like.shape)
