"""The slices of parameters that a place holds, and their updates by the core."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from oxigrad._core import ArrayMemoryError
from oxigrad.ops.backends import adapter_of
from oxigrad.ops.backends.memory.transfers import Event
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.parameters.executor import HOST
from oxigrad.stepping.placement.ring import Piece, packed
from oxigrad.torch.state import conversion
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.plan import TensorParameter, TensorPlace
from oxigrad.torch.step.slots import TensorSlots

# The unit of slices: blocks of codes, which have a scale, have so many elements, or half as many.
_BLOCK = 256
# Tensors in a place begin at multiples of so many bytes.
_ALIGNMENT = 64
# Sums of the gradients of earlier micro-batches, by the identity of the parameter; False for memory without values.
Totals = Mapping[int, tuple[Any, bool]]
_NO_TOTALS: Totals = MappingProxyType({})


class Slice(NamedTuple):
    """Elements of a parameter: ``length`` from ``first`` on, in row-major order. All of them have its shape."""

    path: str
    leaf: Any
    first: int
    length: int

    def of(self, tensor: Any) -> Any:
        """These elements of a tensor like the parameter: a view, or a copy of a gradient in another order."""
        is_whole = self.length == tensor.numel()
        return tensor if is_whole else tensor.reshape(-1)[self.first : self.first + self.length]


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
        self._weights = self._gradients
        if batch is not None:  # The data's version is not that of the parameter, which autograd checks.
            self._weights = [each.of(conversion.local(p.data)) for each, p in zip(slices, tensors, strict=True)]
        of_all = [totals.get(id(p)) for p in tensors]
        self._totals = [
            None if total is None else (each.of(conversion.local(total[0])), total[1])
            for each, total in zip(slices, of_all, strict=True)
        ]
        self.device: Any = self._weights[0].device
        self.size: int = 0
        self._offsets: list[tuple[int, int]] = []
        for path, g, w in zip(self.paths, self._gradients, self._weights, strict=True):
            check_dtype(path, g, w)
            self._offsets.append((self._reserve(g), 0 if batch is None else self._reserve(w)))
        # Whether others are copied before the update, so that the memory may be gone by then.
        self._waits = norm is not None
        self._place: Any = None
        self._views: tuple[list[Any], list[Any]] = [], []

    def _reserve(self, tensor: Any) -> int:
        start, self.size = self.size, self.size + aligned(tensor.numel() * tensor.element_size())
        return start

    def _placed(self, memory: Any) -> tuple[list[Any], list[Any]]:
        """The gradients and parameters in a place. Views are made once: a device waits while the host makes them."""
        if self._place is not memory:
            at = [*zip(self._offsets, self._weights, strict=True)]
            weights = [] if self.batch is None else [viewed(memory, start, w) for (_, start), w in at]
            self._views = [viewed(memory, start, w) for (start, _), w in at], weights
            self._place = memory
        return self._views

    def _of_update(self, memory: Any) -> tuple[list[Any], list[Any], list[TensorSlots]]:
        """The gradients, of all micro-batches, the parameters, and their slots."""
        gradients, weights = self._placed(memory)
        totals = [g if total is None else total[0] for g, total in zip(gradients, self._totals, strict=True)]
        return totals, weights, self._slots()

    def _slots(self) -> list[TensorSlots]:
        """The slots of each slice: views."""
        plan = self.batch.plan
        slots = [(each, plan.slots[each.path], conversion.local(each.leaf.tensor)) for each in self.slices]
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
            self._weights = [] if self.batch is None else self._weights
            for total, g in zip(self._totals, self._placed(memory)[0], strict=True):
                if total is not None:
                    total[0].add_(g) if total[1] else total[0].copy_(g)
        if self._norm is not None and self.batch is not None:
            for each, g, w in zip(self.slices, *self._of_update(memory)[:2], strict=True):
                self._norm.add(self.batch.opt, self.batch.places[id(each.leaf.tensor)], g, w)

    def _check(self) -> None:
        """Raises `ArrayMemoryError` if memory of a parameter or gradient was freed or replaced since the step began."""
        adapter = adapter_of(self.slices[0].leaf.tensor)
        for each, w in () if self.batch is None else zip(self.slices, self._weights, strict=True):
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
            if self._waits:
                self._check()
            self.batch.update(self.slices, *self._of_update(memory))

    def up(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the copies of parameters."""
        if self.batch is None:
            return []
        self._check()
        return [copies.copy_up(*pair) for pair in zip(self._placed(memory)[1], self._weights, strict=True)]


def cut(
    batch: HostBatch, size: int, totals: Totals, norm: MeasuredNorm | None, *, is_called: bool
) -> list[TensorPiece]:
    """The parameters of a batch in pieces of at most ``size`` bytes; a slice that cannot be cut may be larger.

    With a ``norm``, each parameter is whole. With ``is_called``, rules are called on all of them together.
    """
    slices = list[Slice]()
    for p in batch.plan.parameters:
        is_whole = is_called or norm is not None
        slices += [whole(p)] if is_whole else divided(batch, p, size // (2 * p.dtype.itemsize))
    if is_called:
        return [TensorPiece(batch, slices, totals, norm)] if slices else []
    sizes = [2 * aligned(each.length * each.leaf.dtype.itemsize) for each in slices]
    pieces = packed(zip(slices, sizes, strict=True), size, device_of)
    return [TensorPiece(batch, each, totals, norm) for each in pieces]


def whole(leaf: TensorParameter) -> Slice:
    """All elements of a parameter."""
    return Slice(leaf.text, leaf, 0, conversion.local(leaf.tensor).numel())


def divided(batch: HostBatch, p: TensorParameter, count: int) -> Iterator[Slice]:
    """A parameter in slices of at most ``count`` elements, or of the least number that can be.

    One that cannot be cut is whole: its rule is called or sums, or its elements are not in order.
    """
    elements, step = conversion.local(p.tensor).numel(), max(count // _BLOCK, 1) * _BLOCK
    is_cut = (
        elements > step
        and p.executor is HOST
        and not batch.plan.groups[p.group].sums
        and conversion.local(p.tensor).is_contiguous()
        and all(conversion.real(tensor).is_contiguous() for _, tensor in batch.plan.slots[p.text].arrays())
    )
    return sliced(p.text, p, elements, step if is_cut else elements)


def sliced(path: str, leaf: TensorParameter | TensorPlace, elements: int, count: int) -> Iterator[Slice]:
    """The elements of a parameter in slices of ``count``."""
    for first in range(0, max(elements, 1), max(count, 1)):
        yield Slice(path, leaf, first, min(count, elements - first))


def device_of(each: Slice) -> Any:
    """The device of the parameter."""
    return each.leaf.tensor.device


def check_dtype(path: str, g: Any, p: Any) -> None:
    """Raises `RuntimeError` for a gradient of another dtype than its parameter."""
    if g.dtype != p.dtype:
        raise RuntimeError(f"{path}: the gradient has dtype {g.dtype}: expected {p.dtype}, that of the parameter")


def aligned(count: int) -> int:
    """The bytes of a tensor in a place, up to where the next one begins."""
    return -(-count // _ALIGNMENT) * _ALIGNMENT


def viewed(memory: Any, start: int, like: Any) -> Any:
    """A tensor in host memory from this byte on, with another's shape and dtype, and its strides without gaps."""
    flat = memory[start : start + like.numel() * like.element_size()].view(like.dtype)
    return flat.as_strided(like.shape, like.stride()) if conversion.is_dense(like) else flat.view(like.shape)
