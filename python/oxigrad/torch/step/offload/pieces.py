"""The slices of parameters that a place holds, and their updates by the core."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from oxigrad._core import ArrayMemoryError
from oxigrad.ops.backends import adapter_of
from oxigrad.ops.backends.memory.transfers import Event
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.parameters.executor import HOST
from oxigrad.stepping.placement.ring import Piece, packed
from oxigrad.stepping.placement.slices import Slice, laid_out, laid_out_as_in_file, sliced
from oxigrad.torch.state import conversion
from oxigrad.torch.state.file import StateFile
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.plan import TensorParameter
from oxigrad.torch.step.slots import TensorSlots

# Sums of the gradients of earlier micro-batches, by the identity of the parameter; False for memory without values.
Totals = Mapping[int, tuple[Any, bool]]
_NO_TOTALS: Totals = MappingProxyType({})


class TensorPiece(Piece):
    """Slices of parameters that are copied, and updated, together. Their gradients and parameters lie in its place.

    Gradients of the device are kept until their copy is done. A gradient is added to the total of its parameter, which
    the update then reads. Without a ``batch``, that is all.

    Args:
        batch: the step of the parameters.
        slices: slices of parameters on one device, with gradients.
        totals: the sums of gradients.
        norm: the norm that gradients are measured for, if they are scaled by it; slices are whole then.
    """

    def __init__(
        self,
        batch: HostBatch | None,
        slices: Sequence[Slice],
        totals: Totals = _NO_TOTALS,
        norm: MeasuredNorm | None = None,
    ) -> None:
        self.batch: Any = batch
        self.slices: Sequence[Slice] = slices
        self.paths: Sequence[str] = [each.path for each in slices]
        self._norm = norm
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
        self._starts, self.size = laid_out(t.nbytes for t in (*self._gradients, *self._weights))
        self._place: Any = None
        self._views: tuple[list[Any], list[Any]] = [], []

    def _placed(self, memory: Any) -> tuple[list[Any], list[Any]]:
        """The gradients and parameters in a place. Views are made once: a device waits while the host makes them."""
        if self._place is not memory:
            likes = [*(self._weights or self._gradients), *self._weights]
            views = [viewed(memory, start, like) for start, like in zip(self._starts, likes, strict=True)]
            self._place, self._views = memory, (views[: len(self.slices)], views[len(self.slices) :])
        return self._views

    def _of_update(self, memory: Any) -> tuple[list[Any], list[Any], list[TensorSlots]]:
        """The gradients, of all micro-batches, the parameters, and their slots."""
        gradients, weights = self._placed(memory)
        return [g if s is None else s for g, (s, _) in zip(gradients, self._sums, strict=True)], weights, self._slots()

    def _slots(self) -> list[TensorSlots]:
        """The slots of each slice: views."""
        slots = [(each, self.batch.plan.slots[each.path], conversion.local(each.leaf.tensor)) for each in self.slices]
        return [
            of if each.length == p.numel() else of.within(each.first, each.first + each.length) for each, of, p in slots
        ]

    # --- stages -------------------------------------------------------------------------------------------------------

    def down(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the copies of gradients, and of parameters that the update reads."""
        self._check()
        gradients, weights = self._placed(memory)
        pairs = [*zip(self._gradients, gradients, strict=True)]
        for each, source, target in zip(self.slices, self._weights, weights, strict=False):
            pairs += [(source, target)] if self._reads(each.leaf) else []
        return [copies.copy_down(*pair) for pair in pairs]

    def _reads(self, p: Any) -> bool:
        """Whether the update reads a parameter, rather than its master weights alone."""
        group = self.batch.plan.groups[p.group]
        return not (half(p) and group.precision.master and p.executor is HOST)

    def land(self, memory: Any) -> None:
        """Gives gradients of the device back that are in host memory now, adds them to their totals, and measures."""
        if self._gradients:
            self._gradients = []
            for (total, is_begun), g in zip(self._sums, self._placed(memory)[0], strict=True):
                if total is not None:
                    total.add_(g) if is_begun else total.copy_(g)
        if self._norm is not None:
            gradients, weights, _ = self._of_update(memory)
            for each, g, w in zip(self.slices, gradients, weights, strict=True):
                self._norm.add(self.batch.opt, self.batch.places[id(each.leaf.tensor)], g, w)

    def _check(self) -> None:
        """Raises `ArrayMemoryError` if memory of a parameter or gradient was freed or replaced since the step began."""
        adapter = adapter_of(self.slices[0].leaf.tensor)
        for each, w in zip(self.slices, self._weights, strict=False):
            if why := adapter.obstacle(w):
                raise ArrayMemoryError(f"{each.path}: the parameter has become {why}, in the middle of a step")
            if each.leaf.tensor.data.untyped_storage().data_ptr() != w.untyped_storage().data_ptr():
                raise ArrayMemoryError(f"{each.path}: the memory of the parameter was replaced in the middle of a step")
        for path, g in zip(self.paths, self._gradients, strict=False):  # without gradients once they have landed
            if why := adapter.unreadable(g):
                raise ArrayMemoryError(f"{path}: the gradient has become {why}, in the middle of a step")

    def use(self, memory: Any) -> None:
        """Updates the parameters in their place, and their slots; rules are called on whole parameters."""
        if self.batch is not None:
            self._check()
            self.batch.update(self.slices, *self._of_update(memory))

    def up(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the copies of parameters."""
        self._check()
        return [copies.copy_up(*pair) for pair in zip(self._placed(memory)[1], self._weights, strict=True)]


class FilePiece(TensorPiece):
    """Slices of parameters in host memory whose slots are read from the file into a place, updated, and written back.

    Slots stay mapped where they take more than ``largest`` bytes.
    """

    def __init__(self, batch: HostBatch, slices: Sequence[Slice], file: StateFile, largest: int) -> None:
        super().__init__(batch, slices)
        self._mapped = self._slots()
        tensors = [(number, key, tensor) for number, of in enumerate(self._mapped) for key, tensor in of.arrays()]
        seats: list[tuple[int, int, tuple[str, str], Any]] = [
            (start, *each) for each in tensors if each[2].numel() and (start := file.start_of(each[2])) is not None
        ]
        seats.sort(key=lambda seat: seat[:2])
        #: Whether a step updates the mapped slots of the file in place.
        self.is_mapped: bool = sum(tensor.nbytes for *_, tensor in seats) > largest
        self._seats = [] if self.is_mapped else seats
        spans = [(start, tensor.nbytes) for start, *_, tensor in self._seats]
        self.size: int
        self._starts, self._ranges, self.size = laid_out_as_in_file(spans)

    def _of_update(self, memory: Any) -> tuple[list[Any], list[Any], list[TensorSlots]]:
        tensors: list[dict[tuple[str, str], Any]] = [{} for _ in self.slices]
        for (_, number, key, tensor), start in zip(self._seats, self._starts, strict=True):
            tensors[number][key] = viewed(memory, start, tensor)
        slots = [of.in_memory(placed) for of, placed in zip(self._mapped, tensors, strict=True)]
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


def cut(
    batch: HostBatch,
    parameters: Iterable[TensorParameter],
    size_of: Callable[[Slice], int],
    size: int,
    *,
    is_whole: bool,
) -> Iterator[list[Slice]]:
    """The slices of parameters of a batch, in lists of at most ``size`` bytes; one that cannot be cut may be larger.

    A parameter that ``is_whole`` is one slice, as is one whose rule is called or sums, or whose elements are not in
    order.
    """
    slices: list[tuple[Slice, int]] = []
    for p in parameters:
        slots = [tensor for _, tensor in batch.plan.slots[p.text].arrays()]
        tensor, *others = map(conversion.local, (p.tensor, p.tensor.grad, *slots))
        is_cut = not is_whole and p.executor is HOST and not batch.plan.groups[p.group].sums
        is_cut &= all(each.is_contiguous() for each in (tensor, *others))
        slices += sliced(p.text, p, tensor.numel(), size_of, size, is_cut=is_cut)
    return packed(slices, size, device_of)


def device_of(each: Slice) -> Any:
    """The device of the parameter."""
    return each.leaf.tensor.device


def viewed(memory: Any, start: int, like: Any) -> Any:
    """A tensor in host memory from this byte on, with another's shape and dtype, and its strides without gaps."""
    flat = memory[start : start + like.nbytes].view(like.dtype)
    return flat.as_strided(like.shape, like.stride()) if conversion.is_dense(like) else flat.view(like.shape)
